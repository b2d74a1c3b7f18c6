// SPDX-License-Identifier: Apache-2.0

package attest

import "strings"

// minJSON is the length from which on a JSON object or array is a structure that
// a reader might unpack, in bytes.
const minJSON = 16

// jsonAt finds a JSON object with members, or an array that holds anything but
// numbers: [1] is a citation and [0.81, 0.94] an interval.
//
// A search that fails begins anew at the next bracket, so text made for it would
// take quadratic time. The budget ends that; text that exhausts it is refused: it
// is made of JSON, even if of no whole one.
func jsonAt(s string) int {
	j := jsonSearch{s: s, budget: 16*len(s) + 1024}
	for i := 0; i < len(s); i++ {
		n := strings.IndexAny(s[i:], "{[")
		if n < 0 {
			return -1
		}
		i += n
		j.structured = false
		end := j.value(i, 0)
		if j.budget < 0 || end-i >= minJSON && j.structured {
			return i
		}
	}
	return -1
}

type jsonSearch struct {
	s          string
	budget     int  // bytes that may still be looked at
	structured bool // a member, string or literal was seen
}

// maxJSONDepth bounds the recursion. What nests deeper is found from within.
const maxJSONDepth = 64

// value returns the end of the JSON value at i, -1 if not found.
func (j *jsonSearch) value(i, depth int) int {
	if j.budget--; j.budget < 0 || i >= len(j.s) || depth > maxJSONDepth {
		return -1
	}
	switch c := j.s[i]; {
	case c == '{':
		return j.list(i, '}', depth, j.member)
	case c == '[':
		return j.list(i, ']', depth, j.value)
	case c == '"':
		j.structured = true
		return j.str(i)
	case c == '-' || digit(c):
		return j.run(i, func(c byte) bool { return digit(c) || strings.IndexByte("+-.eE", c) >= 0 })
	case letter(c):
		end := j.run(i, letter)
		if w := j.s[i:end]; w == "true" || w == "false" || w == "null" {
			j.structured = true
			return end
		}
	}
	return -1
}

// list reads what stands between the bracket at i and its other.
func (j *jsonSearch) list(i int, closing byte, depth int, element func(i, depth int) int) int {
	i = j.blank(i + 1)
	if i < len(j.s) && j.s[i] == closing {
		return i + 1
	}
	for {
		if i = element(i, depth+1); i < 0 {
			return -1
		}
		if i = j.blank(i); i >= len(j.s) {
			return -1
		}
		switch j.s[i] {
		case closing:
			return i + 1
		case ',':
			i = j.blank(i + 1)
		default:
			return -1
		}
	}
}

func (j *jsonSearch) member(i, depth int) int {
	if i >= len(j.s) || j.s[i] != '"' {
		return -1
	}
	i = j.str(i)
	if i < 0 {
		return -1
	}
	if i = j.blank(i); i >= len(j.s) || j.s[i] != ':' {
		return -1
	}
	end := j.value(j.blank(i+1), depth)
	if end >= 0 {
		j.structured = true
	}
	return end
}

// str returns the end of the string whose quote is at i.
func (j *jsonSearch) str(i int) int {
	for n := i + 1; n < len(j.s); n++ {
		if j.budget--; j.budget < 0 {
			return -1
		}
		switch c := j.s[n]; {
		case c == '"':
			return n + 1
		case c == '\\':
			n++
		case c < ' ':
			return -1
		}
	}
	return -1
}

func (j *jsonSearch) blank(i int) int {
	return j.run(i, func(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' })
}

func (j *jsonSearch) run(i int, of func(byte) bool) int {
	for i < len(j.s) && of(j.s[i]) {
		i++
		j.budget--
	}
	return i
}
