// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"slices"
	"strings"

	"github.com/pellucid-mcp/pellucid/boundary/blob"
	"github.com/pellucid-mcp/pellucid/platform/reuse"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/frame"
	"github.com/pellucid-mcp/pellucid/text/scrub"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
	"github.com/pellucid-mcp/pellucid/text/ucd"
)

// plainText is v's text, which lives until releasePlain.
func (w *walker) plainText(v strictjson.Value) string {
	if !v.Escaped() {
		return v.Text()
	}
	if n := len(v.Raw()); cap(w.plain)-len(w.plain) < n {
		b := reuse.NewBuffer(max(n, 2*cap(w.plain)))
		w.plain, w.plains = b.Bytes(), append(w.plains, b)
	}
	start := len(w.plain)
	w.plain = v.AppendText(w.plain)
	return reuse.String(w.plain[start:])
}

// scrub treats a string that may be rewritten.
func (w *walker) scrub(v strictjson.Value, with *scrub.Scrubber) {
	w.clean(v, with)
	text := w.unframed()
	if w.digests {
		w.addShort(w.ahead.of(text), len(text))
	}
	if w.changed {
		w.replaceText(v, text)
	}
}

// clean leaves v's clean text in w.res.
func (w *walker) clean(v strictjson.Value, with *scrub.Scrubber) {
	w.inspected++
	text := w.plainText(v)
	w.stopDigest()
	if w.digests && w.helped {
		w.ahead = early(text)
	}
	w.scrubCounted(text, with)
	w.noteCut(len(text))
	if v.Mended() {
		w.edited = true
		w.addFinding(finding.SurrogateMended, 1, nil)
	}
	w.changed = w.res.Changed()
	w.noteEvents()
	if clean := w.res.Clean.String(); blob.HasDataScheme(clean) {
		safe := w.dataURI(clean, with)
		with.ScrubAgain(safe, nil, &w.res)
		if safe != clean {
			w.changed = true
			w.noteCut(len(safe))
		}
	}
	if w.changed {
		w.stopDigest()
	}
	w.edited = w.edited || w.changed
	w.grounded = w.grounded || strings.Contains(w.res.Clean.String(), groundedType)
}

// noteCut remembers how much the last scrub has left of a text of so many bytes.
func (w *walker) noteCut(bytes int) {
	w.cut = frame.Cut{}
	if at, cut := w.res.CutAt(); cut {
		w.cut = frame.Cut{Kept: at, Of: bytes}
		w.lastCut = w.cut
	}
}

// unframed is the text that was cleaned last as it is delivered outside of a frame. Where it
// was cut, it says so itself.
func (w *walker) unframed() string {
	if w.cut == (frame.Cut{}) {
		return w.res.Clean.String()
	}
	return string(w.cut.AppendLine([]byte(w.res.Clean.String())))
}

// replaceText puts s, which may be a part of a decoded text, in the place of v.
func (w *walker) replaceText(v strictjson.Value, s string) {
	w.rewritten = true
	w.edits.ReplaceText(v, s)
}

// stopDigest gives up the digest that was begun with the text.
func (w *walker) stopDigest() {
	w.ahead.end()
	w.ahead = nil
}

// scrubCounted scrubs a string whose hidden characters count for the whole message: the
// limits of spec scrub/3.6.1 are those of an item, however many strings it has. What is
// scrubbed a second time is not counted again.
func (w *walker) scrubCounted(text string, with *scrub.Scrubber) {
	w.res.Item = &w.kept
	with.Scrub(text, &w.res)
	w.res.Item = nil
	w.noteHidden(text)
}

// repeats reports whether a name with hidden characters stands as it stood last. It is
// not counted then: a table repeats the names of its columns, and says nothing by that.
func (w *walker) repeats(name string) bool {
	if at, _, _ := ucd.Scan(name, 0, ucd.Hidden); at == len(name) {
		if len(w.names) > 0 {
			delete(w.names, name) // it stood without them last
		}
		return false
	}
	visible := visibleName(name)
	if w.names[visible] == name {
		return true
	}
	if w.names == nil {
		w.names = map[string]string{}
	}
	w.names[visible] = name
	return false
}

// toolText treats the text of a tool's content block or error.
func (w *walker) toolText(v strictjson.Value, framed bool) {
	w.clean(v, w.text)
	if !framed {
		text := w.unframed()
		w.addDigest(w.ahead.of(text))
		if w.changed {
			w.replaceText(v, text)
		}
		return
	}
	clean, form := w.res.Clean, w.form()
	if w.around(v, clean, form) {
		return
	}
	fence, sealed := w.frame(clean, form)
	w.addDigest(sealed.Digest)
	w.noteLookalikes(sealed)
	w.replaceText(v, fence)
}

// form returns the form of the next frame, which is that of the text that was cleaned last.
// The first frame of a message has the notice and the labels.
func (w *walker) form() frame.Form {
	w.first = !w.noticed
	w.noticed = true
	return w.formOf(w.first, w.cut)
}

// formOf returns the form of a frame: the first of a message says how strictly it was treated.
func (w *walker) formOf(first bool, cut frame.Cut) frame.Form {
	return frame.Form{Further: !first, Cut: cut, Strict: first && w.strictly}
}

// frame puts a text into its frame.
func (w *walker) frame(clean scrub.Clean, form frame.Form) (string, frame.Sealed) {
	fence, sealed := w.room(len(clean.String())+fenceRoom), frame.Sealed{}
	if w.llm != nil {
		fence, sealed = w.llm.Envelope.Append(fence, w.llm.origin(w.origin), form, clean)
	} else {
		fence, sealed = w.key.AppendFence(fence, w.origin, form, clean)
	}
	w.took(fence, len(clean.String()))
	return reuse.String(fence), sealed
}

func (w *walker) noteLookalikes(sealed frame.Sealed) {
	if sealed.Neutralised > 0 {
		w.edited = true
		w.noteForged(sealed.Digest)
		w.addFinding(finding.FenceLookalike, sealed.Neutralised, nil)
	}
}

// around frames a text of which nothing is copied before it is delivered. It reports
// false if the text holds what looks like its frame.
func (w *walker) around(v strictjson.Value, clean scrub.Clean, form frame.Form) bool {
	var fence []byte
	var split int
	var sealed frame.Sealed
	fits := false
	if w.llm != nil {
		fence, split, sealed, fits = w.llm.Envelope.AppendAround(w.room(fenceRoom), w.llm.origin(w.origin), form, clean, w.ahead.of)
	} else {
		fence, split, sealed, fits = w.key.AppendAround(w.room(fenceRoom), w.origin, form, clean, w.ahead.of)
	}
	w.took(fence, 0)
	if fits {
		w.addDigest(sealed.Digest)
		before, behind := reuse.String(fence[:split]), reuse.String(fence[split:])
		if w.changed {
			w.rewritten = true
			w.edits.ReplaceTextWithin(v, before, clean.String(), behind)
		} else {
			w.edits.Surround(v, before, behind)
		}
	}
	return fits
}

// fenceRoom is enough for a fence without its body, most of the time.
const fenceRoom = 1 << 10

// name checks what is never rewritten.
func (w *walker) name(v strictjson.Value) finding.Code {
	if v.Kind() != '"' {
		return ok
	}
	w.inspected++
	s := v.Text()
	if v.Mended() {
		return finding.RefusedName
	}
	if len(s) > maxName && !strings.HasPrefix(s, "data:") {
		return finding.TooLong
	}
	if w.repeats(s) {
		w.strict.Scrub(s, &w.res)
	} else {
		w.scrubCounted(s, w.strict)
	}
	if w.isOddName(s) {
		w.noteEvents()
		return finding.RefusedName
	}
	if blob.HasDataScheme(s) && !w.checkURI(s) {
		return finding.RefusedName
	}
	return ok
}

// layout are hidden characters that stay in prose and have no place in a name: the soft
// hyphen and isolates.
const layout = "\u00ad\u2066\u2067\u2068\u2069"

// speaks reports whether a name, which w.res is about, claims a role of the
// conversation: in words that would be removed from a text, or in a line of
// several. In prose such lines may be honest; a name has no lines.
func (w *walker) speaks(name string) bool {
	if strings.IndexByte(name, '\n') >= 0 {
		s, err := w.scrubs.of(0, scrub.ProfileTokens)
		if err != nil {
			return true // never: it is a profile without options
		}
		s.mcp.Scrub(name, &w.res)
		return w.res.Tokens > 0
	}
	if !slices.ContainsFunc(w.res.Notes, func(n scrub.Note) bool { return n.Class == scrub.RoleMarker }) {
		return false
	}
	w.text.Scrub(name, &w.res)
	return w.res.Tokens > 0
}
