// SPDX-License-Identifier: Apache-2.0

package scrub

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pellucid-mcp/pellucid/text/ucd"
)

// A reading is a text as a program reads it that decodes escapes or references, and where each
// of its bytes comes from.
type reading struct {
	s    string
	from []int32 // of each byte of s, and of its end; nil where s is the text itself
}

func (d *reading) source(x span) span {
	if d.from == nil {
		return x
	}
	return span{int(d.from[x.at]), int(d.from[x.end])}
}

// unescaped returns what the JSON string says whose inside is d.s[at:end].
func (d *reading) unescaped(at, end int) *reading {
	var b []byte
	var from []int32
	for at < end {
		r, n := jsonEscape(d.s[at:end])
		if n == 0 {
			r, n = -1, 1
		}
		where := int32(d.source(span{at, at}).at)
		before := len(b)
		if r < 0 {
			b = append(b, d.s[at])
		} else {
			b = utf8.AppendRune(b, r)
		}
		for range len(b) - before {
			from = append(from, where)
		}
		at += n
	}
	return &reading{string(b), append(from, int32(d.source(span{end, end}).at))}
}

// jsonEscape returns what the escape at the start of s stands for, with both halves of a
// surrogate pair, and its length; 0 if s begins with no escape.
func jsonEscape(s string) (r rune, n int) {
	if s[0] != '\\' || len(s) < 2 {
		return 0, 0
	}
	if s[1] != 'u' {
		if k := strings.IndexByte("bfnrt", s[1]); k >= 0 {
			return rune("\b\f\n\r\t"[k]), 2
		}
		return rune(s[1]), 2
	}
	r, n = escape1(s)
	if 0xD800 <= r && r < 0xDC00 && len(s) > n && s[n] == '\\' {
		if low, w := escape1(s[n:]); 0xDC00 <= low && low < 0xE000 {
			return (r-0xD800)<<10 + low - 0xDC00 + 0x10000, n + w
		}
	}
	return r, n
}

// A removal is a part of the text that a reading has shown to be hidden.
type removal struct {
	span
	is    rune
	g     spacer
	class Class
}

// maxJSONStrings is how deep JSON in a string of JSON is looked at.
const maxJSONStrings = 3

// dropEscaped removes the escapes of hidden characters and of control sequences from the strings
// of JSON, where a program that reads it finds the characters themselves. What faithful keeps
// of them stays as the escape that it is, and so do the escapes of controls. spec: scrub/3.14
func dropEscaped(p *pass) {
	s := p.text
	if !beginsAsJSON(s) || !escapesHidden(s) || !p.parsesAsJSON() {
		return
	}
	if p.blunt {
		for i := strings.IndexByte(s, '\\'); i >= 0; i = next(s, '\\', i, i+1) {
			p.r.ed.drop(i, i+1, Control)
		}
		return
	}
	p.removeFrom(func(visit func(*reading)) { jsonStrings(&reading{s: s}, 1, visit) })
}

// removeFrom removes what each reading shows to be hidden and of no use to a reader.
func (p *pass) removeFrom(readings func(visit func(*reading))) {
	var said strings.Builder
	readings(func(d *reading) { said.WriteString(d.s) })
	gone, f := hiddenInAll(p, readings, [numUses]bool{})
	all := pass{policy: p.policy, r: p.r, text: said.String()}
	if over, is := all.over(&f.kept); is && p.policy.Profile == Faithful {
		gone, f = hiddenInAll(p, readings, over)
	}
	for u, n := range f.kept {
		p.kept[u] = max(p.kept[u], n)
	}
	slices.SortStableFunc(gone, func(a, b removal) int { return cmp.Compare(a.at, b.at) })
	if p.policy.Profile == Faithful {
		gone = p.keepLoneEscapes(gone)
	}
	done := 0
	for _, x := range gone {
		if x.at >= done {
			p.part(x.at, x.end, p.fitting(x.at, x.g), x.class)
			done = x.end
		}
	}
}

// longestEscapedPair is how many escapes source code has in a row, as in [\u200b-\u200d\ufeff].
const longestEscapedPair = 2

// keepLoneEscapes takes from gone the escapes that source code needs, and notes them: of characters that only
// have no ink, in no row, and no more in a text than references to such characters may be.
func (p *pass) keepLoneEscapes(gone []removal) []removal {
	var lone, others []removal
	for i := 0; i < len(gone); {
		n, inkless := i, true
		for ; n < len(gone) && (n == i || gone[n].at == gone[n-1].end); n++ {
			c := gone[n].class
			inkless = inkless && (c == ZeroWidth || c == Filler || c == InvisibleOperator || c == VariationSelector)
		}
		if inkless && n-i <= longestEscapedPair {
			lone = append(lone, gone[i:n]...)
		} else {
			others = append(others, gone[i:n]...)
		}
		i = n
	}
	if len(lone) > maxReferences+len(p.text)/bytesPerReference {
		return gone
	}
	for _, x := range lone {
		if p.first {
			from, to := sourceOf(p.r.Edits, x.at, x.end)
			p.r.addNote(x.class, from, to)
		}
	}
	return others
}

func hiddenInAll(p *pass, readings func(visit func(*reading)), over [numUses]bool) (gone []removal, f faithful) {
	readings(func(d *reading) {
		eachSequence(d.s, func(at, end int, g spacer) {
			gone = append(gone, removal{d.source(span{at, end}), escape, g, AnsiEscape})
		})
		take := func(x span, r rune) int {
			if !controls(r) {
				gone = append(gone, removal{d.source(x), r, spacerOf(r), classOf(r)})
			}
			return x.end
		}
		if p.policy.Profile == Faithful {
			f = faithful{kept: f.kept}
			f.sweep(d.s, over, take)
			return
		}
		for x, r := range hiddenIn(d.s) {
			take(x, r)
		}
	})
	return gone, f
}

// jsonStrings calls visit for what each string of d says that has the escape of something
// hidden, and for the strings in it where it is JSON itself.
func jsonStrings(d *reading, depth int, visit func(*reading)) {
	for i := strings.IndexByte(d.s, '"'); i >= 0 && i < len(d.s); {
		n := jsonString(d.s[i:])
		if n == 0 {
			return
		}
		if escapesHidden(d.s[i : i+n]) {
			inner := d.unescaped(i+1, i+n-1)
			visit(inner)
			if depth < maxJSONStrings && escapesHidden(inner.s) && parsesAsJSON(inner.s) {
				jsonStrings(inner, depth+1, visit)
			}
		}
		if i += n; i < len(d.s) {
			i = next(d.s, '"', i-1, i)
		}
	}
}

// escapesHidden reports whether s may have the escape, at any depth, of ESC, a C1 control, a
// hidden character or the first half of one.
func escapesHidden(s string) bool {
	for i := strings.IndexByte(s, '\\'); i >= 0; i = next(s, '\\', i, i+1) {
		r, n := escape1(s[i:])
		if n != len(`\u0000`) {
			continue
		}
		switch {
		case r == escape || 0x80 <= r && r <= 0x9F,
			r >= 0xA0 && ucd.Of(r)&ucd.Hidden != 0,
			0xDB40 <= r && r <= 0xDB43, // tags and selectors
			r == 0xD80D || r == 0xD82F || r == 0xD834:
			return true
		}
	}
	return false
}
