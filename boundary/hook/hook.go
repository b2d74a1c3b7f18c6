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
	"strings"

	"github.com/pellucid-mcp/pellucid/boundary/gateway"
	"github.com/pellucid-mcp/pellucid/boundary/hook/socket"
	"github.com/pellucid-mcp/pellucid/text/frame"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// limits are wider than those of the choke point, which withholds a result that exceeds its own.
var limits = strictjson.Limits{Bytes: socket.MaxEvent, Depth: 10_000, Values: 4 << 20, MendSurrogates: true}

// Nothing is the answer that changes nothing.
const Nothing = "{}"

const nothingLeft = "[pellucid removed hidden characters: the result has no other text]"

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

// Options of an answer.
type Options struct {
	Boundary Boundary
	Key      frame.Key // of the fences of this installation
}

// Answer returns the answer to an event. On an error the event had no effect, and Nothing is to be
// answered.
func (h *Host) Answer(ctx context.Context, o Options, event []byte) ([]byte, error) {
	var doc strictjson.Doc
	if len(event) > socket.MaxEvent || doc.Reset(event, limits) != nil || doc.Root().Kind() != '{' {
		return nil, errEvent
	}
	root := doc.Root()
	switch root.Get("hook_event_name").Text() {
	case h.after:
		return h.inspectResult(ctx, o, root)
	case h.before:
		return h.restoreInput(o, root)
	}
	return []byte(Nothing), nil
}

// Unchecked returns the answer where nothing can be decided: the host shows why to the user, and goes on.
func Unchecked(why string) []byte {
	return append(strictjson.AppendQuote([]byte(`{"systemMessage":`), "pellucid: what the tools of this host return is not checked: "+why), '}')
}

// Probe returns an event of the host whose answer shows whether results pass the boundary.
func (h *Host) Probe() []byte {
	response := `"a\u200bb"`
	if h.resultMember != "" {
		response = fmt.Sprintf(`{%q:%s}`, h.resultMember, response)
	}
	return fmt.Appendf(nil, `{"hook_event_name":%q,"tool_name":"pellucid doctor","tool_response":%s}`, h.after, response)
}

// Passes reports whether the answer to Probe is that of a boundary.
func Passes(answer []byte) bool { return bytes.Contains(answer, []byte(`"ab"`)) }

// restoreInput restores the tokens in the input of a tool.
func (h *Host) restoreInput(o Options, event strictjson.Value) ([]byte, error) {
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

// inspectResult passes the result of a tool through the choke point.
func (h *Host) inspectResult(ctx context.Context, o Options, event strictjson.Value) ([]byte, error) {
	name, response := event.Get("tool_name").Text(), event.Get("tool_response")
	if h.resultMember != "" {
		response = response.Get(h.resultMember)
	}
	r := result{value: response, tool: h.toolRow(name)}
	if r.findTexts(o.Key, h.around); !response.Exists() || !r.hasMore() {
		return []byte(Nothing), nil
	}
	clean, d, err := o.Boundary.Inspect(ctx, gateway.ToolResult{Server: h.Name, Tool: name, Raw: r.asMCP()})
	if err != nil {
		return nil, fmt.Errorf("hook: %w", err)
	}
	var changed []byte
	if d.Verdict == gateway.Withheld {
		changed, err = r.buildWithheld(clean, h.takesText)
	} else {
		changed, err = r.buildDelivered(clean)
	}
	if err != nil {
		return nil, err
	}
	text, isText := textOf(changed)
	quiet := d.Verdict != gateway.Withheld && len(d.Findings) == 0
	if bytes.Equal(changed, response.Raw()) || quiet && (h.showsError || r.tool.lossNote != "" || h.takesText && !isText) {
		return []byte(Nothing), nil
	}
	switch {
	case isText && text == "" && (h.takesText || changed[0] == '"'): // hosts take an empty text for no change
		changed = strictjson.AppendQuote(nil, nothingLeft)
	case isText && r.tool.lossNote != "" && d.Verdict != gateway.Withheld:
		changed = strictjson.AppendQuote(nil, text+"\n"+r.tool.lossNote)
	}
	answer := h.changeResult(changed)
	if h.hint != nil && bytes.ContainsAny(changed, gateway.Lookalikes) && !bytes.ContainsAny(response.Raw(), gateway.Lookalikes) {
		answer = h.hint(answer)
	}
	return answer, nil
}

// A result of a tool.
type result struct {
	value strictjson.Value
	tool  tool
	texts []passage
	data  []strictjson.Value // images and other files
}

// A passage is a text in the result that gets a fence.
type passage struct {
	strictjson.Value
	before, inner, after string // before and after are the host's own
	hasOwnFence          bool   // of this installation, by a server behind wrap
}

// findTexts finds the texts and the data of the result.
func (r *result) findTexts(key frame.Key, around [2]string) {
	var first frame.Origin
	for _, v := range r.tool.fencedTexts(r.value) {
		p := passage{Value: v, inner: v.Text()}
		if inner, is := strings.CutPrefix(p.inner, around[0]); is && around[0] != "" && strings.HasSuffix(inner, around[1]) {
			p.before, p.inner, p.after = around[0], strings.TrimSuffix(inner, around[1]), around[1]
		}
		origin, _, err := key.Open(p.inner, first)
		if p.hasOwnFence = err == nil; p.hasOwnFence && first == (frame.Origin{}) {
			first = origin
		}
		r.texts = append(r.texts, p)
	}
	for _, v := range r.tool.data.findIn(r.value) {
		if isEncoded(v.Text()) && !slices.ContainsFunc(r.texts, func(p passage) bool { return p.Value == v }) {
			r.data = append(r.data, v)
		}
	}
}

// hasMore reports whether a part of the result has not passed the choke point.
func (r *result) hasMore() bool {
	var rest strictjson.Edits
	for _, p := range r.texts {
		if p.hasOwnFence {
			rest.Replace(p.Value, []byte(`""`))
		}
	}
	if rest.Len() == 0 {
		return true
	}
	var doc strictjson.Doc
	if doc.Reset(rest.Apply(nil, r.value), limits) != nil {
		return true
	}
	rest.Reset()
	blank := blankStrings(&rest, doc.Root(), nil)
	return rest.Len() > len(blank) || slices.ContainsFunc(blank, func(v strictjson.Value) bool { return v.Text() != "" })
}

// asMCP returns the same result as that of an MCP tool: each text is a block of its own, and the rest is structured.
func (r *result) asMCP() []byte {
	out := []byte(`{"content":[`)
	var rest strictjson.Edits
	separator := ""
	for _, p := range r.texts {
		rest.Replace(p.Value, []byte(`""`))
		if !p.hasOwnFence && p.inner != "" {
			out = append(strictjson.AppendQuote(append(append(out, separator...), `{"type":"text","text":`...), p.inner), '}')
			separator = ","
		}
	}
	out = append(out, `],"structuredContent":{"result":`...)
	for _, v := range r.data {
		rest.Replace(v, []byte(`""`))
	}
	return append(rest.Apply(out, r.value), "}}"...)
}

// buildDelivered returns the tool's result with the texts of clean in their places.
func (r *result) buildDelivered(clean []byte) ([]byte, error) {
	var doc, rest strictjson.Doc
	longer := strictjson.Limits{Bytes: 2 * socket.MaxEvent} // by fences
	if doc.Reset(clean, longer) != nil || rest.Reset(doc.Root().Get("structuredContent").Get("result").Raw(), longer) != nil {
		return nil, errShape
	}
	blocks := slices.Collect(doc.Root().Get("content").Elements())
	places := r.tool.fencedTexts(rest.Root())
	if len(places) != len(r.texts) {
		return nil, errShape
	}
	var e strictjson.Edits
	for i, place := range places {
		p := r.texts[i]
		switch {
		case p.hasOwnFence || p.inner == "":
			e.Replace(place, p.Raw())
			continue
		case len(blocks) == 0:
			return nil, errShape
		}
		if text := blocks[0].Get("text"); p.before != "" {
			e.ReplaceText(place, p.before+text.Text()+p.after)
		} else {
			e.Replace(place, text.Raw())
		}
		blocks = blocks[1:]
	}
	at := 0
	for _, place := range r.tool.data.findIn(rest.Root()) { // in their order
		if place.Text() == "" && at < len(r.data) && !slices.Contains(places, place) {
			e.Replace(place, r.data[at].Raw())
			at++
		}
	}
	if at != len(r.data) {
		return nil, errShape
	}
	return e.Apply(nil, rest.Root()), nil
}

// buildWithheld returns a result of the tool with the constant sentence of clean alone.
func (r *result) buildWithheld(clean []byte, asText bool) ([]byte, error) {
	var doc strictjson.Doc
	if doc.Reset(clean, strictjson.Limits{}) != nil {
		return nil, errShape
	}
	blocks := slices.Collect(doc.Root().Get("content").Elements())
	if len(blocks) == 0 || blocks[0].Get("text").Kind() != '"' {
		return nil, errShape
	}
	sentence := blocks[0].Get("text")
	switch {
	case asText || r.value.Kind() == '"':
		return bytes.Clone(sentence.Raw()), nil
	case r.tool.withheldForm != "":
		return fmt.Appendf(nil, r.tool.withheldForm, sentence.Raw()), nil
	}
	var e strictjson.Edits
	blank := blankStrings(&e, r.value, nil)
	if len(blank) == 0 {
		return fmt.Appendf(nil, `{"result":%s}`, sentence.Raw()), nil
	}
	shown := append(r.tool.fencedTexts(r.value), r.tool.plain.findIn(r.value)...)
	place := max(0, slices.IndexFunc(blank, func(v strictjson.Value) bool { return slices.Contains(shown, v) }))
	e.Replace(blank[place], sentence.Raw())
	return e.Apply(nil, r.value), nil
}

// blankStrings empties the strings of v, which it appends to blank, and removes members whose name could be more than a word.
func blankStrings(e *strictjson.Edits, v strictjson.Value, blank []strictjson.Value) []strictjson.Value {
	for element := range v.Elements() {
		blank = blankStrings(e, element, blank)
	}
	for name, member := range v.Members() {
		if !frame.IsLabel(name.Text()) {
			e.Remove(member)
		} else if !slices.Contains(discriminators, name.Text()) || !frame.IsLabel(member.Text()) {
			blank = blankStrings(e, member, blank)
		}
	}
	if v.Kind() == '"' {
		e.Replace(v, []byte(`""`))
		blank = append(blank, v)
	}
	return blank
}

// isEncoded reports whether a string is base64, or a URL of data in it.
func isEncoded(s string) bool {
	if rest, is := strings.CutPrefix(s, "data:image/"); is {
		_, s, _ = strings.Cut(rest, ";base64,")
	}
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+/="
	return s != "" && strings.Trim(s, letters) == ""
}
