// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"slices"
	"strings"

	"github.com/pellucid-mcp/pellucid/boundary/policy"
	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/platform/reuse"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/frame"
	"github.com/pellucid-mcp/pellucid/text/scrub"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// Bounds of single strings.
const (
	maxName   = 64 << 10 // bytes of a name, URI or cursor; an inline image is longer
	maxOpaque = 1 << 20  // bytes of what is echoed unseen
	maxFields = 256      // findings and uninspected places kept apart; beyond they are only counted
)

// A walker goes through one message's params, result or error beside its
// shape, treats every string, and collects the edits. It is reused.
type walker struct {
	key    frame.Key
	kind   frame.Kind
	llm    *LLM // of KindLLM
	origin frame.Origin
	text   *scrub.Scrubber // of what servers found elsewhere
	keep   *scrub.Scrubber // of definitions: nothing is normalised
	strict *scrub.Scrubber // of names: what it would change is refused
	scrubs *scrubberCache
	lookup func(int64) (raw []byte, ok bool)

	passages *mcpmsg.Passages // of capabilities and extensions

	ahead    *earlyDigest // of the text that is cleaned
	helped   bool         // other goroutines compute digests: no other long message waits
	evidence ID
	digests  bool // of delivered texts are wanted

	inSchema   bool // the walker stands in a schema
	normalises bool // text is under the profile mcp, so that names of members are too
	strictly   bool // text is treated again, more strictly

	approvedPage bool // contents hold an app that was approved: its page passes as it is

	res    scrub.Result
	kept   scrub.Allowance   // what hidden characters the message's strings keep together
	names  map[string]string // by the visible name: how the name stood last, with hidden characters
	edits  strictjson.Edits
	path   []step
	grown  growth
	plain  []byte          // room for decoded texts: the last of plains
	plains []*reuse.Buffer // decoded texts
	pooled []*reuse.Buffer // other bytes that edits refer to

	rewritten bool // edits may refer to decoded texts

	pieces  []piece      // texts in order, since they were last looked at together
	track   []int        // room for settle
	told    int          // how many texts there were
	unit    unit         // in which the walker stands
	refused finding.Code // why the message is refused for what is spread over texts, or ok

	answer    []string  // clean texts of a result's own blocks, of KindLLM
	answerCut frame.Cut // of the last of them that was cut
	grounded  bool      // a text names the type of a grounding adapter's answer

	inspected    int
	edited       bool      // something was changed, removed or withheld
	inside       string    // the beginning and the end of the blob that was read last
	changed      bool      // the text that was cleaned last must be replaced
	cut          frame.Cut // of the text that was cleaned last
	lastCut      frame.Cut // of the last text that was cut
	hidden       []byte    // messages in hidden characters, that were decoded
	forged       []byte    // digests of what imitates a frame or a receipt
	credentials  []scrub.Credential
	found        []frame.Finding
	foundMore    []policy.Count
	notInspected []frame.NotInspected
	placing
	uninspected []policy.Count
	withheld    []policy.Count
}

// A step is one level of the path to a string: a member's name out of the
// table, else the ordinal of a member or of an element.
type step struct {
	name    string
	ordinal int
	element bool
	cut     int // how many elements before it are not delivered
}

// A unit is what is given up as a whole: a block or an entry.
type unit struct {
	value strictjson.Value
	block bool
	depth int    // of the path to it
	place string // of a block, once it is known
}

func (w *walker) reset() {
	w.release()
	w.path = w.path[:0]
	w.kept = scrub.Allowance{}
	clear(w.names)
	w.grown.reset()
	clear(w.pieces)
	w.pieces, w.told, w.unit, w.refused = w.pieces[:0], 0, unit{}, ok
	clear(w.answer)
	w.answer, w.answerCut, w.grounded = w.answer[:0], frame.Cut{}, false
	w.inspected, w.edited, w.approvedPage, w.inSchema = 0, false, false, false
	w.cut, w.lastCut = frame.Cut{}, frame.Cut{}
	w.placing.reset()
	w.hidden, w.forged = w.hidden[:0], w.forged[:0]
	w.credentials = w.credentials[:0]
	clear(w.found)
	w.found, w.foundMore = w.found[:0], w.foundMore[:0]
	clear(w.notInspected)
	w.notInspected, w.uninspected, w.withheld = w.notInspected[:0], w.uninspected[:0], w.withheld[:0]
}

// release gives back what only the edits needed, once they have been applied.
func (w *walker) release() {
	w.edits.Reset()
	w.releasePlain()
	w.pooled, w.rewritten = giveBack(w.pooled), false
}

// releasePlain gives back the decoded texts, once nothing refers to them.
func (w *walker) releasePlain() {
	w.stopDigest() // it reads them
	w.plain, w.plains = nil, giveBack(w.plains)
}

// giveBack gives buffers back, and returns an empty list with the same room.
func giveBack(list []*reuse.Buffer) []*reuse.Buffer {
	for _, b := range list {
		b.Release()
	}
	clear(list)
	return list[:0]
}

// ok is the code of what need not be refused.
const ok finding.Code = ""

// object walks a typed object. It returns why it must be refused, or ok.
func (w *walker) object(s *mcpmsg.Shape, v strictjson.Value) finding.Code {
	n, words := 0, 0
	for name, value := range v.Members() {
		f := s.Field(nameBytes(name))
		if f != nil {
			w.path = append(w.path, step{name: f.Name})
			code := w.field(f, v, value)
			w.path = w.path[:len(w.path)-1]
			if code != ok {
				return code
			}
		} else {
			if isStray(s, name.Text()) {
				return finding.CaseVariant
			}
			before := w.words
			w.path = append(w.path, step{ordinal: n})
			w.member(name, value, s.Rest)
			w.path = w.path[:len(w.path)-1]
			words += w.words - before
		}
		n++
	}
	if words > 0 {
		w.path = append(w.path, step{name: "*"})
		w.placed(false)
		w.path = w.path[:len(w.path)-1]
	}
	return ok
}

// nameBytes returns a member's name without decoding it, where it has no escape.
func nameBytes(name strictjson.Value) []byte {
	raw := name.Raw()
	raw = raw[1 : len(raw)-1]
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw
	}
	return []byte(name.Text())
}

func isStray(s *mcpmsg.Shape, name string) bool {
	for i := range s.Fields {
		if known := s.Fields[i].Name; known != name && strings.EqualFold(known, name) {
			return true
		}
	}
	return false
}

// field treats the value of a field, or each value of its list or map.
func (w *walker) field(f *mcpmsg.Field, parent, v strictjson.Value) finding.Code {
	many := v.Kind() == '[' && (f.Arity == mcpmsg.List || f.Arity == mcpmsg.OneOrMany)
	switch {
	case v.Kind() == 'n':
		return ok
	case many:
		return w.list(f, parent, v)
	case f.Arity == mcpmsg.Map && v.Kind() == '{':
		return w.each(f, v)
	case f.Arity == mcpmsg.List || f.Arity == mcpmsg.Map:
		return finding.Misshapen
	}
	return w.item(f, parent, v)
}

// each treats the values of a map. Its names are a third party's, so that it counts as
// one place, in which nothing is framed.
func (w *walker) each(f *mcpmsg.Field, v strictjson.Value) finding.Code {
	n, code := 0, ok
	w.muted++
	for name, value := range v.Members() {
		w.path = append(w.path, step{ordinal: n})
		if code = w.name(name); code == ok {
			code = w.item(f, v, value)
		}
		w.path = w.path[:len(w.path)-1]
		if code != ok {
			break
		}
		n++
	}
	if w.muted--; n > 0 {
		w.placed(false)
	}
	return code
}

func (w *walker) list(f *mcpmsg.Field, parent, v strictjson.Value) finding.Code {
	n, cut := 0, 0
	defer func(outer unit) { w.unit = outer }(w.unit)
	for e := range v.Elements() {
		if isBlocks(f) && w.hasNoRoom() {
			w.cutBlocks(v, e, n)
			break
		}
		if w.tooMany() {
			return finding.TooMany
		}
		if f.Unit != mcpmsg.Outer {
			w.unit = unit{value: e, block: f.Unit == mcpmsg.Block, depth: len(w.path) + 1}
		}
		w.path = append(w.path, step{ordinal: n, element: true, cut: cut})
		code := w.item(f, parent, e)
		w.path = w.path[:len(w.path)-1]
		if w.removed {
			cut++
		}
		if code != ok {
			return code
		}
		n++
	}
	return ok
}

// item treats one value and, where it must be refused and is a unit, gives it up.
func (w *walker) item(f *mcpmsg.Field, parent, v strictjson.Value) finding.Code {
	told, places := w.told, w.mark()
	code := w.value(f, parent, v)
	w.removed = false
	if code == ok || f.Unit == mcpmsg.Outer {
		return code
	}
	w.backTo(places)
	w.takeBack(told)
	if f.Unit == mcpmsg.Block {
		w.edits.Replace(v, w.placeholder())
	} else {
		w.edits.Remove(v)
		w.removed = true
	}
	w.giveUp(code)
	return ok
}

func (w *walker) giveUp(code finding.Code) { w.leftOut(code, 1) }

// giveUpAll notes that the message is not delivered. A code that was found in it, for which
// it is held, is not counted as found once more.
func (w *walker) giveUpAll(code finding.Code) {
	has := func(c policy.Count) bool { return c.Code == code }
	if slices.ContainsFunc(w.found, func(f frame.Finding) bool { return f.Code == code }) || slices.ContainsFunc(w.foundMore, has) {
		w.edited = true
		w.withheld = addCount(w.withheld, code, 1)
		return
	}
	w.giveUp(code)
}

// leftOut notes that n items are not delivered.
func (w *walker) leftOut(code finding.Code, n int) {
	w.edited = true
	w.withheld = addCount(w.withheld, code, n)
	w.addFinding(code, n, nil)
}

func (w *walker) value(f *mcpmsg.Field, parent, v strictjson.Value) finding.Code {
	if f.Shape != nil {
		if v.Kind() != '{' {
			return finding.Misshapen
		}
		return w.object(f.Shape, v)
	}
	switch f.Treat {
	case mcpmsg.Data:
		return w.whole(v, w.text)
	case mcpmsg.Schema:
		w.inSchema = true
		defer func() { w.inSchema = false }()
		return w.whole(v, w.keep)
	case mcpmsg.Meta:
		words := w.words
		code := w.meta(v)
		if w.words > words {
			w.placed(false)
		}
		return code
	}
	switch v.Kind() {
	case '"':
	case '{', '[':
		if f.Treat == mcpmsg.ToolText || f.Treat == mcpmsg.Opaque || f.Treat == mcpmsg.Link {
			return finding.Misshapen
		}
		return w.whole(v, w.text)
	default:
		return ok // numbers and literals hold no text
	}
	if w.isApprovedPage(f) && !v.Mended() {
		w.placed(false)
		w.addDigest(frame.DigestOf(w.plainText(v)))
		w.skip(finding.ApprovedPage)
		return ok
	}
	framed := w.isFramed(f.Treat) && (!f.Typed || w.framing.AnyType || holdsTag(parent.Get("mimeType").Text()))
	if framed || len(f.Words) == 0 || !slices.Contains(f.Words, v.Text()) {
		w.placed(framed)
	}
	switch {
	case framed, f.Treat == mcpmsg.ToolText && !f.Typed:
		w.toolText(v, framed)
		kind := pieceText
		if framed {
			kind = pieceFramed
		}
		w.addText(v, ofText(f), kind, w.text)
		return ok
	}
	switch f.Treat {
	case mcpmsg.Definition:
		w.scrub(v, w.keep)
		w.addText(v, ofText(f), pieceText, w.keep)
	case mcpmsg.Link:
		return w.link(v)
	case mcpmsg.Name:
		code := w.name(v)
		if code == ok && isURI(f.Name) && !w.passages.URI(v.Text()) {
			return finding.Denied
		}
		if code == ok && f.Name == "name" {
			w.addPiece(piece{value: v, text: v.Text(), in: named, kind: pieceName})
		}
		return code
	case mcpmsg.Blob:
		return w.blob(v, parent.Get("mimeType").Text())
	case mcpmsg.Opaque:
		if len(v.Raw()) > maxOpaque {
			return finding.TooLong
		}
		w.skip(finding.Opaque)
	default:
		w.scrub(v, w.text)
		w.addText(v, ofText(f), pieceText, w.text)
	}
	return ok
}
