// SPDX-License-Identifier: Apache-2.0

package llm

import (
	"net/http"
	"strings"

	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// responses is FormatResponses: OpenAI's responses, asked for without any state on
// the provider's side. It has no seed and no system fingerprint.
type responses struct{}

func (responses) path() string { return "/responses" }

func (responses) bounds() []string { return []string{"max_output_tokens"} }

func (responses) sign(h http.Header, key string) { chat{}.sign(h, key) }

func (responses) encode(w *body, o *Options, r *Request) {
	w.with(`{"model":`, o.Model)
	if r.System != "" {
		w.with(`,"instructions":`, r.System)
	}
	w.raw(`,"input":[`)
	for i := range r.Messages {
		responsesItems(w, &r.Messages[i])
	}
	w.raw("]")
	if len(r.Tools) > 0 {
		w.raw(`,"tools":`)
		w.list(len(r.Tools), func(i int) {
			w.tool(`{"type":"function",`, &r.Tools[i], `,"parameters":`)
			w.raw(`,"strict":false}`) // true is the default here, and refuses many a schema
		})
		openAIChoice(w, r.Choice)
	}
	w.raw(`,"max_output_tokens":`)
	w.number(r.maxTokens())
	w.sampling(o, r)
	w.raw(`,"store":false`)
	if r.Stream != nil {
		w.raw(`,"stream":true`)
	}
	w.raw("}")
}

func responsesItems(w *body, m *Message) {
	w.items(m, func(m *Message) {
		w.with(`{"type":"function_call_output","call_id":`, m.CallID)
		w.with(`,"output":`, m.Text)
	}, func(m *Message) {
		w.with(`{"role":"`+chatRoles[m.Role]+`","content":`, m.Text)
	}, func(c *ToolCall) {
		w.with(`{"type":"function_call","call_id":`, c.ID)
		w.with(`,"name":`, c.Name)
		w.with(`,"arguments":`, string(c.arguments()))
	})
}

func (responses) decode(v strictjson.Value) (Response, *Error) {
	if v.Get("error").Kind() == '{' {
		return Response{}, spoken(v)
	}
	var f fields
	if f.text(v, "object") != "response" || v.Get("output").Kind() != '[' {
		return Response{}, failure(CodeMalformed)
	}
	r := Response{ID: f.text(v, "id"), Model: f.text(v, "model")}
	r.Stop = responsesStop(f.text(v, "status"), f.text(f.object(v, "incomplete_details"), "reason"))
	var texts outputTexts
	for item := range v.Get("output").Elements() {
		switch f.text(item, "type") {
		case "message":
			texts.message(&f, item)
		case "reasoning":
			texts.reasoning(&f, item)
		case "function_call":
			r.Calls = append(r.Calls, ToolCall{
				ID: f.text(item, "call_id"), Name: f.text(item, "name"), Arguments: []byte(f.text(item, "arguments")),
			})
		default:
			f.bad = true // what nobody has asked for is not left out in silence
		}
	}
	if f.bad {
		return Response{}, failure(CodeMalformed)
	}
	r.Text, r.Refusal, r.Reasoning = texts.text.String(), texts.refusal.String(), texts.why.String()
	r.Usage = responsesUsage(v.Get("usage"))
	return r, nil
}

type outputTexts struct{ text, refusal, why strings.Builder }

func (t *outputTexts) message(f *fields, item strictjson.Value) {
	if f.text(item, "role") != "assistant" {
		f.bad = true
	}
	for part := range f.array(item, "content").Elements() {
		switch f.text(part, "type") {
		case "output_text":
			t.text.WriteString(f.text(part, "text"))
		case "refusal":
			t.refusal.WriteString(f.text(part, "refusal"))
		default:
			f.bad = true
		}
	}
}

func (t *outputTexts) reasoning(f *fields, item strictjson.Value) {
	for _, name := range []string{"summary", "content"} {
		for part := range f.array(item, name).Elements() {
			t.why.WriteString(f.text(part, "text"))
		}
	}
}

func responsesStop(status, why string) Stop {
	switch {
	case status == "completed":
		return StopEnd
	case status == "incomplete" && why == "max_output_tokens":
		return StopLength
	case status == "incomplete" && why == "content_filter":
		return StopFilter
	}
	return StopOther
}

func responsesUsage(v strictjson.Value) Usage {
	if v.Kind() != '{' {
		return Usage{}
	}
	var f fields
	return f.usage(Usage{
		Input:     f.count(v, "input_tokens"),
		Cached:    f.count(f.object(v, "input_tokens_details"), "cached_tokens"),
		Output:    f.count(v, "output_tokens"),
		Reasoning: f.count(f.object(v, "output_tokens_details"), "reasoning_tokens"),
	})
}

func (responses) stream(emit func(Delta) error) assembler { return &responsesStream{emit: emit} }

// A responsesStream hands on the pieces; the answer itself is what the last event
// holds, and must say the same.
type responsesStream struct {
	emit          func(Delta) error
	text, refusal strings.Builder
	calls         map[int64]int // output_index → index of the call
	r             Response
}

func (s *responsesStream) event(name string, data []byte) (done bool, err *Error) {
	v, err := parse(data)
	if err != nil {
		return false, err
	}
	var f fields
	kind := f.text(v, "type")
	if name != "" && name != kind {
		return false, failure(CodeMalformed)
	}
	piece := f.text(v, "delta")
	switch kind {
	case "error":
		if c := said[f.text(v, "code")]; c != "" { // not inside an error object here
			return false, failure(c)
		}
		return false, spoken(v)
	case "response.output_text.delta":
		s.text.WriteString(piece)
		err = send(s.emit, Delta{Kind: DeltaText, Text: piece})
	case "response.refusal.delta":
		s.refusal.WriteString(piece)
		err = send(s.emit, Delta{Kind: DeltaRefusal, Text: piece})
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		err = send(s.emit, Delta{Kind: DeltaReasoning, Text: piece})
	case "response.output_item.added":
		err = s.added(&f, v)
	case "response.function_call_arguments.delta":
		i, known := s.calls[f.count(v, "output_index")]
		if !known {
			return false, failure(CodeMalformed)
		}
		err = send(s.emit, Delta{Kind: DeltaArguments, Index: i, Text: piece})
	case "response.completed", "response.incomplete", "response.failed":
		return true, s.last(f.object(v, "response"))
	}
	if err == nil && f.bad {
		err = failure(CodeMalformed)
	}
	return false, err
}

func (s *responsesStream) added(f *fields, v strictjson.Value) *Error {
	item := f.object(v, "item")
	if f.text(item, "type") != "function_call" {
		return nil
	}
	if s.calls == nil {
		s.calls = map[int64]int{}
	}
	i := len(s.calls)
	s.calls[f.count(v, "output_index")] = i
	if len(s.calls) != i+1 || i >= maxCalls {
		return failure(CodeMalformed)
	}
	return send(s.emit, Delta{Kind: DeltaCall, Index: i, Call: ToolCall{ID: f.text(item, "call_id"), Name: f.text(item, "name")}})
}

func (s *responsesStream) last(v strictjson.Value) (err *Error) {
	if s.r, err = (responses{}).decode(v); err != nil {
		return err
	}
	if s.r.Text != s.text.String() || s.r.Refusal != s.refusal.String() {
		return failure(CodeMalformed) // whoever was shown the pieces was shown another answer
	}
	return nil
}

func (s *responsesStream) response() (Response, *Error) { return s.r, nil }
