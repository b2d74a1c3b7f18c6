// SPDX-License-Identifier: Apache-2.0

package scrub

import "strings"

const (
	escape = 0x1b
	bell   = 0x07

	// maxSequence bounds a control string (OSC, DCS, SOS, PM, APC), in bytes; no
	// honest one is longer. maxParameters bounds the rest.
	maxSequence   = 4096
	maxParameters = 256
)

// dropEscapes removes control sequences as ECMA-48 and xterm delimit them, in
// their 7-bit form (ESC and an ASCII character) and their 8-bit form (C1, as
// U+0080 to U+009F). Of a sequence that does not end only the introducer goes,
// so no text is lost. spec: scrub/3.3
func dropEscapes(p *pass) {
	s := p.text
	esc := strings.IndexByte(s, escape)
	c1 := strings.IndexByte(s, 0xc2)
	for esc >= 0 || c1 >= 0 {
		at := esc
		if at < 0 || c1 >= 0 && c1 < at {
			at = c1
		}
		n := sequence(s[at:])
		if n > 0 {
			p.r.ed.drop(at, at+n, AnsiEscape)
		}
		at += max(n, 1)
		esc, c1 = next(s, escape, esc, at), next(s, 0xc2, c1, at)
	}
}

// next returns the index of the first c in s[at:], given that of an earlier one.
func next(s string, c byte, was, at int) int {
	if was < 0 || was >= at {
		return was
	}
	if n := strings.IndexByte(s[at:], c); n >= 0 {
		return at + n
	}
	return -1
}

// sequence returns the length of the control sequence at the start of s, or of
// its introducer if it does not end; 0 if not found.
func sequence(s string) int {
	kind, n := introducer(s)
	switch kind {
	case 0:
		return 0
	case '[': // CSI: parameters, intermediates, one final
		i := n
		for i < len(s) && i < maxParameters && s[i] >= 0x20 && s[i] <= 0x3f {
			i++
		}
		if i < len(s) && s[i] >= 0x40 && s[i] <= 0x7e {
			return i + 1
		}
		return n
	case ']', 'P', 'X', '^', '_': // OSC, DCS, SOS, PM, APC: up to ST, or BEL
		if end := stringEnd(s[n:]); end >= 0 {
			return n + end
		}
	}
	return n
}

// introducer returns the kind of the sequence at the start of s, by the letter
// that stands after ESC in the 7-bit form, and the length of what introduces it.
// Any other complete escape sequence is of kind '.'.
func introducer(s string) (kind byte, n int) {
	if s[0] == 0xc2 {
		if len(s) < 2 || s[1] < 0x80 || s[1] > 0x9f {
			return 0, 0
		}
		switch s[1] - 0x40 {
		case '[', ']', 'P', 'X', '^', '_':
			return s[1] - 0x40, 2
		}
		return 0, 0 // a lone C1 control, which is not the start of anything
	}
	i := 1
	for i < len(s) && i < maxParameters && s[i] >= 0x20 && s[i] <= 0x2f { // nF
		i++
	}
	switch {
	case i == len(s) || s[i] < 0x30 || s[i] > 0x7e:
		return '.', 1 // ESC alone
	case i > 1:
		return '.', i + 1
	}
	switch s[1] {
	case '[', ']', 'P', 'X', '^', '_':
		return s[1], 2
	}
	return '.', 2
}

// stringEnd returns the length of a control string with its terminator, -1 if it
// does not end nearby. It stops at any other control but TAB and line breaks, so
// that what one sequence is denied no other looks at again.
func stringEnd(s string) int {
	for i := 0; i < len(s) && i < maxSequence; i++ {
		switch c := s[i]; {
		case c == bell:
			return i + 1
		case c == escape:
			if i+1 < len(s) && s[i+1] == '\\' {
				return i + 2
			}
			return -1
		case c == 0xc2 && i+1 < len(s) && s[i+1] <= 0x9f:
			if s[i+1] == 0x9c { // ST
				return i + 2
			}
			return -1
		case c < 0x20 && c != '\t' && c != '\n' && c != '\r':
			return -1
		}
	}
	return -1
}
