// SPDX-License-Identifier: Apache-2.0

// Package marked turns third-party text into HTML in which every character that a reader would not see is shown as a mark.
//
// [Of], [Received] and [Delivered] make a [Text], [Identifier] makes a [Name], and [Spelled] makes a
// [Plain] for attributes. They are the only makers of these types, and this package is the only one of
// the console that makes HTML of a string: a law test holds both. What they promise:
//
//   - Markup is escaped, so that no element, attribute, style or script comes from the text.
//   - Each invisible, control, bidirectional, unassigned or ill-formed unit is a
//     <span class="cp"> with its number. The character itself is not in the page.
//   - Letters of every script stay as they are, also those that are written from right to left. The
//     template puts a Text into an element of the class well, which isolates its direction.
//
// They do not promise that a reader recognises a look-alike: those keep their form.
package marked

import (
	"encoding/base64"
	"fmt"
	"html/template"
	"strings"
	"unicode/utf8"

	"github.com/pellucid-mcp/pellucid/text/scrub"
	"github.com/pellucid-mcp/pellucid/text/ucd"
)

// A Text is third-party text as HTML. The zero value is no text.
type Text struct{ html template.HTML }

// Show returns the HTML.
func (t Text) Show() template.HTML { return t.html }

// A Name is an identifier that a third party chose, as HTML: one line from left to right.
type Name struct{ html template.HTML }

// Show returns the HTML.
func (n Name) Show() template.HTML { return n.html }

// A Plain is third-party text for an attribute or a text field: hidden characters are spelled out in
// words. The template escapes it.
type Plain struct{ s string }

// String returns the text.
func (p Plain) String() string { return p.s }

// Bounds of what is shown.
const (
	maxName  = 64 // characters of a name
	maxPlain = 512
	// foldAt is the length of a stretch without a mark, in bytes, beyond which the middle of it is folded.
	foldAt = 4096
	// MaxShown is the number of bytes of a text that Of shows. What follows is counted and left out.
	MaxShown = 1 << 20
	// maxMarks is the number of marks in one text. The rest of the text is counted and left out, since
	// each mark costs a browser more than the characters that it stands for.
	maxMarks = 4096
)

// Of returns the text with its marks and with the messages that its hidden characters spell.
func Of(s string) Text { return Received(s, nil) }

// Received returns the text as it came. edits say what was removed or replaced: it stands in place, as a cut.
func Received(s string, edits []scrub.Edit) Text {
	return Text{newWriter(s, cuts(s, edits)).whole(foldAt)}
}

// Delivered returns the text as the client got it: edits show what stands there for something else, and
// where something was taken out.
func Delivered(out string, edits []scrub.Edit) Text {
	return Text{newWriter(out, gaps(out, edits)).whole(foldAt)}
}

// Unfolded is Received for a text whose quiet stretches are shown in full.
func Unfolded(s string, edits []scrub.Edit) Text {
	return Text{newWriter(s, cuts(s, edits)).whole(0)}
}

// Identifier returns a name that a third party chose: of a server, tool, principal or digest. A long name
// is cut and its length is said.
func Identifier(s string) Name {
	if s == "" {
		return Name{`<span class="cp kept">empty</span>`}
	}
	shown, cut := head(s, maxName)
	w := newWriter(shown, nil)
	w.name = true
	html := `<bdi dir="ltr">` + w.whole(0) + `</bdi>`
	if cut {
		html += template.HTML(fmt.Sprintf(` <span class="tag">cut, %s in all</span>`, bytesOf(len(s))))
	}
	return Name{html}
}

// Spelled returns the text for an attribute, with hidden characters in words, cut at 512 bytes.
func Spelled(s string) Plain {
	cut := len(s) > maxPlain
	if cut {
		s = s[:runeStart(s, maxPlain)]
	}
	s = scrub.Visible(s, false)
	if cut {
		s += "\u2026"
	}
	return Plain{s}
}

// Base64 returns the text in base64, for a hidden field of a form that sends it again.
func Base64(s string) Plain { return Plain{base64.StdEncoding.EncodeToString([]byte(s))} }

// head returns the first n characters of s, and whether any follow.
func head(s string, n int) (string, bool) {
	at := 0
	for range n {
		if at == len(s) {
			return s, false
		}
		_, w, _ := ucd.Decode(s[at:])
		at += w
	}
	return s[:at], at < len(s)
}

func runeStart(s string, at int) int {
	for range utf8.UTFMax - 1 {
		if at > 0 && at < len(s) && !utf8.RuneStart(s[at]) {
			at--
		}
	}
	return at
}

// bytesOf is "1 byte" or "4,812 bytes".
func bytesOf(n int) string {
	if n == 1 {
		return "1 byte"
	}
	return thousands(n) + " bytes"
}

func thousands(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// A span is a stretch of the text to which an element belongs.
type span struct {
	at, end int
	class   string // of the element; "": the stretch is a hidden message
	title   string // our words
}

// cuts are the stretches of the input that edits changed.
func cuts(s string, edits []scrub.Edit) (spans []span) {
	for _, e := range edits {
		if e.Start < 0 || e.End > len(s) || e.Start >= e.End {
			continue
		}
		title := "removed: " + string(e.Class.Code())
		if e.OutEnd > e.Out {
			title = "replaced: " + string(e.Class.Code())
		}
		spans = append(spans, span{at: e.Start, end: e.End, class: "cut", title: title})
	}
	return spans
}

// gaps are the stretches of the output that edits made; an empty one is where something was removed.
func gaps(out string, edits []scrub.Edit) (spans []span) {
	for _, e := range edits {
		if e.Out < 0 || e.OutEnd > len(out) || e.Out > e.OutEnd {
			continue
		}
		sp := span{at: e.Out, end: e.OutEnd, class: "put", title: "put here: " + string(e.Class.Code())}
		if e.Out == e.OutEnd {
			sp.class, sp.title = "gap", fmt.Sprintf("removed here: %s, %s", e.Class.Code(), bytesOf(e.End-e.Start))
		}
		spans = append(spans, sp)
	}
	return spans
}

var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;", "'", "&#39;")
