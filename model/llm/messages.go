// SPDX-License-Identifier: Apache-2.0

package llm

import (
	"net/http"
	"strings"

	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// messages is FormatMessages: Anthropic's messages.
type messages struct{}

func (messages) path() string { return "/messages" }

func (messages) bounds() []string { return []string{"max_tokens"} }

func (messages) sign(h http.Header, key string) {
	h.Set("Anthropic-Version", "2023-06-01")
	if key != "" {
		h.Set("X-Api-Key", key)
	}
}

const cacheMark = `,"cache_control":{"type":"ephemeral"}`

func (messages) encode(w *body, o *Options, r *Request) {
	w.with(`{"model":`, o.Model)
	if r.System != "" {
		w.with(`,"system":[{"type":"text","text":`, r.System)
		if r.CachePrefix {
			w.raw(cacheMark)
		}
		w.raw("}]")
	}
	turns := turnsOf(r.Messages)
	w.raw(`,"messages":`)
	w.list(len(turns), func(i int) { messagesTurn(w, turns[i]) })
	if len(r.Tools) > 0 {
		w.raw(`,"tools":`)
		w.list(len(r.Tools), func(i int) {
			w.tool(`{`, &r.Tools[i], `,"input_schema":`)
			if r.CachePrefix && r.System == "" && i == len(r.Tools)-1 {
				w.raw(cacheMark) // tools come before the system text: one mark holds both
			}
			w.raw("}")
		})
		switch r.Choice {
		case ChooseNone:
			w.raw(`,"tool_choice":{"type":"none"}`)
		case ChooseAny:
			w.raw(`,"tool_choice":{"type":"any"}`)
		}
	}
	w.raw(`,"max_tokens":`)
	w.number(r.maxTokens())
	w.sampling(o, r)
	if r.Stream != nil {
		w.raw(`,"stream":true`)
	}
	w.raw("}")
}

// turnsOf puts messages of one side that follow each other into one turn: results
// of calls that were made together must come back together.
func turnsOf(ms []Message) (turns [][]Message) {
	for i := range ms {
		side := ms[i].Role == Assistant
		if n := len(turns); n > 0 && (turns[n-1][0].Role == Assistant) == side {
			turns[n-1] = append(turns[n-1], ms[i])
			continue
		}
		turns = append(turns, []Message{ms[i]})
	}
	return turns
}

func messagesTurn(w *body, turn []Message) {
	role := "user"
	if turn[0].Role == Assistant {
		role = "assistant"
	}
	w.raw(`{"role":"` + role + `","content":[`)
	for i := range turn {
		w.items(&turn[i], func(m *Message) {
			w.with(`{"type":"tool_result","tool_use_id":`, m.CallID)
			w.with(`,"content":`, m.Text)
			if m.Failed {
				w.raw(`,"is_error":true`)
			}
		}, func(m *Message) {
			w.with(`{"type":"text","text":`, m.Text)
		}, func(c *ToolCall) {
			w.with(`{"type":"tool_use","id":`, c.ID)
			w.with(`,"name":`, c.Name)
			w.raw(`,"input":`)
			w.object(c.arguments(), "arguments of a tool call")
		})
	}
	w.raw("]}")
}

func (messages) decode(v strictjson.Value) (Response, *Error) {
	var f fields
	if f.text(v, "type") == "error" {
		return Response{}, spoken(v)
	}
	if f.text(v, "type") != "message" || f.text(v, "role") != "assistant" || v.Get("content").Kind() != '[' {
		return Response{}, failure(CodeMalformed)
	}
	a := messagesAnswer{r: Response{ID: f.text(v, "id"), Model: f.text(v, "model"), Stop: messagesStop(f.text(v, "stop_reason"))}}
	for c := range v.Get("content").Elements() {
		if !a.open(&f, c) {
			return Response{}, failure(CodeMalformed)
		}
	}
	if f.bad {
		return Response{}, failure(CodeMalformed)
	}
	a.r.Usage = messagesUsage(v.Get("usage"), Usage{})
	return a.response(), nil
}

// A messagesAnswer collects the blocks of an answer.
type messagesAnswer struct {
	r         Response
	text, why strings.Builder
	calls     []*partialCall
	kind      string // of the block that was opened last
}

// open takes in a block, whole or as it begins. What this package did not ask for
// is not left out in silence: the answer is refused.
func (a *messagesAnswer) open(f *fields, v strictjson.Value) bool {
	a.kind = f.text(v, "type")
	switch a.kind {
	case "text":
		a.text.WriteString(f.text(v, "text"))
	case "thinking":
		a.why.WriteString(f.text(v, "thinking"))
	case "redacted_thinking":
	case "tool_use":
		c := &partialCall{ToolCall: ToolCall{ID: f.text(v, "id"), Name: f.text(v, "name")}}
		c.args.Write(v.Get("input").Raw())
		a.calls = append(a.calls, c)
	default:
		return false
	}
	return len(a.calls) <= maxCalls
}

func (a *messagesAnswer) response() Response {
	a.r.Text, a.r.Reasoning = a.text.String(), a.why.String()
	for _, c := range a.calls {
		a.r.Calls = append(a.r.Calls, c.whole())
	}
	return a.r
}

func messagesStop(reason string) Stop {
	switch reason {
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

// messagesUsage reads a usage object over an earlier one: its counts are
// cumulative, and the later object may have fewer. What was read from the cache or
// written to it is not part of input_tokens.
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

func (messages) stream(emit func(Delta) error) assembler { return &messagesStream{emit: emit} }

// A messagesStream puts together the events of one answer: one start, blocks one
// after the other, each opened, continued and closed, the end.
type messagesStream struct {
	emit   func(Delta) error
	a      messagesAnswer
	begun  bool
	inside bool // a block
	blocks int64
	ended  bool // message_delta with a reason was seen
}

func (s *messagesStream) event(name string, data []byte) (done bool, err *Error) {
	v, err := parse(data)
	if err != nil {
		return false, err
	}
	var f fields
	kind := f.text(v, "type")
	if name != "" && name != kind {
		return false, failure(CodeMalformed)
	}
	switch kind {
	case "error":
		return false, spoken(v)
	case "ping":
	case "message_start":
		err = s.start(&f, v)
	case "content_block_start":
		err = s.open(&f, v)
	case "content_block_delta":
		err = s.more(&f, v)
	case "content_block_stop":
		if !s.inside || f.count(v, "index") != s.blocks-1 {
			err = failure(CodeMalformed)
		}
		s.inside = false
	case "message_delta":
		err = s.end(&f, v)
	case "message_stop":
		done = true
		if !s.begun || s.inside || !s.ended {
			err = failure(CodeMalformed)
		}
	}
	// Of any other name is what the provider may add at any time.
	if err == nil && f.bad {
		err = failure(CodeMalformed)
	}
	return done, err
}

func (s *messagesStream) start(f *fields, v strictjson.Value) *Error {
	m := f.object(v, "message")
	if s.begun || f.text(m, "role") != "assistant" || m.Get("content").Len() > 0 {
		return failure(CodeMalformed)
	}
	s.begun = true
	s.a.r.ID, s.a.r.Model = f.text(m, "id"), f.text(m, "model")
	s.a.r.Usage = messagesUsage(m.Get("usage"), Usage{})
	return nil
}

func (s *messagesStream) open(f *fields, v strictjson.Value) *Error {
	if !s.begun || s.inside || s.ended || f.count(v, "index") != s.blocks {
		return failure(CodeMalformed)
	}
	s.inside = true
	s.blocks++
	block := f.object(v, "content_block")
	if !s.a.open(f, block) {
		return failure(CodeMalformed)
	}
	switch s.a.kind {
	case "tool_use":
		c := s.a.calls[len(s.a.calls)-1]
		c.args.Reset() // an empty object stands here for what the pieces will say
		return send(s.emit, Delta{Kind: DeltaCall, Index: len(s.a.calls) - 1, Call: ToolCall{ID: c.ID, Name: c.Name}})
	case "text":
		return send(s.emit, Delta{Kind: DeltaText, Text: f.text(block, "text")})
	case "thinking":
		return send(s.emit, Delta{Kind: DeltaReasoning, Text: f.text(block, "thinking")})
	}
	return nil
}

func (s *messagesStream) more(f *fields, v strictjson.Value) *Error {
	d := f.object(v, "delta")
	if !s.inside || f.count(v, "index") != s.blocks-1 {
		return failure(CodeMalformed)
	}
	switch kind := f.text(d, "type"); {
	case kind == "text_delta" && s.a.kind == "text":
		text := f.text(d, "text")
		s.a.text.WriteString(text)
		return send(s.emit, Delta{Kind: DeltaText, Text: text})
	case kind == "thinking_delta" && s.a.kind == "thinking":
		text := f.text(d, "thinking")
		s.a.why.WriteString(text)
		return send(s.emit, Delta{Kind: DeltaReasoning, Text: text})
	case kind == "input_json_delta" && s.a.kind == "tool_use":
		text := f.text(d, "partial_json")
		s.a.calls[len(s.a.calls)-1].args.WriteString(text)
		return send(s.emit, Delta{Kind: DeltaArguments, Index: len(s.a.calls) - 1, Text: text})
	case kind == "signature_delta" && s.a.kind == "thinking", kind == "citations_delta" && s.a.kind == "text":
		return nil
	}
	return failure(CodeMalformed)
}

func (s *messagesStream) end(f *fields, v strictjson.Value) *Error {
	if !s.begun || s.inside {
		return failure(CodeMalformed)
	}
	if reason := f.text(f.object(v, "delta"), "stop_reason"); reason != "" {
		if s.ended && s.a.r.Stop != messagesStop(reason) {
			return failure(CodeMalformed)
		}
		s.ended, s.a.r.Stop = true, messagesStop(reason)
	}
	s.a.r.Usage = messagesUsage(v.Get("usage"), s.a.r.Usage)
	return nil
}

func (s *messagesStream) response() (Response, *Error) { return s.a.response(), nil }
