// SPDX-License-Identifier: Apache-2.0

package marked

import (
	"fmt"
	"html/template"
	"strings"

	"github.com/pellucid-mcp/pellucid/text/scrub"
	"github.com/pellucid-mcp/pellucid/text/ucd"
)

// A writer writes one text as HTML, from left to right.
type writer struct {
	b        strings.Builder
	s        string
	left     int // bytes behind those that are shown
	spans    []span
	messages []scrub.Hidden
	marks    int
	name     bool // one line: line breaks and tabs are marks too
	fold     int  // 0: nothing is folded
}

func newWriter(s string, spans []span) *writer {
	w := &writer{s: s, spans: spans}
	if len(s) > MaxShown {
		at := runeStart(s, MaxShown)
		w.s, w.left = s[:at], len(s)-at
	}
	return w
}

// whole writes everything. The spans are sorted and do not overlap, as edits are.
func (w *writer) whole(fold int) template.HTML {
	w.fold = fold
	w.messages = scrub.Reveal(w.s)
	at := 0
	for _, sp := range w.spans {
		if sp.at < at || sp.end > len(w.s) {
			continue
		}
		if at = w.stretch(at, sp.at); at < sp.at { // no more marks are written
			break
		}
		// A hidden message goes on where its edit ends: it is one run.
		if m := w.messageAt(sp.at); m != nil && m.Start <= sp.at && sp.end <= m.End {
			continue
		}
		w.open(sp)
		at = w.stretch(sp.at, sp.end)
		w.b.WriteString("</span>")
		if at < sp.end {
			break
		}
	}
	if at = w.stretch(at, len(w.s)); at < len(w.s) {
		w.left += len(w.s) - at
	}
	if w.left > 0 {
		fmt.Fprintf(&w.b, `<span class="fold">%s more, not shown</span>`, bytesOf(w.left))
	}
	return template.HTML(w.b.String())
}

func (w *writer) open(sp span) {
	w.marks++
	fmt.Fprintf(&w.b, `<span class="%s" title="%s">`, sp.class, sp.title)
}

// messageAt returns the hidden message that holds the byte at, nil for none. Those that end before it are
// not looked at again.
func (w *writer) messageAt(at int) *scrub.Hidden {
	for len(w.messages) > 0 && w.messages[0].End <= at {
		w.messages = w.messages[1:]
	}
	if len(w.messages) > 0 && w.messages[0].Start <= at {
		return &w.messages[0]
	}
	return nil
}

// stretch writes the bytes from at to end and returns where it stopped: at end, or behind a hidden message
// that goes on beyond it, or earlier where the text has too many marks.
func (w *writer) stretch(at, end int) int {
	for at < end {
		if w.marks >= maxMarks {
			return at
		}
		if m := w.messageAt(at); m != nil && at == m.Start {
			w.run(m)
			at = m.End
			continue
		}
		next := w.nextMark(at, end)
		w.quiet(w.s[at:next])
		if m := w.messageAt(next); next < end && (m == nil || next != m.Start) {
			next = w.mark(next, end)
		}
		at = next
	}
	return at
}

// nextMark returns where the next unit stands that cannot be written as it is, or end.
func (w *writer) nextMark(at, end int) int {
	for at < end {
		i, p, n := ucd.Scan(w.s[:end], at, ucd.Hidden|ucd.Flagged|ucd.NonStarter)
		if w.name {
			if j := strings.IndexAny(w.s[at:i], "\n\t"); j >= 0 {
				return at + j
			}
		}
		if i == end || p&(ucd.Hidden|ucd.Flagged|ucd.IllFormed) != 0 || p&ucd.NonStarter == 0 {
			return i
		}
		if flood(w.s[i:end]) > 0 {
			return i
		}
		at = i + n
		for at < end { // the rest of these marks
			p, n := ucd.Peek(w.s, at)
			if p&ucd.NonStarter == 0 || p&ucd.Hidden != 0 {
				break
			}
			at += n
		}
	}
	return end
}

// maxCombining is the number of combining marks on one letter that stay as they are: no language needs more.
const maxCombining = 8

// flood returns the number of combining marks at the beginning of s if they are too many, and else 0.
func flood(s string) int {
	n := 0
	for i := 0; i < len(s); {
		p, width := ucd.Peek(s, i)
		if p&ucd.NonStarter == 0 || p&ucd.Hidden != 0 {
			break
		}
		n, i = n+1, i+width
	}
	if n <= maxCombining {
		return 0
	}
	return n
}

// quiet writes text without marks; a long stretch loses its middle.
func (w *writer) quiet(s string) {
	if w.fold > 0 && len(s) > w.fold {
		from, to := runeStart(s, w.fold/4), runeStart(s, len(s)-w.fold/4)
		escaper.WriteString(&w.b, s[:from])
		fmt.Fprintf(&w.b, `<span class="fold">%s in which nothing was found</span>`, bytesOf(to-from))
		s = s[to:]
	}
	escaper.WriteString(&w.b, s)
}

// run writes a hidden message: what it is made of, and what it says.
func (w *writer) run(m *scrub.Hidden) {
	w.marks++
	fmt.Fprintf(&w.b, `<span class="run"><b>%s %s</b>`, thousands(ucd.Count(w.s[m.Start:m.End])), m.Kind)
	if m.Message != "" {
		inner := newWriter(m.Message, nil)
		inner.marks = w.marks
		for at := 0; at < len(inner.s) && inner.marks < maxMarks; {
			next := inner.nextMark(at, len(inner.s))
			escaper.WriteString(&inner.b, inner.s[at:next])
			if next < len(inner.s) {
				next = inner.mark(next, len(inner.s))
			}
			at = next
		}
		w.marks = inner.marks
		w.b.WriteString(inner.b.String())
	}
	w.b.WriteString("</span>")
}

// mark writes the unit at, with those that follow and are the same, and returns where it ends.
func (w *writer) mark(at, end int) int {
	w.marks++
	p, n := ucd.Peek(w.s, at)
	if p&(ucd.Hidden|ucd.Flagged|ucd.IllFormed) == 0 && p&ucd.NonStarter != 0 {
		return w.combining(at, end)
	}
	unit := w.s[at : at+n]
	to := at + n
	for to+n <= end && w.s[to:to+n] == unit {
		to += n
	}
	class := "cp"
	if keeps(w.s, at, n, p) {
		class = "cp kept"
	}
	times := ""
	if c := (to - at) / n; c > 1 {
		times = thousands(c) + " \u00d7 "
	}
	if p&ucd.IllFormed != 0 {
		fmt.Fprintf(&w.b, `<span class="%s" title="ill-formed UTF-8">%s% X</span>`, class, times, unit)
		return to
	}
	r, _, _ := ucd.Decode(unit)
	fmt.Fprintf(&w.b, `<span class="%s">%sU+%04X</span>`, class, times, r)
	return to
}

// combining writes the number of the marks on one letter.
func (w *writer) combining(at, end int) int {
	n := flood(w.s[at:end])
	fmt.Fprintf(&w.b, `<span class="cp">+%s marks</span>`, thousands(n))
	for range n {
		_, width := ucd.Peek(w.s, at)
		at += width
	}
	return at
}

// keeps reports whether the unit is one that a language or an emoji needs where it stands.
func keeps(s string, at, n int, p ucd.Prop) bool {
	if p&ucd.Hidden == 0 {
		return false
	}
	r, _, _ := ucd.Decode(s[at:])
	switch {
	case r == 0x200C || r == 0x200D:
		if ucd.JoinerAllowed(s[max(0, at-64):at], r, s[at+n:min(len(s), at+n+64)]) {
			return true
		}
		fallthrough
	case p&ucd.EmojiPart != 0:
		// The sequence begins at most a few characters before.
		for from := at - 1; from >= 0 && from > at-48; from-- {
			if k := ucd.EmojiSequence(s[from:min(len(s), from+128)]); k > 0 && from+k > at {
				return true
			}
		}
	}
	return false
}
