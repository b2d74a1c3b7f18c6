// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"slices"
	"strings"

	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/platform/reuse"
	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/frame"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// finish makes the edits that are not about what was found.
func (in *inspection) finish(root strictjson.Value, signals []signal) {
	e := &in.w.edits
	in.allowed(root)
	in.announce(root)
	in.unpromise(root)
	if !in.p.cancels.IsZero() {
		e.Replace(root.Get("requestId"), in.p.cancels.Append(nil))
	}
	if in.p.token != "" {
		e.Replace(root.Get("progressToken"), []byte(in.p.token))
	}
	if s := in.cfg.instructions(); in.row.Instructions && s != "" {
		in.amend(root, "instructions", s)
	}
	result := in.p.toolResult(root)
	if !result.Exists() {
		result = root
	}
	if v := result.Get("structuredContent").Get("untrusted"); v.Kind() == 'f' && in.marked {
		e.Replace(v, []byte("true"))
	}
	if len(signals) == 0 {
		return
	}
	if meta := root.Get("_meta"); meta.Kind() == '{' {
		for _, s := range signals {
			e.Append(meta, s.key, s.raw)
		}
		return
	}
	e.Append(root, "_meta", appendSignals(nil, signals))
}

// instructions are the sentences that a server's instructions gain: how the text of its tools arrives.
func (c *Config) instructions() string {
	frames := []Rule{c.own()}
	if c.Rules != nil {
		for _, r := range c.Rules() {
			frames = append(frames, c.complete(r))
		}
	}
	fenced, some := false, []string(nil)
	for _, r := range frames {
		fenced = fenced || r.Frame == frame.KindFence
		if r.Frame != frame.KindLLM {
			continue
		}
		if s := r.LLM.Envelope.InstructionsOfSome(); !slices.Contains(some, s) {
			some = append(some, s)
		}
	}
	switch llm := func(r Rule) bool { return r.Frame == frame.KindLLM }; {
	case len(some) == 1 && llm(frames[0]) && !slices.ContainsFunc(frames, func(r Rule) bool { return !llm(r) && !r.Denied }):
		return frames[0].LLM.Envelope.Instructions()
	case fenced:
		some = append([]string{frame.Instructions}, some...)
	}
	return strings.Join(some, "\n\n")
}

// amend adds a sentence of ours to a definition, clean by now, of an object.
func (in *inspection) amend(object strictjson.Value, name, sentence string) {
	v := object.Get(name)
	if v.Kind() != '"' {
		in.w.edits.Append(object, name, strictjson.AppendQuote(nil, sentence))
		return
	}
	in.w.keep.Scrub(v.Text(), &in.w.res)
	in.w.noteCut(len(v.Text()))
	in.w.replaceText(v, in.w.unframed()+"\n\n"+sentence)
}

// provenance is the receipt of the message.
func (in *inspection) provenance() []byte {
	w, d := &in.w, &in.d
	p := frame.Provenance{
		Origin: frame.Origin{Server: d.Server, Tool: w.origin.Tool, Model: w.origin.Model}, Kind: w.kind,
		Framed: w.framed, NotFramed: w.notFramed,
		Profile: d.Profile, Strict: w.strictly, SanitationVersion: d.SanitationVersion, UnicodeVersion: d.UnicodeVersion,
		Evidence: d.ID.String(), Digest: w.delivered(), Inspected: w.inspected, Credentials: w.credentials,
		Findings: w.found, NotInspected: w.notInspected,
	}
	if !isToolResult(in.row) && len(w.framed.List) == 0 {
		p.Tool, p.Kind, p.Model = d.Tool, frame.KindMeta, ""
	}
	switch {
	case d.Verdict == Withheld: // what is delivered is constant
		p.Framed, p.NotFramed = frame.Places{}, frame.Places{}
	case !w.frames, in.row.Definitions:
		p.NotFramed = everywhere
	}
	for _, c := range w.foundMore {
		p.Findings = append(p.Findings, frame.Finding{Field: frame.Other, Code: c.Code, Count: c.N})
	}
	return p.AppendJSON(nil)
}

// logCut tells the operator that the client does not get all of a text.
func (in *inspection) logCut() {
	if c := in.w.lastCut; c != (frame.Cut{}) {
		in.cfg.Log.Warn("a text of the server was cut: raise max_chars if the client needs all of it",
			"method", in.d.Method, "tool", in.d.Tool, "kept_bytes", c.Kept, "of_bytes", c.Of, "evidence", in.d.ID.String())
	}
}

// deliverable is the message with root, and its edits, in the place of what it carries.
func (in *inspection) deliverable(root strictjson.Value) *wire.Message {
	var buf *reuse.Buffer
	if root.Exists() {
		e := &in.w.edits
		buf = reuse.NewBuffer(len(root.Raw()) + e.Grows())
		buf.Set(e.Apply(buf.Bytes(), root))
	}
	switch in.p.msg.Kind {
	case wire.Response:
		return wire.NewResult(in.p.id, buf.Bytes()).Owning(buf)
	case wire.ErrorResponse:
		return wire.NewError(in.p.id, buf.Bytes()).Owning(buf)
	}
	return wire.NewRequest(in.p.id, in.p.msg.Method, buf.Bytes()).Owning(buf)
}

// withhold delivers a constant text in the place of the message.
func (in *inspection) withhold(code finding.Code) *wire.Message {
	p, d := &in.p, &in.d
	in.w.giveUpAll(code)
	in.unreleasable = isUnfit(code)
	p.watched.giveUp()
	_, root, _ := partOf(p.msg)
	d.Received = digestOf(root.Raw())
	d.Verdict = Withheld
	if p.msg.Kind == wire.Request || p.msg.Kind == wire.Notification {
		d.Verdict = Dropped
		in.logWithheld(code, false)
		_ = in.conclude() // nothing is delivered that a record could be owed for
		return nil
	}
	if isToolResult(in.row) && p.msg.Kind == wire.Response {
		in.w.dropDigests()
		note := in.provenance()
		text, id := placeholderWhole, d.ID
		kept := code != finding.NoRoom && in.review(code)
		if code == finding.NoRoom {
			text = placeholderBusy
		} else if kept {
			text, id = placeholderHeld, in.item // a person will find it in the queue
		} else {
			if d.hasNoRoom() {
				text = placeholderFull
			}
			kept = in.captureTexts(root.Raw(), nil)
		}
		in.logWithheld(code, kept)
		raw := toolPlaceholder(text, id, p.msg.Result.Get("resultType").Exists(), frame.MetaKey, note)
		_ = in.conclude()
		in.tellClassified()
		return wire.NewResult(p.id, raw)
	}
	held := p.msg.Kind == wire.Response && p.call != (hold.Digest{}) && in.marked && code != finding.NoRoom && in.review(code)
	in.logWithheld(code, held || in.captureTexts(root.Raw(), nil))
	_ = in.conclude()
	in.tellClassified()
	if held {
		return errHeld.message(p.id, &in.item)
	}
	if code == finding.Unapproved && p.msg.Kind == wire.Response {
		return errUnapproved.message(p.id, &d.ID) // as a held tool or prompt is answered
	}
	if d.hasNoRoom() {
		return errFull.message(p.id, &d.ID)
	}
	if code == finding.NoRoom {
		return errNoRoom.message(p.id, &d.ID)
	}
	return in.instead(&d.ID)
}

// logWithheld tells the operator of a message that is not delivered, and which command shows more of it.
func (in *inspection) logWithheld(code finding.Code, kept bool) {
	d := &in.d
	reason, run, id := string(code), "pellucid explain ", d.ID.String()
	if kept {
		run = "pellucid quarantine show "
	}
	if in.item != (ID{}) {
		id = in.item.String()
	}
	if code == finding.Held {
		reason = in.heldBy(code)
	}
	in.cfg.Log.Warn("a message of the server was withheld", "code", reason, "method", d.Method, "tool", d.Tool, "kind", d.Kind,
		"evidence", d.ID.String(), "run", run+id+in.cfg.Flag)
}

// instead answers with a constant error what cannot be delivered at all.
func (in *inspection) instead(evidence *ID) *wire.Message {
	if in.p.msg.Kind == wire.Request || in.p.msg.Kind == wire.Notification {
		return nil
	}
	return errWithheld.message(in.p.id, evidence)
}
