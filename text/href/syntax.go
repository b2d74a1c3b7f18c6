// SPDX-License-Identifier: Apache-2.0

package href

import (
	"strings"

	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/ucd"
)

// Where a byte may stand (RFC 3986, appendix A).
const (
	inSegment = 1 << iota // pchar, but for pct-encoded
	inPath                // and "/"
	inQuery               // and "/" and "?"; in a fragment too
	inScheme
	inHost // letters, digits, hyphen
	inDID  // idchar of DID Core, but for pct-encoded, and ":"
	digit
)

var classes = func() (t [256]uint8) {
	set := func(chars string, class uint8) {
		for i := range len(chars) {
			t[chars[i]] |= class
		}
	}
	const (
		digits       = "0123456789"
		alphanumeric = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ" + digits
	)
	set(alphanumeric, inSegment|inPath|inQuery|inScheme|inHost|inDID)
	set("-._~!$&'()*+,;=:@", inSegment|inPath|inQuery)
	set("/", inPath|inQuery)
	set("?", inQuery)
	set("+-.", inScheme)
	set("-", inHost)
	set(".-_:", inDID)
	set(digits, digit)
	return t
}()

// A parser holds a URI and what has been found in it.
type parser struct {
	s            string
	path         int // offset of the path, for a scheme without authority
	label, host  string
	escapedColon int // offset of the "%3A" before the port of a did:web; 0 = none
}

func (p *parser) behindColon() int {
	if p.escapedColon == 0 {
		return 0
	}
	return p.escapedColon + len("%3A")
}

// scanScheme returns the scheme in lower case.
func scanScheme(s string) (string, error) {
	for i := range len(s) {
		switch {
		case s[i] == ':' && i > 0:
			return strings.ToLower(s[:i]), nil
		case classes[s[i]]&inScheme == 0, i == 0 && !isLetter(s[i]):
			return "", illegal(s, i)
		}
	}
	return "", refuse(finding.URISyntax, len(s))
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// illegal is the refusal of what stands at s[i]. A hidden character is worth a
// code of its own.
func illegal(s string, i int) error {
	r, _, ok := ucd.Decode(s[i:])
	if ok && hidden(r) {
		return refuse(finding.URIHidden, i)
	}
	return refuse(finding.URISyntax, i)
}

// hidden reports whether r is a character that no URI may hold or decode to: one
// that scrub would remove, or any control.
func hidden(r rune) bool {
	return r < ' ' || ucd.Of(r)&ucd.Hidden != 0
}

// span returns the offset of the first byte from i on that is neither of the
// class nor, where triplets are allowed, part of a well-formed percent triplet.
func span(s string, i int, class uint8, triplets bool) int {
	for i < len(s) {
		switch {
		case classes[s[i]]&class != 0:
			i++
		case triplets && s[i] == '%' && i+2 < len(s) && isHex(s[i+1]) && isHex(s[i+2]):
			i += 3
		default:
			return i
		}
	}
	return i
}

func isHex(c byte) bool {
	return classes[c]&digit != 0 || 'a' <= c|0x20 && c|0x20 <= 'f'
}

// rest checks that s[i:] is a path (which has begun before), and perhaps a query
// and a fragment.
func rest(s string, i int) error {
	i = span(s, i, inPath, true)
	if i < len(s) && s[i] == '?' {
		i = span(s, i+1, inQuery, true)
	}
	if i < len(s) && s[i] == '#' {
		i = span(s, i+1, inQuery, true)
	}
	if i < len(s) {
		return illegal(s, i)
	}
	return nil
}
