// SPDX-License-Identifier: Apache-2.0

package format

import (
	"strconv"
	"strings"

	"github.com/pellucid-mcp/pellucid/text/eventstream"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// messages is Anthropic's messages.
type messages struct{ sse }

func (messages) Name() Name               { return Messages }
func (messages) Path(string, bool) string { return "/messages" }

func (messages) Read(root strictjson.Value) *Answer {
	a := &Answer{}
	var f fields
	f.strays(root, "content", "type")
	if root.Get("error").Kind() == '{' {
		a.Parts = append(a.Parts, Part{Kind: PartError, Value: root})
	}
	if f.text(root, "type") != "message" || f.text(root, "role") != "assistant" {
		f.odd |= OddShape
	}
	content := root.Get("content")
	if content.Kind() != '[' {
		f.odd |= OddCall
	}
	a.ID, a.Model, a.Stop = f.text(root, "id"), f.text(root, "model"), messagesStop(f.text(root, "stop_reason"))
	a.Usage = messagesUsage(root.Get("usage"), Usage{})
	for b := range content.Elements() {
		f.strays(b, "type", "name", "input")
		switch kind := f.text(b, "type"); kind {
		case "text":
			a.say(PartText, f.text(b, "text"))
		case "thinking":
			a.say(PartReasoning, f.text(b, "thinking"))
		case "redacted_thinking":
		case "tool_use":
			a.call(&f, Call{ID: f.text(b, "id"), Name: f.text(b, "name"), Arguments: append([]byte(nil), b.Get("input").Raw()...)})
		default:
			f.odd |= messagesServed(kind)
			a.Fetched = a.Fetched || messagesFetched(kind)
			a.Parts = append(a.Parts, Part{Kind: PartServed})
		}
	}
	a.Odd = f.odd
	return a
}

// messagesServed is what is odd about a kind of block: nothing, if it calls for nothing,
// since it is what the provider has done by itself.
func messagesServed(kind string) Odd {
	switch kind {
	case "server_tool_use", "mcp_tool_use", "container_upload":
		return 0
	}
	if messagesFetched(kind) {
		return 0
	}
	return OddCall
}

// messagesFetched reports whether a block is the result of what the provider has run.
func messagesFetched(kind string) bool { return strings.HasSuffix(kind, "_tool_result") }

func messagesStop(reason string) Stop {
	switch reason {
	case "":
		return ""
	case "end_turn":
		return StopEnd
	case "max_tokens", "model_context_window_exceeded":
		return StopLength
	case "stop_sequence":
		return StopSequence
	case "tool_use":
		return StopCalls
	case "pause_turn":
		return StopPause
	case "refusal":
		return StopRefusal
	}
	return StopOther
}

// messagesUsage reads a usage object over an earlier one: its counts are cumulative, and
// the later object may have fewer. What was read from the cache or written to it is not
// part of input_tokens.
func messagesUsage(v strictjson.Value, before Usage) Usage {
	if v.Kind() != '{' {
		return before
	}
	var f fields
	u := before
	plain := u.Input - u.Cached - u.CacheWrite
	for _, m := range []struct {
		name string
		to   *int64
	}{
		{"input_tokens", &plain},
		{"cache_read_input_tokens", &u.Cached},
		{"cache_creation_input_tokens", &u.CacheWrite},
		{"output_tokens", &u.Output},
	} {
		if v.Get(m.name).Kind() == '0' {
			*m.to = f.count(v, m.name)
		}
	}
	u.Input = plain + u.Cached + u.CacheWrite
	return f.usage(u)
}

func (messages) NewStream() Stream { return &messagesStream{} }

// messagesStream reads the events of one answer: one start, blocks one after the other,
// each opened, continued and closed, the end.
type messagesStream struct {
	events
	begun  bool
	ended  bool // message_delta has said why
	inside bool // a block
	blocks int64
	kind   string // of the block that was opened last
	use    int    // index of the call that the block is; -1: the block is no call

	// What a client has got, and what it has got with the event that was read last.
	passed, now struct {
		blocks, calls int
		open          bool // the last of the blocks
	}
}

func (s *messagesStream) Event(e eventstream.Event) ([]Part, Odd) {
	if s.begin(e) {
		v, kind := s.typed(e, "type", "content_block", "delta", "index", "message")
		s.now = s.passed
		s.take(kind, v)
		s.now.calls = len(s.calls)
	}
	return s.parts, s.odd
}

func (s *messagesStream) take(kind string, v strictjson.Value) {
	switch kind {
	case "message_start":
		s.start(s.object(v, "message", OddCall))
		return
	case "ping":
		return
	case "content_block_start":
		s.open(v)
	case "content_block_delta":
		s.more(v)
	case "content_block_stop":
		s.expect(s.inside && s.count(v, "index") == s.blocks-1, OddShape)
		s.inside, s.now.open = false, false
	case "message_delta":
		s.expect(s.begun && !s.inside, OddShape)
		s.stop(s.text(s.object(v, "delta", OddShape), "stop_reason"), messagesStop)
		s.ended = s.ended || s.answer.Stop != ""
		s.answer.Usage = messagesUsage(v.Get("usage"), s.answer.Usage)
	case "message_stop":
		s.expect(s.begun && !s.inside && s.ended, OddShape)
		s.add(Part{Kind: PartEnd})
	case "error":
		s.add(Part{Kind: PartError, Value: v})
	}
	s.add(Part{Kind: PartOther})
}

// expect notes what is odd unless something is as it has to be.
func (s *messagesStream) expect(is bool, odd Odd) {
	if !is {
		s.odd |= odd
	}
}

func (s *messagesStream) start(m strictjson.Value) {
	s.expect(!s.begun && s.text(m, "role") == "assistant", OddShape)
	s.expect(!says(m.Get("content")), OddCall)
	s.begun = true
	s.answer.ID, s.answer.Model = s.text(m, "id"), s.text(m, "model")
	s.answer.Usage = messagesUsage(m.Get("usage"), Usage{})
}

func (s *messagesStream) open(v strictjson.Value) {
	s.expect(s.begun && !s.inside && !s.ended, OddShape)
	s.expect(v.Get("index").Exists() && s.count(v, "index") == s.blocks, OddOrder)
	s.blocks++
	s.inside, s.use = true, -1
	s.now.blocks, s.now.open = s.passed.blocks+1, true
	b := s.object(v, "content_block", OddCall)
	s.strays(b, "type", "name", "input")
	s.kind = s.text(b, "type")
	switch s.kind {
	case "text":
		s.say(PartText, s.text(b, "text"))
	case "thinking":
		s.say(PartReasoning, s.text(b, "thinking"))
	case "redacted_thinking":
	case "tool_use":
		if s.call(Call{ID: s.text(b, "id"), Name: s.text(b, "name")}) != nil {
			s.use = len(s.calls) - 1
			if in := b.Get("input"); says(in) { // an empty object stands here for what the pieces will say
				s.argue(s.use, string(in.Raw()))
			}
		}
	default:
		s.odd |= messagesServed(s.kind)
		s.answer.Fetched = s.answer.Fetched || messagesFetched(s.kind)
		s.add(Part{Kind: PartServed})
	}
}

func (s *messagesStream) more(v strictjson.Value) {
	// A client puts what comes where its index says, so that other arguments than ours
	// would be tested.
	s.expect(v.Get("index").Exists() && s.count(v, "index") == s.blocks-1, OddOrder)
	s.expect(s.inside, OddShape)
	d := s.object(v, "delta", OddCall)
	switch kind := s.text(d, "type"); {
	case kind == "text_delta":
		s.expect(s.kind == "text", OddShape)
		s.say(PartText, s.text(d, "text"))
	case kind == "thinking_delta":
		s.expect(s.kind == "thinking", OddShape)
		s.say(PartReasoning, s.text(d, "thinking"))
	case kind == "input_json_delta" && s.use >= 0:
		s.argue(s.use, s.text(d, "partial_json"))
	case kind == "input_json_delta":
		s.expect(messagesServed(s.kind) == 0, OddShape)
	case kind == "signature_delta", kind == "citations_delta":
	default:
		s.odd |= OddShape
	}
}

func (s *messagesStream) Answer() *Answer { return s.whole() }

func (s *messagesStream) Passed() { s.passed = s.now }

func (s *messagesStream) AppendTail(dst []byte, text string) []byte {
	w := &writer{dst}
	if s.passed.open {
		w.blockStop(s.passed.blocks - 1)
	}
	w.textBlock(s.passed.blocks, text)
	reason := `"end_turn"`
	if s.passed.calls > 0 {
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
		w.with(`{"type":"content_block_delta","index":`+at+`,"delta":{"type":"text_delta","text":`, text)
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

func (messages) AppendText(dst []byte, id, model, text string) []byte {
	w := &writer{dst}
	w.with(`{"id":"msg_pellucid_`+id+`","type":"message","role":"assistant","model":`, model)
	w.with(`,"content":[{"type":"text","text":`, text)
	w.raw(`}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":0,"output_tokens":0}}`)
	return w.b
}

func (messages) AppendEvents(dst []byte, root strictjson.Value) []byte {
	w := &writer{dst}
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
		w.with(`{"type":"content_block_delta","index":`+at+`,"delta":{"type":"input_json_delta","partial_json":`, string(b.Get("input").Raw()))
		w.raw("}}")
	})
	w.blockStop(i)
}

func (messages) AppendError(dst []byte, kind, text string) []byte {
	w := &writer{dst}
	w.with(`{"type":"error","error":{"type":`, kind)
	w.with(`,"message":`, text)
	w.raw("}}")
	return w.b
}
