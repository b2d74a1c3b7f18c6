// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"encoding/hex"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/pellucid-mcp/pellucid/boundary/policy"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// An Exception lets a finding through although a Rule says to hold it.
type Exception struct {
	Code  finding.Code
	Until time.Time // zero: for ever
}

// holds returns the first of what was found in a tool's result for which the rule
// wants it held, or ok.
func (in *inspection) holds() finding.Code {
	if len(in.rule.Hold) == 0 || !in.ofTool() || in.p.msg.Kind == wire.ErrorResponse {
		return ok
	}
	for _, f := range in.w.found {
		if in.held(f.Code) {
			return f.Code
		}
	}
	for _, c := range in.w.foundMore {
		if in.held(c.Code) {
			return c.Code
		}
	}
	return ok
}

func (in *inspection) held(code finding.Code) bool {
	return slices.Contains(in.rule.Hold, code) && !in.excepted(code)
}

// excepted reports whether the file or a reviewer lets the code through.
func (in *inspection) excepted(code finding.Code) bool {
	return in.exceptedByRule(code) || in.exceptedByReviewer(code)
}

// exceptedByReviewer asks the exceptions that were granted while the gateway runs.
func (in *inspection) exceptedByReviewer(code finding.Code) bool {
	if in.cfg.Exceptions == nil || !hold.Exceptable(code) {
		return false
	}
	ctx, done := in.p.store.within(context.Background())
	defer done()
	if in.digest == nil {
		in.digest = sync.OnceValue(func() hold.Digest { return hold.Digest(digestOf(in.p.msg.Result.Raw())) })
	}
	return in.cfg.Exceptions.Covers(ctx, in.d.Server, in.d.Tool, code, in.digest)
}

func (in *inspection) exceptedByRule(code finding.Code) bool {
	return in.rule.excepts(code, in.cfg.now())
}

// review gives a withheld result to the queue. It reports whether a person will
// find it there, as in.item.
func (in *inspection) review(code finding.Code) bool {
	if in.cfg.Hold == nil || isUnfit(code) || in.d.Policy.Action == policy.Deny || in.suspect.action == policy.Deny || in.ofDeniedTask() {
		return false
	}
	ctx, done := in.p.store.within(context.Background())
	defer done()
	it := hold.Item{
		ID: in.d.ID.String(), Server: in.d.Server, Tool: in.d.Tool, Principal: in.cfg.Principal, Rule: in.heldBy(code), Code: code,
		Call: in.p.call, Body: slices.Clone(in.p.msg.Result.Raw()), Found: in.foundIn(), Question: in.questionOf(),
	}
	if in.p.ofTask() { // clients ask for tasks at intervals
		if id, err := hex.DecodeString(in.cfg.Hold.Waits(ctx, &it)); err == nil && len(id) == len(in.item) {
			in.item = ID(id)
			return true
		}
	}
	err := in.cfg.Hold.Hold(ctx, it)
	if err != nil {
		level := in.cfg.Log.Error
		if in.d.foundNoRoom(err) {
			level = in.cfg.Log.Warn
		}
		level("a withheld result could not be put into the queue for review", "error", err, "evidence", in.d.ID.String())
	}
	if in.item = in.d.ID; err == nil {
		in.cfg.Counts.countHeld()
	}
	return err == nil
}

// foundNoRoom reports whether err says that the queue is full, and notes that in the decision.
func (d *Decision) foundNoRoom(err error) bool {
	full := errors.Is(err, hold.ErrFull)
	if full {
		d.Withheld = addCount(d.Withheld, finding.QueueFull, 1)
	}
	return full
}

// hasNoRoom reports whether the queue was full.
func (d *Decision) hasNoRoom() bool {
	return slices.ContainsFunc(d.Withheld, func(c policy.Count) bool { return c.Code == finding.QueueFull })
}

// isUnfit reports whether a result withheld for that reason can be released by no
// reviewer: a client could not read it as what its server has declared.
func isUnfit(code finding.Code) bool {
	return code == finding.ShapeInvalid || code == finding.SchemaInvalid || code == finding.NotStructured
}

// heldBy names what holds a result.
func (in *inspection) heldBy(code finding.Code) string {
	if in.suspect.name != "" {
		return "classifier:" + in.suspect.name
	}
	return in.d.heldBy(code)
}

// ruleOf names the kind of rule that withholds for a code.
func ruleOf(code finding.Code) string {
	switch code {
	case finding.SchemaBroken, finding.SchemaUnverifiable:
		return "schema"
	}
	return "finding"
}

// released answers a call, or a request for the result of a task, with a result that a person has released for it.
// The server is not asked again: what it did for the call, it has done.
func (r *relay) released(ctx context.Context, k *call) *wire.Message {
	if r.cfg.Hold == nil || k.digest == (hold.Digest{}) {
		return nil
	}
	within, done := k.store.within(ctx)
	it, taken := r.cfg.Hold.Take(within, k.digest)
	done()
	if !taken {
		return nil
	}
	m := wire.NewResult(k.id, it.Body)
	if m.Parse() != nil || m.Result.Kind() != '{' {
		r.log.Error("a released result is not a valid result: the call goes to the server", "evidence", it.ID)
		return nil
	}
	p := passage{msg: m, method: k.method, id: k.shown, question: k.asked, released: it.ID, ctx: callContext{ctx, k}, revision: r.revisionOf(k), store: &k.store}
	r.answersCall(&p, k) // by its schema what we add is judged, not the result
	out := r.in.pass(p)
	if out == nil {
		return nil
	}
	r.remember(k, m, out)
	k.addressed(out).Whole = true
	k.done(OutcomeOK, out.Len())
	return out
}
