// SPDX-License-Identifier: Apache-2.0

package strictjson

import (
	"bytes"
	"hash/maphash"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A nameSet decides cheaply, for most objects, that no name occurs twice: one
// bit for each fingerprint seen.
type nameSet struct {
	seen    uint64
	n       int
	suspect bool // two names may be equal
}

// add adds the name that d scanned last.
func (s *nameSet) add(d *Doc) {
	name := &d.nodes[len(d.nodes)-1]
	s.n++
	if name.end&isEscaped != 0 || d.lim.FoldedNames {
		s.suspect = s.suspect || s.n > 1 || name.end&isEscaped != 0
		return
	}
	raw := d.src[name.start&offset+1 : name.end&offset-1]
	print := uint32(len(raw))
	if len(raw) > 0 {
		print |= uint32(raw[0])<<8 | uint32(raw[len(raw)-1])<<16 | uint32(raw[len(raw)/2])<<24
	}
	bit := uint64(1) << (print * 0x9e3779b1 >> 26)
	s.suspect = s.suspect || s.seen&bit != 0
	s.seen |= bit
}

// seed makes the hash of names unpredictable to the author of the text. It decides
// only how long a look-up takes, never what is found.
var seed = maphash.MakeSeed()

// findDuplicate looks for the first name of the object at index self, which has
// n members, that stood in it before.
func (d *Doc) findDuplicate(self, n int) (int, Code) {
	if n <= 8 {
		return d.findDuplicatePairwise(self)
	}
	size := 16
	for size < n+n/3 {
		size *= 2
	}
	if cap(d.table) < size {
		d.table = make([]uint32, size)
	}
	table := d.table[:size]
	clear(table)
	for i := uint32(self) + 1; i < d.nodes[self].next; i = d.nodes[i+1].next {
		key := d.key(0, i)
		h := uint32(maphash.Bytes(seed, key)) & uint32(size-1)
		for table[h] != 0 { // 0 is the root, never a name
			if bytes.Equal(key, d.key(1, table[h])) {
				return d.duplicate(table[h], i)
			}
			h = (h + 1) & uint32(size-1)
		}
		table[h] = i
	}
	return 0, 0
}

func (d *Doc) findDuplicatePairwise(self int) (int, Code) {
	for i := uint32(self) + 1; i < d.nodes[self].next; i = d.nodes[i+1].next {
		key := d.key(0, i)
		for k := uint32(self) + 1; k < i; k = d.nodes[k+1].next {
			if bytes.Equal(key, d.key(1, k)) {
				return d.duplicate(k, i)
			}
		}
	}
	return 0, 0
}

// duplicate is the error for the name at index i, equal to that at index k.
func (d *Doc) duplicate(k, i uint32) (int, Code) {
	code := CodeDuplicate
	if d.lim.FoldedNames && (Value{d, k}).Text() != (Value{d, i}).Text() {
		code = CodeFolded
	}
	return int(d.nodes[i].start & offset), code
}

// key is the name at index i in the form in which names are compared. It is
// valid until the next call with the same slot.
func (d *Doc) key(slot int, i uint32) []byte {
	n := d.nodes[i]
	raw := d.src[n.start&offset+1 : n.end&offset-1]
	if n.end&isEscaped != 0 {
		d.keys[slot] = appendUnescaped(d.keys[slot][:0], raw)
		raw = d.keys[slot]
	}
	if d.lim.FoldedNames {
		if n.end&isEscaped != 0 {
			raw = bytes.Clone(raw)
		}
		d.keys[slot] = appendFolded(d.keys[slot][:0], raw)
		raw = d.keys[slot]
	}
	return raw
}

// appendFolded appends name with each code point replaced by the least one of
// its simple case folding orbit, so that two names fold to the same bytes if
// and only if strings.EqualFold holds them to be equal.
func appendFolded(dst, name []byte) []byte {
	for len(name) > 0 {
		r, n := utf8.DecodeRune(name)
		name = name[n:]
		for next := unicode.SimpleFold(r); ; next = unicode.SimpleFold(next) {
			if next <= r {
				r = next
				break
			}
			r = next
		}
		dst = utf8.AppendRune(dst, r)
	}
	return dst
}

// Strays finds a member of v that is called almost like one of the known names:
// equal under case folding (as encoding/json, and with it many peers, would
// match it) but not spelled so. Such a member means one thing to one reader and
// nothing to the next, so an object of the protocol that has one is refused.
func (v Value) Strays(known []string) (name Value, found bool) {
	for name := range v.Members() {
		s := name.Text()
		for _, k := range known {
			if s != k && strings.EqualFold(s, k) {
				return name, true
			}
		}
	}
	return Value{}, false
}
