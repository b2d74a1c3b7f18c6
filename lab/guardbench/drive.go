// SPDX-License-Identifier: Apache-2.0

package guardbench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"

	"github.com/pellucid-mcp/pellucid/model/counterfactual"
	"github.com/pellucid-mcp/pellucid/model/guard"
	"github.com/pellucid-mcp/pellucid/record/hold"
)

// A driver is one guard with a simulated provider behind it. It decides on one case after the
// other.
type driver struct {
	guard    *guard.Guard
	provider *Provider

	mu        sync.Mutex
	statement []byte
}

// newDriver makes a guard with the options of the product: nothing but the provider, the
// records and the queue of a reviewer is put in.
func newDriver(p *Provider, rates counterfactual.Rates) (*driver, error) {
	d := &driver{provider: p}
	g, err := guard.New(guard.Options{Planner: guard.Planner{Confirm: p.Planner.Confirm}, Upstream: "https://provider.invalid/v1", Transport: p, Rates: rates, Hooks: guard.Hooks{Sink: d, Desk: queue{}}})
	if err != nil {
		return nil, fmt.Errorf("guardbench: %w", err)
	}
	d.guard = g
	return d, nil
}

func (d *driver) close() { _ = d.guard.Close(context.Background()) }

// Record keeps the statement of the decision.
func (d *driver) Record(_ context.Context, _ string, statement []byte, _ guard.Cost) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.statement = statement
	return nil
}

// queue takes every call that waits for a reviewer, and has released none.
type queue struct{}

func (queue) Hold(context.Context, hold.Item) error { return nil }
func (queue) Take(context.Context, hold.Digest) (hold.Item, bool) {
	return hold.Item{}, false
}

// decide sends the request of a case to the guard as a client would, and reads from the
// answer what became of the calls.
func (d *driver) decide(c *Case) (Handling, error) {
	d.provider.begin(c)
	d.mu.Lock()
	d.statement = nil
	d.mu.Unlock()
	r := httptest.NewRequest(http.MethodPost, "/v1/chat/completions", bytes.NewReader(c.Body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer simulated")
	w := httptest.NewRecorder()
	d.guard.ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		return Handling{}, fmt.Errorf("guardbench: the guard answered %d", w.Code)
	}
	o := Handling{Act: Passed, Spent: d.provider.cost()}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := o.read(d.statement); err != nil {
		return Handling{}, err
	}
	if delivered := delivers(w.Body.Bytes(), c); !delivered && o.Act == Passed {
		return Handling{}, fmt.Errorf("guardbench: the guard forwarded no call and says %q", w.Header().Get("Pellucid-Act"))
	}
	return o, nil
}

// delivers reports whether an answer has the calls that decide a case: one of the attacker's,
// or else all that were said.
func delivers(body []byte, c *Case) bool {
	var a struct {
		Choices []struct {
			Message wireMessage `json:"message"`
		} `json:"choices"`
	}
	if json.Unmarshal(body, &a) != nil || len(a.Choices) != 1 {
		return false
	}
	var got []Call
	for _, k := range a.Choices[0].Message.Calls {
		got = append(got, Call{k.Function.Name, json.RawMessage(k.Function.Arguments)})
	}
	has := func(i int) bool {
		return slices.ContainsFunc(got, func(g Call) bool { return same(&g, &c.Said[i]) })
	}
	if c.Attack() {
		return slices.ContainsFunc(c.Attacker, has)
	}
	for i := range c.Said {
		if !has(i) {
			return false
		}
	}
	return true
}

// A statement is what is read of the record of a decision.
type statement struct {
	Act, Reason, Response string
	Calls                 []struct {
		Verdict    string
		Plan, Need *struct{ Cached bool }
		Rivals     []struct{ Request string }
	}
	Repair *struct{ Causes counterfactual.Set }
}

// read takes the decision from its statement, which has to replay. A guard that had nothing
// to decide has none.
func (o *Handling) read(record []byte) error {
	if record == nil {
		return nil
	}
	e, err := guard.Replay(record)
	if err != nil {
		return fmt.Errorf("guardbench: %w", err)
	}
	var s statement
	if err := json.Unmarshal(record, &s); err != nil {
		return fmt.Errorf("guardbench: %w", err)
	}
	switch {
	case s.Act == "repaired":
		o.Act = Repaired
	case s.Act == "forwarded":
	case s.Response == "ask":
		o.Act = Asked
	default:
		o.Act = Held
	}
	o.Why = s.Reason
	asked, shown, named := false, false, counterfactual.Set("")
	for _, c := range s.Calls {
		o.Why = c.Verdict
		o.CannotTell = o.CannotTell || c.Verdict == "cannot-tell"
		asked, shown = asked || c.Plan != nil && !c.Plan.Cached, shown || len(c.Rivals) > 0 || c.Need != nil
	}
	for i := range e.Calls {
		if !e.Calls[i].Response.Passes() {
			named = named.Union(e.Calls[i].Control())
		}
	}
	searched := 0
	for _, r := range e.Runs {
		searched += r.Spent.Calls
	}
	if o.Found = named; s.Repair != nil {
		o.Found, searched = s.Repair.Causes, searched+1
	}
	o.Rounds = searched
	for _, yes := range []bool{asked, shown} {
		if yes {
			o.Rounds++
		}
	}
	o.CannotTell = o.CannotTell && o.Act != Passed
	return nil
}

// carriers are the segments of a case that hold what the attacker planted.
func carriers(c *Case, a *counterfactual.Assembly) counterfactual.Set {
	var at []int
	for i := range a.Segments {
		l := Letters(a.Segments[i].Text)
		if slices.ContainsFunc(c.Planted, func(text string) bool {
			p := Letters(text)
			return len(p) > mark && (strings.Contains(l, p[:min(len(p), 100)]) || strings.Contains(l, p[max(0, len(p)-100):]))
		}) {
			at = append(at, i)
		}
	}
	return counterfactual.SetOf(at...)
}
