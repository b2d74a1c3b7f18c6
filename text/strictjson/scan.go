// SPDX-License-Identifier: Apache-2.0

package strictjson

import (
	"unsafe"
)

// The scan functions take the offset where their piece begins and return the
// offset behind it, or the offset of the error and its code.

func (d *Doc) scanText() (int, Code) {
	src := d.src
	if len(src) > d.lim.Bytes {
		return d.lim.Bytes, CodeBytes
	}
	if len(src) >= 3 && string(src[:3]) == "\xef\xbb\xbf" {
		return 0, CodeBOM
	}
	i, code := d.scanValue(skipSpace(src, 0), 0)
	if code != 0 {
		return i, code
	}
	if i = skipSpace(src, i); i < len(src) {
		return i, CodeTrailing
	}
	return i, 0
}

// skipSpace returns the offset of the first byte from i on that is not JSON white space.
func skipSpace(src []byte, i int) int {
	for i < len(src) && src[i] <= ' ' && uint64(1)<<src[i]&(1<<' '|1<<'\t'|1<<'\n'|1<<'\r') != 0 {
		i++
	}
	return i
}

func (d *Doc) scanValue(i, depth int) (int, Code) {
	if i >= len(d.src) {
		return i, CodeEnd
	}
	switch d.src[i] {
	case '"':
		return d.scanString(i, 0)
	case '{':
		return d.scanObject(i, depth)
	case '[':
		return d.scanArray(i, depth)
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return d.scanNumber(i)
	case 't':
		return d.scanLiteral(i, "true")
	case 'f':
		return d.scanLiteral(i, "false")
	case 'n':
		return d.scanLiteral(i, "null")
	}
	return i, CodeToken
}

// push adds the index entry of a value without children.
func (d *Doc) push(start, end int, startFlag, endFlags uint32) bool {
	n := len(d.nodes)
	if n >= d.lim.Values {
		return false
	}
	if n == cap(d.nodes) && n >= manyNodes {
		d.reserve(start)
	}
	d.nodes = append(d.nodes, node{uint32(start) | startFlag, uint32(end) | endFlags, uint32(n + 1)})
	return true
}

// manyNodes is from how many entries on room is made for as many as can come: growing
// step by step would need twice the room, for the old and the new.
const manyNodes = 1 << 14

// reserve makes room for the entries that can begin at start or behind it. Each stands
// behind an opening, a comma or a colon that is in no string.
func (d *Doc) reserve(start int) {
	n, inside := 1, false
	for i := start; i < len(d.src); i++ {
		switch c := d.src[i]; {
		case c == '"':
			inside = !inside
		case inside && c == '\\':
			i++
		case !inside && (c == ',' || c == ':' || c == '[' || c == '{'):
			n++
		}
	}
	grown := make([]node, len(d.nodes), min(len(d.nodes)+n, max(d.lim.Values, len(d.nodes)+1)))
	copy(grown, d.nodes)
	d.nodes = grown
}

func (d *Doc) scanLiteral(i int, word string) (int, Code) {
	for k := 0; k < len(word); k++ {
		if i+k >= len(d.src) {
			return i + k, CodeEnd
		}
		if d.src[i+k] != word[k] {
			return i + k, CodeToken
		}
	}
	if !d.push(i, i+len(word), 0, 0) {
		return i, CodeValues
	}
	return i + len(word), 0
}

func (d *Doc) scanArray(i, depth int) (int, Code) {
	self := len(d.nodes)
	if depth >= d.lim.Depth {
		return i, CodeDepth
	}
	if !d.push(i, i, 0, 0) {
		return i, CodeValues
	}
	src := d.src
	i = skipSpace(src, i+1)
	if i < len(src) && src[i] == ']' {
		d.close(self, i+1)
		return i + 1, 0
	}
	for {
		var code Code
		if i, code = d.scanValue(i, depth+1); code != 0 {
			return i, code
		}
		if i = skipSpace(src, i); i >= len(src) {
			return i, CodeEnd
		}
		switch src[i] {
		case ',':
			i = skipSpace(src, i+1)
		case ']':
			d.close(self, i+1)
			return i + 1, 0
		default:
			return i, CodeToken
		}
	}
}

func (d *Doc) scanObject(i, depth int) (int, Code) {
	self := len(d.nodes)
	if depth >= d.lim.Depth {
		return i, CodeDepth
	}
	if !d.push(i, i, 0, 0) {
		return i, CodeValues
	}
	src := d.src
	i = skipSpace(src, i+1)
	if i < len(src) && src[i] == '}' {
		d.close(self, i+1)
		return i + 1, 0
	}
	var names nameSet
	for {
		var code Code
		if i, code = d.scanName(i); code != 0 {
			return i, code
		}
		names.add(d)
		if i, code = d.scanValue(i, depth+1); code != 0 {
			return i, code
		}
		if i = skipSpace(src, i); i >= len(src) {
			return i, CodeEnd
		}
		switch src[i] {
		case ',':
			i = skipSpace(src, i+1)
		case '}':
			d.close(self, i+1)
			if names.suspect {
				if at, code := d.findDuplicate(self, names.n); code != 0 {
					return at, code
				}
			}
			return i + 1, 0
		default:
			return i, CodeToken
		}
	}
}

// scanName scans a member's name and its colon, up to the value.
func (d *Doc) scanName(i int) (int, Code) {
	src := d.src
	if i >= len(src) {
		return i, CodeEnd
	}
	if src[i] != '"' {
		return i, CodeToken
	}
	i, code := d.scanString(i, isName)
	if code != 0 {
		return i, code
	}
	if i = skipSpace(src, i); i >= len(src) {
		return i, CodeEnd
	}
	if src[i] != ':' {
		return i, CodeToken
	}
	return skipSpace(src, i+1), 0
}

// close completes the entry of the object or array at index self.
func (d *Doc) close(self, end int) {
	n := &d.nodes[self]
	n.end, n.next = uint32(end), uint32(len(d.nodes))
}

// alias is b as a string, without a copy: BenchmarkAlias shows what that saves.
func alias(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
