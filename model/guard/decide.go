// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/pellucid-mcp/pellucid/model/counterfactual"
	"github.com/pellucid-mcp/pellucid/model/counterfactual/run"
	"github.com/pellucid-mcp/pellucid/model/format"
	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/frame"
)

// An Act is what becomes of an answer that proposes a privileged call.
type Act string

// The acts.
const (
	forwarded Act = "forwarded"
	repaired  Act = "repaired"
	refused   Act = "refused"
	waiting   Act = "waiting" // refused for now: a person decides
)

// A Reason says why, where it was not a run that decided.
type Reason string

// The reasons.
const (
	reasonRun        Reason = "run"
	reasonTrusted    Reason = "no-untrusted-text" // in the context: the call is the user's
	reasonReleased   Reason = "released"          // by a person
	reasonStrange    Reason = "unreadable-answer"
	reasonContext    Reason = "unreadable-context"
	reasonUnseen     Reason = "context-not-seen" // a part of it lies with the provider
	reasonTooMany    Reason = "too-many-calls"
	reasonUnrecorded Reason = "not-recorded"
)

// An exchange is a request and what there is to know of it.
type exchange struct {
	f         format.Format
	id        string // of the evidence, if there will be any
	body      []byte
	model     string
	principal string
	header    http.Header // that signs the probes
}

// A decision says what becomes of an answer, and why.
type decision struct {
	act      Act
	reason   Reason
	response counterfactual.Response
	body     []byte // of a repaired answer
	recorded bool
}

// A decider takes one decision.
type decider struct {
	g         *Guard
	x         *exchange
	canRepair bool
	audit     bool
	store     run.Store // that keeps the records of its runs; nil: nobody does
	failed    error     // of that

	rounds  []*round
	targets []counterfactual.Proposal
	out     decision
	spent   counterfactual.Spent
}

// A round is one run.
type round struct {
	assembly *counterfactual.Assembly
	report   *run.Report
}

// decide says what becomes of an answer, and has it recorded. ctx bounds the run;
// its end is an attribution as well: inconclusive.
func (g *Guard) decide(ctx context.Context, x *exchange, a *answer, canRepair, audit bool) decision {
	d := &decider{g: g, x: x, canRepair: canRepair, audit: audit}
	d.decide(ctx, a)
	return d.out
}

func (d *decider) decide(ctx context.Context, a *answer) {
	start, g := time.Now(), d.g
	d.judge(ctx, a)
	if d.store != nil && ctx.Err() != nil && d.failed == nil {
		d.failed = ctx.Err()
	}
	if d.failed != nil {
		return // what the store has of it is gone on with
	}
	if d.out.reason != reasonTrusted {
		d.record(context.WithoutCancel(ctx))
	}
	d.hooks(context.WithoutCancel(ctx))
	g.counters.decided(&d.out, time.Since(start))
	args := []any{"tool", d.tool(), "act", d.out.act, "reason", d.out.reason, "response", d.out.response, "audit", d.audit,
		"calls", d.spent.Calls, "tokens", d.spent.Tokens, "ms", time.Since(start).Milliseconds(), "evidence", d.x.id}
	if d.out.recorded {
		args = append(args, "run", "pellucid ledger show "+d.x.id)
	}
	g.o.Log.Info("the guard decided on the call of a tool that the model proposed", args...)
}

// judge fills in out.
func (d *decider) judge(ctx context.Context, a *answer) {
	assembly, err := d.parse(d.x.body)
	if err != nil {
		d.undecided(reasonContext)
		return
	}
	// What the provider has fetched on the way is in no request. Where nothing else is a
	// stranger's, nothing could be withheld.
	unseen := a.fetched && len(assembly.Segments) == 0 || slices.ContainsFunc(assembly.Odd, func(o counterfactual.Oddity) bool { return o.Code == counterfactual.OddUnseen })
	d.targets = d.privileged(&a.said)
	call := d.call()
	switch {
	case len(assembly.Segments) == 0 && !unseen:
		d.out = decision{act: forwarded, reason: reasonTrusted, response: counterfactual.Allow}
	case a.strange || len(d.targets) == 0:
		d.undecided(reasonStrange)
	case len(a.said.Calls) > format.MaxCalls || len(d.targets) > counterfactual.MaxTargets:
		d.undecided(reasonTooMany)
	case !d.audit && d.released(ctx, call):
		d.out = decision{act: forwarded, reason: reasonReleased, response: counterfactual.Allow}
	case unseen:
		d.undecided(reasonUnseen)
	default:
		d.test(ctx, assembly, a)
	}
	if !d.audit && d.out.act == refused && (d.out.response == counterfactual.Ask || d.out.response == counterfactual.Hold) {
		d.ask(ctx, call)
	}
}

// parse takes a request apart.
func (d *decider) parse(body []byte) (*counterfactual.Assembly, error) {
	return counterfactual.Parse(d.x.f.Name(), body, counterfactual.ParseOptions{Key: d.g.o.Frame, UntrustedTool: d.g.o.UntrustedTool, Trust: d.g.o.Trust})
}

// privileged are the proposals that need an attribution, each once.
func (d *decider) privileged(said *counterfactual.Answer) []counterfactual.Proposal {
	var out []counterfactual.Proposal
	seen := map[string]bool{}
	for _, c := range said.Calls[:min(len(said.Calls), format.MaxCalls)] {
		a := d.g.policy.Proposal(c)
		if digest := a.Digest(); a.Privilege > 0 && !seen[digest] {
			seen[digest] = true
			out = append(out, a)
		}
	}
	return out
}

// undecided is what happens to what cannot be tested.
func (d *decider) undecided(why Reason) {
	d.out = decision{act: refused, reason: why, response: counterfactual.Hold}
	if d.g.o.Fail.DangerouslyAllowPrivileged {
		d.out = decision{act: forwarded, reason: why, response: counterfactual.Allow}
	}
}

// test runs the counterfactuals. A repaired answer that proposes other privileged
// calls is tested in its own context, with what is left of the budget.
func (d *decider) test(ctx context.Context, assembly *counterfactual.Assembly, a *answer) {
	d.out.reason = reasonRun
	r := d.round(ctx, assembly, a, d.targets)
	if r == nil {
		d.undecided(reasonContext)
		return
	}
	d.out.response = r.report.Result.Response()
	switch {
	case d.out.response == counterfactual.Allow:
		d.out.act = forwarded
	case d.out.response == counterfactual.Quarantine && d.canRepair && d.repair(ctx, r):
		d.out.act = repaired
	default:
		d.out.act = refused
	}
}

// round is one run for the targets; nil if it cannot be planned.
func (d *decider) round(ctx context.Context, assembly *counterfactual.Assembly, a *answer, targets []counterfactual.Proposal) *round {
	o := &d.g.o
	p := assembly.Problem(targets, a.input+a.output)
	p.Rates, p.Strategy, p.Severity, p.Fail, p.Refine = o.Rates, o.Strategy, o.Severity, o.Fail, o.Refine
	p.Budget.Calls = o.Calls - d.spent.Calls
	p.Budget.Concurrency = o.Concurrency
	p.Budget.Millis = o.Millis - d.spent.Millis
	p.Budget.Tokens = max(o.TokenFactor*p.Budget.BaseTokens, o.MinTokens) - d.spent.Tokens
	// As long as the answer that is tested, and no longer than it takes to see its calls.
	p.Budget.AnswerTokens = min(max(2*a.output, minAnswer), maxAnswer)
	if p.Budget.Calls <= 0 || p.Budget.Millis <= 0 || p.Budget.Tokens <= 0 {
		return nil
	}
	said := a.said
	judge := &counterfactual.Judge{
		Policy: d.g.policy, Targets: targets, Trusted: assembly.Task + "\n" + assembly.Instructions, Base: &said,
		Metrics: counterfactual.Metrics(),
	}
	id := d.x.id
	if n := len(d.rounds); n > 0 {
		id += "/" + strconv.Itoa(n)
	}
	out, err := d.g.runner(d.x.f.Name(), d.store).Run(ctx, run.Job{ID: id, Assembly: assembly, Judge: judge, Problem: p, Header: d.x.header})
	if errors.Is(err, run.ErrStore) {
		d.failed = err
	}
	if err != nil {
		return nil
	}
	r := &round{assembly, out}
	d.rounds = append(d.rounds, r)
	d.spent.Calls += max(out.Result.Spent.Calls, int(out.Spent.Calls))
	d.spent.Tokens += max(out.Result.Spent.Tokens, out.Spent.Tokens)
	d.spent.Millis += out.Result.Spent.Millis
	return r
}

const (
	minAnswer = 512  // tokens of a probe's answer, where the one that is tested was short
	maxAnswer = 8192 // and where it was long
)

// repair finds the answer that may go out in the place of the one that is held.
func (d *decider) repair(ctx context.Context, r *round) bool {
	fix, body := r.report.Result.Repair, r.report.Repaired
	if fix == nil || body == nil {
		return false
	}
	a := read(d.x.f, body)
	calls := d.privileged(&a.said)
	if a.strange || slices.ContainsFunc(calls, func(c counterfactual.Proposal) bool { return c.Malformed }) {
		return false
	}
	if fix.Others > 0 && fix.Kept.Len() > 0 {
		// Another call, with untrusted text still in sight.
		src, err := r.assembly.Render(counterfactual.KeepOnly(fix.Kept))
		if err != nil {
			return false
		}
		assembly, err := d.parse(src)
		if err != nil {
			return false
		}
		again := d.round(ctx, assembly, a, calls)
		if again == nil || again.report.Result.Response() != counterfactual.Allow {
			return false
		}
	}
	d.out.body = body
	return true
}

// call is the digest under which a person releases the calls.
func (d *decider) call() hold.Digest {
	var all []byte
	for i := range d.targets {
		all = append(append(all, d.targets[i].Digest()...), '\n')
	}
	return hold.CallOf(d.x.principal, deskServer, d.tool(), all)
}

// deskServer is the name under which calls wait for a person.
const deskServer = "guard"

// tool is the label of the first tool.
func (d *decider) tool() string {
	if len(d.targets) == 0 || !frame.IsLabel(d.targets[0].Tool) {
		return frame.Other
	}
	return d.targets[0].Tool
}

func (d *decider) released(ctx context.Context, call hold.Digest) bool {
	if d.g.o.Hooks.Desk == nil {
		return false
	}
	_, ok := d.g.o.Hooks.Desk.Take(ctx, call)
	return ok
}

// ask lets the calls wait for a person.
func (d *decider) ask(ctx context.Context, call hold.Digest) {
	if d.g.o.Hooks.Desk == nil || len(d.targets) == 0 {
		return
	}
	w := &writer{}
	w.raw("[")
	for i := range d.targets {
		t := &d.targets[i]
		if i > 0 {
			w.raw(",")
		}
		w.raw(`{"tool":`)
		w.text(t.Tool)
		w.raw(`,"arguments":[`)
		for k, a := range slices.Concat(t.Critical, t.Free) {
			if k > 0 {
				w.raw(",")
			}
			w.raw("[")
			w.text(a.Path)
			w.raw(",")
			w.text(a.Value)
			w.raw("]")
		}
		w.raw("]}")
	}
	w.raw("]")
	err := d.g.o.Hooks.Desk.Hold(context.WithoutCancel(ctx), hold.Item{
		ID: d.x.id, Server: deskServer, Tool: d.tool(), Principal: d.x.principal, Rule: hold.GuardCall, Code: finding.Denied, Call: call, Body: w.b,
	})
	if err != nil {
		d.g.o.Log.Warn("a call could not be put into the queue for a reviewer", "evidence", d.x.id)
		return
	}
	d.out.act = waiting
}

// evidenceVersion is the version of the statement's format.
const evidenceVersion = "guard-evidence/1"

// record gives the statement to the sink. Where that fails nothing is delivered.
func (d *decider) record(ctx context.Context) {
	if d.g.o.Hooks.Sink == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	statement, err := d.statement()
	if err == nil {
		err = d.g.o.Hooks.Sink.Record(ctx, Kind, statement)
	}
	if err == nil {
		d.out.recorded = true
		return
	}
	d.g.o.Log.Error("a decision could not be recorded", "evidence", d.x.id)
	if !d.audit && d.out.act != refused {
		d.out.act, d.out.reason, d.out.body = refused, reasonUnrecorded, nil
	}
}

// statement is the evidence: digests, labels and numbers, and the records of the
// runs, from which counterfactual.Replay derives the attributions again.
func (d *decider) statement() ([]byte, error) {
	st := statement{Act: d.out.act, Audit: d.audit, Context: digestOf(d.x.body), Format: d.x.f.Name(), ID: d.x.id, Principal: d.x.principal,
		Reason: d.out.reason, Response: d.out.response, Version: evidenceVersion}
	for i := range d.targets {
		st.Actions = append(st.Actions, d.targets[i].Digest())
	}
	var runs [][]byte
	for _, r := range d.rounds {
		record, err := r.report.Result.Record()
		if err != nil {
			return nil, err
		}
		runs = append(runs, record)
	}
	return st.text(runs), nil
}
