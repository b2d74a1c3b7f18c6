// SPDX-License-Identifier: Apache-2.0

package scrub

import (
	"cmp"
	"slices"
	"strings"
)

// markup is the scratch memory of RFC 4.6.
type markup struct {
	angles   []int     // "<" that are kept and stand at the end of what is kept
	brackets []bracket // "[" that may begin a link
	cuts     []cut
	tag      tagEnds
	ahead    [3]int // the next '"', '\'' and ')', where one was looked for
}

// A cut replaces bytes of the text.
type cut struct {
	start, end int
	with       string
	class      Class
}

// linkJoint stands between a link's text and its destination.
const linkJoint = " \u2014 "

// dropMarkup is RFC 4.6: tags first, then links, images and definitions. Each is
// one linear scan with a stack, since what a removal brings together must be seen
// too: <<b>script>. Entities are not decoded into markup. What one scan makes for
// the other is left to the next pass.
func dropMarkup(p *pass) {
	if strings.IndexByte(p.text, '<') < 0 && strings.IndexByte(p.text, '[') < 0 {
		return
	}
	if p.blunt {
		dropBluntly(p)
		return
	}
	m := &p.r.mark
	m.cuts = m.cuts[:0]
	m.tags(p.text)
	if len(m.cuts) == 0 {
		m.links(p.text)
	}
	slices.SortFunc(m.cuts, func(a, b cut) int { return cmp.Compare(a.start, b.start) })
	for _, c := range m.cuts {
		if start := max(c.start, p.r.ed.done); start < c.end {
			p.r.ed.replace(start, c.end, c.with, c.class)
		}
	}
}

// dropBluntly removes what every tag, link and reference needs.
func dropBluntly(p *pass) {
	s := p.text
	for i := range len(s) {
		if s[i] == '<' || s[i] == '[' {
			p.r.ed.drop(i, i+1, MarkupTag)
		}
	}
}

// cut replaces s[start:end], and with it what was cut within.
func (m *markup) cut(start, end int, with string, c Class) {
	for n := len(m.cuts); n > 0 && m.cuts[n-1].start >= start && m.cuts[n-1].end <= end; n-- {
		m.cuts = m.cuts[:n-1]
	}
	m.cuts = append(m.cuts, cut{start, end, with, c})
}

// tags finds every tag, comment and the like. A "<" that is kept waits on the
// stack while nothing that is kept follows it: what follows once something is
// removed may make a tag of it.
func (m *markup) tags(s string) {
	m.angles = m.angles[:0]
	m.tag = tagEnds{}
	drop := -1 // the ">" of an autolink, to be dropped when it is reached
	for i := strings.IndexByte(s, '<'); i >= 0 && i < len(s); {
		switch c := s[i]; {
		case i == drop:
			m.cut(i, i+1, "", MarkupTag)
			i++
			continue
		case c == '<':
			m.angles = append(m.angles, i)
			i++
			continue
		case len(m.angles) > 0 && tagStart(c):
			open := m.angles[len(m.angles)-1]
			m.angles = m.angles[:len(m.angles)-1]
			if end := autolink(s, i); end > 0 && len(m.angles) == 0 && drop < i {
				m.cut(open, open+1, "", MarkupTag)
				drop = end
			} else if end := m.tag.find(s, i); end > 0 {
				m.cut(open, end, "", MarkupTag)
				i = end
			} else {
				m.cut(open, open+1, "", MarkupTag) // it never ends: only the "<" goes
			}
			continue
		}
		m.angles = m.angles[:0]
		n := strings.IndexByte(s[i:], '<')
		if drop >= i && (n < 0 || i+n > drop) {
			n = drop - i
		}
		if n < 0 {
			return
		}
		i += n
	}
}

// tagStart reports whether c behind "<" makes a tag, an end tag, a comment, a
// declaration or a processing instruction (HTML, 13.2.5.6).
func tagStart(c byte) bool { return letter(c) || c == '/' || c == '!' || c == '?' }

// autolink returns the index of the ">" where s[i:] is the inside of a Markdown
// autolink (CommonMark 6.5), 0 if it is not one.
func autolink(s string, i int) int {
	colon, at := false, false
	for n := i; n < len(s) && n-i < 1024; n++ {
		switch c := s[n]; {
		case c == '>':
			if (colon || at) && n > i {
				return n
			}
			return 0
		case c <= ' ' || c == '<' || c == '"' || c == '\'' || c == '=' && !colon && !at:
			return 0
		case c == ':':
			colon = colon || n-i >= 2
		case c == '@':
			at = at || n > i
		case c == '/' && !colon:
			return 0
		}
	}
	return 0
}

// tagEnds finds where tags end, in time that is linear over a whole text.
type tagEnds struct {
	noClose   bool // no ">" follows any more
	noComment bool // no "-->" follows any more
	failed    int  // times that a quoted value ran to the end of the text
}

// maxQuoteFailures is how often a quoted value may run to the end before quotes
// are no longer honoured: each time costs a look at the rest of the text.
const maxQuoteFailures = 8

// find returns the end of the tag whose "<" stood before s[i], 0 if it has none.
func (t *tagEnds) find(s string, i int) int {
	if t.noClose {
		return 0
	}
	if s[i] == '!' && !t.noComment && strings.HasPrefix(s[i:], "!--") {
		// "-->" may share its hyphens with "<!--": that is an empty comment.
		if n := strings.Index(s[i+1:], "-->"); n >= 0 {
			return i + 1 + n + 3
		}
		t.noComment = true
	}
	if (letter(s[i]) || s[i] == '/') && t.failed < maxQuoteFailures {
		if end := quotedEnd(s, i); end > 0 {
			return end
		}
		t.failed++
	}
	if n := strings.IndexByte(s[i:], '>'); n >= 0 {
		return i + n + 1
	}
	t.noClose = true
	return 0
}

// quotedEnd returns the end of the tag, honouring quoted attribute values: a
// quote opens one only behind "=".
func quotedEnd(s string, i int) int {
	equals := false
	for i < len(s) {
		switch c := s[i]; c {
		case '>':
			return i + 1
		case '=':
			equals = true
		case '"', '\'':
			if equals {
				n := strings.IndexByte(s[i+1:], c)
				if n < 0 {
					return 0
				}
				i += n + 1
			}
			equals = false
		case ' ', '\t', '\n', '\r', '\f':
		default:
			equals = false
		}
		i++
	}
	return 0
}
