// SPDX-License-Identifier: Apache-2.0

package scrub

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"strings"

	"github.com/pellucid-mcp/pellucid/text/ucd"
)

// Content credentials stand in a text in one of two forms of the C2PA specification (2.3, A.8):
// as bytes in variation selectors, behind U+FEFF, or as base64 between two lines.
const (
	credentialVersion = 1
	credentialHeader  = len("C2PATXT\x00") + 1 + 4 // magic, version, length
	jumbfHeader       = 8                          // length, "jumb"
	minSelector       = len("\ufe00")              // bytes

	armourBegin = "-----BEGIN C2PA MANIFEST-----"
	armourEnd   = "-----END C2PA MANIFEST-----"
	armourURI   = "data:application/c2pa;base64,"
)

// credentialMagic is "C2PATXT" and NUL in variation selectors.
var credentialMagic = func() string {
	var b strings.Builder
	for _, c := range []byte("C2PATXT\x00") {
		if c < 16 {
			b.WriteRune(0xFE00 + rune(c))
		} else {
			b.WriteRune(0xE0100 + rune(c) - 16)
		}
	}
	return b.String()
}()

// A Credential is the SHA-256 of a C2PA manifest that stood in a text.
type Credential [sha256.Size]byte

// dropCredentials removes content credentials, whole, and keeps their digests. spec: scrub/3.15
func dropCredentials(p *pass) {
	s := p.text
	if p.blunt && strings.Contains(s, armourBegin) {
		for i := strings.IndexByte(s, '-'); i >= 0; i = next(s, '-', i, i+1) {
			p.r.ed.drop(i, i+1, ContentCredential)
		}
		return
	}
	selectors, armour := len(s), from(s, armourBegin, 0)
	if p.facts.hidden {
		selectors = from(s, credentialMagic, 0)
	}
	for selectors < len(s) || armour < len(s) {
		if selectors < armour {
			manifest, end, ok := credentialAt(s, selectors)
			if ok {
				p.takeCredential(len(strings.TrimSuffix(s[:selectors], byteOrderMark)), end, "", manifest)
			}
			selectors = from(s, credentialMagic, end)
			armour = from(s, armourBegin, max(armour, end))
			continue
		}
		closing := from(s, armourEnd, armour+len(armourBegin)) // the dashes of one line may not end the other
		if closing == len(s) {
			armour = closing
			continue
		}
		at := armour + strings.LastIndex(s[armour:closing], armourBegin)
		end := closing + len(armourEnd)
		body, is := strings.CutPrefix(strings.TrimSpace(s[at+len(armourBegin):closing]), armourURI)
		if manifest, err := base64.StdEncoding.DecodeString(body); is && strings.Contains(s[at:closing], "\n") && err == nil && len(manifest) >= jumbfHeader && string(manifest[4:jumbfHeader]) == "jumb" {
			p.takeCredential(at, end, blank, manifest)
		}
		armour = from(s, armourBegin, end)
		selectors = from(s, credentialMagic, max(selectors, end))
	}
}

// from returns where form begins in s[at:], len(s) if it does not stand there.
func from(s, form string, at int) int {
	if n := strings.Index(s[at:], form); n >= 0 {
		return at + n
	}
	return len(s)
}

func (p *pass) takeCredential(at, end int, g spacer, manifest []byte) {
	p.part(at, end, p.fitting(at, g), ContentCredential)
	p.r.Credentials = append(p.r.Credentials, sha256.Sum256(manifest))
}

// credentialAt reads the credential in variation selectors that begins at s[at]. end is how far
// it looked.
func credentialAt(s string, at int) (manifest []byte, end int, ok bool) {
	if !strings.HasPrefix(s[at:], credentialMagic) {
		return nil, at, false
	}
	var b []byte
	want := credentialHeader + jumbfHeader
	for end = at; len(b) < want; {
		r, w, _ := ucd.Decode(s[end:])
		c, is := selectorByte(r)
		if !is {
			return nil, end, false
		}
		b, end = append(b, c), end+w
		if len(b) == credentialHeader+jumbfHeader {
			n := binary.BigEndian.Uint32(b[credentialHeader-4:])
			if b[credentialHeader-5] != credentialVersion || string(b[credentialHeader+4:]) != "jumb" ||
				n < uint32(jumbfHeader) || int(n) > len(s)/minSelector {
				return nil, end, false
			}
			want = credentialHeader + int(n)
		}
	}
	return b[credentialHeader:], end, true
}

// selectorByte returns the byte that a variation selector stands for.
func selectorByte(r rune) (byte, bool) {
	switch {
	case 0xFE00 <= r && r <= 0xFE0F:
		return byte(r - 0xFE00), true
	case 0xE0100 <= r && r <= 0xE01EF:
		return byte(r - 0xE0100 + 16), true
	}
	return 0, false
}
