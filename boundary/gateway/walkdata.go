// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/frame"
	"github.com/pellucid-mcp/pellucid/text/scrub"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// whole treats any JSON that is one place.
func (w *walker) whole(v strictjson.Value, with *scrub.Scrubber) finding.Code {
	words := w.words
	code := w.data(v, with)
	if w.words > words {
		w.placed(false)
	}
	return code
}

// member treats a member that no table names. One that must be refused is left out.
func (w *walker) member(name, v strictjson.Value, rest mcpmsg.Treatment) {
	with := w.text
	if rest == mcpmsg.Schema {
		with = w.keep
		defer func(outer bool) { w.inSchema = outer }(w.inSchema)
		w.inSchema = true
	}
	told := w.told
	code, words := w.name(name), w.words
	switch {
	case code != ok:
	case w.normalises && w.cleanName(name.Text()) != name.Text():
		code = finding.RefusedName // it could become a name of the protocol
	case isOurs(name):
		code = finding.ForgedProvenance
		w.noteForged(frame.DigestOf(string(v.Raw())))
	case string(nameBytes(name)) == "_meta":
		code = w.meta(v)
	default:
		code = w.data(v, with)
	}
	if code != ok {
		w.takeBack(told)
		w.edits.Remove(v)
		w.giveUp(code)
		w.words = words
		return
	}
	w.words++
}

// data treats any JSON at every depth.
func (w *walker) data(v strictjson.Value, with *scrub.Scrubber) finding.Code {
	n := 0
	if w.tooMany() {
		return finding.TooMany
	}
	switch v.Kind() {
	case '"':
		w.words++
		w.scrub(v, with)
		w.addText(v, all, pieceText, with)
	case '[':
		for e := range v.Elements() {
			w.path = append(w.path, step{ordinal: n, element: true})
			code := w.data(e, with)
			w.path = w.path[:len(w.path)-1]
			if code != ok {
				return code
			}
			n++
		}
	case '{':
		names := memberNames{object: v}
		for name, value := range v.Members() {
			w.path = append(w.path, step{ordinal: n})
			code := w.name(name)
			mayRename := !w.inSchema // of which a client uses the names as they are
			if mayRename && (code != ok || w.normalises) {
				code = names.rename(w, name, code)
			}
			switch {
			case code != ok && !mayRename:
			case code != ok:
				w.edits.Remove(value)
				w.giveUp(code)
				code = ok
			case isOurs(name):
				w.edits.Remove(value)
				w.noteForged(frame.DigestOf(string(value.Raw())))
				w.giveUp(finding.ForgedProvenance)
			case string(nameBytes(name)) == "_meta":
				code = w.meta(value)
			default:
				w.words++
				code = w.data(value, with)
			}
			w.path = w.path[:len(w.path)-1]
			if code != ok {
				return code
			}
			n++
		}
	}
	return ok
}

// isOurs reports whether a member claims to be a receipt, wherever it stands.
func isOurs(name strictjson.Value) bool {
	return frame.IsReceipt(string(nameBytes(name)))
}

// meta treats a _meta object: forged receipts go first, and each member stands
// or falls alone.
func (w *walker) meta(v strictjson.Value) finding.Code {
	if v.Kind() != '{' {
		return w.data(v, w.text)
	}
	n := 0
	for name, value := range v.Members() {
		w.path = append(w.path, step{ordinal: n})
		n++
		switch {
		case isOurs(name):
			w.edits.Remove(value)
			w.noteForged(frame.DigestOf(string(value.Raw())))
			w.giveUp(finding.ForgedProvenance)
		case !w.passages.Meta(name.Text()):
			w.edits.Remove(value)
			w.giveUp(finding.Denied)
		case name.Text() == mcpmsg.KeySubscriber && value.Kind() == '0':
			w.subscriber(value)
		default:
			w.member(name, value, mcpmsg.Data)
		}
		w.path = w.path[:len(w.path)-1]
	}
	return ok
}

// subscriber gives a subscription the id by which the client knows it.
func (w *walker) subscriber(v strictjson.Value) {
	if n, isInt := v.Int64(); isInt {
		if raw, known := w.lookup(n); known {
			w.edits.Replace(v, raw)
		}
	}
}
