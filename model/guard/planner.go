// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"maps"
	"slices"
	"strconv"
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
	// DangerouslySkipStated does not ask for the plan of calls whose values are all the user's, where
	// the request has a verb of the tool's name. It saves a call for each turn, and a tool may be
	// called so that the user has named, and not asked for.
	DangerouslySkipStated bool
	// Ahead asks for the plan while the main request is under way, where the context holds
	// third-party text. It saves a round, and costs a call for each turn of the user.
	Ahead bool
}

// planAnswer bounds the answer of a planner, in tokens; planThoughts where it may think first.
const (
	planAnswer   = 2048
	planThoughts = 8192
)

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
	keep  bool // reply can be given to others
}

// of is the answer that is kept under key, or what ask returns. What has failed, and what
// reads says cannot be read, is not kept: the next one may be better.
// Of several at one time one asks, and the others wait for it or for their context.
func (p *plans) of(ctx context.Context, key [sha256.Size]byte, reads func(text string) bool, ask func() delegation.Reply) delegation.Reply {
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
		if r := e.reply; e.keep {
			r.Cached = true
			return r
		}
		return ask()
	}
	e.reply = ask()
	e.keep = e.reply.Failure == "" && reads(e.reply.Answer.Text)
	close(e.done)
	if !e.keep || len(e.reply.Answer.Text) > maxPlanBytes {
		p.mu.Lock()
		if p.all[key] == e {
			delete(p.all, key)
			p.order = slices.DeleteFunc(p.order, func(k [sha256.Size]byte) bool { return k == key })
		}
		p.mu.Unlock()
	}
	return e.reply
}

// maxSettings bounds what a question that is asked ahead keeps of a request, in bytes.
const maxSettings = 16 << 10

// planAhead has the planner asked while the main request is under way, and afterwards for as
// long as a decision may take. Where too many are being asked it is not: a call that needs the
// plan asks for it then. It returns once nothing holds the body of the request: what is asked
// behind it holds the question and the settings of the request alone.
func (g *Guard) planAhead(x *exchange) (released <-chan struct{}) {
	done := make(chan struct{})
	select {
	case g.places <- struct{}{}:
	default:
		close(done)
		return done
	}
	g.ahead.Go(func() {
		defer func() { <-g.places }()
		ctx, cancel := context.WithTimeout(g.behind, time.Duration(g.o.Millis)*time.Millisecond)
		defer cancel()
		q, small, ok := g.questionAhead(x)
		close(done)
		if !ok || ctx.Err() != nil {
			return
		}
		budget := llm.NewBudget(llm.Limits{Calls: 2, Tokens: llm.Unlimited})
		(&asker{spending: &spending{g: g, x: small, budget: budget}}).Plan(ctx, q)
	})
	return done
}

// questionAhead is the question for a plan where the context holds third-party text, and an
// exchange without the body of x to ask it with.
func (g *Guard) questionAhead(x *exchange) (q delegation.Question, small *exchange, ok bool) {
	a, err := (&decider{g: g, x: x}).parse(x.body)
	if err != nil || len(a.Segments) == 0 {
		return q, nil, false
	}
	q, why := delegation.PlanQuestion(a, g.policy, g.o.Planner.Examples)
	settings, err := asQuestion(x.f.Name(), x.body, nil)
	if why != "" || err != nil || len(settings) > maxSettings {
		return q, nil, false
	}
	return q, &exchange{f: x.f, id: x.id, body: settings, model: x.model, principal: x.principal, header: x.header, path: x.path}, true
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
	return a.g.plans.of(ctx, key, q.Reads, func() delegation.Reply { return a.plan(ctx, q) })
}

func (a *asker) plan(ctx context.Context, q delegation.Question) delegation.Reply {
	p := &a.g.o.Planner
	if p.Client == nil {
		src, err := asQuestion(a.x.f.Name(), a.x.body, &q)
		if err != nil {
			return delegation.Reply{Exchange: delegation.Exchange{Failure: counterfactual.FailRejected}}
		}
		return a.send(ctx, a.g.clients[a.x.f.Name()], counterfactual.PurposePlan, "",
			&run.Variant{Format: a.x.f.Name(), Source: src, Answer: planThoughts, Path: a.x.path, Header: a.x.header, Budget: a.budget})
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

// settings are the members of a request that a question with another conversation keeps: which
// model answers, for whom, how freely and how long. They carry no context, and nothing that
// the answer has to look like. Every other member is left out: a gateway or an engine may read
// text of documents, a template or a grammar there.
var settings = map[format.Name][]string{
	format.Chat: {"model", "models", "provider", "route", "user", "safety_identifier", "api_key", "metadata", "service_tier",
		"max_tokens", "max_completion_tokens", "temperature", "top_p", "top_k", "top_a", "min_p", "seed", "random_seed",
		"frequency_penalty", "presence_penalty", "repetition_penalty", "reasoning_effort", "reasoning", "include_reasoning",
		"reasoning_format", "reasoning_split", "enable_thinking", "thinking_budget", "verbosity", "disable_search"},
	format.Responses: {"model", "models", "provider", "user", "safety_identifier", "api_key", "metadata", "service_tier",
		"max_output_tokens", "temperature", "top_p", "top_k", "seed", "reasoning"},
	format.Messages: {"model", "metadata", "service_tier", "inference_geo", "max_tokens", "temperature", "top_p", "top_k"},
}

// bounds are those of settings that bound an answer; usualBound is the one of a format, where a
// request has none.
var (
	bounds     = []string{"max_tokens", "max_completion_tokens", "max_output_tokens"}
	usualBound = map[format.Name]string{format.Chat: "max_tokens", format.Responses: "max_output_tokens", format.Messages: "max_tokens"}
)

// planBound is the bound of a plan, where a request asks for an answer as root does.
func planBound(root strictjson.Value) []byte {
	for _, name := range []string{"reasoning_effort", "reasoning", "include_reasoning", "enable_thinking", "thinking_budget"} {
		if root.Get(name).Exists() {
			return strconv.AppendInt(nil, planThoughts, 10)
		}
	}
	return strconv.AppendInt(nil, planAnswer, 10)
}

// templateMember holds what vLLM and SGLang give to the template of a model.
const templateMember = "chat_template_kwargs"

// switchesThinking reports whether a templateMember says only whether the model thinks. A
// template may show the model anything else that stands there.
func switchesThinking(v strictjson.Value) bool {
	for name, m := range v.Members() {
		if _, is := m.Bool(); !is || name.Text() != "enable_thinking" && name.Text() != "thinking" {
			return false
		}
	}
	return v.Kind() == '{'
}

// asQuestion is the request of a client with another conversation: its model and its settings
// are those that its provider takes. q is nil where only these are wanted.
func asQuestion(f format.Name, src []byte, q *delegation.Question) ([]byte, error) {
	var doc strictjson.Doc
	if err := doc.Reset(bytes.Clone(src), strictjson.Limits{}); err != nil || doc.Root().Kind() != '{' {
		return nil, errors.New("guard: plan: not a request")
	}
	root := doc.Root()
	form := format.Of(f)
	out := []byte{'{'}
	member := func(name string, raw []byte) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(strictjson.AppendQuote(out, name), ':'), raw...)
	}
	if form.Asks(root).InPath { // by its path a request says what else it asks for
		if q == nil {
			return []byte("{}"), nil
		}
		return form.AppendRequest(nil, asRequest(q))
	}
	// The client bounds its own answer, and not a plan. It knows which name the model takes for that.
	most, named := planBound(root), false
	for _, name := range settings[f] {
		switch v := root.Get(name); {
		case !v.Exists():
		case slices.Contains(bounds, name):
			if !named {
				member(name, most)
			}
			named = true
		default:
			member(name, v.Raw())
		}
	}
	if !named && q != nil {
		member(usualBound[f], most)
	}
	if v := root.Get(templateMember); f == format.Chat && switchesThinking(v) {
		member(templateMember, v.Raw())
	}
	if q == nil {
		return append(out, '}'), nil
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
		member("system", strictjson.AppendQuote(nil, q.System))
		member("messages", list)
	case format.Responses:
		member("instructions", strictjson.AppendQuote(nil, q.System))
		member("input", list)
	default:
		member("messages", list)
	}
	return append(out, '}'), nil
}

// asRequest is a question with nothing of a request.
func asRequest(q *delegation.Question) *format.Request {
	r := &format.Request{System: q.System, MaxTokens: planAnswer}
	for _, x := range q.Examples {
		r.Messages = append(r.Messages, format.Message{Text: x.Request}, format.Message{Role: format.RoleAssistant, Text: x.Plan})
	}
	r.Messages = append(r.Messages, format.Message{Text: q.Text})
	return r
}
