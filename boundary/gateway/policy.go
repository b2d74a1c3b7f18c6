// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"crypto/sha256"
	"slices"
	"strconv"

	"github.com/pellucid-mcp/pellucid/boundary/policy"
	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/frame"
	"github.com/pellucid-mcp/pellucid/text/scrub"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// toolHints are the annotations of a tool. The zero value is what MCP assumes of one
// that has none.
type toolHints struct{ readOnly, harmless, closed bool }

func hintsOf(annotations strictjson.Value) toolHints {
	return toolHints{
		readOnly: annotations.Get("readOnlyHint").Kind() == 't',
		harmless: annotations.Get("destructiveHint").Kind() == 'f',
		closed:   annotations.Get("openWorldHint").Kind() == 'f',
	}
}

// hints are those that the server has given the tool.
func (s *toolList) hints(tool string) toolHints {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tools[tool].hints
}

// policyInput is what the gateway knows of a tool. A tool is privileged unless its server says
// that it only reads, or its rule says that it does not act.
func (c *Config) policyInput(tool string, h toolHints, rule *Rule) policy.Input {
	return policy.Input{Server: c.Name, Tool: tool, ReadOnly: h.readOnly, Destructive: !h.harmless, OpenWorld: !h.closed,
		Privileged: !h.readOnly && !rule.Unprivileged}
}

// decides asks the policy about what answers a call, which was walked. It returns why
// that is withheld, or ok; where it wants a stricter profile, it was walked again.
func (in *inspection) decides(root strictjson.Value) finding.Code {
	if in.cfg.Policy == nil || in.p.released != "" || !in.ofTool() {
		return ok
	}
	w := &in.w
	e := in.cfg.policyInput(in.p.tool, in.p.hints, &in.rule)
	in.counts = w.findings(in.counts[:0])
	for _, c := range w.uninspected {
		e.NotInspected += c.N
	}
	e.Size, e.Findings, e.Scores = len(root.Raw()), in.counts, scoresOf(in.d.Classified)
	e.Facts, e.Session = in.p.facts, in.cfg.Counts.snapshot(in.cfg.Policy.Reads().Session)
	in.d.Policy = in.cfg.Policy.Decide(e)
	for _, t := range in.p.tools { // and what is stricter for one of them
		rule := in.cfg.rule(t.name)
		of := in.cfg.policyInput(t.label, t.hints, &rule)
		of.Size, of.Findings, of.NotInspected, of.Scores, of.Facts, of.Session = e.Size, e.Findings, e.NotInspected, e.Scores, e.Facts, e.Session
		if one := in.cfg.Policy.Decide(of); one.Action > in.d.Policy.Action {
			in.d.Policy = one
		}
	}
	in.cfg.tellPolicy(&in.d)
	switch in.d.Policy.Action {
	case policy.Allow:
		return ok
	case policy.Sanitise:
		return in.walkStrictly(root)
	}
	return in.cfg.stopCode(in.d.Policy.Action)
}

// stopCode returns the code of what an action of the policy stops.
func (c *Config) stopCode(a policy.Action) finding.Code {
	if a == policy.Deny || c.Hold == nil {
		return finding.Denied
	}
	return finding.Held
}

// walkStrictly walks the result again and removes the invisible characters that the first walk kept for a language
// or an emoji that is on no list. Nothing that a person sees changes. What was found before stands: neither what holds
// a result nor what lowers a score of trust is asked again. Under the profile mcp nothing invisible is left to remove.
func (in *inspection) walkStrictly(root strictjson.Value) finding.Code {
	s, err := in.scrub.of(in.rule.MaxChars, in.rule.ControlTokens)
	if err != nil {
		return finding.Denied // never: they were compiled for the first walk
	}
	w := &in.w
	if w.text == s.mcp {
		return ok
	}
	hidden, forged := w.hidden, w.forged
	w.reset() // which shortens these and leaves their bytes
	w.hidden, w.forged = hidden, forged
	w.text, w.strictly = s.strict, true
	if code := in.validated(in.d.Validation); code != ok { // its notes went with the first walk
		if !in.leftContent {
			return code
		}
		in.noteLeftContent(code)
	}
	return in.walk(root)
}

// tellPolicy tells the operator what a rule has done, or would have.
func (c *Config) tellPolicy(d *Decision) {
	for _, o := range [...]struct {
		policy.Match
		what string
	}{{d.Policy.Match, "policy decides"}, {d.Policy.Would, "policy would decide"}} {
		if o.Rule == "" || o.Action == policy.Allow {
			continue
		}
		args := []any{"action", o.Action.String(), "rule", o.Rule, "tool", d.Tool, "kind", d.Kind, "evidence", d.ID.String()}
		if o.Failed {
			args = append(args, "failed", true)
		}
		if o.Question != "" {
			args = append(args, "question", o.Question)
		}
		c.Log.Info(o.what, args...)
	}
}

// heldBy names what holds a result: a rule of the policy, or the kind of rule.
func (d *Decision) heldBy(code finding.Code) string {
	if a := d.Policy.Action; a == policy.Ask || a == policy.Hold {
		return "policy:" + d.Policy.Rule
	}
	return ruleOf(code)
}

// refusedByPolicy asks the policy about a call before the server gets it. It returns
// the answer to one that the server must not get, or nil.
func (r *relay) refusedByPolicy(ctx context.Context, m *wire.Message, k *call) *wire.Message {
	if r.cfg.Policy == nil || k.method != mcpmsg.CallTool {
		return nil
	}
	rule := r.cfg.rule(k.tool)
	e := r.cfg.policyInput(r.surface.label(k.tool), r.surface.hints(k.tool), &rule)
	e.Direction, e.Size = policy.Call, len(m.Params.Raw())
	reads := r.cfg.Policy.Reads()
	k.facts = factsOf(reads, m.Params.Get("arguments"), m.Caller)
	e.Facts, e.Session = k.facts, r.cfg.Counts.countCall(e.Server+"/"+e.Tool, reads.Session)
	decided := r.cfg.Policy.Decide(e)
	if decided.Action < policy.Ask && decided.Would.Rule == "" {
		return nil
	}
	verdict := Dropped
	switch {
	case decided.Action < policy.Ask:
		verdict = Passed
	case decided.Action != policy.Deny && r.approved(ctx, k):
		return nil // a person has looked at this very call
	}
	d := r.in.callDecision(e, m, verdict, decided)
	if d == nil {
		return errDenied.to(k, nil)
	}
	text := placeholderDeny
	if verdict != Passed && decided.Action != policy.Deny {
		if text = r.holdCall(ctx, d, m, k); text != placeholderCall {
			d.Withheld[0].Code = finding.Denied // it waits for no reviewer
		}
	}
	if err := r.in.record(d, &k.store); err != nil && verdict == Passed && r.in.cfg.RequireEvidence {
		return errDenied.to(k, nil)
	}
	r.cfg.tellPolicy(d)
	switch {
	case verdict == Passed:
		return nil
	case text == placeholderCall:
		r.cfg.Counts.countHeld()
		return r.refuseCall(m, k, d.ID, d.Tool, text, finding.Held)
	}
	if r.cfg.Captures != nil && k.asked != nil && rule.Capture.any(Dropped) {
		r.cfg.keepTexts(d, k.asked, nil, nil)
	}
	return r.refuseCall(m, k, d.ID, d.Tool, text, finding.Denied)
}

// callDecision returns the decision about a call, or nil if there is no randomness for its id.
func (in *inspector) callDecision(e policy.Input, m *wire.Message, v Verdict, decided policy.Ruling) *Decision {
	id, err := in.ids.next()
	if err != nil {
		return nil
	}
	d := &Decision{ID: id, Time: in.cfg.now(), Server: e.Server, Tool: e.Tool, Method: mcpmsg.CallTool, Kind: "call",
		Principal: in.cfg.Principal, Verdict: v, Received: digestOf(m.Params.Raw()), Policy: decided,
		SanitationVersion: scrub.Version, UnicodeVersion: scrub.UnicodeVersion}
	if v == Passed {
		d.Delivered = d.Received
	} else {
		d.Withheld = []policy.Count{{Code: in.cfg.stopCode(decided.Action), N: 1}}
	}
	return d
}

// approval is by which a call is found that a person has let through. It differs from
// the digest of the question, under which results are released.
func (k *call) approval() hold.Digest {
	return sha256.Sum256(append([]byte("pellucid call\n"), k.digest[:]...))
}

// approved reports whether a person has let this call through, which counts once.
func (r *relay) approved(ctx context.Context, k *call) bool {
	if r.cfg.Hold == nil {
		return false
	}
	ctx, done := k.store.within(ctx)
	defer done()
	_, taken := r.cfg.Hold.Take(ctx, k.approval())
	return taken
}

// holdCall gives a call to the queue: the same call gets through once a person has released this one. It returns
// the text for the client.
func (r *relay) holdCall(ctx context.Context, d *Decision, m *wire.Message, k *call) (placeholder string) {
	if r.cfg.Hold == nil {
		return placeholderDeny
	}
	ctx, done := k.store.within(ctx)
	defer done()
	err := r.cfg.Hold.Hold(ctx, hold.Item{
		ID: d.ID.String(), Server: d.Server, Tool: d.Tool, Principal: r.cfg.Principal, Rule: hold.PolicyCall + d.Policy.Rule,
		Code: finding.Held, Call: k.approval(), Body: slices.Clone(m.Params.Raw()),
	})
	if err == nil {
		return placeholderCall
	}
	r.quiet.warn("a held call could not be put into the queue for review", "error", err, "evidence", d.ID.String())
	if d.foundNoRoom(err) {
		return placeholderWait
	}
	return placeholderDeny
}

// appendMatch appends a member with a match, where a rule has matched.
func appendMatch(dst []byte, name string, o policy.Match) []byte {
	if o.Rule == "" {
		return dst
	}
	rule := o.Rule
	if !frame.IsLabel(rule) {
		rule = frame.Other
	}
	dst = append(append(append(dst, `,"`...), name...), `":{"action":"`...)
	dst = append(append(append(dst, o.Action.String()...), `","rule":"`...), rule...)
	dst = append(dst, '"')
	if o.Failed {
		dst = strconv.AppendBool(append(dst, `,"failed":`...), true)
	}
	return append(dst, '}')
}
