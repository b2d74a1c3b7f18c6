// SPDX-License-Identifier: Apache-2.0

package format

import (
	"errors"
	"strconv"
	"unicode/utf8"

	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// A Request is a conversation to be continued by one turn of a model.
type Request struct {
	Model, System string
	Messages      []Message // at least one
	Tools         []Tool
	Choice        Choice // of tools

	MaxTokens   int64    // of the answer
	Temperature *float64 // 0 to 2; nil: it is left out
	Seed        *int64   // where the format has one; nil: none
	CachePrefix bool     // mark the end of tools and system for the provider's cache, where the format has a mark
	Stream      bool
	// MaxCompletionTokens names the bound so, where the format has two names for it.
	MaxCompletionTokens bool
}

// A Role is the author of a message.
type Role uint8

// The roles. The zero Role is the user's.
const (
	RoleUser Role = iota
	RoleAssistant
	RoleTool // the message is the result of a call
)

// A Message is one turn of a conversation.
type Message struct {
	Role  Role
	Text  string
	Calls []Call // of an assistant

	CallID string // of a tool result: the call that it answers
	Failed bool   // of a tool result: the tool reported an error; lost where a format cannot say so
}

// A Tool may be called by the model.
type Tool struct {
	Name, Description string
	Schema            []byte // of the arguments: a JSON object; nil = an object of anything
}

// A Choice says which tools the model may call.
type Choice uint8

// The choices. The zero Choice leaves it to the model.
const (
	ChooseAuto Choice = iota
	ChooseNone
	ChooseAny // at least one
)

// Check refuses what no format can say.
func (r *Request) Check() error {
	switch {
	case len(r.Messages) == 0:
		return errors.New("no message")
	case r.MaxTokens < 0 || r.MaxTokens > maxBound:
		return errors.New("MaxTokens is out of range")
	case r.Temperature != nil && !(*r.Temperature >= 0 && *r.Temperature <= 2): // so that NaN is out of it
		return errors.New("temperature out of range")
	case r.Choice > ChooseAny || r.Choice == ChooseAny && len(r.Tools) == 0:
		return errors.New("a choice of tools that cannot be made")
	}
	seen := map[string]bool{}
	for i := range r.Tools {
		name := r.Tools[i].Name
		if name == "" || seen[name] {
			return errors.New("a tool without a name, or two of one name")
		}
		seen[name] = true
	}
	for i := range r.Messages {
		switch m := &r.Messages[i]; {
		case m.Role > RoleTool:
			return errors.New("a message of an unknown role")
		case m.Role != RoleAssistant && len(m.Calls) > 0:
			return errors.New("tool calls that are not the assistant's")
		case (m.Role == RoleTool) != (m.CallID != ""):
			return errors.New("a tool result without its call, or a call id elsewhere")
		}
	}
	return nil
}

// A call of a former turn was made with arguments; none at all are none.
func (c *Call) arguments() []byte {
	if len(c.Arguments) == 0 {
		return []byte("{}")
	}
	return c.Arguments
}

// A body is a request being written: members in one order, no white space, so that
// one Request has one spelling. Raw JSON of the caller stands in it as it is.
type body struct {
	writer
	err error
}

// text appends s as a string. Text that JSON cannot hold is an error, since it
// would reach the model as other text.
func (w *body) text(s string) {
	if !utf8.ValidString(s) {
		w.fail("text that is not UTF-8")
		return
	}
	w.writer.text(s)
}

// with appends before, and s as a string after it.
func (w *body) with(before, s string) {
	w.raw(before)
	w.text(s)
}

func (w *body) number(n int64) { w.b = strconv.AppendInt(w.b, n, 10) }

// object appends the JSON object src, which a provider would read leniently.
func (w *body) object(src []byte, what string) {
	var d strictjson.Doc
	if err := d.Reset(src, strictjson.Limits{}); err != nil || d.Root().Kind() != '{' {
		w.fail(what + " that is no strict JSON object")
		return
	}
	w.value(d.Root().Raw())
}

func (w *body) fail(what string) {
	if w.err == nil {
		w.err = errors.New(what)
	}
}

// tool appends what every format says of a tool, between before and the end of its
// object, which stays open.
func (w *body) tool(before string, t *Tool, schema string) {
	w.with(before+`"name":`, t.Name)
	w.with(`,"description":`, t.Description)
	w.raw(schema)
	if t.Schema == nil {
		w.raw(`{"type":"object"}`)
		return
	}
	w.object(t.Schema, "a tool's schema")
}

// next appends the comma before an element of a list, unless it is the first.
func (w *body) next() {
	if w.b[len(w.b)-1] != '[' {
		w.raw(",")
	}
}

// list appends n elements between brackets, with commas.
func (w *body) list(n int, element func(i int)) {
	w.raw("[")
	for i := range n {
		w.next()
		element(i)
	}
	w.raw("]")
}

// items appends a message of a format in which its parts are elements of one list: the
// result of a call, or the text, if there is any or nothing else, and the calls. Each
// function leaves its object open.
func (w *body) items(m *Message, result, text func(*Message), call func(*Call)) {
	if m.Role == RoleTool {
		w.next()
		result(m)
		w.raw("}")
		return
	}
	if m.Text != "" || len(m.Calls) == 0 {
		w.next()
		text(m)
		w.raw("}")
	}
	for i := range m.Calls {
		w.next()
		call(&m.Calls[i])
		w.raw("}")
	}
}

// temperature appends what decides how reproducible an answer is, after before.
func (w *body) temperature(before string, r *Request) {
	if r.Temperature != nil {
		w.raw(before)
		w.b = strconv.AppendFloat(w.b, *r.Temperature, 'f', -1, 64)
	}
}

// turnsOf puts messages of one side that follow each other into one turn: results
// of calls that were made together must come back together.
func turnsOf(ms []Message) (turns [][]Message) {
	for i := range ms {
		side := ms[i].Role == RoleAssistant
		if n := len(turns); n > 0 && (turns[n-1][0].Role == RoleAssistant) == side {
			turns[n-1] = append(turns[n-1], ms[i])
			continue
		}
		turns = append(turns, []Message{ms[i]})
	}
	return turns
}
