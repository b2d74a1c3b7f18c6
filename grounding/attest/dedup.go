// SPDX-License-Identifier: Apache-2.0

package attest

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"time"

	"github.com/pellucid-mcp/pellucid/text/ucd"
)

// A DedupKey tells whether two attestations say the same to a reader. The
// literal steps of RFC §7 hash "\u00e9" and "e\u200c\u0301" differently, though
// they look the same to a reader; these keys do not. They cover validator, claim,
// verdict, domain and texts, and leave out id, version, issued and expires.
//
// spec: attestation/5
type DedupKey struct {
	// Text is equal where the texts differ in nothing that is seen: hidden
	// characters, compatibility forms, and letters of other scripts that are
	// taken for ASCII.
	Text Hash
	// Skeleton is equal also where they look alike by UTS #39: modem and modern.
	// Equal Text implies equal Skeleton, so an index of Skeleton finds both.
	Skeleton Hash
}

// DedupKey computes both keys.
func (s *Statement) DedupKey() DedupKey {
	k := keyer{text: sha256.New(), skeleton: sha256.New()}
	k.field("pellucid attestation dedup 0.3")
	for _, f := range []string{
		s.Validator, s.Claim.Text, s.Claim.Language, s.Claim.Topic, s.Claim.Type, s.Claim.GroupID,
		string(s.Verdict), s.Domain,
	} {
		k.field(f)
	}
	k.field(s.Rationale)
	k.field(s.Qualifications)
	k.count(len(s.Evidence))
	for i := range s.Evidence {
		k.field(s.Evidence[i].Quote)
		k.field(s.Evidence[i].URI.String())
	}
	k.count(len(s.CitedWorks))
	for i := range s.CitedWorks {
		k.field(s.CitedWorks[i].Title)
		k.field(s.CitedWorks[i].URI.String())
	}
	var key DedupKey
	k.text.Sum(key.Text[:0])
	k.skeleton.Sum(key.Skeleton[:0])
	return key
}

// A keyer hashes fields, each behind its length.
type keyer struct {
	text, skeleton hash.Hash
	ucd            ucd.Buffer
	buf            []byte
	size           [8]byte
}

func (k *keyer) field(s string) {
	s = k.visible(s)
	k.buf = append(k.buf[:0], s...)
	k.write(k.text)
	k.buf = k.appendSkeleton(k.buf[:0], s)
	k.write(k.skeleton)
}

// asciiSkeleton holds the skeleton of every ASCII character: none of them composes
// or moves, so that of a text is theirs in a row.
var asciiSkeleton = func() (t [128]string) {
	for c := range t {
		t[c] = string(ucd.AppendSkeleton(nil, string(rune(c))))
	}
	return t
}()

// asciiOther: the skeleton of the character is another text.
var asciiOther = func() (t [128]bool) {
	for c := range t {
		t[c] = asciiSkeleton[c] != string(rune(c))
	}
	return t
}()

func (k *keyer) appendSkeleton(dst []byte, s string) []byte {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return k.ucd.AppendSkeleton(dst, s)
		}
	}
	done := 0
	for i := range len(s) {
		if asciiOther[s[i]] {
			dst = append(append(dst, s[done:i]...), asciiSkeleton[s[i]]...)
			done = i + 1
		}
	}
	return append(dst, s[done:]...)
}

func (k *keyer) count(n int) {
	binary.BigEndian.PutUint64(k.size[:], uint64(n))
	k.text.Write(k.size[:])
	k.skeleton.Write(k.size[:])
}

// write hashes k.buf.
func (k *keyer) write(h hash.Hash) {
	binary.BigEndian.PutUint64(k.size[:], uint64(len(k.buf)))
	h.Write(k.size[:])
	h.Write(k.buf)
}

// visible repeats NFKC, replacement and removal until nothing changes. Removing
// can bring together what composes, and composing can make a character that is
// replaced; each round shortens the text or is the last but one.
func (k *keyer) visible(s string) string {
	for {
		if at, _, _ := ucd.Scan(s, 0, ucd.NFKCActive|ucd.Confusable|ucd.Hidden); at == len(s) {
			return s
		}
		k.buf = k.ucd.Append(k.buf[:0], ucd.NFKC, s)
		next := string(dropUnseen(k.buf[:0:0], string(k.buf)))
		if next == s {
			return s
		}
		s = next
	}
}

// dropUnseen replaces what is taken for ASCII and removes what is hidden: all of
// it, not only what RFC 4.4 names.
func dropUnseen(dst []byte, s string) []byte {
	done := 0
	for i := 0; i < len(s); {
		at, p, w := ucd.Scan(s, i, ucd.Confusable|ucd.Hidden)
		i = at + w
		if at == len(s) || p&(ucd.Confusable|ucd.Hidden) == 0 {
			continue
		}
		r, _, _ := ucd.Decode(s[at:])
		dst = append(dst, s[done:at]...)
		done = i
		if c, ok := ucd.ASCIIPrototype(r); ok {
			dst = append(dst, c)
		} else if c := ucd.Substitute(r); c != 0 && !(r == '\r' && i < len(s) && s[i] == '\n') {
			dst = append(dst, c)
		}
	}
	return append(dst, s[done:]...)
}

// An Identity is what a store keeps of an attestation to recognise it by.
type Identity struct {
	Hash   Hash // canonical
	Key    DedupKey
	Issued time.Time
}

// Identity computes the attestation's identity.
func (a *Attestation) Identity() Identity {
	return Identity{Hash: a.Hash(), Key: a.DedupKey(), Issued: a.Issued}
}

// A Relation says what a new attestation is to one that is known.
type Relation uint8

const (
	Distinct  Relation = iota // says something else, or another validator says it
	Same                      // a duplicate or a replay: refused
	Renewal                   // says the same, issued later: takes the other's place
	Lookalike                 // only looks like it: stored, and flagged
)

// Relate compares a new attestation with a known one. Keys cover the validator,
// so another validator's equal text is Distinct.
func Relate(known, fresh Identity) Relation {
	switch {
	case known.Hash == fresh.Hash:
		return Same
	case known.Key.Text == fresh.Key.Text && fresh.Issued.After(known.Issued):
		return Renewal
	case known.Key.Text == fresh.Key.Text:
		return Same
	case known.Key.Skeleton == fresh.Key.Skeleton:
		return Lookalike
	}
	return Distinct
}
