// SPDX-License-Identifier: Apache-2.0

package scrub

import (
	"strings"
	"unicode/utf8"

	"github.com/pellucid-mcp/pellucid/text/ucd"
)

// namedReferences are the named character references (HTML) of what is hidden
// and of what control tokens are written with. Names are case-sensitive.
var namedReferences = map[string]rune{
	"amp": '&', "AMP": '&', "lt": '<', "LT": '<', "gt": '>', "GT": '>',
	"lbrack": '[', "lsqb": '[', "rbrack": ']', "rsqb": ']', "num": '#', "colon": ':',
	"vert": '|', "verbar": '|', "VerticalLine": '|', "sol": '/', "lowbar": '_',
	"UnderBar": '_', "period": '.', "NewLine": '\n', "Tab": '\t',
	"shy": 0xAD, "zwj": 0x200D, "zwnj": 0x200C, "lrm": 0x200E, "rlm": 0x200F,
	"ZeroWidthSpace": 0x200B, "NegativeVeryThinSpace": 0x200B, "NegativeThinSpace": 0x200B,
	"NegativeMediumSpace": 0x200B, "NegativeThickSpace": 0x200B, "NoBreak": 0x2060,
	"ApplyFunction": 0x2061, "af": 0x2061, "InvisibleTimes": 0x2062, "it": 0x2062,
	"InvisibleComma": 0x2063, "ic": 0x2063,
}

const (
	maxReferenceName   = 22 // of namedReferences
	maxReferenceDigits = 64 // leading zeros are without limit in HTML
	maxReferenceDepth  = 4  // &amp;amp;amp;amp;lt; is read as "<", one deeper is not
)

// reference returns the character that the reference at the start of s stands
// for, and its length in bytes; 0 if not found. References to "&" are
// followed, so that &amp;lt; is "<" to a reader that decodes twice.
func reference(s string) (r rune, n int) {
	for range maxReferenceDepth + 1 {
		body, w := referenceBody(s[max(n, 1):])
		if w == 0 {
			break
		}
		r, n = body, max(n, 1)+w
		if r != '&' {
			break
		}
	}
	return r, n
}

// bareAngle reads &lt and &gt without ";", whatever follows, as HTML does in text.
func bareAngle(s string) (r rune, n int) {
	const length = len("&lt")
	if len(s) < length {
		return 0, 0
	}
	switch s[:length] {
	case "&lt", "&LT":
		return '<', length
	case "&gt", "&GT":
		return '>', length
	}
	return 0, 0
}

// referenceBody reads what stands after the "&".
func referenceBody(s string) (r rune, n int) {
	if s == "" {
		return 0, 0
	}
	if s[0] == '#' {
		return numericBody(s)
	}
	if strings.HasPrefix(s, "amp;") { // by far the most frequent one
		return '&', len("amp;")
	}
	for n < len(s) && n <= maxReferenceName && (s[n]|0x20)-'a' < 26 {
		n++
	}
	if n == len(s) || s[n] != ';' {
		return 0, 0
	}
	if r, ok := namedReferences[s[:n]]; ok {
		return r, n + 1
	}
	return 0, 0
}

// numericBody reads "#" digits or "#x" digits, with or without ";".
func numericBody(s string) (r rune, n int) {
	i, base := 1, rune(10)
	if i < len(s) && s[i]|0x20 == 'x' {
		i, base = 2, 16
	}
	first := i
	for ; i < len(s) && i-first < maxReferenceDigits; i++ {
		d := rune(-1)
		switch c := s[i]; {
		case '0' <= c && c <= '9':
			d = rune(c - '0')
		case base == 16 && 'a' <= c|0x20 && c|0x20 <= 'f':
			d = rune(c|0x20-'a') + 10
		default:
			d = -1
		}
		if d < 0 {
			break
		}
		r = min(r*base+d, ucd.MaxRune+1)
	}
	if i == first || r > ucd.MaxRune {
		return 0, 0
	}
	if i < len(s) && s[i] == ';' {
		i++
	}
	return r, i
}

// dropReferences removes references to hidden characters. Those to CR are left:
// XML is full of them and they hide nothing. C1 numbers stand for visible
// characters of windows-1252, but for five. spec: scrub/3.9
func dropReferences(p *pass) {
	s := p.text
	at := strings.IndexByte(s, '&')
	for at >= 0 {
		n := 1
		if p.blunt {
			p.r.ed.drop(at, at+1, HiddenReference)
		} else if r, w := reference(s[at:]); w > 0 {
			n = w
			if hiddenReference(r) {
				p.part(at, at+w, p.fitting(at, spacerOf(r)), HiddenReference)
			}
		}
		at = next(s, '&', at, at+n)
	}
}

// maxReferences is how many references to hidden characters may stand in a file without use to
// a reader, and one more for each so many bytes: the flag of a region is spelled with six.
const (
	maxReferences     = 6
	bytesPerReference = 256
)

// dropCodedReferences removes references that spell a message to whatever decodes them: those
// to tag characters, and all others that no language or emoji needs where there are many of
// more than one kind, in a row or not. Few of them are honest parts of HTML and XML, and many
// of one kind are what fills the first line of a mail. spec: scrub/3.9
func dropCodedReferences(p *pass) {
	s := p.text
	tags, hidden := false, 0
	var row referenceRow
	for at := strings.IndexByte(s, '&'); at >= 0; {
		if p.blunt {
			p.r.ed.drop(at, at+1, HiddenReference)
		}
		r, w := reference(s[at:])
		if w > 0 && hiddenReference(r) {
			hidden++
			if row.end != at {
				p.dropRow(&row)
				row = referenceRow{span: span{at: at}}
			}
			if row.n == 0 || r != row.last {
				tags = tags || classOf(r) == Tag
				row.mixed, row.g = row.n > 0, row.g.over(spacerOf(r))
			}
			row.end, row.last = at+w, r
			row.n++
		}
		at = next(s, '&', at, at+max(w, 1))
	}
	if p.blunt || !tags && hidden <= maxReferences || p.dropRow(&row) {
		return // the next pass looks at what is left
	}
	d := dereferenced(s)
	var f faithful
	var useless []removal
	f.sweep(d.s, [numUses]bool{}, func(x span, r rune) int {
		if from := d.source(x); s[from.at] == '&' && hiddenReference(r) && !inMathML(s, from, r) {
			useless = append(useless, removal{from, r, spacerOf(r), HiddenReference})
		}
		return x.end
	})
	all := coded(useless, maxReferences+len(s)/bytesPerReference)
	for i := 0; i < len(useless); {
		n := i + 1
		for n < len(useless) && useless[n].at == useless[n-1].end {
			n++
		}
		row := all || coded(useless[i:n], maxReferences)
		for ; i < n; i++ {
			if x := useless[i]; row || classOf(x.is) == Tag {
				p.part(x.at, x.end, p.fitting(x.at, x.g), x.class)
			}
		}
	}
}

// coded reports whether there are more than limit, and not only what fills a line.
func coded(references []removal, limit int) bool {
	if len(references) <= limit {
		return false
	}
	for _, x := range references {
		if x.is != references[0].is || !fillsLine(x.is) {
			return true
		}
	}
	return false
}

// inMathML reports whether the reference to r alone is what an element says, as an invisible operator
// is in MathML.
func inMathML(s string, x span, r rune) bool {
	return classOf(r) == InvisibleOperator && strings.HasSuffix(s[:x.at], "<mo>") && strings.HasPrefix(s[x.end:], "</mo>")
}

// longestUse is more than the hidden characters that have a use in one row: the tags of a flag.
const longestUse = 32

// A referenceRow is a row of references to hidden characters with nothing between them.
type referenceRow struct {
	span
	n     int
	last  rune
	mixed bool // there are two kinds
	g     spacer
}

// dropRow removes a row that is too long for its characters to be of use, unless it is what fills a line. It reports
// whether the text has changed.
func (p *pass) dropRow(row *referenceRow) bool {
	if !p.blunt && row.n > longestUse && (row.mixed || !fillsLine(row.last)) {
		p.part(row.at, row.end, p.fitting(row.at, row.g), HiddenReference)
	}
	return len(p.r.ed.events) > 0
}

// fillsLine reports whether mails fill a line with references to r.
func fillsLine(r rune) bool { return classOf(r) == ZeroWidth || classOf(r) == Filler }

// dereferenced returns s with the references as what they stand for.
func dereferenced(s string) *reading {
	b, from := make([]byte, 0, len(s)), make([]int32, 0, len(s)+1)
	for i := 0; i < len(s); {
		n, before := 1, len(b)
		r, w := rune(0), 0
		if s[i] == '&' {
			if r, w = reference(s[i:]); w == 0 {
				r, w = bareAngle(s[i:])
			}
		}
		if w > 0 {
			b, n = utf8.AppendRune(b, r), w
		} else {
			b = append(b, s[i])
		}
		for range len(b) - before {
			from = append(from, int32(i))
		}
		i += n
	}
	return &reading{string(b), append(from, int32(len(s)))}
}

func hiddenReference(r rune) bool {
	switch {
	case r == '\r':
		return false
	case 0x80 <= r && r <= 0x9F:
		return r == 0x81 || r == 0x8D || r == 0x8F || r == 0x90 || r == 0x9D
	}
	return ucd.Of(r)&ucd.Hidden != 0
}
