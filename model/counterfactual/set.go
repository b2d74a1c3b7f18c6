// SPDX-License-Identifier: Apache-2.0

package counterfactual

import (
	"encoding/hex"
	"errors"
	"iter"
	"math/bits"
)

// A Set is a set of segments, by their place in [Assembly.Segments]. It is
// comparable, and equal sets are equal strings: bit i%8 of byte i/8 stands for
// segment i, and the last byte is not 0.
type Set string

// SetOf is the set of the places given; negative ones are left out.
func SetOf(places ...int) Set {
	var b setBuilder
	for _, i := range places {
		b.add(i)
	}
	return b.set()
}

// AllOf is the set of the places 0 to n-1.
func AllOf(n int) Set {
	var b setBuilder
	for i := range n {
		b.add(i)
	}
	return b.set()
}

// Has reports whether i is in s.
func (s Set) Has(i int) bool {
	return i >= 0 && i/8 < len(s) && s[i/8]>>(i%8)&1 == 1
}

// Len is the number of places in s.
func (s Set) Len() int {
	n := 0
	for i := range len(s) {
		n += bits.OnesCount8(s[i])
	}
	return n
}

// Places yields the places in s, ascending.
func (s Set) Places() iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := range len(s) {
			for b := s[i]; b != 0; b &= b - 1 {
				if !yield(8*i + bits.TrailingZeros8(b)) {
					return
				}
			}
		}
	}
}

// List is Places as a slice, never nil.
func (s Set) List() []int {
	out := make([]int, 0, s.Len())
	for i := range s.Places() {
		out = append(out, i)
	}
	return out
}

// Union is what is in s or in t.
func (s Set) Union(t Set) Set {
	if len(t) > len(s) {
		s, t = t, s
	}
	if t == "" {
		return s
	}
	b := setBuilder(s)
	for i := range len(t) {
		b[i] |= t[i]
	}
	return b.set()
}

// Minus is what is in s and not in t.
func (s Set) Minus(t Set) Set {
	b := setBuilder(s)
	for i := range min(len(s), len(t)) {
		b[i] &^= t[i]
	}
	return b.set()
}

// Contains reports whether every place in t is in s.
func (s Set) Contains(t Set) bool {
	if len(t) > len(s) {
		return false
	}
	for i := range len(t) {
		if t[i]&^s[i] != 0 {
			return false
		}
	}
	return true
}

// Meets reports whether a place is in both.
func (s Set) Meets(t Set) bool {
	for i := range min(len(s), len(t)) {
		if s[i]&t[i] != 0 {
			return true
		}
	}
	return false
}

// setBuilder is a Set that still changes.
type setBuilder []byte

func (b *setBuilder) add(i int) {
	if i < 0 {
		return
	}
	for i/8 >= len(*b) {
		*b = append(*b, 0)
	}
	(*b)[i/8] |= 1 << (i % 8)
}

func (b setBuilder) set() Set {
	for len(b) > 0 && b[len(b)-1] == 0 {
		b = b[:len(b)-1]
	}
	return Set(b)
}

// MarshalText writes s in hex, byte for byte.
func (s Set) MarshalText() ([]byte, error) {
	return hex.AppendEncode(nil, []byte(s)), nil
}

// UnmarshalText reads what MarshalText writes, and nothing else.
func (s *Set) UnmarshalText(text []byte) error {
	b, err := hex.DecodeString(string(text))
	if err != nil || len(b) > 0 && b[len(b)-1] == 0 || hex.EncodeToString(b) != string(text) {
		return errors.New("counterfactual: read set: not the one spelling in hex")
	}
	*s = Set(b)
	return nil
}
