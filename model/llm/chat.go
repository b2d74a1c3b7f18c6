// SPDX-License-Identifier: Apache-2.0

package llm

import (
	"net/http"
	"strings"

	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// chat is FormatChat: OpenAI's chat completions, as many servers speak them.
type chat struct{}

func (chat) path() string { return "/chat/completions" }

func (chat) bounds() []string { return []string{"max_tokens", "max_completion_tokens"} }

func (chat) sign(h http.Header, key string) {
	if key != "" {
		h.Set("Authorization", "Bearer "+key)
	}
}

var chatRoles = [...]string{User: "user", Assistant: "assistant", ToolResult: "tool"}

func (chat) encode(w *body, o *Options, r *Request) {
	w.with(`{"model":`, o.Model)
	w.raw(`,"messages":`)
	first := 0
	if r.System != "" {
		first = 1
	}
	w.list(first+len(r.Messages), func(i int) {
		if i < first {
			w.with(`{"role":"system","content":`, r.System)
			w.raw("}")
			return
		}
		chatMessage(w, &r.Messages[i-first])
	})
	if len(r.Tools) > 0 {
		w.raw(`,"tools":`)
		w.list(len(r.Tools), func(i int) {
			w.tool(`{"type":"function","function":{`, &r.Tools[i], `,"parameters":`)
			w.raw("}}")
		})
		openAIChoice(w, r.Choice)
	}
	if o.MaxCompletionTokens {
		w.raw(`,"max_completion_tokens":`)
	} else {
		w.raw(`,"max_tokens":`)
	}
	w.number(r.maxTokens())
	w.sampling(o, r)
	if r.Seed != nil {
		w.raw(`,"seed":`)
		w.number(*r.Seed)
	}
	if r.Stream != nil {
		w.raw(`,"stream":true,"stream_options":{"include_usage":true}`)
	}
	w.raw("}")
}

func openAIChoice(w *body, c Choice) {
	switch c {
	case ChooseNone:
		w.raw(`,"tool_choice":"none"`)
	case ChooseAny:
		w.raw(`,"tool_choice":"required"`)
	}
}

func chatMessage(w *body, m *Message) {
	w.raw(`{"role":"` + chatRoles[m.Role] + `","content":`)
	if m.Text == "" && len(m.Calls) > 0 {
		w.raw("null")
	} else {
		w.text(m.Text)
	}
	if len(m.Calls) > 0 {
		w.raw(`,"tool_calls":`)
		w.list(len(m.Calls), func(i int) {
			c := &m.Calls[i]
			w.with(`{"id":`, c.ID)
			w.with(`,"type":"function","function":{"name":`, c.Name)
			w.with(`,"arguments":`, string(c.arguments()))
			w.raw("}}")
		})
	}
	if m.Role == ToolResult {
		w.with(`,"tool_call_id":`, m.CallID)
	}
	w.raw("}")
}

func (chat) decode(v strictjson.Value) (Response, *Error) {
	if v.Get("error").Kind() == '{' {
		return Response{}, spoken(v)
	}
	var f fields
	r := chatHead(&f, v)
	var choice strictjson.Value
	for c := range f.array(v, "choices").Elements() {
		if choice.Exists() || c.Kind() != '{' {
			return Response{}, failure(CodeMalformed) // one was asked for
		}
		choice = c
	}
	m := f.object(choice, "message")
	if !m.Exists() || f.text(m, "role") != "assistant" {
		return Response{}, failure(CodeMalformed)
	}
	r.Text, r.Refusal = f.text(m, "content"), f.text(m, "refusal")
	r.Reasoning = chatReasoning(&f, m)
	r.Stop = chatStop(f.text(choice, "finish_reason"))
	for c := range f.array(m, "tool_calls").Elements() {
		r.Calls = append(r.Calls, chatCall(&f, c))
	}
	if old := f.object(m, "function_call"); old.Exists() {
		r.Calls = append(r.Calls, ToolCall{Name: f.text(old, "name"), Arguments: []byte(f.text(old, "arguments")), Problem: ProblemKind})
	}
	if f.bad {
		return Response{}, failure(CodeMalformed)
	}
	r.Usage = chatUsage(v.Get("usage"))
	return r, nil
}

// spoken is the error of an answer that has a status of success.
func spoken(v strictjson.Value) *Error {
	if c := explained(v); c != "" {
		return failure(c)
	}
	return failure(CodeServer)
}

func chatHead(f *fields, v strictjson.Value) Response {
	return Response{ID: f.text(v, "id"), Model: f.text(v, "model"), Fingerprint: f.text(v, "system_fingerprint")}
}

// chatReasoning reads what servers other than OpenAI's show of it, under two names.
func chatReasoning(f *fields, m strictjson.Value) string {
	if s := f.text(m, "reasoning_content"); s != "" {
		return s
	}
	if m.Get("reasoning").Kind() != '"' {
		return "" // not OpenAI's member, and of several shapes
	}
	return f.text(m, "reasoning")
}

func chatCall(f *fields, v strictjson.Value) ToolCall {
	fn := f.object(v, "function")
	c := ToolCall{ID: f.text(v, "id"), Name: f.text(fn, "name"), Arguments: []byte(f.text(fn, "arguments"))}
	if kind := f.text(v, "type"); kind != "function" && kind != "" {
		c.Problem = ProblemKind
	}
	return c
}

func chatStop(reason string) Stop {
	switch reason {
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
	in, out := f.object(v, "prompt_tokens_details"), f.object(v, "completion_tokens_details")
	return f.usage(Usage{
		Input:     f.count(v, "prompt_tokens"),
		Cached:    f.count(in, "cached_tokens"),
		Output:    f.count(v, "completion_tokens"),
		Reasoning: f.count(out, "reasoning_tokens"),
	})
}

func (chat) stream(emit func(Delta) error) assembler { return &chatStream{emit: emit} }

// A chatStream puts together the chunks of one answer.
type chatStream struct {
	emit  func(Delta) error
	r     Response
	text  strings.Builder
	why   strings.Builder // reasoning
	no    strings.Builder // refusal
	calls []*partialCall
}

// A partialCall is a tool call whose arguments are still coming in.
type partialCall struct {
	ToolCall
	args strings.Builder
}

func (p *partialCall) whole() ToolCall {
	p.Arguments = []byte(p.args.String())
	return p.ToolCall
}

func (s *chatStream) event(_ string, data []byte) (done bool, err *Error) {
	if string(data) == "[DONE]" {
		return true, nil
	}
	v, err := parse(data)
	if err != nil {
		return false, err
	}
	if v.Get("error").Kind() == '{' {
		return false, spoken(v)
	}
	var f fields
	head := chatHead(&f, v)
	if !sameText(&s.r.ID, head.ID) || !sameText(&s.r.Model, head.Model) || !sameText(&s.r.Fingerprint, head.Fingerprint) {
		return false, failure(CodeMalformed) // two answers in one stream
	}
	if u := v.Get("usage"); u.Kind() == '{' {
		s.r.Usage = chatUsage(u)
	}
	for c := range f.array(v, "choices").Elements() {
		if f.count(c, "index") != 0 {
			return false, failure(CodeMalformed)
		}
		if err := s.choice(&f, c); err != nil {
			return false, err
		}
	}
	if f.bad {
		return false, failure(CodeMalformed)
	}
	return false, nil
}

// sameText keeps the first text that is not empty, and reports whether a later one
// is the same.
func sameText(have *string, got string) bool {
	if *have == "" {
		*have = got
	}
	return got == "" || got == *have
}

func (s *chatStream) choice(f *fields, c strictjson.Value) *Error {
	if reason := f.text(c, "finish_reason"); reason != "" {
		if s.r.Stop != "" && s.r.Stop != chatStop(reason) {
			return failure(CodeMalformed)
		}
		s.r.Stop = chatStop(reason)
	}
	d := f.object(c, "delta")
	for _, p := range []struct {
		to   *strings.Builder
		kind DeltaKind
		text string
	}{
		{&s.why, DeltaReasoning, chatReasoning(f, d)},
		{&s.text, DeltaText, f.text(d, "content")},
		{&s.no, DeltaRefusal, f.text(d, "refusal")},
	} {
		p.to.WriteString(p.text)
		if err := send(s.emit, Delta{Kind: p.kind, Text: p.text}); err != nil {
			return err
		}
	}
	for t := range f.array(d, "tool_calls").Elements() {
		if err := s.call(f, t); err != nil {
			return err
		}
	}
	if d.Get("function_call").Kind() == '{' {
		return failure(CodeMalformed) // nobody has asked in the old way
	}
	return nil
}

// call takes in a piece of a tool call. The pieces of one have one index; a server
// that gives none sends each call whole.
func (s *chatStream) call(f *fields, v strictjson.Value) *Error {
	piece := chatCall(f, v)
	i := len(s.calls)
	if v.Get("index").Exists() {
		i = int(f.count(v, "index"))
	}
	switch {
	case i > len(s.calls) || i >= maxCalls:
		return failure(CodeMalformed)
	case i == len(s.calls):
		s.calls = append(s.calls, &partialCall{ToolCall: ToolCall{ID: piece.ID, Name: piece.Name, Problem: piece.Problem}})
		if err := send(s.emit, Delta{Kind: DeltaCall, Index: i, Call: ToolCall{ID: piece.ID, Name: piece.Name}}); err != nil {
			return err
		}
	case piece.ID != "" && piece.ID != s.calls[i].ID, piece.Name != "" && piece.Name != s.calls[i].Name:
		return failure(CodeMalformed) // one call becomes another
	}
	s.calls[i].args.Write(piece.Arguments)
	return send(s.emit, Delta{Kind: DeltaArguments, Index: i, Text: string(piece.Arguments)})
}

func (s *chatStream) response() (Response, *Error) {
	s.r.Text, s.r.Reasoning, s.r.Refusal = s.text.String(), s.why.String(), s.no.String()
	for _, c := range s.calls {
		s.r.Calls = append(s.r.Calls, c.whole())
	}
	return s.r, nil
}

// send hands a piece over, unless it is empty.
func send(emit func(Delta) error, d Delta) *Error {
	if d.Kind != DeltaCall && d.Text == "" {
		return nil
	}
	if err := emit(d); err != nil {
		return &Error{Code: CodeAborted, err: err}
	}
	return nil
}
