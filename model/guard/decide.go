// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/pellucid-mcp/pellucid/model/counterfactual"
	"github.com/pellucid-mcp/pellucid/model/delegation"
	"github.com/pellucid-mcp/pellucid/model/format"
	"github.com/pellucid-mcp/pellucid/model/llm"
	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/frame"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
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

// Acts are all of them.
var Acts = []Act{forwarded, repaired, refused, waiting}

// A Reason says why, where it was not a run that decided.
type Reason string

// The reasons.
const (
	reasonFound      Reason = "found-out"         // what was found out about each call
	reasonTrusted    Reason = "no-untrusted-text" // in the context: the call is the user's
	reasonHarmless   Reason = "harmless"          // nothing in the answer needs a decision
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
	task      string      // that the host has declared; "": it has not
	header    http.Header // that signs the probes
	teaching  *teaching   // nil: nothing is known of it
	path      string      // where they are asked, below the provider's origin
}

// A decision says what becomes of an answer, and why.
type decision struct {
	act      Act
	reason   Reason
	response delegation.Response
	verdicts []delegation.Verdict // of the calls, in their order
	body     []byte               // of a repaired answer
	recorded bool
}

// told reports whether the client is told of a decision.
func (o *decision) told() bool { return o.reason != reasonTrusted && o.reason != reasonHarmless }

// labelled reports whether the answer that a client gets has a label: what passes without a mark
// stays as it is, byte for byte.
func (o *decision) labelled() bool { return o.act != forwarded || o.response == delegation.Mark }

// label says in an answer what was decided. No third-party text stands in it.
func (x *exchange) label(o *decision) []byte {
	b := []byte(`{"act":"` + string(o.act) + `","id":"` + x.id + `","verdicts":[`)
	for i, v := range o.verdicts {
		if i > 0 {
			b = append(b, ',')
		}
		b = strictjson.AppendQuote(b, string(v))
	}
	return append(b, "]}"...)
}

// A decider takes one decision.
type decider struct {
	g         *Guard
	x         *exchange
	canRepair bool
	audit     bool

	assembly *counterfactual.Assembly
	own      bool                  // it holds no third-party text
	calls    []counterfactual.Call // that need a decision
	targets  []counterfactual.Proposal
	found    []delegation.Result      // about calls
	after    []delegation.Result      // about those of the repaired answer
	fix      *Repair                  // how the answer was repaired; nil: it was not
	runs     []*counterfactual.Result // searches for the segments that took control
	out      decision
	finds    *counterfactual.Finder // in findsIn
	findsIn  *counterfactual.Assembly
	spent    *spending // nil: nothing was asked
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
	if d.out.reason == reasonHarmless {
		return
	}
	d.failures()
	if d.out.reason != reasonTrusted {
		d.record(context.WithoutCancel(ctx), start)
	}
	d.hooks(context.WithoutCancel(ctx))
	g.counters.decided(&d.out, time.Since(start))
	args := []any{"tool", d.tool(), "act", d.out.act, "reason", d.out.reason, "response", d.out.response, "verdicts", d.out.verdicts, "audit", d.audit}
	if k := d.spent; k != nil {
		args = append(args, "calls", k.asked, "tokens", k.tokens)
	}
	args = append(args, "ms", time.Since(start).Milliseconds(), "evidence", d.x.id)
	if d.out.recorded {
		args = append(args, "run", "pellucid ledger show "+d.x.id+g.o.Flag)
	}
	g.o.Log.Info("the guard decided on the call of a tool that the model proposed", args...)
}

// failures tells the operator of rules about values that could not be evaluated, and of
// requests for which no plan can be asked.
func (d *decider) failures() {
	for i := range d.found {
		if p := d.found[i].Plan; p != nil && p.Unasked == "" && p.Failure != "" {
			d.g.o.Log.Warn("the planner did not answer, so calls that need a plan are decided as cannot-tell: look at guard.planner.model and its key, or at those of the request",
				"why", p.Failure, "own_model", d.g.o.Planner.Client != nil, "tool", d.found[i].Tool, "evidence", d.x.id)
		}
		if p := d.found[i].Plan; p != nil && p.Unasked != "" {
			d.g.o.Log.Warn("the planner could not be asked about the call of a tool", "why", p.Unasked, "tool", d.found[i].Tool, "evidence", d.x.id)
		}
		for _, r := range d.found[i].Rulings {
			if r.Failed {
				d.g.o.Log.Warn("a rule about the values of a call could not be evaluated", "rule", r.Rule, "says", r.Says, "tool", d.found[i].Tool, "evidence", d.x.id)
			}
		}
	}
}

// judge fills in out.
func (d *decider) judge(ctx context.Context, a *answer) {
	assembly, err := d.parse(d.x.body)
	if err != nil {
		d.undecided(reasonContext)
		return
	}
	d.assembly = assembly
	// What the provider has fetched on the way is in no request. Where nothing else is a
	// stranger's, nothing could be withheld.
	unseen := a.fetched && len(assembly.Segments) == 0 || slices.ContainsFunc(assembly.Odd, func(o counterfactual.Oddity) bool { return o.Code == counterfactual.OddUnseen })
	d.calls = d.g.gate().calls(assembly, &a.said)
	for _, c := range d.calls {
		d.targets = append(d.targets, d.g.policy.Proposal(c))
	}
	call := d.call()
	// Where nothing is a stranger's, only the operator's rules can stop a call.
	d.own = len(assembly.Segments) == 0 && !unseen
	switch {
	case d.own && (a.strange || !slices.ContainsFunc(d.calls, func(c counterfactual.Call) bool { return d.g.gate().ruled(c.Name) })):
		d.out = decision{act: forwarded, reason: reasonTrusted, response: delegation.Pass}
	case a.strange:
		d.undecided(reasonStrange)
	case len(a.said.Calls) > format.MaxCalls || len(d.targets) > counterfactual.MaxTargets:
		d.undecided(reasonTooMany)
	case len(d.calls) == 0:
		d.out = decision{act: forwarded, reason: reasonHarmless, response: delegation.Pass}
	case !d.audit && d.released(ctx, call):
		d.out = decision{act: forwarded, reason: reasonReleased, response: delegation.Pass}
	case unseen:
		d.undecided(reasonUnseen)
	default:
		d.test(ctx, assembly, a)
		if d.own && d.out.response.Passes() {
			d.found = nil
			d.out = decision{act: forwarded, reason: reasonTrusted, response: delegation.Pass}
		}
	}
	if !d.audit && d.out.act == refused {
		d.ask(ctx, call)
	}
}

// parse takes a request apart.
func (d *decider) parse(body []byte) (*counterfactual.Assembly, error) {
	var key *frame.Key
	if f := d.g.o.Frame; f != nil {
		now := f()
		key = &now
	}
	a, err := counterfactual.Parse(d.x.f.Name(), body, counterfactual.ParseOptions{Key: key, UntrustedTool: d.g.o.UntrustedTool,
		Trust: d.g.o.Trust, Task: d.x.task, UserTurns: d.g.o.Task == TaskBoth, SharedHosts: d.g.o.SharedHosts})
	if err != nil {
		return nil, err
	}
	return d.g.o.enclose(a)
}

// undecided is what happens to what cannot be tested.
func (d *decider) undecided(why Reason) {
	d.out = decision{act: refused, reason: why, response: delegation.Hold}
	if d.g.o.Fail.DangerouslyAllowPrivileged {
		d.out = decision{act: forwarded, reason: why, response: delegation.Pass}
	}
}

// verdicts is what each verdict does here.
func (o *Options) verdicts() delegation.Policy {
	if !o.Fail.DangerouslyAllowPrivileged {
		return o.Verdicts
	}
	p := delegation.Policy{delegation.Unknown: delegation.Pass}
	maps.Copy(p, o.Verdicts)
	return p
}

// test asks about each call, and does what the worst response says.
func (d *decider) test(ctx context.Context, assembly *counterfactual.Assembly, a *answer) {
	o := &d.g.o
	base := cmp.Or(a.input+a.output, int64(len(d.x.body)+2)/3)
	d.spent = &spending{g: d.g, x: d.x, input: a.input, answer: min(max(2*a.output, minAnswer), maxAnswer),
		budget: llm.NewBudget(llm.Limits{Calls: int64(o.Calls + more*(len(d.calls)-1)), Tokens: max(o.TokenFactor*base, o.MinTokens)})}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(o.Millis)*time.Millisecond)
	defer cancel()
	d.out.reason, d.out.response, d.out.act = reasonFound, delegation.Pass, refused
	d.found = d.decideAll(ctx, assembly, a, d.calls)
	for _, f := range d.found {
		d.out.verdicts = append(d.out.verdicts, f.Verdict)
		d.out.response = delegation.Worse(d.out.response, f.Response)
	}
	switch {
	case d.out.response.Passes():
		d.out.act = forwarded
	case d.out.response == delegation.Repair && !d.own && d.repair(ctx, assembly, a):
		d.out.act = repaired
	}
}

func (d *decider) decideAll(ctx context.Context, assembly *counterfactual.Assembly, a *answer, calls []counterfactual.Call) []delegation.Result {
	o := &d.g.o
	p := &delegation.Problem{Assembly: assembly, Privileges: d.g.policy, Answer: &a.said, Calls: calls,
		Examples: o.Planner.Examples, Confirm: o.Planner.Confirm, SkipStated: o.Planner.DangerouslySkipStated, Own: d.own, Rules: o.rules(assembly), Quarantined: d.quarantined(ctx, assembly)}
	if o.Hooks.Approvals != nil && !d.audit {
		p.Approved = func(ctx context.Context, c counterfactual.Call) string {
			call, ok := d.approvable(assembly, c)
			if !ok {
				return ""
			}
			a, _ := o.Hooks.Approvals.Use(ctx, call)
			return a.ID
		}
	}
	return delegation.Decide(ctx, p, o.verdicts(), &asker{d.spent, assembly})
}

// more questions for each further call of one answer: what its rivals may cost.
const more = 3

const (
	minAnswer = 512  // tokens of a probe's answer, where the one that is tested was short
	maxAnswer = 8192 // and where it was long
)

// call is the digest under which a person releases the calls.
func (d *decider) call() hold.Digest {
	var all []byte
	for i := range d.calls {
		all = append(append(all, exactly(d.calls[i])...), '\n')
	}
	return hold.CallOf(d.x.principal, DeskServer, d.tool(), all)
}

// DeskServer is the name under which calls wait for a person.
const DeskServer = "guard"

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
	body, err := json.Marshal(d.shown())
	if err != nil {
		return
	}
	err = d.g.o.Hooks.Desk.Hold(context.WithoutCancel(ctx), hold.Item{
		ID: d.x.id, Server: DeskServer, Tool: d.tool(), Principal: d.x.principal, Rule: hold.GuardCall, Code: finding.Held, Call: call, Body: body,
		Question: d.context(),
	})
	if err != nil {
		d.g.o.Log.Warn("a call could not be put into the queue for a reviewer", "error", err, "evidence", d.x.id)
		return
	}
	d.out.act = waiting
}

// record gives the statement to the sink. Where that fails nothing is delivered.
func (d *decider) record(ctx context.Context, start time.Time) {
	if d.g.o.Hooks.Sink == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	statement, err := d.statement()
	if err == nil {
		cost := Cost{Took: time.Since(start)}
		if k := d.spent; k != nil {
			cost.Calls, cost.Tokens = int64(k.asked), k.tokens
		}
		err = d.g.o.Hooks.Sink.Record(ctx, Kind, statement, cost)
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
