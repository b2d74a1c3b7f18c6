// SPDX-License-Identifier: Apache-2.0

package attest

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
	"github.com/pellucid-mcp/pellucid/text/ucd"
)

// A Hash is a SHA-256 (bytes32 in the grounding RFC).
type Hash [sha256.Size]byte

const hashPrefix = "sha256:"

// String is "sha256:" and 64 hex digits.
func (h Hash) String() string { return hashPrefix + hex.EncodeToString(h[:]) }

// ParseHash reads the spellings that the documents use: 64 lower-case hex digits,
// alone (bytes32), behind "0x" or behind "sha256:".
func ParseHash(s string) (Hash, bool) {
	var h Hash
	s = strings.TrimPrefix(s, hashPrefix)
	if len(s) == 2+2*len(h) {
		s = strings.TrimPrefix(s, "0x")
	}
	if len(s) != 2*len(h) || strings.ContainsAny(s, "ABCDEF") {
		return Hash{}, false
	}
	_, err := hex.Decode(h[:], []byte(s))
	return h, err == nil
}

// CanonicalHash is the canonical hash of a JSON object without its member
// "proof". The error is a *Refusal; of a version that does not exist too.
//
// spec: attestation/4
func CanonicalHash(doc []byte, v Version) (Hash, error) {
	var d strictjson.Doc
	if err := d.Reset(doc, strictjson.Limits{}); err != nil {
		return Hash{}, refuseJSON(err)
	}
	h, r := canonicalHash(d.Root(), v)
	if r != nil {
		return Hash{}, r
	}
	return h, nil
}

// StatedVersion is the version that a JSON object names, whatever else it is; 0.2
// where it names none or is no object. What it names may not exist.
func StatedVersion(doc []byte) Version {
	var d strictjson.Doc
	if d.Reset(doc, strictjson.Limits{}) != nil {
		return V02
	}
	for _, name := range []string{"canonicalisation_version", "canonicalisationVersion"} {
		if v := d.Root().Get(name); v.Exists() {
			return Version(v.Text())
		}
	}
	return V02
}

// Hash is the canonical hash of the envelope, by the version that it names.
func (a *Attestation) Hash() Hash {
	var e strictjson.Edits
	if a.Version == V03 {
		foldStrings(&e, a.doc.Root())
	}
	if e.Len() == 0 {
		return a.digest
	}
	h, err := digest(&e, a.doc.Root())
	if err != nil {
		panic("attest: hash of what was parsed: " + err.Error()) // it holds no numbers
	}
	return h
}

// Hash is the canonical hash of the claim as Context spells it, by that version;
// "" stands for 0.2.
func (c Claim) Hash(v Version) Hash {
	if v == V03 {
		for _, s := range []*string{&c.Text, &c.Language, &c.Topic, &c.Type, &c.GroupID} {
			*s = fold(*s)
		}
	}
	return sha256.Sum256(c.appendJSON(nil))
}

func canonicalHash(root strictjson.Value, v Version) (Hash, *Refusal) {
	if root.Kind() != '{' || v != V02 && v != V03 {
		return Hash{}, &Refusal{Code: finding.Misshapen}
	}
	var e strictjson.Edits
	if v == V03 {
		foldStrings(&e, root)
	}
	h, err := digest(&e, root)
	if err != nil {
		return Hash{}, refuseJSON(err)
	}
	return h, nil
}

// digest is the SHA-256 of the JCS of root with edits and without its proof.
func digest(e *strictjson.Edits, root strictjson.Value) (Hash, error) {
	e.Remove(root.Get("proof"))
	b, err := canonical(e, root)
	return sha256.Sum256(b), err
}

// canonical is the JCS of v with edits.
func canonical(e *strictjson.Edits, v strictjson.Value) ([]byte, error) {
	raw := v.Raw()
	size := len(raw)
	if e.Len() > 0 {
		raw = e.Apply(make([]byte, 0, size), v)
	}
	return strictjson.Canonical(make([]byte, 0, size), raw, strictjson.Limits{})
}

// foldStrings puts steps 2 to 4 of RFC §7 in the place of every string value.
// Names of members are not values.
func foldStrings(e *strictjson.Edits, v strictjson.Value) {
	switch v.Kind() {
	case '"':
		s := v.Text()
		if f := fold(s); f != s {
			e.ReplaceText(v, f)
		}
	case '[':
		for el := range v.Elements() {
			foldStrings(e, el)
		}
	case '{':
		for _, m := range v.Members() {
			foldStrings(e, m)
		}
	}
}

// fold is steps 2 to 4 of RFC §7, each once, in their order, to the letter: NFKC;
// characters whose prototype is one ASCII character; the set that RFC 4.4 names.
// It is independent of what an operator removes when text is shown.
func fold(s string) string {
	if at, _, _ := ucd.Scan(s, 0, ucd.NFKCActive|ucd.Confusable|ucd.Hidden); at == len(s) {
		return s
	}
	s = ucd.NFKC.String(s)
	var out []byte
	done := 0
	for i := 0; i < len(s); {
		at, p, w := ucd.Scan(s, i, ucd.Confusable|ucd.Hidden)
		i = at + w
		if at == len(s) {
			break
		}
		r, _, _ := ucd.Decode(s[at:])
		switch {
		case p&ucd.Confusable != 0:
			c, _ := ucd.ASCIIPrototype(r)
			out = append(append(out, s[done:at]...), c)
		case ucd.InRFCSet(r):
			out = append(out, s[done:at]...)
		default:
			continue
		}
		done = i
	}
	if done == 0 {
		return s
	}
	return string(append(out, s[done:]...))
}
