// SPDX-License-Identifier: Apache-2.0

package conform

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/text/unicode/norm"

	"github.com/pellucid-mcp/pellucid/text/ucd"
)

// An oracle is RFC 4 a second time, slowly and from other parts: x/text for NFKC, a
// list of ranges for 4.4, x/net/html for 4.6. Only the confusables are from the
// same data. It knows scope literal alone. Each step can be left out.
type oracle struct {
	without map[string]bool // steps, by the clause
	nfkc    norm.Form       // 0 value is NFC: see newOracle
	once    bool            // not to the fix point
	order   []string        // of the clauses; nil: the RFC's
}

func newOracle() *oracle { return &oracle{without: map[string]bool{}, nfkc: norm.NFKC} }

// made says what an oracle did.
type made struct {
	text                          string
	truncated, replaced, stripped bool
}

func (o *oracle) clean(s string, limit int) made {
	m := made{text: s}
	m.text = strings.ToValidUTF8(m.text, "\ufffd")
	o.cap(&m, limit)
	order := o.order
	if order == nil {
		order = []string{"4.2", "4.3", "4.4", "4.6"}
	}
	for range 1000 {
		before := m.text
		for _, clause := range order {
			if !o.without[clause] {
				o.step(clause, &m)
			}
		}
		if m.text == before || o.once {
			break
		}
	}
	o.cap(&m, limit)
	return m
}

func (o *oracle) step(clause string, m *made) {
	was := m.text
	switch clause {
	case "4.2":
		m.text = o.nfkc.String(m.text)
	case "4.3":
		m.text = replaceConfusables(m.text)
		m.replaced = m.replaced || m.text != was
	case "4.4":
		m.text = dropReferences(stripHidden(m.text))
		m.stripped = m.stripped || m.text != was
	case "4.6":
		m.text = dropLinks(dropTags(m.text))
		m.stripped = m.stripped || m.text != was
	}
}

// cap cuts so that at most limit bytes remain with the marker, not in a letter
// with its marks.
func (o *oracle) cap(m *made, limit int) {
	if o.without["4.1"] || len(m.text) <= limit {
		return
	}
	s := m.text[:limit-len("...")]
	for len(s) > 0 {
		r, n := utf8.DecodeLastRuneInString(s)
		next, _ := utf8.DecodeRuneInString(m.text[len(s):])
		if (r != utf8.RuneError || n > 1) && norm.NFKC.PropertiesString(string(next)).BoundaryBefore() {
			break
		}
		s = s[:len(s)-n]
	}
	m.text, m.truncated = s+"...", true
}

func replaceConfusables(s string) string {
	return strings.Map(func(r rune) rune {
		if c, ok := ucd.ASCIIPrototype(r); ok {
			return rune(c)
		}
		return r
	}, s)
}

// hiddenRanges is the list of the design, written down once more, and U+202F, which
// the RFC names: in the right order it is never met.
var hiddenRanges = [][2]rune{
	{0, 8}, {0x0B, 0x1F}, {0x7F, 0x9F}, {0xAD, 0xAD}, {0x034F, 0x034F}, {0x061C, 0x061C}, {0x115F, 0x1160},
	{0x17B4, 0x17B5}, {0x180B, 0x180F}, {0x200B, 0x200F}, {0x202A, 0x202F}, {0x2060, 0x206F}, {0x3164, 0x3164},
	{0xFDD0, 0xFDEF}, {0xFE00, 0xFE0F}, {0xFEFF, 0xFEFF}, {0xFFA0, 0xFFA0}, {0xFFF0, 0xFFFB}, {0x13430, 0x1343F},
	{0x1BCA0, 0x1BCA3}, {0x1D173, 0x1D17A}, {0xE0000, 0xE0FFF},
}

func isHidden(r rune) bool {
	if r&0xFFFE == 0xFFFE {
		return true
	}
	for _, x := range hiddenRanges {
		if x[0] <= r && r <= x[1] {
			return true
		}
	}
	return false
}

var breaks = strings.NewReplacer("\r\n", "\n", "\v", "\n", "\f", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n", "\u1680", " ")

// stripHidden also drops the marks beyond the eighth on one letter.
func stripHidden(s string) string {
	var b strings.Builder
	marks := 0
	for _, r := range breaks.Replace(s) {
		if isHidden(r) {
			continue
		}
		if ucd.CCC(r) == 0 {
			marks = 0
		} else if marks++; marks > 8 {
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

var references = regexp.MustCompile(`&(?:amp;)*(?:#[0-9]+|#[xX][0-9a-fA-F]+|[A-Za-z]+);?`)

// dropReferences drops references to hidden characters, as package html reads
// them, however often they are escaped.
func dropReferences(s string) string {
	return references.ReplaceAllStringFunc(s, func(ref string) string {
		char := ref
		for range 4 {
			char = html.UnescapeString(char)
		}
		if r, n := utf8.DecodeRuneInString(char); n == len(char) && isHidden(r) {
			return ""
		}
		return ref
	})
}

// dropTags drops what the tokenizer takes for a tag, comment or declaration. Where
// none has an end it drops the "<" alone.
func dropTags(s string) string {
	var b strings.Builder
	for s != "" {
		n := strings.IndexByte(s, '<')
		if n < 0 {
			break
		}
		b.WriteString(s[:n])
		s = s[n:]
		if len(s) > 1 && (s[1]|0x20)-'a' >= 26 && strings.IndexByte("/!?", s[1]) < 0 {
			b.WriteByte('<')
			s = s[1:]
			continue
		}
		if m := autolinks.FindString(s); m != "" {
			b.WriteString(m[1 : len(m)-1])
			s = s[len(m):]
			continue
		}
		z := html.NewTokenizer(strings.NewReader(s))
		switch kind := z.Next(); {
		case kind == html.TextToken:
			b.WriteByte('<')
			s = s[1:]
		case kind == html.ErrorToken || !strings.HasSuffix(string(z.Raw()), ">"):
			s = s[1:]
		default:
			s = s[len(z.Raw()):]
		}
	}
	b.WriteString(s)
	return b.String()
}

var (
	autolinks   = regexp.MustCompile(`^<[A-Za-z][A-Za-z0-9+.-]+:[^\s<>]*>`)
	links       = regexp.MustCompile(`!?\[([^\[\]]*)\]\(\s*([^\s()]*)(?:\s+"[^"]*")?\s*\)`)
	definitions = regexp.MustCompile(`(?m)^ {0,3}\[([^\[\]]+)\]:[ \t]*(\S+)`)
)

func dropLinks(s string) string {
	for links.MatchString(s) {
		s = links.ReplaceAllString(s, "$1 \u2014 $2")
	}
	return definitions.ReplaceAllString(s, "$1 \u2014 $2")
}
