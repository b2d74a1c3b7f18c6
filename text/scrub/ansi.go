// SPDX-License-Identifier: Apache-2.0

package scrub

import (
	"strings"

	"github.com/pellucid-mcp/pellucid/text/ucd"
)

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
	eachSequence(p.text, func(at, end int, g spacer) {
		p.part(at, end, p.fitting(at, g), AnsiEscape)
	})
}

// eachSequence calls found for each run of control sequences in s, with the spacer that the
// run leaves.
func eachSequence(s string, found func(at, end int, g spacer)) {
	esc := strings.IndexByte(s, escape)
	c1 := strings.IndexByte(s, 0xc2)
	for esc >= 0 || c1 >= 0 {
		at := esc
		if at < 0 || c1 >= 0 && c1 < at {
			at = c1
		}
		end, run := at, spacer("")
		for end < len(s) && (s[end] == escape || s[end] == 0xc2 && (end > at || at == 0 || s[at-1] < 0x80)) {
			n, g := sequence(s[end:])
			if n == 0 {
				break
			}
			end, run = end+n, run.over(g)
		}
		if end > at {
			found(at, end, run)
		}
		at = max(end, at+1)
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

// sequence returns the length of the control sequence at the start of s, or of its introducer
// if it does not end, and the spacer that it leaves; 0 if not found. A C1 character stands in
// text that was decoded with the wrong charset too: it introduces a string only where its body
// is one that a terminal takes.
func sequence(s string) (int, spacer) {
	kind, n := introducer(s)
	switch kind {
	case 0:
		return 0, ""
	case '[': // CSI: parameters, intermediates, one final
		i := n
		for i < len(s) && i < maxParameters && s[i] >= 0x20 && s[i] <= 0x3f {
			i++
		}
		if i < len(s) && s[i] >= 0x40 && s[i] <= 0x7e && (s[0] == escape || i > n) {
			return i + 1, csiSpacer(s[n:i], s[i])
		}
	case ']', 'P', 'X', '^', '_': // OSC, DCS, SOS, PM, APC: up to ST, or BEL
		if end := stringEnd(s[n:]); end >= 0 && (s[0] == escape || stringBody(kind, s[n:n+end])) {
			return n + end, ""
		}
	default:
		return n, escSpacer(s[1:n])
	}
	if s[0] != escape {
		return 0, "" // a control like any other
	}
	return n, blank
}

// csiSpacer returns what a control sequence leaves: nothing if it leaves the cursor where it
// is or sets a mode (it has a private or an intermediate character), a line break if it moves
// the cursor to another line.
func csiSpacer(parameters string, final byte) spacer {
	switch {
	case strings.IndexByte("ABEFHLMSTdefkru", final) >= 0 && !strings.ContainsAny(parameters, "<=>? !\"#$%&'()*+,-./"):
		return newLine
	case strings.IndexByte("JKXcghilmnpqtxy", final) >= 0 || strings.ContainsAny(parameters, "<=>? !\"#$%&'()*+,-./"):
		return ""
	}
	return blank
}

// escSpacer returns what the escape sequence ESC body leaves.
func escSpacer(body string) spacer {
	switch body {
	case "D", "E", "M", "8", "c", "#8": // another line, a saved place, a clean screen
		return newLine
	case "7", "=", ">", "H", "N", "O", "V", "W", "Z", "l", "m", "n", "o", "|", "}", "~":
		return ""
	}
	if len(body) > 1 { // a charset, the size of a line
		return ""
	}
	return blank
}

// maxBareString bounds the body of an SOS, PM or APC string behind a C1 character.
const maxBareString = 256

// stringBody reports whether a terminal takes body, which ends with its terminator: of an OSC
// a number before ";" or alone, of the others printable ASCII.
func stringBody(kind byte, body string) bool {
	digits := 0
	for digits < len(body) && body[digits]-'0' < 10 {
		digits++
	}
	if kind == ']' {
		return digits > 0 && digits < 6 && (body[digits] == ';' || body[digits] < 0x20 || body[digits] == 0xc2)
	}
	n := ucd.PlainASCIIBelow(body, 0x7f)
	return len(body)-n <= len("\u009c") && (kind == 'P' || n <= maxBareString)
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
