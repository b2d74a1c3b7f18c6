// SPDX-License-Identifier: Apache-2.0

package format

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/pellucid-mcp/pellucid/text/eventstream"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// chat is OpenAI's chat completions, as many servers speak them.
type chat struct{ sse }

func (chat) Name() Name               { return Chat }
func (chat) Path(string, bool) string { return "/chat/completions" }

func (chat) Read(root strictjson.Value) *Answer {
	a := &Answer{}
	var f fields
	f.strays(root, "choices", "error")
	if root.Get("error").Kind() == '{' {
		a.Parts = append(a.Parts, Part{Kind: PartError, Value: root})
	}
	a.ID, a.Model, a.Fingerprint = f.text(root, "id"), f.text(root, "model"), f.text(root, "system_fingerprint")
	a.Usage = chatUsage(root.Get("usage"))
	a.Fetched = chatFetched(root)
	choices := f.array(root, "choices", OddCall)
	if choices.Len() != 1 { // one was asked for
		f.odd |= OddCall
	}
	for c := range choices.Elements() {
		f.strays(c, "message")
		a.Stop = chatStop(f.text(c, "finish_reason"))
		f.chatMessage(a, f.object(c, "message", OddCall))
		break
	}
	a.Odd = f.odd
	return a
}

// chatMessage reads the message of a body.
func (f *fields) chatMessage(a *Answer, m strictjson.Value) {
	f.strays(m, "content", "tool_calls", "function_call")
	if f.text(m, "role") != "assistant" {
		f.odd |= OddShape
	}
	a.Fetched = a.Fetched || says(m.Get("annotations"))
	a.say(PartReasoning, f.chatReasoning(m))
	f.chatContent(m, a.say, func(c Call) { a.call(f, c) })
	a.say(PartRefusal, f.text(m, "refusal"))
	calls := f.array(m, "tool_calls", OddCall)
	for t := range calls.Elements() {
		a.call(f, f.chatCall(t))
	}
	if old := f.object(m, "function_call", OddCall); old.Exists() {
		if calls.Len() > 0 {
			f.odd |= OddCall
		}
		a.call(f, f.chatFunction(old, Call{Kind: CallLegacy}))
	}
}

// chatContent reads a text, or the parts of which some servers make it.
func (f *fields) chatContent(m strictjson.Value, say func(PartKind, string), call func(Call)) {
	content := m.Get("content")
	if content.Kind() != '[' {
		say(PartText, f.text(m, "content"))
		return
	}
	for b := range content.Elements() {
		f.strays(b, "type", "text", "name", "input")
		switch kind := f.text(b, "type"); kind {
		case "text", "output_text":
			say(PartText, f.text(b, "text"))
		case "thinking": // Mistral's is a list of texts, Anthropic's a text
			for t := range b.Get("thinking").Elements() {
				say(PartReasoning, f.text(t, "text"))
			}
			say(PartReasoning, b.Get("thinking").Text())
		case "redacted_thinking", "reference", "image_url", "document_url":
		case "tool_use":
			call(Call{ID: f.text(b, "id"), Name: f.text(b, "name"), Arguments: append([]byte(nil), b.Get("input").Raw()...)})
		default:
			f.odd |= OddCall
		}
	}
}

// say adds a text of a body, which is a paragraph.
func (a *Answer) say(kind PartKind, text string) {
	if text != "" {
		a.Parts = append(a.Parts, Part{Kind: kind, Text: text, Paragraph: true})
	}
}

// call adds a call of a body.
func (a *Answer) call(f *fields, c Call) {
	n := 0
	for i := range a.Parts {
		if a.Parts[i].Kind == PartCall {
			n++
		}
	}
	if n == MaxCalls {
		f.odd |= OddCall
		return
	}
	if len(c.Arguments) == 0 {
		c.Arguments = []byte("{}") // as several servers spell a call without any
	}
	a.Parts = append(a.Parts, Part{Kind: PartCall, Index: n, Call: c})
}

// chatReasoning reads what servers other than OpenAI's show of it, under two names.
func (f *fields) chatReasoning(m strictjson.Value) string {
	if s := f.text(m, "reasoning_content"); s != "" {
		return s
	}
	if m.Get("reasoning").Kind() != '"' {
		return "" // not OpenAI's member, and of several shapes
	}
	return f.text(m, "reasoning")
}

// chatCall reads a call, or a piece of one.
func (f *fields) chatCall(t strictjson.Value) Call {
	f.strays(t, "function", "index")
	c := Call{ID: f.text(t, "id")}
	if kind := f.text(t, "type"); kind != "function" && kind != "" {
		c.Kind = CallOther
	}
	return f.chatFunction(f.object(t, "function", OddCall), c)
}

func (f *fields) chatFunction(fn strictjson.Value, c Call) Call {
	f.strays(fn, "name", "arguments")
	c.Name, c.Arguments = f.text(fn, "name"), []byte(f.text(fn, "arguments"))
	return c
}

// chatFetched reports whether an answer names what was found in a search.
func chatFetched(root strictjson.Value) bool {
	return says(root.Get("citations")) || says(root.Get("search_results"))
}

func chatStop(reason string) Stop {
	switch reason {
	case "":
		return ""
	case "stop":
		return StopEnd
	case "length":
		return StopLength
	case "tool_calls", "function_call":
		return StopCalls
	case "content_filter":
		return StopFilter
	}
	return StopOther
}

func chatUsage(v strictjson.Value) Usage {
	if v.Kind() != '{' {
		return Usage{}
	}
	var f fields
	in, out := f.object(v, "prompt_tokens_details", OddShape), f.object(v, "completion_tokens_details", OddShape)
	return f.usage(Usage{
		Input:     f.count(v, "prompt_tokens"),
		Cached:    f.count(in, "cached_tokens"),
		Output:    f.count(v, "completion_tokens"),
		Reasoning: f.count(out, "reasoning_tokens"),
	})
}

func (chat) NewStream() Stream { return &chatStream{} }

// chatStream reads the chunks of one answer.
type chatStream struct {
	events
	head   strictjson.Value // the first chunk
	passed int              // calls that a client has got
}

func (s *chatStream) Event(e eventstream.Event) ([]Part, Odd) {
	if s.begin(e) {
		if string(e.Data) == "[DONE]" {
			s.add(Part{Kind: PartEnd})
		} else {
			s.chunk(e.Data)
		}
	}
	return s.parts, s.odd
}

func (s *chatStream) chunk(data []byte) {
	v := s.data(data)
	s.strays(v, "choices", "error")
	choices := s.array(v, "choices", OddCall)
	if v.Get("error").Kind() == '{' {
		s.add(Part{Kind: PartError, Value: v})
		if says(choices) {
			s.odd |= OddCall
		}
		return
	}
	if !s.head.Exists() && s.odd == 0 {
		s.head = Parse(append([]byte(nil), data...))
	}
	s.once(&s.answer.ID, s.text(v, "id"))
	s.once(&s.answer.Model, s.text(v, "model"))
	s.once(&s.answer.Fingerprint, s.text(v, "system_fingerprint"))
	if u := v.Get("usage"); u.Kind() == '{' {
		s.answer.Usage = chatUsage(u)
	}
	s.answer.Fetched = s.answer.Fetched || chatFetched(v)
	for c := range choices.Elements() {
		s.choice(c)
	}
}

func (s *chatStream) choice(c strictjson.Value) {
	s.strays(c, "delta", "message")
	if i := c.Get("index"); says(i) && s.count(c, "index") != 0 || c.Get("message").Exists() {
		s.odd |= OddCall // one was asked for
	}
	if reason := c.Get("finish_reason"); says(reason) {
		s.stop(s.text(c, "finish_reason"), chatStop)
		s.add(Part{Kind: PartOther})
	}
	d := s.object(c, "delta", OddCall)
	s.strays(d, "content", "tool_calls", "function_call")
	s.answer.Fetched = s.answer.Fetched || says(d.Get("annotations"))
	s.say(PartReasoning, s.chatReasoning(d))
	s.chatContent(d, s.say, func(c Call) { s.part(len(s.calls), c) })
	s.say(PartRefusal, s.text(d, "refusal"))
	for t := range s.array(d, "tool_calls", OddCall).Elements() {
		s.piece(t)
	}
	if old := s.object(d, "function_call", OddCall); says(old) {
		s.function(old)
	}
	if len(s.parts) == 0 { // a member that is not read, such as audio
		for name, v := range d.Members() {
			if name.Text() != "role" && says(v) {
				s.add(Part{Kind: PartOther})
				break
			}
		}
	}
}

// piece takes in a piece of a call. The pieces of one have one index; a server that gives
// none sends each call whole.
func (s *chatStream) piece(t strictjson.Value) {
	p := s.chatCall(t)
	i := len(s.calls)
	if at := t.Get("index"); at.Exists() && at.Kind() != 'n' {
		n, whole := at.Int64()
		if !whole || n < 0 || n > int64(len(s.calls)) {
			s.odd |= OddCall
			return
		}
		i = int(n)
	}
	s.part(i, p)
}

// function takes in a piece of the one call that an answer of before tools may have.
func (s *chatStream) function(old strictjson.Value) {
	s.part(0, s.chatFunction(old, Call{Kind: CallLegacy}))
}

// part takes in a piece of call i.
func (s *chatStream) part(i int, p Call) {
	arguments := string(p.Arguments)
	p.Arguments = nil
	if i == len(s.calls) {
		if i > 0 && s.calls[0].Kind == CallLegacy || s.call(p) == nil {
			s.odd |= OddCall
			return
		}
	}
	c := s.calls[i]
	if p.Name != "" && p.Name != c.Name || (p.Kind == CallLegacy) != (c.Kind == CallLegacy) || p.Kind == CallOther && c.Kind != CallOther {
		s.odd |= OddCall // a call becomes another
		return
	}
	if p.ID != "" && p.ID != c.ID {
		s.odd |= OddShape
	}
	s.argue(i, arguments)
	s.add(Part{Kind: PartOther})
}

func (s *chatStream) Answer() *Answer { return s.whole() }

func (s *chatStream) Passed() { s.passed = len(s.calls) }

// AppendTail ends the stream as another chunk of the same answer.
func (s *chatStream) AppendTail(dst []byte, text string) []byte {
	w := &writer{dst}
	w.chatChunk(s.head, func() { w.with(`{"content":`, "\n\n"+text); w.raw("}") }, "")
	finish := `"stop"`
	switch {
	case s.passed > 0 && s.calls[0].Kind == CallLegacy:
		finish = `"function_call"`
	case s.passed > 0:
		finish = `"tool_calls"`
	}
	w.chatChunk(s.head, func() { w.raw("{}") }, finish)
	w.done()
	return w.b
}

// chatChunk writes a chunk of the answer that head is a part of.
func (w *writer) chatChunk(head strictjson.Value, delta func(), finish string) {
	w.event("", func() {
		w.raw(`{"id":`)
		w.or(head.Get("id"), `"chatcmpl-pellucid"`)
		w.raw(`,"object":"chat.completion.chunk","created":`)
		w.or(head.Get("created"), "0")
		w.raw(`,"model":`)
		w.or(head.Get("model"), `""`)
		if v := head.Get("system_fingerprint"); v.Exists() {
			w.raw(`,"system_fingerprint":`)
			w.value(v.Raw())
		}
		w.raw(`,"choices":[{"index":0,"delta":`)
		delta()
		w.raw(`,"logprobs":null,"finish_reason":` + cmp.Or(finish, "null") + `}]}`)
	})
}

func (chat) AppendText(dst []byte, id, model, text string) []byte {
	w := &writer{dst}
	w.with(`{"id":"chatcmpl-pellucid-`+id+`","object":"chat.completion","created":0,"model":`, model)
	w.with(`,"choices":[{"index":0,"message":{"role":"assistant","content":`, text)
	w.raw(`,"refusal":null},"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}}`)
	return w.b
}

func (chat) AppendEvents(dst []byte, root strictjson.Value) []byte {
	w := &writer{dst}
	finish := `"stop"`
	for c := range root.Get("choices").Elements() {
		m := c.Get("message")
		w.chatChunk(root, func() {
			w.raw(`{"role":"assistant","content":`)
			w.or(m.Get("content"), "null")
			if v := m.Get("refusal"); says(v) {
				w.raw(`,"refusal":`)
				w.value(v.Raw())
			}
			if calls := m.Get("tool_calls"); says(calls) {
				w.raw(`,"tool_calls":[`)
				w.chatCalls(calls)
				w.raw("]")
			}
			if old := m.Get("function_call"); says(old) {
				w.raw(`,"function_call":`)
				w.value(old.Raw())
			}
			w.raw("}")
		}, "")
		if v := c.Get("finish_reason"); says(v) {
			finish = string(v.Raw())
		}
		break
	}
	w.chatChunk(root, func() { w.raw("{}") }, finish)
	w.done()
	return w.b
}

func (w *writer) chatCalls(calls strictjson.Value) {
	i := 0
	for t := range calls.Elements() {
		if i > 0 {
			w.raw(",")
		}
		w.raw(`{"index":` + strconv.Itoa(i) + `,"id":`)
		w.or(t.Get("id"), `""`)
		w.raw(`,"type":"function","function":`)
		w.or(t.Get("function"), "{}")
		w.raw("}")
		i++
	}
}

func (chat) AppendError(dst []byte, kind, text string) []byte {
	w := &writer{dst}
	w.with(`{"error":{"message":`, text)
	w.with(`,"type":`, kind)
	w.with(`,"param":null,"code":`, "pellucid_"+strings.TrimSuffix(kind, "_error"))
	w.raw("}}")
	return w.b
}
