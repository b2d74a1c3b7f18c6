// SPDX-License-Identifier: Apache-2.0

package strictjson

import (
	"bytes"
	"iter"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// A Kind is the kind of a value, named by the byte it begins with: '{' '[' '"'
// '0' (any number) 't' 'f' 'n', or 0 for an absent value.
type Kind byte

// A Value is a place in a Doc, valid until the Doc's next Reset; the zero Value
// is absent. Values are comparable: equal means the same place.
type Value struct {
	d *Doc
	i uint32
}

// Exists reports whether v is not absent.
func (v Value) Exists() bool { return v.d != nil }

// Kind is v's kind.
func (v Value) Kind() Kind {
	if v.d == nil {
		return 0
	}
	switch c := v.d.src[v.Offset()]; c {
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return '0'
	default:
		return Kind(c)
	}
}

// Offset is the byte offset of v in the text; 0 if v is absent.
func (v Value) Offset() int {
	if v.d == nil {
		return 0
	}
	return int(v.d.nodes[v.i].start & offset)
}

// Raw is v as it was spelled, lone surrogates mended. It aliases the text and
// must not be changed.
func (v Value) Raw() []byte {
	if v.d == nil {
		return nil
	}
	n := v.d.nodes[v.i]
	start, end := n.start&offset, n.end&offset
	return v.d.src[start:end:end]
}

// Text is the decoded string; "" if v is not a string. Where the string holds no
// escape it aliases the text: it changes when the bytes given to Reset are
// overwritten. A caller that keeps it longer clones it.
func (v Value) Text() string {
	raw, escaped := v.inside()
	if !escaped {
		return alias(raw)
	}
	return alias(appendUnescaped(make([]byte, 0, len(raw)), raw))
}

// Escaped reports whether v is a string that Text has to decode into memory of its own.
func (v Value) Escaped() bool { return v.Kind() == '"' && v.d.nodes[v.i].end&isEscaped != 0 }

// AppendText appends the decoded string to dst; nothing if v is not a string.
func (v Value) AppendText(dst []byte) []byte {
	raw, escaped := v.inside()
	if !escaped {
		return append(dst, raw...)
	}
	return appendUnescaped(dst, raw)
}

// inside is what stands between the quotes of a string.
func (v Value) inside() (raw []byte, escaped bool) {
	if v.Kind() != '"' {
		return nil, false
	}
	n := v.d.nodes[v.i]
	return v.d.src[n.start&offset+1 : n.end&offset-1], n.end&isEscaped != 0
}

// Mended reports whether v is a string in which a lone surrogate became U+FFFD.
func (v Value) Mended() bool {
	return v.d != nil && v.d.nodes[v.i].end&isMended != 0
}

// isName reports whether v is the name of a member.
func (v Value) isName() bool {
	return v.d != nil && v.d.nodes[v.i].start&isName != 0
}

// Int64 is v if it is a number spelled as an integer that fits: no fraction, no
// exponent, and not -0, which is not an integer's spelling.
func (v Value) Int64() (int64, bool) {
	if v.Kind() != '0' {
		return 0, false
	}
	raw := v.Raw()
	if len(raw) > len("-9223372036854775808") || string(raw) == "-0" {
		return 0, false
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	return n, err == nil
}

// Bool is v if it is true or false.
func (v Value) Bool() (val, ok bool) {
	k := v.Kind()
	return k == 't', k == 't' || k == 'f'
}

// Len is the number of members of an object or of elements of an array.
func (v Value) Len() int {
	n := 0
	for range v.children() {
		n++
	}
	if v.Kind() == '{' {
		n /= 2
	}
	return n
}

// Get is the value of the member whose name is exactly name.
func (v Value) Get(name string) Value {
	for n, val := range v.Members() {
		raw, escaped := n.inside()
		if !escaped && string(raw) == name || escaped && n.Text() == name {
			return val
		}
	}
	return Value{}
}

// Members yields the names and values of an object in their order; nothing for
// another kind.
func (v Value) Members() iter.Seq2[Value, Value] {
	return func(yield func(name, val Value) bool) {
		if v.Kind() != '{' {
			return
		}
		nodes := v.d.nodes
		for i := v.i + 1; i < nodes[v.i].next; i = nodes[i+1].next {
			if !yield(Value{v.d, i}, Value{v.d, i + 1}) {
				return
			}
		}
	}
}

// Elements yields the elements of an array in their order; nothing for another
// kind.
func (v Value) Elements() iter.Seq[Value] {
	return func(yield func(Value) bool) {
		if v.Kind() != '[' {
			return
		}
		nodes := v.d.nodes
		for i := v.i + 1; i < nodes[v.i].next; i = nodes[i].next {
			if !yield(Value{v.d, i}) {
				return
			}
		}
	}
}

// children yields the index of every entry directly under v, names and values alike.
func (v Value) children() iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		if v.d == nil {
			return
		}
		nodes := v.d.nodes
		for i := v.i + 1; i < nodes[v.i].next; i = nodes[i].next {
			if !yield(i) {
				return
			}
		}
	}
}

// appendUnescaped appends the decoded form of what stands between the quotes of
// a string that the scan has accepted.
func appendUnescaped(dst, raw []byte) []byte {
	for i := 0; ; {
		n := bytes.IndexByte(raw[i:], '\\')
		if n < 0 {
			return append(dst, raw[i:]...)
		}
		dst = append(dst, raw[i:i+n]...)
		i += n
		c := raw[i+1]
		i += 2
		switch c {
		case 'b':
			dst = append(dst, '\b')
		case 'f':
			dst = append(dst, '\f')
		case 'n':
			dst = append(dst, '\n')
		case 'r':
			dst = append(dst, '\r')
		case 't':
			dst = append(dst, '\t')
		case 'u':
			r, _ := hex4(raw[i:])
			i += 4
			if utf16.IsSurrogate(r) {
				low, _ := hex4(raw[i+2:])
				r = utf16.DecodeRune(r, low)
				i += 6
			}
			dst = utf8.AppendRune(dst, r)
		default:
			dst = append(dst, c)
		}
	}
}
