// SPDX-License-Identifier: Apache-2.0

package attest

import (
	"strings"

	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/ucd"
)

// notPlain says why s is not the plain text that RFC §3 asks for, and at which of
// its bytes; "" if it is. It looks at s as it is, in NFKC, and in NFKC without
// hidden characters: a later reader may see any of the three. Time is linear.
//
// spec: attestation/3
func notPlain(s string) (finding.Code, int) {
	if code, at := syntax(s); code != "" {
		return code, at
	}
	at, _, _ := ucd.Scan(s, 0, ucd.NFKCActive|ucd.Hidden)
	if at == len(s) {
		return "", 0
	}
	var b ucd.Buffer
	b.Decompose(ucd.NFKC, s, 0)
	b.Compose()
	if code, at := viewed(&b); code != "" {
		return code, at
	}
	if withoutHidden(&b) {
		return viewed(&b)
	}
	return "", 0
}

// viewed looks at the text of b; the offset is that of the source.
func viewed(b *ucd.Buffer) (finding.Code, int) {
	view := string(b.AppendTo(nil))
	code, at := syntax(view)
	if code == "" {
		return "", 0
	}
	for _, c := range b.Cells {
		if at -= len(string(c.R)); at < 0 {
			return code, int(c.Start)
		}
	}
	return code, 0
}

// withoutHidden takes away what is hidden, and puts a line break or space where it
// stood for one. It reports whether there was any.
func withoutHidden(b *ucd.Buffer) bool {
	kept := b.Cells[:0]
	found := false
	for _, c := range b.Cells {
		if ucd.Of(c.R)&ucd.Hidden != 0 {
			found = true
			sub := ucd.Substitute(c.R)
			if sub == 0 {
				continue
			}
			c.R = rune(sub)
		}
		kept = append(kept, c)
	}
	b.Cells = kept
	return found
}

// The rules of typing, in the order in which they are tried. Each returns the
// byte at which it is broken, -1 if it is not.
var rules = []struct {
	code   finding.Code
	needs  string // nothing is wrong in text without any of these bytes; "": see there
	broken func(string) int
}{
	{finding.TypedTag, "<", tagAt},
	{finding.TypedLink, "[", linkAt},
	{finding.TypedFence, "`~", fenceAt},
	{finding.TypedJSON, "{[", jsonAt},
	{finding.TypedEncoded, "", encodedAt},
	{finding.TypedEscapes, `%\&`, escapesAt},
	{finding.TypedDataURI, ":", dataURIAt},
}

func syntax(s string) (finding.Code, int) {
	for i := range rules {
		r := &rules[i]
		if !holdsOne(s, r.needs) {
			continue
		}
		if at := r.broken(s); at >= 0 {
			return r.code, at
		}
	}
	return "", 0
}

// holdsOne is strings.ContainsAny, as one search for each character: faster where s contains none of them.
// Of no bytes, any text holds one.
func holdsOne(s, of string) bool {
	for i := range len(of) {
		if strings.IndexByte(s, of[i]) >= 0 {
			return true
		}
	}
	return of == ""
}

// tagAt finds a complete tag with the name of an HTML, SVG or MathML element, or
// a complete comment, declaration or processing instruction. "Complete" is any
// ">" behind it: readers differ on where attributes end.
func tagAt(s string) int {
	last := strings.LastIndexByte(s, '>')
	for i := 0; i < last; i++ {
		n := strings.IndexByte(s[i:last], '<')
		if n < 0 {
			return -1
		}
		i += n
		if tagOpens(s[i+1:]) {
			return i
		}
	}
	return -1
}

// tagOpens reports whether what follows a "<" begins a tag.
func tagOpens(s string) bool {
	if strings.HasPrefix(s, "!--") || strings.HasPrefix(s, "![CDATA[") || strings.HasPrefix(s, "?xml") ||
		len(s) > 8 && strings.EqualFold(s[:8], "!doctype") {
		return true
	}
	s = strings.TrimPrefix(s, "/")
	n := 0
	for n < len(s) && n <= maxElement && (letter(s[n]) || digit(s[n]) || s[n] == '-') {
		n++
	}
	if n == 0 || n > maxElement || n == len(s) || !strings.ContainsRune(" \t\n\r\f/>", rune(s[n])) {
		return false
	}
	return elements()[strings.ToLower(s[:n])]
}

// linkAt finds an inline link or image with a destination, or a reference
// definition (CommonMark 4.7, 6.3).
func linkAt(s string) int {
	open := openBrackets{}
	for i := 0; i < len(s); i++ {
		n := strings.IndexAny(s[i:], "[]")
		if n < 0 {
			return -1
		}
		i += n
		if s[i] == '[' {
			open.push(i)
			continue
		}
		from := open.pop()
		if from < 0 || i+1 == len(s) {
			continue
		}
		switch s[i+1] {
		case '(':
			if inlineEnds(s, i+2) {
				return from
			}
		case ':':
			if i-from > 1 && lineStart(s, from) && definitionEnds(s, i+2) {
				return from
			}
		}
	}
	return -1
}

// openBrackets is a stack of which only the depth is kept beyond a bound: there
// the place that is reported is that of the last one remembered.
type openBrackets struct {
	at    [32]int
	depth int
}

func (o *openBrackets) push(i int) {
	if o.depth < len(o.at) {
		o.at[o.depth] = i
	}
	o.depth++
}

func (o *openBrackets) pop() int {
	if o.depth == 0 {
		return -1
	}
	o.depth--
	return o.at[min(o.depth, len(o.at)-1)]
}

// inlineEnds reports whether a destination, perhaps with a title, and ")" follow.
func inlineEnds(s string, i int) bool {
	i = skipBlank(s, i)
	end := destinationEnd(s, i)
	if end == i || end == len(s) {
		return false
	}
	if s[end] == ')' {
		return true
	}
	next := skipBlank(s, end)
	return next > end && next < len(s) && strings.IndexByte(`"'()`, s[next]) >= 0
}

// definitionEnds reports whether a destination follows, with nothing behind it on
// the line but perhaps a title: "[1]: Smith et al." is no definition.
func definitionEnds(s string, i int) bool {
	i = skipBlank(s, i)
	end := i
	for end < len(s) && s[end] > ' ' {
		end++
	}
	if end == i {
		return false
	}
	for end < len(s) && (s[end] == ' ' || s[end] == '\t' || s[end] == '\r') {
		end++
	}
	return end == len(s) || strings.IndexByte("\n\"'(", s[end]) >= 0
}

// maxParens is how deep parentheses nest in a destination. It bounds what
// "[a](" repeated costs.
const maxParens = 32

// destinationEnd returns the byte that ends the destination at s[i]: a blank, or
// the ")" that closes the link.
func destinationEnd(s string, i int) int {
	depth := 0
	for n := i; n < len(s); n++ {
		switch c := s[n]; {
		case c <= ' ':
			return n
		case c == '(':
			if depth++; depth > maxParens {
				return i
			}
		case c == ')':
			if depth == 0 {
				return n
			}
			depth--
		}
	}
	return len(s)
}

// skipBlank skips blanks and at most one line break.
func skipBlank(s string, i int) int {
	broken := false
	for i < len(s) && (s[i] == ' ' || s[i] == '\t' || s[i] == '\r' || s[i] == '\n' && !broken) {
		broken = broken || s[i] == '\n'
		i++
	}
	return i
}

// lineStart reports whether at most three spaces stand before s[i] on its line.
func lineStart(s string, i int) bool {
	from := i
	for from > 0 && i-from < 4 && s[from-1] == ' ' {
		from--
	}
	return i-from < 4 && (from == 0 || s[from-1] == '\n' || s[from-1] == '\r')
}

// fenceAt finds a code fence that is closed: a line of three or more backticks or
// tildes, and later one of at least as many and nothing else.
func fenceAt(s string) int {
	var first [2]struct{ at, length int } // the shortest fence so far, of either kind
	start := 0
	for line := range strings.Lines(s) {
		at := start
		start += len(line)
		body := strings.TrimRight(line, "\r\n \t")
		indent := len(body) - len(strings.TrimLeft(body, " "))
		body = body[indent:]
		if indent > 3 || len(body) < 3 || body[0] != '`' && body[0] != '~' {
			continue
		}
		n := len(body) - len(strings.TrimLeft(body, body[:1]))
		info := body[n:]
		if n < 3 || body[0] == '`' && strings.Contains(info, "`") {
			continue
		}
		f := &first[0]
		if body[0] == '~' {
			f = &first[1]
		}
		if f.length > 0 && n >= f.length && info == "" {
			return f.at
		}
		if f.length == 0 || n < f.length {
			f.at, f.length = at+indent, n
		}
	}
	return -1
}

// dataURIAt finds a data: URI (RFC 2397) that names a media type or an encoding,
// so that the word and a colon are no reason.
func dataURIAt(s string) int {
	for i := 0; ; {
		n := strings.IndexByte(s[i:], ':')
		if n < 0 {
			return -1
		}
		i += n + 1
		at := i - len("data:")
		if at < 0 || !strings.EqualFold(s[at:i], "data:") || at > 0 && (letter(s[at-1]) || digit(s[at-1])) {
			continue
		}
		end := i
		for end < len(s) && end-i < 256 && mediaType(s[end]) {
			end++
		}
		if end < len(s) && s[end] == ',' && strings.ContainsAny(s[i:end], "/;") {
			return at
		}
	}
}

func mediaType(c byte) bool {
	return letter(c) || digit(c) || strings.IndexByte("/;=+-._\"", c) >= 0
}
