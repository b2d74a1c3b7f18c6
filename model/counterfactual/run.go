// SPDX-License-Identifier: Apache-2.0

package counterfactual

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/pellucid-mcp/pellucid/model/format"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// A Run is a recorded run of an agent: an object whose member messages holds the
// conversation, in which a message of role assistant may have tool_calls of the form
// {id, function, args} and a message of role tool names its call in tool_call_id.
// OpenAI's own form of tool calls is read as well.
type Run struct {
	doc   *strictjson.Doc
	list  []strictjson.Value
	turns []int // places of the assistant's messages
}

// ParseRun reads a recorded run.
func ParseRun(src []byte) (*Run, error) {
	r := &Run{doc: new(strictjson.Doc)}
	if err := r.doc.Reset([]byte(string(src)), strictjson.Limits{MendSurrogates: true}); err != nil {
		return nil, fmt.Errorf("counterfactual: parse run: %w", err)
	}
	list := r.doc.Root()
	if list.Kind() == '{' {
		list = list.Get("messages")
	}
	if list.Kind() != '[' {
		return nil, errors.New("counterfactual: parse run: no messages")
	}
	for m := range list.Elements() {
		if m.Get("role").Text() == "assistant" {
			r.turns = append(r.turns, len(r.list))
		}
		r.list = append(r.list, m)
	}
	return r, nil
}

// Turns is how often the model spoke.
func (r *Run) Turns() int { return len(r.turns) }

// Turn is the context in which the model spoke for the i-th time, from 0, as a
// request of format.Chat, and what it answered.
func (r *Run) Turn(i int, opt ParseOptions) (*Assembly, *Answer, error) {
	if i < 0 || i >= len(r.turns) {
		return nil, nil, errors.New("counterfactual: recorded run: no such turn")
	}
	a, err := Parse(format.Chat, r.Context(i), opt)
	return a, r.Answer(i), err
}

// Answer is what the model said in turn i.
func (r *Run) Answer(i int) *Answer {
	m := r.list[r.turns[i]]
	a := &Answer{Text: contentText(m.Get("content"))}
	for c := range m.Get("tool_calls").Elements() {
		name, args := runCall(c)
		a.Calls = append(a.Calls, Call{ID: c.Get("id").Text(), Name: name, Arguments: args})
	}
	return a
}

// Context is the request before turn i.
func (r *Run) Context(i int) []byte {
	b := []byte(`{"messages":[`)
	for k, m := range r.list[:r.turns[i]] {
		if k > 0 {
			b = append(b, ',')
		}
		b = appendChat(b, m)
	}
	return append(b, `]}`...)
}

// appendChat appends a message as chat completions have it.
func appendChat(b []byte, m strictjson.Value) []byte {
	role := m.Get("role").Text()
	b = strictjson.AppendQuote(append(b, `{"role":`...), role)
	b = strictjson.AppendQuote(append(b, `,"content":`...), contentText(m.Get("content")))
	if role == "tool" {
		b = strictjson.AppendQuote(append(b, `,"tool_call_id":`...), m.Get("tool_call_id").Text())
	}
	n := 0
	for c := range m.Get("tool_calls").Elements() {
		if n++; n == 1 {
			b = append(b, `,"tool_calls":[`...)
		} else {
			b = append(b, ',')
		}
		name, args := runCall(c)
		b = strictjson.AppendQuote(append(b, `{"id":`...), c.Get("id").Text())
		b = strictjson.AppendQuote(append(b, `,"type":"function","function":{"name":`...), name)
		b = strictjson.AppendQuote(append(b, `,"arguments":`...), string(args))
		b = append(b, `}}`...)
	}
	if n > 0 {
		b = append(b, ']')
	}
	return append(b, '}')
}

func runCall(c strictjson.Value) (name string, args []byte) {
	fn := c.Get("function")
	if fn.Kind() == '{' {
		return fn.Get("name").Text(), []byte(fn.Get("arguments").Text())
	}
	args = c.Get("args").Raw()
	if args == nil {
		args = []byte("{}")
	}
	return fn.Text(), args
}

// contentText is the text of a content: a string, or the blocks' text or content.
func contentText(v strictjson.Value) string {
	if v.Kind() == '"' {
		return v.Text()
	}
	var out paragraphs
	for b := range v.Elements() {
		for _, name := range []string{"text", "content"} {
			if t := b.Get(name); t.Kind() == '"' {
				out.add(t.Text())
				break
			}
		}
	}
	return out.text()
}

// ParseAnswer reads the body of a provider's answer, not streamed.
func ParseAnswer(f format.Name, body []byte) (*Answer, error) {
	form, root := format.Of(f), format.Parse(bytes.Clone(body))
	if form == nil || !root.Exists() {
		return nil, errors.New("counterfactual: parse answer: not an answer of this format")
	}
	a := form.Read(root)
	if a.Odd&format.OddCall != 0 && len(a.Parts) == 0 {
		return nil, errors.New("counterfactual: parse answer: not an answer of this format")
	}
	return AnswerOf(a), nil
}

// AnswerOf is an answer as the questions of this package see it. Calls of every kind count,
// and those that are written as text, unless they are shown as code.
func AnswerOf(a *format.Answer) *Answer {
	out := &Answer{Text: a.Text(format.PartText, "\n"), Reasoning: a.Text(format.PartReasoning, "\n"), Refusal: a.Text(format.PartRefusal, "\n")}
	for _, c := range a.Calls() {
		args := c.Arguments
		if c.Kind == format.CallCustom { // a text, as a patch is
			args = append(strictjson.AppendQuote([]byte(`{"input":`), string(args)), '}')
		}
		out.Calls = append(out.Calls, Call{c.ID, c.Name, args})
	}
	written, shown := a.Written()
	for i, c := range written {
		if !shown[i] && c.Name != "" {
			out.Calls = append(out.Calls, Call{"", c.Name, c.Arguments})
		}
	}
	return out
}
