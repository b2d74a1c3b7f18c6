// SPDX-License-Identifier: Apache-2.0

package index

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"slices"

	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// A Key makes the values by which an index finds principals and contents:
//
//	HMAC-SHA-256(HMAC-SHA-256(secret, "pellucid index 1"), class || 0x00 || digest), first eight bytes
//
// so that who has the table alone can neither try names nor compare contents. The zero value has a
// key that is no secret.
type Key struct {
	key      [sha256.Size]byte
	id       string
	previous []*Key
}

// NewKey derives the key from the current secret of an installation, and others from previous ones, under
// which an index may still have rows.
func NewKey(secret []byte, previous ...[]byte) *Key {
	k := &Key{}
	copy(k.key[:], sum(secret, []byte("pellucid index 1")))
	k.id = hex.EncodeToString(sum(k.key[:], []byte("id"))[:4])
	for _, p := range previous {
		k.previous = append(k.previous, NewKey(p))
	}
	return k
}

// ID names the key. It does not disclose it.
func (k *Key) ID() string { return k.id }

// Has reports whether the key or a previous one has that id.
func (k *Key) Has(id string) bool {
	return k.id == id || slices.ContainsFunc(k.previous, func(p *Key) bool { return p.id == id })
}

func sum(key []byte, parts ...[]byte) []byte {
	h := hmac.New(sha256.New, key)
	for _, p := range parts {
		h.Write(p)
	}
	return h.Sum(nil)
}

// The classes of keyed values.
const (
	classPrincipal = "principal"
	classBy        = "by"
	classContent   = "content"
)

// class is the class of a subject; "" if the index does not have it.
func class(r ledger.Role) string {
	switch r {
	case ledger.Principal:
		return classPrincipal
	case ledger.By:
		return classBy
	case ledger.KeyRole, ledger.NoContent:
		return ""
	}
	return classContent
}

func first8(b []byte) int64 { return int64(binary.BigEndian.Uint64(b)) }

func (k *Key) of(class string, d ledger.Digest) int64 {
	return first8(sum(k.key[:], []byte(class+"\x00"), d[:]))
}

// all are the values under the key and the previous ones.
func (k *Key) all(class string, d ledger.Digest) []int64 {
	out := []int64{k.of(class, d)}
	for _, p := range k.previous {
		out = append(out, p.of(class, d))
	}
	return out
}

// Personal are the values of a row that its opening has told, under the current key.
func (k *Key) Personal(r *Row) []int64 {
	var out []int64
	for _, s := range r.Subjects {
		if c := class(s.Role); c != "" {
			out = append(out, k.of(c, s.Digest))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Erased are the values under the key and all previous ones of what an opening tells.
func (k *Key) Erased(subjects []ledger.Subject) []int64 {
	out := k.Personal(&Row{Subjects: subjects})
	for _, p := range k.previous {
		out = append(out, p.Personal(&Row{Subjects: subjects})...)
	}
	return out
}

// Public are the values of a row that stand in the log: they need no key.
func Public(r *Row) []int64 {
	var out []int64
	for _, c := range r.Codes {
		out = append(out, CodeValue(c.Code))
	}
	if r.Of != (ledger.ID{}) {
		out = append(out, OfValue(r.Of))
	}
	return out
}

// CodeValue is the value by which the records with a code are found.
func CodeValue(c finding.Code) int64 {
	d := sha256.Sum256([]byte("code\x00" + string(c)))
	return first8(d[:])
}

// OfValue is the value by which the records about a record or held item are found.
func OfValue(id ledger.ID) int64 {
	d := sha256.Sum256(append([]byte("of\x00"), id[:]...))
	return first8(d[:])
}

// Values are the values that a record must have to be selected, the most selective first; of each list one
// is enough.
func (f *Filter) Values(k *Key) [][]int64 {
	var out [][]int64
	if f.Digest != (ledger.Digest{}) {
		out = append(out, k.all(classContent, f.Digest))
	}
	if f.Of != (ledger.ID{}) {
		out = append(out, []int64{OfValue(f.Of)})
	}
	if f.Principal != (ledger.Digest{}) {
		out = append(out, k.all(classPrincipal, f.Principal))
	}
	if f.By != (ledger.Digest{}) {
		out = append(out, k.all(classBy, f.By))
	}
	if f.Code != "" {
		out = append(out, []int64{CodeValue(f.Code)})
	}
	return out
}
