// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/pellucid-mcp/pellucid/model/counterfactual"
	"github.com/pellucid-mcp/pellucid/model/counterfactual/run"
	"github.com/pellucid-mcp/pellucid/model/delegation"
	"github.com/pellucid-mcp/pellucid/model/format"
	"github.com/pellucid-mcp/pellucid/model/llm"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// A Planner says which calls a request may need. It is shown trusted text only. The zero
// Planner is the model of the request itself, with the credentials of the client.
type Planner struct {
	// Client, if it is not nil, is asked in the place of the model of the request.
	Client llm.Client
	// Examples show how requests of this deployment are planned. A small model needs some.
	Examples []delegation.Example
	// Confirm asks a second question: does the request ask for what the tool does? Small
	// models answer both better than one.
	Confirm bool
	// Always asks for the plan of calls, too, whose values are all the user's: a tool may be
	// called with them that the user has not asked for. It costs a call for each turn.
	Always bool
	// Ahead asks for the plan while the main request is under way, where the context holds
	// third-party text. It saves a round, and costs a call for each turn of the user.
	Ahead bool
}

// planAnswer bounds the answer of a planner, in tokens.
const planAnswer = 2048

// maxPlans bounds the plans that are kept, maxPlanBytes one of them.
const (
	maxPlans     = 1024
	maxPlanBytes = 64 << 10
)

// plans keeps the answers of the planner: a turn of the user often leads to several calls.
type plans struct {
	mu    sync.Mutex
	all   map[[sha256.Size]byte]*planEntry
	order [][sha256.Size]byte // oldest first
}

type planEntry struct {
	done  chan struct{} // closed once reply is set
	reply delegation.Reply
}

// of is the answer that is kept under key, or what ask returns. What has failed is not kept.
// Of several at one time one asks, and the others wait for it or for their context.
func (p *plans) of(ctx context.Context, key [sha256.Size]byte, ask func() delegation.Reply) delegation.Reply {
	p.mu.Lock()
	e, found := p.all[key]
	if !found {
		if p.all == nil {
			p.all = map[[sha256.Size]byte]*planEntry{}
		}
		if len(p.order) >= maxPlans {
			delete(p.all, p.order[0])
			p.order = slices.Delete(p.order, 0, 1)
		}
		e = &planEntry{done: make(chan struct{})}
		p.all[key], p.order = e, append(p.order, key)
	}
	p.mu.Unlock()
	if found {
		select {
		case <-e.done:
		case <-ctx.Done():
			return delegation.Reply{Exchange: delegation.Exchange{Failure: counterfactual.FailCanceled}}
		}
		if r := e.reply; r.Failure == "" {
			r.Cached = true
			return r
		}
		return ask()
	}
	e.reply = ask()
	close(e.done)
	if e.reply.Failure != "" || len(e.reply.Answer.Text) > maxPlanBytes {
		p.mu.Lock()
		if p.all[key] == e {
			delete(p.all, key)
			p.order = slices.DeleteFunc(p.order, func(k [sha256.Size]byte) bool { return k == key })
		}
		p.mu.Unlock()
	}
	return e.reply
}

// planAhead has the planner asked while the main request is under way.
func (g *Guard) planAhead(x *exchange) {
	g.ahead.Go(func() {
		ctx, cancel := context.WithTimeout(g.behind, time.Duration(g.o.Millis)*time.Millisecond)
		defer cancel()
		assembly, err := (&decider{g: g, x: x}).parse(x.body)
		if err != nil || ctx.Err() != nil {
			return
		}
		budget := llm.NewBudget(llm.Limits{Calls: 2, Tokens: llm.Unlimited, Cost: llm.Unlimited})
		delegation.Ahead(ctx, assembly, g.o.Planner.Examples, &asker{&spending{g: g, x: x, budget: budget}, assembly})
	})
}

// An asker puts the questions of one decision to the models. Those about the repaired answer
// have an assembly of their own, and share the rest.
type asker struct {
	*spending
	assembly *counterfactual.Assembly
}

// spending is what the questions of one decision share.
type spending struct {
	g      *Guard
	x      *exchange
	budget *llm.Budget
	input  int64 // tokens of the request, as far as they are known
	answer int64 // tokens of an answer to a variant, at most

	mu     sync.Mutex
	body   []byte // of the last answer for a repair
	tokens int64  // uncached
	asked  int    // calls that were not cached
}

// Plan implements delegation.Asker.
func (a *asker) Plan(ctx context.Context, q delegation.Question) delegation.Reply {
	h := sha256.New()
	field := func(s string) { h.Write(strictjson.AppendQuote(nil, s)) }
	for _, s := range []string{string(a.x.f.Name()), a.x.model, a.x.principal, q.System, q.Text} {
		field(s)
	}
	field(a.x.path)
	for _, name := range slices.Sorted(maps.Keys(a.x.header)) {
		field(name) // whose model answers, and on whose account
		for _, v := range a.x.header[name] {
			field(v)
		}
	}
	var key [sha256.Size]byte
	h.Sum(key[:0])
	return a.g.plans.of(ctx, key, func() delegation.Reply { return a.plan(ctx, q) })
}

func (a *asker) plan(ctx context.Context, q delegation.Question) delegation.Reply {
	p := &a.g.o.Planner
	if p.Client == nil {
		src, err := asQuestion(a.x.f.Name(), a.x.body, &q)
		if err != nil {
			return delegation.Reply{Exchange: delegation.Exchange{Failure: counterfactual.FailRejected}}
		}
		return a.send(ctx, a.g.clients[a.x.f.Name()], counterfactual.PurposePlan, "",
			&run.Variant{Format: a.x.f.Name(), Source: src, Answer: planAnswer, Path: a.x.path, Header: a.x.header, Budget: a.budget})
	}
	r := llm.Request{System: q.System, MaxTokens: planAnswer, Budgets: []*llm.Budget{a.budget}}
	for _, e := range q.Examples {
		r.Messages = append(r.Messages, llm.Message{Text: e.Request}, llm.Message{Role: llm.Assistant, Text: e.Plan})
	}
	r.Messages = append(r.Messages, llm.Message{Text: q.Text})
	return a.took(counterfactual.PurposePlan, "", run.Request(ctx, p.Client, r))
}

// Show implements delegation.Asker.
func (a *asker) Show(ctx context.Context, v counterfactual.Variant) delegation.Reply {
	return a.show(ctx, counterfactual.PurposeRival, v)
}

func (a *asker) show(ctx context.Context, purpose counterfactual.Purpose, v counterfactual.Variant) delegation.Reply {
	src, err := a.assembly.Render(v)
	if err != nil {
		return delegation.Reply{Exchange: delegation.Exchange{Failure: counterfactual.FailBroken}}
	}
	bound := a.input
	if bound == 0 {
		bound = int64(len(src)+2)/3 + 256
	}
	return a.send(ctx, a.g.clients[a.x.f.Name()], purpose, v.Kind,
		&run.Variant{Format: a.x.f.Name(), Source: src, Answer: a.answer, Bound: bound + a.answer, Path: a.x.path, Header: a.x.header, Budget: a.budget})
}

func (a *asker) send(ctx context.Context, client llm.Client, purpose counterfactual.Purpose, kind counterfactual.Kind, v *run.Variant) delegation.Reply {
	return a.took(purpose, kind, run.Ask(ctx, client, v))
}

// took counts an answer and keeps its body.
func (a *asker) took(purpose counterfactual.Purpose, kind counterfactual.Kind, got run.Answered) delegation.Reply {
	a.mu.Lock()
	a.asked++
	a.tokens += got.Tokens
	if purpose == counterfactual.PurposeRepair {
		a.body = got.Body
	}
	a.mu.Unlock()
	a.g.step(run.Step{Run: a.x.id, Purpose: purpose, Variant: kind, Failure: got.Failure, Attempts: got.Attempts, Tokens: got.Tokens,
		Cached: got.Cached, Request: got.Request, Response: got.Response})
	r := delegation.Reply{Exchange: delegation.Exchange{Request: got.Request, Response: got.Response, Failure: got.Failure}}
	if got.Said != nil {
		r.Answer = *got.Said
	}
	return r
}

// unasked are members of a request that belong to its own question: what the model may call,
// how its answer is shaped, and the conversation.
var unasked = []string{"tools", "tool_choice", "parallel_tool_calls", "functions", "function_call", "response_format", "text", "stop",
	"stop_sequences", "thinking", "logit_bias", "logprobs", "top_logprobs", "prediction", "modalities", "audio", "messages", "system",
	"instructions", "input", "previous_response_id", "conversation", "prompt", "context_management", "output_config", "output_format"}

// asQuestion is the request of a client with another conversation: its model and its settings
// are those that its provider takes.
func asQuestion(f format.Name, src []byte, q *delegation.Question) ([]byte, error) {
	var doc strictjson.Doc
	if err := doc.Reset(bytes.Clone(src), strictjson.Limits{}); err != nil || doc.Root().Kind() != '{' {
		return nil, errors.New("guard: plan: not a request")
	}
	root := doc.Root()
	form := format.Of(f)
	if form.Asks(root).InPath { // by its path a request says what else it asks for
		r := &format.Request{System: q.System, MaxTokens: planAnswer}
		for _, x := range q.Examples {
			r.Messages = append(r.Messages, format.Message{Text: x.Request}, format.Message{Role: format.RoleAssistant, Text: x.Plan})
		}
		r.Messages = append(r.Messages, format.Message{Text: q.Text})
		return form.AppendRequest(nil, r)
	}
	var e strictjson.Edits
	for _, name := range unasked {
		if v := root.Get(name); v.Exists() {
			e.Remove(v)
		}
	}
	var turns []byte
	turn := func(role, text string) {
		if len(turns) > 0 {
			turns = append(turns, ',')
		}
		turns = append(turns, `{"role":"`+role+`","content":`...)
		turns = append(strictjson.AppendQuote(turns, text), '}')
	}
	if f == format.Chat {
		turn("system", q.System)
	}
	for _, x := range q.Examples {
		turn("user", x.Request)
		turn("assistant", x.Plan)
	}
	turn("user", q.Text)
	list := append(append([]byte{'['}, turns...), ']')
	switch f {
	case format.Messages:
		e.Append(root, "system", strictjson.AppendQuote(nil, q.System))
		e.Append(root, "messages", list)
	case format.Responses:
		e.Append(root, "instructions", strictjson.AppendQuote(nil, q.System))
		e.Append(root, "input", list)
	default:
		e.Append(root, "messages", list)
	}
	return e.Apply(make([]byte, 0, len(list)+len(q.System)+1024), root), nil
}
