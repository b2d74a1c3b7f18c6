// SPDX-License-Identifier: Apache-2.0

package sequence

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strings"
)

// Records that were acknowledged wait in the store for their signature. Until then a chain
// protects them: each process that writes is a writer, numbers its records from 1 on, and
// authenticates each with a key of the installation:
//
//	mac = HMAC-SHA-256(key, "link" || writer || 0x00 || number || previous mac || SHA-256(statement))
//	tag = HMAC-SHA-256(key, "last" || writer || 0x00 || number || mac)
//
// with the number in eight bytes, big-endian. The tag stands for the last link, so that one
// that is removed from the end is missed. A link stays in the store once its record is in
// the log: a gap between what is signed and what waits is found, too. Nothing is shared
// between writers, so that none waits for another.

// A Link is the place of a record in the chain of its writer. The zero value is that of a
// record that has none: it was stored by an earlier release.
type Link struct {
	Writer string
	Seq    int64
	Prev   []byte // mac of the link before; empty for the first
	MAC    []byte
}

// A ChainKey authenticates links. The zero value has a key that is no secret.
type ChainKey struct {
	key      [sha256.Size]byte
	id       string
	previous []*ChainKey // of writers that began before the key was rotated
}

// NewChainKey derives the key from the current secret of an installation, and others from previous
// ones, by which only links of earlier writers are checked.
func NewChainKey(secret []byte, previous ...[]byte) *ChainKey {
	k := &ChainKey{}
	copy(k.key[:], sum(secret, []byte("pellucid ledger chain 1")))
	k.id = hex.EncodeToString(sum(k.key[:], []byte("id"))[:4])
	for _, p := range previous {
		k.previous = append(k.previous, NewChainKey(p))
	}
	return k
}

// of returns the key that a writer uses, or nil.
func (k *ChainKey) of(writer string) *ChainKey {
	if strings.HasPrefix(writer, k.id+"-") {
		return k
	}
	for _, p := range k.previous {
		if p.of(writer) != nil {
			return p
		}
	}
	return nil
}

func sum(key []byte, parts ...[]byte) []byte {
	h := hmac.New(sha256.New, key)
	for _, p := range parts {
		h.Write(p)
	}
	return h.Sum(nil)
}

// NewWriter returns the name of a new writer: which key it uses, and 16 random digits.
func (k *ChainKey) NewWriter() string {
	var b [8]byte
	rand.Read(b[:]) // never fails
	return k.id + "-" + hex.EncodeToString(b[:])
}

// Owns reports whether a writer of that name uses this key or a previous one.
func (k *ChainKey) Owns(writer string) bool { return k.of(writer) != nil }

func (k *ChainKey) mac(writer string, seq int64, prev, statement []byte) []byte {
	if of := k.of(writer); of != nil {
		k = of
	}
	digest := sha256.Sum256(statement)
	return sum(k.key[:], []byte("link"+writer+"\x00"), binary.BigEndian.AppendUint64(nil, uint64(seq)), prev, digest[:])
}

// Next returns the link of a record behind the last one of a writer.
func (k *ChainKey) Next(last Link, record []byte) Link {
	seq := last.Seq + 1
	return Link{last.Writer, seq, last.MAC, k.mac(last.Writer, seq, last.MAC, statementOf(record))}
}

// Tag authenticates the last link of a writer.
func (k *ChainKey) Tag(l Link) []byte {
	if of := k.of(l.Writer); of != nil {
		k = of
	}
	return sum(k.key[:], []byte("last"+l.Writer+"\x00"), binary.BigEndian.AppendUint64(nil, uint64(l.Seq)), l.MAC)
}

// Holds reports whether a link is that of the statement.
func (k *ChainKey) Holds(l Link, statement []byte) bool {
	return hmac.Equal(l.MAC, k.mac(l.Writer, l.Seq, l.Prev, statement))
}

// statementOf is the statement of a record as it is stored: what stands before the opening.
func statementOf(record []byte) []byte {
	statement, _, _ := bytes.Cut(record, []byte{'\n'})
	return statement
}

// Intact reports whether a record that waits is what its writer has stored. One of a writer
// with another key cannot be checked here and counts as intact.
func (k *ChainKey) Intact(p *Pending) bool {
	return k == nil || !k.Owns(p.Link.Writer) || k.Holds(p.Link, statementOf(p.Record))
}

// inOrder puts the records of each writer into the order of their numbers, at the places
// that records of that writer have.
func inOrder(waiting []Pending) {
	places := map[string][]int{}
	for i := range waiting {
		if w := waiting[i].Link.Writer; w != "" {
			places[w] = append(places[w], i)
		}
	}
	for _, at := range places {
		for i := 1; i < len(at); i++ { // mostly in order: this is one pass then
			for j := i; j > 0 && waiting[at[j]].Link.Seq < waiting[at[j-1]].Link.Seq; j-- {
				waiting[at[j]], waiting[at[j-1]] = waiting[at[j-1]], waiting[at[j]]
			}
		}
	}
}
