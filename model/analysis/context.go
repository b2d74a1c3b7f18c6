// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"errors"
	"fmt"
	"io"

	"github.com/pellucid-mcp/pellucid/model/counterfactual"
	"github.com/pellucid-mcp/pellucid/model/format"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// A Context says which answer of a saved context is to be explained.
type Context struct {
	Format     string   // of the context, or "run" for a recorded run; "": what it looks like
	Turn       int      // of a recorded run, from 0; negative: the last one that proposed something privileged
	Answer     string   // file of the answer; "": what the run says, or what the model is asked for first
	Tools      string   // file of the tools, for a context that was saved without
	Privileged []string // tools whose calls need an explanation; none: by their names
	Manifest   string   // file of what is known of the context beside its bytes; "": nothing is
}

// policy says which calls are privileged.
func (c *Context) policy() *counterfactual.Privileges {
	if len(c.Privileged) == 0 {
		return counterfactual.GuessPrivileges()
	}
	p := &counterfactual.Privileges{}
	for _, glob := range c.Privileged {
		p.Rules = append(p.Rules, counterfactual.ToolRule{Tool: glob, Privilege: 1000})
	}
	p.Rules = append(p.Rules, counterfactual.ToolRule{Tool: "*"})
	return p
}

// A Question is a context that was read, and the answer to be explained.
type Question struct {
	Assembly *counterfactual.Assembly
	Policy   *counterfactual.Privileges // which calls need an explanation
	// Null are the values of metrics between equal requests, by their ids; nil: not measured.
	Null map[string][]int

	answer    *counterfactual.Answer // nil: to be asked for
	clearance int                    // of the reader, by the manifest
	meaning   *meaning               // nil: meanings are not compared
}

// Read takes the context of that name apart; "-" and "" are stdin. model replaces the one
// that the context names; "" keeps it.
func (c *Context) Read(stdin io.Reader, name, model string) (*Question, error) {
	b, err := terminal.ReadInput(name, stdin)
	if err != nil {
		return nil, fmt.Errorf("ccr: %w", err)
	}
	q := &Question{Policy: c.policy()}
	f := format.Name(c.Format)
	if f == "run" || f == "" && looksRecorded(b) {
		if b, q.answer, err = c.recorded(b); err != nil {
			return nil, err
		}
		f = format.Chat
	}
	if f == "" {
		if f = counterfactual.Sniff(b); f == "" {
			return nil, errors.New("ccr: not a context: no request of a known format, and no recorded run")
		}
	}
	if b, err = c.complete(b, f, model); err != nil {
		return nil, err
	}
	if err := c.assemble(q, f, b); err != nil {
		return nil, err
	}
	if c.Answer != "" {
		body, err := terminal.ReadInput(c.Answer, nil)
		if err != nil {
			return nil, fmt.Errorf("ccr: answer: %w", err)
		}
		if q.answer, err = counterfactual.ParseAnswer(f, body); err != nil {
			return nil, fmt.Errorf("ccr: answer: %w", err)
		}
	}
	return q, nil
}

// assemble takes the request apart, with what the manifest says of it.
func (c *Context) assemble(q *Question, f format.Name, b []byte) error {
	m := &Manifest{}
	if c.Manifest != "" {
		text, err := terminal.ReadInput(c.Manifest, nil)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrManifest, err)
		}
		if m, err = ParseManifest(text); err != nil {
			return fmt.Errorf("%w: %w", ErrManifest, err)
		}
	}
	a, err := counterfactual.Parse(f, b, counterfactual.ParseOptions{Trust: m.trust})
	if err != nil {
		return fmt.Errorf("ccr: %w", err)
	}
	if q.Assembly, err = m.apply(a); err != nil {
		return fmt.Errorf("%w: %w", ErrManifest, err)
	}
	q.clearance = m.Clearance
	return nil
}

// looksRecorded: a run's calls are {id, function, args}, or it names its pipeline.
func looksRecorded(b []byte) bool {
	var doc strictjson.Doc
	if doc.Reset(b, strictjson.Limits{MendSurrogates: true}) != nil {
		return false
	}
	if doc.Root().Get("pipeline_name").Exists() {
		return true
	}
	for m := range doc.Root().Get("messages").Elements() {
		for call := range m.Get("tool_calls").Elements() {
			return call.Get("function").Kind() == '"'
		}
	}
	return false
}

// recorded is the turn of a run that is to be explained.
func (c *Context) recorded(b []byte) ([]byte, *counterfactual.Answer, error) {
	r, err := counterfactual.ParseRun(b)
	if err != nil {
		return nil, nil, fmt.Errorf("ccr: %w", err)
	}
	turn := c.Turn
	policy := c.policy()
	for i := r.Turns() - 1; turn < 0 && i >= 0; i-- {
		if len(r.Answer(i).Calls) > 0 && len(policy.Targets(r.Answer(i))) > 0 {
			turn = i
		}
	}
	if turn < 0 || turn >= r.Turns() {
		return nil, nil, errors.New("ccr: recorded run: no such turn, or none that proposed something privileged")
	}
	return r.Context(turn), r.Answer(turn), nil
}

// complete adds what a request needs to be sent: a model, and the tools.
func (c *Context) complete(b []byte, f format.Name, model string) ([]byte, error) {
	var doc strictjson.Doc
	if err := doc.Reset(b, strictjson.Limits{}); err != nil {
		return nil, fmt.Errorf("ccr: context: %w", err)
	}
	root := doc.Root()
	if root.Kind() == '[' { // the bare list of messages
		whole := append([]byte(`{"`+format.Of(f).List()+`":`), root.Raw()...)
		return c.complete(append(whole, '}'), f, model)
	}
	var e strictjson.Edits
	set := func(name string, raw []byte) {
		if v := root.Get(name); v.Exists() {
			e.Replace(v, raw)
		} else {
			e.Append(root, name, raw)
		}
	}
	if model != "" && !format.Of(f).Asks(root).InPath {
		set("model", strictjson.AppendQuote(nil, model))
	}
	if c.Tools != "" {
		tools, err := terminal.ReadInput(c.Tools, nil)
		if err != nil {
			return nil, fmt.Errorf("ccr: tools: %w", err)
		}
		var list strictjson.Doc
		if err := list.Reset(tools, strictjson.Limits{}); err != nil || list.Root().Kind() != '[' {
			return nil, errors.New("ccr: tools: want a strict JSON array")
		}
		set("tools", list.Root().Raw())
	}
	return e.Apply(nil, root), nil
}
