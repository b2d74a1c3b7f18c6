// SPDX-License-Identifier: Apache-2.0

package llm

import (
	"errors"
	"strconv"
	"unicode/utf8"

	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// A body is a request being written: members in one order, no white space, so that
// one Request has one spelling. Raw JSON of the caller stands in it as it is.
type body struct {
	b   []byte
	err error
}

// raw appends what is written as it is: punctuation, names, numbers.
func (w *body) raw(s string) { w.b = append(w.b, s...) }

// text appends s as a string. Text that JSON cannot hold is an error, since it
// would reach the model as other text.
func (w *body) text(s string) {
	if !utf8.ValidString(s) {
		w.fail("text that is not UTF-8")
		return
	}
	w.b = strictjson.AppendQuote(w.b, s)
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
	w.b = append(w.b, d.Root().Raw()...)
}

func (w *body) fail(what string) {
	if w.err == nil {
		w.err = errors.New(what)
	}
}

// anyObject is the schema of a tool that has none.
var anyObject = []byte(`{"type":"object"}`)

// tool appends what every format says of a tool, between before and the end of its
// object, which stays open.
func (w *body) tool(before string, t *Tool, schema string) {
	w.with(before+`"name":`, t.Name)
	w.with(`,"description":`, t.Description)
	w.raw(schema)
	if t.Schema == nil {
		w.raw(string(anyObject))
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
func (w *body) items(m *Message, result, text func(*Message), call func(*ToolCall)) {
	if m.Role == ToolResult {
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

// sampling appends what decides how reproducible an answer is.
func (w *body) sampling(o *Options, r *Request) {
	if !o.NoTemperature {
		w.raw(`,"temperature":`)
		w.b = strconv.AppendFloat(w.b, r.Temperature, 'f', -1, 64)
	}
}

func (r *Request) maxTokens() int64 {
	if r.MaxTokens == 0 {
		return 4096
	}
	return int64(r.MaxTokens)
}

// check refuses what no format can say.
func (r *Request) check() error {
	switch {
	case len(r.Messages) == 0:
		return errors.New("no message")
	case r.MaxTokens < 0 || r.MaxTokens > 1<<24:
		return errors.New("a request whose MaxTokens out of range")
	case !(r.Temperature >= 0 && r.Temperature <= 2): // so that NaN is out of it
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
		case m.Role > ToolResult:
			return errors.New("a message of an unknown role")
		case m.Role != Assistant && len(m.Calls) > 0:
			return errors.New("tool calls that are not the assistant's")
		case (m.Role == ToolResult) != (m.CallID != ""):
			return errors.New("a tool result without its call, or a call id elsewhere")
		}
	}
	return nil
}

// rawBound checks a request that the caller has written, and returns the most tokens
// that its answer may have.
func (r *Request) rawBound(names []string) (bound int64, err error) {
	var d strictjson.Doc
	if d.Reset(r.Raw, strictjson.Limits{}) != nil || d.Root().Kind() != '{' {
		return 0, errors.New("the raw body is no strict JSON object")
	}
	v := d.Root()
	if _, stray := v.Strays(append(names, "model", "n", "stream")); stray {
		return 0, errors.New("the raw body has a member that some would take for another")
	}
	for _, name := range names {
		m := v.Get(name)
		if !m.Exists() {
			continue
		}
		n, ok := m.Int64()
		if !ok || n <= 0 || n > 1<<24 || bound != 0 {
			return 0, errors.New("the raw body has a wrong bound of the answer, or two")
		}
		bound = n
	}
	n, one := v.Get("n").Int64()
	stream, _ := v.Get("stream").Bool()
	switch {
	case bound == 0:
		return 0, errors.New("the raw body does not bound the answer")
	case v.Get("model").Text() == "":
		return 0, errors.New("the raw body names no model")
	case v.Get("n").Exists() && !(one && n == 1):
		return 0, errors.New("the raw body wants more than one answer")
	case stream != (r.Stream != nil):
		return 0, errors.New("the raw body and Stream do not agree on a stream")
	}
	return bound, nil
}

// A call of a former turn was made with arguments; none at all are none.
func (c *ToolCall) arguments() []byte {
	if len(c.Arguments) == 0 {
		return []byte("{}")
	}
	return c.Arguments
}
