// SPDX-License-Identifier: Apache-2.0

// Package hook answers the events of an agent's host, so that what the host's own tools return passes the choke point.
//
// What was defused in a result is restored where the agent writes it back.
//
// The hosts, their events, and where text stands in the results of their tools are data (Hosts). An event of a kind that
// a host's row does not name is answered with {}: the host goes on.
package hook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/pellucid-mcp/pellucid/boundary/gateway"
	"github.com/pellucid-mcp/pellucid/boundary/policy"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/frame"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// MaxEvent bounds an event, in bytes.
const MaxEvent = 32 << 20

// Nothing is the answer that changes nothing.
const Nothing = "{}"

var (
	errEvent = errors.New("hook: the event is not a JSON object, or is too large")
	errShape = errors.New("hook: what passed the boundary does not have the shape of the tool's result")
)

// A Boundary is the choke point that results pass.
type Boundary interface {
	// Inspect returns what a model may see of a tool's result.
	Inspect(context.Context, gateway.ToolResult) ([]byte, gateway.Decision, error)
	// Restore returns what is passed to a tool with the control tokens in its strings that were defused, and their number.
	Restore(tool string, raw []byte) ([]byte, int, error)
}

// Options say what an event is answered with.
type Options struct {
	Boundary Boundary
	Key      frame.Key // of the fences of this installation
}

// Answer returns what the host is told about an event. On an error the event had no effect, and Nothing is to be
// answered.
func (h *Host) Answer(ctx context.Context, o Options, event []byte) ([]byte, error) {
	var doc strictjson.Doc
	if len(event) > MaxEvent || doc.Reset(event, strictjson.Limits{Bytes: MaxEvent, MendSurrogates: true}) != nil || doc.Root().Kind() != '{' {
		return nil, errEvent
	}
	root := doc.Root()
	switch root.Get("hook_event_name").Text() {
	case h.after:
		return h.result(ctx, o, root)
	case h.before:
		return h.input(o, root)
	}
	return []byte(Nothing), nil
}

// Unchecked is what the host is told where nothing can be decided, and why: it shows that to the person, and goes on.
func Unchecked(why string) []byte {
	return append(strictjson.AppendQuote([]byte(`{"systemMessage":`), "pellucid: what the tools of this host return is not checked: "+why), '}')
}

// Probe is an event of the host whose answer shows whether results pass the boundary.
func (h *Host) Probe() []byte {
	response := `"a\u200bb"`
	if h.resultMember != "" {
		response = fmt.Sprintf(`{%q:%s}`, h.resultMember, response)
	}
	return fmt.Appendf(nil, `{"hook_event_name":%q,"tool_name":"pellucid doctor","tool_response":%s}`, h.after, response)
}

// Passes reports whether the answer to Probe is that of a boundary.
func Passes(answer []byte) bool { return bytes.Contains(answer, []byte(`"ab"`)) }

// input gives the tokens back to what the agent passes to a tool.
func (h *Host) input(o Options, event strictjson.Value) ([]byte, error) {
	input := event.Get("tool_input")
	if input.Kind() != '{' {
		return []byte(Nothing), nil
	}
	restored, n, err := o.Boundary.Restore(event.Get("tool_name").Text(), input.Raw())
	if err != nil || n == 0 {
		return []byte(Nothing), err
	}
	return h.changeInput(restored), nil
}

// result lets what a tool returned through the choke point.
func (h *Host) result(ctx context.Context, o Options, event strictjson.Value) ([]byte, error) {
	name, response := event.Get("tool_name").Text(), event.Get("tool_response")
	if h.resultMember != "" {
		response = response.Get(h.resultMember)
	}
	if !response.Exists() {
		return []byte(Nothing), nil
	}
	r := result{value: response, tool: h.tool(name)}
	if r.find(o.Key); !r.hasMore() {
		return []byte(Nothing), nil
	}
	clean, d, err := o.Boundary.Inspect(ctx, gateway.ToolResult{Server: h.Name, Tool: name, Raw: r.asMCP()})
	if err != nil {
		return nil, fmt.Errorf("hook: %w", err)
	}
	var changed []byte
	if d.Verdict == gateway.Withheld {
		changed, err = r.withheld(clean)
	} else {
		changed, err = r.delivered(clean)
	}
	if err != nil {
		return nil, err
	}
	_, isText := textOf(changed)
	quiet := d.Verdict != gateway.Withheld && len(d.Findings) == 0
	if bytes.Equal(changed, response.Raw()) || quiet && (h.showsError || h.takesText && !isText) {
		return []byte(Nothing), nil
	}
	answer := h.changeResult(changed)
	if h.hint != nil && slices.ContainsFunc(d.Findings, func(c policy.Count) bool { return c.Code == finding.ControlToken }) {
		answer = h.hint(answer)
	}
	return answer, nil
}

// A result is what a tool returned.
type result struct {
	value strictjson.Value
	tool  tool
	texts []strictjson.Value // in value, that a fence goes around
	own   []bool             // of texts: it has a fence of this installation, that of a server behind wrap
}

// find finds the texts of the result.
func (r *result) find(key frame.Key) {
	var first frame.Origin
	for _, v := range r.tool.texts(r.value) {
		origin, _, err := key.Open(v.Text(), first)
		if err == nil && first == (frame.Origin{}) {
			first = origin
		}
		r.texts, r.own = append(r.texts, v), append(r.own, err == nil)
	}
}

// hasMore reports whether the result has more than texts that have passed the choke point.
func (r *result) hasMore() bool {
	if !slices.Contains(r.own, true) {
		return true
	}
	var rest strictjson.Edits
	for i, v := range r.texts {
		if r.own[i] {
			rest.Replace(v, []byte(`""`))
		}
	}
	var doc strictjson.Doc
	return doc.Reset(rest.Apply(nil, r.value), strictjson.Limits{Bytes: MaxEvent, MendSurrogates: true}) != nil ||
		slices.ContainsFunc(stringsIn(doc.Root(), nil), func(v strictjson.Value) bool { return v.Text() != "" })
}

// asMCP is the result of an MCP tool that says the same: each text is a block of its own, and what is left is structured.
func (r *result) asMCP() []byte {
	out := []byte(`{"content":[`)
	var rest strictjson.Edits
	separator := ""
	for i, v := range r.texts {
		if v.Text() == "" {
			continue
		}
		rest.Replace(v, []byte(`""`))
		if !r.own[i] {
			out = append(append(append(append(out, separator...), `{"type":"text","text":`...), v.Raw()...), '}')
			separator = ","
		}
	}
	out = append(out, `],"structuredContent":{"result":`...)
	return append(rest.Apply(out, r.value), "}}"...)
}

// delivered is the tool's result with what passed the choke point in its places.
func (r *result) delivered(clean []byte) ([]byte, error) {
	var doc, rest strictjson.Doc
	limits := strictjson.Limits{Bytes: 2 * MaxEvent} // fences make it longer
	if doc.Reset(clean, limits) != nil || rest.Reset(doc.Root().Get("structuredContent").Get("result").Raw(), limits) != nil {
		return nil, errShape
	}
	blocks := slices.Collect(doc.Root().Get("content").Elements())
	places := r.tool.texts(rest.Root())
	if len(places) != len(r.texts) {
		return nil, errShape
	}
	var e strictjson.Edits
	for i, place := range places {
		if r.texts[i].Text() == "" {
			continue
		}
		if r.own[i] {
			e.Replace(place, r.texts[i].Raw())
			continue
		}
		if len(blocks) == 0 {
			return nil, errShape
		}
		e.Replace(place, blocks[0].Get("text").Raw())
		blocks = blocks[1:]
	}
	return e.Apply(nil, rest.Root()), nil
}

// withheld is the result with a constant sentence in the place of its first text, and none of its other texts.
func (r *result) withheld(clean []byte) ([]byte, error) {
	var doc strictjson.Doc
	if doc.Reset(clean, strictjson.Limits{}) != nil {
		return nil, errShape
	}
	var sentence strictjson.Value
	for block := range doc.Root().Get("content").Elements() {
		sentence = block.Get("text")
		break
	}
	places := append(slices.Clone(r.texts), r.tool.plain.in(r.value)...)
	if len(places) == 0 {
		places = stringsIn(r.value, nil)
	}
	if sentence.Kind() != '"' || len(places) == 0 {
		return nil, errShape
	}
	var e strictjson.Edits
	for i, place := range places {
		if i == 0 {
			e.Replace(place, sentence.Raw())
		} else {
			e.Replace(place, []byte(`""`))
		}
	}
	return e.Apply(nil, r.value), nil
}
