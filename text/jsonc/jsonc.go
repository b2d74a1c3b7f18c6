// SPDX-License-Identifier: Apache-2.0

// Package jsonc turns JSON with comments into strict JSON of the same length.
//
// Programs that people configure by hand allow comments, a comma behind the last
// element and a byte order mark in their files. Plain turns all of that into
// spaces, so that a strict parser reads the rest and every offset that it gives
// is one of the file as well.
package jsonc

import "bytes"

// Plain returns src as JSON of the same length: comments, a byte order mark and
// commas behind the last element become spaces; line feeds stay. Plain reports no
// error: the parser refuses what is still not JSON, as a comment without an end.
func Plain(src []byte) []byte {
	out := bytes.Clone(src)
	if bytes.HasPrefix(out, []byte("\xef\xbb\xbf")) {
		copy(out, "   ")
	}
	comma := -1 // the last comma, if nothing but space and comments stands behind it
	for i := 0; i < len(out); {
		switch c := out[i]; c {
		case '"':
			i, comma = stringEnd(out, i), -1
			continue
		case '/':
			end := commentEnd(out, i)
			if end < 0 {
				return out
			}
			blank(out[i:end])
			i = end
			continue
		case ',':
			comma = i
		case ']', '}':
			if comma >= 0 {
				out[comma], comma = ' ', -1
			}
		case ' ', '\t', '\r', '\n':
		default:
			comma = -1
		}
		i++
	}
	return out
}

func blank(b []byte) {
	for i, c := range b {
		if c != '\n' && c != '\r' {
			b[i] = ' '
		}
	}
}

// stringEnd returns where the string that begins at i ends. A line end ends it
// too: it is no string then, and what follows is not taken for one.
func stringEnd(b []byte, i int) int {
	for i++; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		case '\n':
			return i
		}
	}
	return len(b)
}

// commentEnd returns where the comment at i ends, -1 if no comment is there, or it has no end.
func commentEnd(b []byte, i int) int {
	if i+1 == len(b) {
		return -1
	}
	switch b[i+1] {
	case '/':
		if n := bytes.IndexByte(b[i:], '\n'); n >= 0 {
			return i + n
		}
		return len(b)
	case '*':
		if n := bytes.Index(b[i+2:], []byte("*/")); n >= 0 {
			return i + 2 + n + 2
		}
	}
	return -1
}
