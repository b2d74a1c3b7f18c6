// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"strconv"
	"strings"

	"github.com/pellucid-mcp/pellucid/model/counterfactual"
	"github.com/pellucid-mcp/pellucid/text/eventstream"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// messagesReading reads a stream of messages.
type messagesReading struct {
	collected
	block  *pending // the call that is open; nil if the block is none
	begun  int64    // blocks, passed on or not
	blocks int      // passed on, and ended or not
	open   bool     // a block is
}

func newMessages(p *counterfactual.Policy) reading {
	return &messagesReading{collected: collected{policy: p}}
}

func (r *messagesReading) event(e eventstream.Event) part {
	if is, yes := r.bare(e); yes {
		return is
	}
	v, kind := typed(e, "type", "content_block", "delta", "index", "message")
	if !v.Exists() {
		return r.odd()
	}
	switch kind {
	case "message_start":
		m := v.Get("message")
		r.usage(m.Get("usage"))
		if says(m.Get("content")) {
			return r.odd()
		}
		return r.part(partPreamble)
	case "ping":
		return r.part(partPreamble)
	case "content_block_start":
		is := r.start(v.Get("content_block"))
		r.begun++
		return r.of(v, is)
	case "content_block_delta":
		return r.of(v, r.delta(v.Get("delta")))
	case "content_block_stop":
		r.block, r.open = nil, false
	case "message_delta":
		r.usage(v.Get("usage"))
	case "message_stop":
		return partEnd
	case "error":
		return partFault
	}
	return r.part(partShown)
}

// of checks that an event is about the block that was begun last: a client puts what comes
// where its index says, so that other arguments than ours would be tested.
func (r *messagesReading) of(v strictjson.Value, is part) part {
	if i, ok := v.Get("index").Int64(); r.held && (!ok || i != r.begun-1) {
		return r.odd()
	}
	return is
}

func (r *messagesReading) usage(u strictjson.Value) {
	if u.Kind() != '{' {
		return
	}
	in := count(u.Get("input_tokens")) + count(u.Get("cache_read_input_tokens")) + count(u.Get("cache_creation_input_tokens"))
	r.input, r.output = max(r.input, in), max(r.output, count(u.Get("output_tokens")))
}

// messagesServed are kinds of blocks that call for nothing: text, or what the
// provider has done by itself.
func messagesServed(kind string) bool {
	switch kind {
	case "text", "thinking", "redacted_thinking", "server_tool_use", "mcp_tool_use", "container_upload":
		return true
	}
	return messagesFetched(kind)
}

// messagesFetched reports whether a block is the result of what the provider has run.
func messagesFetched(kind string) bool { return strings.HasSuffix(kind, "_tool_result") }

func (r *messagesReading) start(b strictjson.Value) part {
	_, stray := b.Strays([]string{"type", "name", "input"})
	kind := b.Get("type").Text()
	switch {
	case stray:
		return r.odd()
	case kind == "tool_use":
		if len(r.calls) == maxCalls {
			return r.odd()
		}
		r.block = r.call(b.Get("id").Text(), b.Get("name").Text())
		if in := b.Get("input"); says(in) {
			r.argue(r.block, string(in.Raw()))
		}
	case !messagesServed(kind):
		return r.odd()
	default:
		r.fetched = r.fetched || messagesFetched(kind)
		r.say(b.Get("text").Text())
	}
	if !r.held {
		r.blocks, r.open = r.blocks+1, true
	}
	return r.part(partShown)
}

func (r *messagesReading) delta(d strictjson.Value) part {
	switch d.Get("type").Text() {
	case "text_delta":
		r.say(d.Get("text").Text())
	case "input_json_delta":
		if r.block != nil {
			r.argue(r.block, d.Get("partial_json").Text())
		}
	}
	return r.part(partShown)
}

func (r *messagesReading) tail(text string) []byte {
	w := &writer{}
	if r.open {
		w.blockStop(r.blocks - 1)
	}
	w.textBlock(r.blocks, text)
	reason := `"end_turn"`
	if r.passed() {
		reason = `"tool_use"`
	}
	w.messageEnd(reason, strictjson.Value{})
	return w.b
}

func (w *writer) blockStop(i int) {
	w.event("content_block_stop", func() { w.raw(`{"type":"content_block_stop","index":` + strconv.Itoa(i) + `}`) })
}

func (w *writer) textBlock(i int, text string) {
	at := strconv.Itoa(i)
	w.event("content_block_start", func() {
		w.raw(`{"type":"content_block_start","index":` + at + `,"content_block":{"type":"text","text":""}}`)
	})
	w.event("content_block_delta", func() {
		w.raw(`{"type":"content_block_delta","index":` + at + `,"delta":{"type":"text_delta","text":`)
		w.text(text)
		w.raw("}}")
	})
	w.blockStop(i)
}

func (w *writer) messageEnd(reason string, usage strictjson.Value) {
	w.event("message_delta", func() {
		w.raw(`{"type":"message_delta","delta":{"stop_reason":` + reason + `,"stop_sequence":null},"usage":`)
		w.or(usage, `{"output_tokens":0}`)
		w.raw("}")
	})
	w.event("message_stop", func() { w.raw(`{"type":"message_stop"}`) })
}

func messagesWhole(root strictjson.Value) *answer {
	c := collected{}
	r := messagesReading{collected: c}
	r.usage(root.Get("usage"))
	a := &answer{input: r.input, output: r.output}
	_, a.strange = root.Strays([]string{"content"})
	n := 0
	for b := range root.Get("content").Elements() {
		_, stray := b.Strays([]string{"type", "name", "input"})
		kind := b.Get("type").Text()
		if kind == "tool_use" {
			n++
		}
		a.fetched = a.fetched || messagesFetched(kind)
		a.strange = a.strange || stray || n > maxCalls || kind != "tool_use" && !messagesServed(kind)
	}
	return a
}

func messagesRefusal(id, model, text string) []byte {
	w := &writer{}
	w.raw(`{"id":"msg_pellucid_` + id + `","type":"message","role":"assistant","model":`)
	w.text(model)
	w.raw(`,"content":[{"type":"text","text":`)
	w.text(text)
	w.raw(`}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":0,"output_tokens":0}}`)
	return w.b
}

func messagesEvents(root strictjson.Value) []byte {
	w := &writer{}
	w.event("message_start", func() {
		w.raw(`{"type":"message_start","message":{"id":`)
		w.or(root.Get("id"), `"msg_pellucid"`)
		w.raw(`,"type":"message","role":"assistant","model":`)
		w.or(root.Get("model"), `""`)
		w.raw(`,"content":[],"stop_reason":null,"stop_sequence":null,"usage":`)
		w.or(root.Get("usage"), `{"input_tokens":0,"output_tokens":0}`)
		w.raw("}}")
	})
	i := 0
	for b := range root.Get("content").Elements() {
		switch b.Get("type").Text() {
		case "text":
			w.textBlock(i, b.Get("text").Text())
			i++
		case "tool_use":
			w.callBlock(i, b)
			i++
		}
	}
	reason := `"end_turn"`
	if v := root.Get("stop_reason"); says(v) {
		reason = string(v.Raw())
	}
	w.messageEnd(reason, root.Get("usage"))
	return w.b
}

func (w *writer) callBlock(i int, b strictjson.Value) {
	at := strconv.Itoa(i)
	w.event("content_block_start", func() {
		w.raw(`{"type":"content_block_start","index":` + at + `,"content_block":{"type":"tool_use","id":`)
		w.or(b.Get("id"), `""`)
		w.raw(`,"name":`)
		w.or(b.Get("name"), `""`)
		w.raw(`,"input":{}}}`)
	})
	w.event("content_block_delta", func() {
		w.raw(`{"type":"content_block_delta","index":` + at + `,"delta":{"type":"input_json_delta","partial_json":`)
		w.text(string(b.Get("input").Raw()))
		w.raw("}}")
	})
	w.blockStop(i)
}

// messagesFault is the body of an error of Anthropic's.
func messagesFault(kind, text string) []byte {
	w := &writer{}
	w.raw(`{"type":"error","error":{"type":`)
	w.text(kind)
	w.raw(`,"message":`)
	w.text(text)
	w.raw("}}")
	return w.b
}
