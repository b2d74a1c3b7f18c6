// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"context"
	"errors"

	"github.com/pellucid-mcp/pellucid/boundary/policy"
	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/platform/intake"
	"github.com/pellucid-mcp/pellucid/platform/reuse"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/frame"
	"github.com/pellucid-mcp/pellucid/text/scrub"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// An Inspector lets single results of tools through the choke point, for a caller
// that carries them itself. It is safe for concurrent use.
type Inspector struct {
	cfg  Config
	pool reuse.Pool[solo]
}

// NewInspector checks cfg, of which what is about sessions does not count.
func NewInspector(cfg Config) (*Inspector, error) {
	named := cfg.Name
	cfg, err := cfg.orDefault()
	if err != nil {
		return nil, err
	}
	cfg.Name = named
	cfg.Hold = nil // nobody asks again for what a person releases
	i := &Inspector{cfg: cfg}
	first := i.pool.Get()
	defer first.Release()
	if err := i.prepare(first.Value()); err != nil {
		return nil, err
	}
	return i, nil
}

// A ToolResult is the result of a tools/call, as a server gave it to somebody.
type ToolResult struct {
	Server string // shown if it is a label (frame.IsLabel); "": the Config's
	Tool   string // likewise
	Raw    []byte // JSON
	// Schema is the outputSchema that the tool has declared; nil: none.
	Schema []byte
	// Profile is used where neither the Config nor a Rule names one.
	Profile Profile
	Room    *intake.Room // that Raw has as a part of a request's body, if any
}

// Inspect lets r through the choke point. clean is what may go to a client: always
// a tool's result, and one of constant text if r had to be withheld. The decision
// is in the record. Once ctx has ended it waits for nothing.
func (i *Inspector) Inspect(ctx context.Context, r ToolResult) (clean []byte, d Decision, err error) {
	h := i.pool.Get()
	defer h.Release()
	s := h.Value()
	if err = i.prepare(s); err != nil {
		return nil, Decision{}, err
	}
	clean, err = i.inspect(ctx, s, r)
	return clean, s.last, err
}

func (i *Inspector) inspect(ctx context.Context, s *solo, r ToolResult) ([]byte, error) {
	s.last = Decision{}
	in := s.in
	in.cfg.Name = labelOr(r.Server, labelOr(i.cfg.Name, frame.Other))
	if i.cfg.Profile == DefaultProfile {
		in.cfg.Profile = r.Profile
	}
	switch {
	case in.cfg.rule(r.Tool).Denied:
		return s.refuse(r.Tool, finding.Denied)
	case s.doc.Reset(r.Raw, strictjson.Limits{MendSurrogates: true}) != nil || s.doc.Root().Kind() != '{':
		return s.refuse(r.Tool, finding.Violation)
	}
	p := passage{
		msg:    (&wire.Message{Kind: wire.Response, ID: wire.IntID(0), Result: s.doc.Root()}).WithRoom(r.Room),
		method: mcpmsg.CallTool, id: wire.IntID(0), tool: labelOr(r.Tool, unknownTool), name: r.Tool, ctx: ctx,
	}
	if r.Schema != nil {
		p.output, p.schema = r.Schema, i.cfg.Schemas.Compile(r.Schema)
		p.narrow = i.cfg.Classifiers != nil && narrowSchema(r.Schema)
	}
	i.ask(in, &p)
	out := in.pass(p)
	if out.Kind != wire.Response {
		return nil, errors.New("gateway: result cannot be inspected")
	}
	clean := out.Body()
	if len(clean) < worthHelp { // its own bytes: those of the pool serve the next message
		clean = bytes.Clone(clean)
		out.Release()
	}
	i.behind(in, &p)
	return clean, nil
}

// Restore gives the control tokens that were defused back to the strings of a JSON value that a model has written for a
// tool, and returns it with their number. That it did so is in the record. spec: inspect/5
func (i *Inspector) Restore(tool string, raw []byte) (restored []byte, tokens int, err error) {
	h := i.pool.Get()
	defer h.Release()
	s := h.Value()
	if err := i.prepare(s); err != nil {
		return nil, 0, err
	}
	if !looksDefused(raw) || !s.in.restoresTokens() || s.doc.Reset(raw, strictjson.Limits{MendSurrogates: true}) != nil {
		return raw, 0, nil
	}
	var e strictjson.Edits
	w := restorer{tokens: i.cfg.tokens(), edits: &e}
	if w.value(s.doc.Root()); w.out.tokens == 0 {
		return raw, 0, nil
	}
	restored = e.Apply(nil, s.doc.Root())
	s.in.cfg.Name = i.cfg.Name
	d := Decision{Method: mcpmsg.CallTool, Kind: "call", Tool: labelOr(tool, unknownTool), Verdict: Changed, Restored: w.out.tokens, Received: digestOf(raw), Delivered: digestOf(restored)}
	s.in.recordDecision(d)
	return restored, w.out.tokens, nil
}

// RecordUninspected records that a result was delivered as it was, since it could not be inspected in time or at all.
func (i *Inspector) RecordUninspected() {
	h := i.pool.Get()
	defer h.Release()
	if s := h.Value(); i.prepare(s) == nil {
		s.in.cfg.Name = i.cfg.Name
		s.in.recordDecision(Decision{Method: mcpmsg.CallTool, Kind: "result", Tool: unknownTool, Verdict: Passed, NotInspected: []policy.Count{{Code: finding.NoRoom, N: 1}}})
	}
}

// refuse is the result that takes the place of one that cannot be looked at.
func (s *solo) refuse(tool string, code finding.Code) ([]byte, error) {
	id := s.in.refuse("result", Withheld, code)
	if id == nil {
		return nil, errors.New("gateway: no randomness for an evidence id")
	}
	note := unseen(*id, frame.Origin{Server: s.last.Server, Tool: labelOr(tool, unknownTool)}, scrub.Faithful, code)
	return toolPlaceholder(placeholderWhole, *id, false, frame.MetaKey, note), nil
}

// ask has classifiers judge the result before it is looked at.
func (i *Inspector) ask(in *inspector, p *passage) {
	if p.judged = in.cfg.judges(p); p.judged == nil {
		return
	}
	if in.unfit(p) {
		p.judged = nil
		return
	}
	p.judged.skip()
	asked := p.judged.asks(policy.Enforce)
	if len(asked) == 0 {
		return
	}
	// Each within its own time.
	p.judged.assessments = append(p.judged.assessments, askAll(p.context(), asked, in.see(*p, wantsRaw(asked)))...)
}

// behind has classifiers judge a copy of the result, whose bytes are the caller's.
func (i *Inspector) behind(in *inspector, p *passage) {
	asked := p.judged.asks(policy.Shadow)
	if len(asked) == 0 || !p.judged.shown {
		return
	}
	in.behindCopy(p, asked)
}

// labelOr returns s if it may be shown, else or.
func labelOr(s, or string) string {
	if frame.IsLabel(s) {
		return s
	}
	return or
}

// A solo is an inspector for one result at a time, which remembers its last decision.
type solo struct {
	in   *inspector
	doc  strictjson.Doc
	sink Sink
	last Decision
}

// prepare makes the inspector of a solo that is used for the first time.
func (i *Inspector) prepare(n *solo) (err error) {
	if n.in != nil {
		return nil
	}
	n.sink = i.cfg.Sink
	cfg := i.cfg
	cfg.Sink = n
	n.in, err = newInspector(cfg, func(int64) ([]byte, bool) { return nil, false })
	return err
}

// Record implements Sink.
func (n *solo) Record(d Decision) error {
	n.last = d
	return n.sink.Record(d)
}
