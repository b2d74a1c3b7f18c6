// SPDX-License-Identifier: Apache-2.0

package scrub

import "strings"

// maxJSONDepth is how deep JSON may be nested to count as such.
const maxJSONDepth = 512

// What a jsonReader waits for.
const (
	wantValue byte = iota
	wantValueOrEnd
	wantKey
	wantKeyOrEnd
	wantColon
	wantComma // or the end
)

// A jsonReader checks the grammar of JSON. It keeps one bit for each level.
type jsonReader struct {
	want    byte
	depth   int
	objects [maxJSONDepth / 64]uint64 // the levels that are objects
}

// parsesAsJSON reports whether s is one JSON value, or several objects and arrays one behind
// another, as lines of JSON are. A byte order mark may stand before it.
func parsesAsJSON(s string) bool {
	if !beginsAsJSON(s) {
		return false
	}
	i := skipJSONSpace(s, len(s)-len(strings.TrimPrefix(s, byteOrderMark)))
	var r jsonReader
	for values := 0; ; i = skipJSONSpace(s, i) {
		if i == len(s) {
			return values > 0 && r.depth == 0
		}
		if r.depth == 0 && values > 0 && s[i] != '{' && s[i] != '[' {
			return false
		}
		n := r.take(s[i:])
		if n == 0 {
			return false
		}
		if i += n; r.depth == 0 {
			values++
			r.want = wantValue
		}
	}
}

// beginsAsJSON reports whether s begins with an object, an array or a string.
func beginsAsJSON(s string) bool {
	i := skipJSONSpace(s, len(s)-len(strings.TrimPrefix(s, byteOrderMark)))
	return i < len(s) && (s[i] == '{' || s[i] == '[' || s[i] == '"')
}

const byteOrderMark = "\ufeff"

func skipJSONSpace(s string, i int) int {
	for i < len(s) && (s[i] == ' ' || s[i] == '\n' || s[i] == '\t' || s[i] == '\r') {
		i++
	}
	return i
}

// take takes the token at the start of s and returns its length, 0 if it must not stand here.
func (r *jsonReader) take(s string) int {
	switch c := s[0]; c {
	case '{', '[':
		if r.want > wantValueOrEnd || r.depth == maxJSONDepth {
			return 0
		}
		bit := uint64(1) << (r.depth % 64)
		r.objects[r.depth/64] &^= bit
		r.want = wantValueOrEnd
		if c == '{' {
			r.objects[r.depth/64] |= bit
			r.want = wantKeyOrEnd
		}
		r.depth++
		return 1
	case '}', ']':
		if r.depth == 0 || r.inObject() != (c == '}') ||
			r.want != wantComma && r.want != wantKeyOrEnd && r.want != wantValueOrEnd {
			return 0
		}
		r.depth--
		r.want = wantComma
		return 1
	case ',':
		if r.want != wantComma || r.depth == 0 {
			return 0
		}
		r.want = wantValue
		if r.inObject() {
			r.want = wantKey
		}
		return 1
	case ':':
		if r.want != wantColon {
			return 0
		}
		r.want = wantValue
		return 1
	case '"':
		switch r.want {
		case wantKey, wantKeyOrEnd:
			r.want = wantColon
		case wantValue, wantValueOrEnd:
			r.want = wantComma
		default:
			return 0
		}
		return jsonString(s)
	}
	if r.want > wantValueOrEnd {
		return 0
	}
	r.want = wantComma
	return jsonScalar(s)
}

func (r *jsonReader) inObject() bool {
	level := r.depth - 1
	return r.objects[level/64]>>(level%64)&1 != 0
}

// jsonString returns the length of the JSON string at the start of s, 0 if no string stands there.
func jsonString(s string) int {
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			return i + 1
		case c < 0x20:
			return 0
		case c == '\\':
			if i++; i == len(s) {
				return 0
			}
			if s[i] == 'u' {
				if _, n := escape1(s[i-1:]); n == 0 {
					return 0
				}
			} else if strings.IndexByte(`"\/bfnrt`, s[i]) < 0 {
				return 0
			}
		}
	}
	return 0
}

// jsonScalar returns the length of the number or the word at the start of s.
func jsonScalar(s string) int {
	for _, word := range [...]string{"true", "false", "null"} {
		if strings.HasPrefix(s, word) {
			return len(word)
		}
	}
	n := 0
	for n < len(s) && (s[n]-'0' < 10 || n > 0 && strings.IndexByte("+-.eE", s[n]) >= 0 || n == 0 && s[n] == '-') {
		n++
	}
	return n
}

// fitting returns g as it fits at text[at]: a line break would end a string of JSON, and
// veritas-0.1 leaves what its RFC says. In JSON, CR alone of the controls stands outside strings.
func (p *pass) fitting(at int, g spacer) spacer {
	switch {
	case p.policy.Profile == Veritas:
		return ""
	case g == newLine && p.text[at] != '\r' && p.parsesAsJSON():
		return blank
	}
	return g
}

func (p *pass) parsesAsJSON() bool {
	if p.json == jsonUnchecked {
		p.json = notJSON
		if parsesAsJSON(p.text) {
			p.json = isJSON
		}
	}
	return p.json == isJSON
}
