// SPDX-License-Identifier: Apache-2.0

package llm_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pellucid-mcp/pellucid/model/format"
	"github.com/pellucid-mcp/pellucid/model/llm"
	"github.com/pellucid-mcp/pellucid/model/llm/llmtest"
)

var weather = llm.Tool{Name: "weather", Description: "Says what the weather is.", Schema: []byte(`{"type":"object","properties":{"city":{"type":"string"}}}`)}

// TestComplete asks every format for every kind of answer, whole and in pieces.
func TestComplete(t *testing.T) {
	usage := format.Usage{Known: true, Input: 120, Cached: 100, Output: 30}
	call := llm.ToolCall{ID: "call_1", Name: "weather", Arguments: []byte(`{"city":"K\u00f6ln"}`)}
	broken := func(args string) llm.ToolCall {
		return llm.ToolCall{ID: "call_1", Name: "weather", Arguments: []byte(args)}
	}
	none := format.Stop("")
	anthropic := []format.Name{format.Messages}
	google := []format.Name{format.Gemini, format.GeminiArray}
	others := append([]format.Name{format.Chat, format.Responses}, anthropic...)
	for _, tt := range []struct {
		name  string
		reply llmtest.Reply
		want  llm.Response
		only  []format.Name // nil = all
	}{
		{"text", llmtest.Reply{Text: "Bonjour, d\u00e9j\u00e0 vu."}, llm.Response{Text: "Bonjour, d\u00e9j\u00e0 vu.", Stop: format.StopEnd}, nil},
		{"nothing", llmtest.Reply{}, llm.Response{Stop: format.StopEnd}, nil},
		{"length", llmtest.Reply{Text: "O", Stop: format.StopLength}, llm.Response{Text: "O", Stop: format.StopLength}, nil},
		{"filter", llmtest.Reply{Stop: format.StopFilter}, llm.Response{Stop: format.StopFilter}, formats[:2]},
		{"pause", llmtest.Reply{Stop: format.StopPause}, llm.Response{Stop: format.StopPause}, anthropic},
		{"sequence", llmtest.Reply{Stop: format.StopSequence}, llm.Response{Stop: format.StopSequence}, anthropic},
		{"unknown reason", llmtest.Reply{Text: "OK", Stop: format.StopOther}, llm.Response{Text: "OK", Stop: format.StopOther}, nil},
		{"refusal", llmtest.Reply{Refusal: "No."}, llm.Response{Refusal: "No.", Stop: format.StopRefusal}, formats[:2]},
		{"refusal as text", llmtest.Reply{Refusal: "No."}, llm.Response{Text: "No.", Stop: format.StopRefusal}, anthropic},
		{"reasoning", llmtest.Reply{Reasoning: "Hm.", Text: "OK"}, llm.Response{Reasoning: "Hm.", Text: "OK", Stop: format.StopEnd}, nil},
		{"call", llmtest.Reply{Text: "I look.", Calls: []llm.ToolCall{call}}, llm.Response{Text: "I look.", Calls: []llm.ToolCall{call}, Stop: format.StopCalls}, nil},
		{"calls", llmtest.Reply{Calls: []llm.ToolCall{call, {ID: "call_2", Name: "weather", Arguments: []byte("{}")}}},
			llm.Response{Calls: []llm.ToolCall{call, {ID: "call_2", Name: "weather", Arguments: []byte("{}")}}, Stop: format.StopCalls}, nil},
		{"call without arguments", llmtest.Reply{Calls: []llm.ToolCall{{ID: "call_1", Name: "weather"}}},
			llm.Response{Calls: []llm.ToolCall{{ID: "call_1", Name: "weather", Arguments: []byte("{}")}}, Stop: format.StopCalls}, nil},
		{"call of an unknown tool", llmtest.Reply{Calls: []llm.ToolCall{{ID: "1", Name: "rm", Arguments: []byte("{}")}}},
			llm.Response{Calls: []llm.ToolCall{{ID: "1", Name: "rm", Arguments: []byte("{}"), Problem: llm.ProblemUnknown}}, Stop: format.StopCalls}, nil},
		{"call without a name", llmtest.Reply{Calls: []llm.ToolCall{{ID: "1", Arguments: []byte("{}")}}},
			llm.Response{Calls: []llm.ToolCall{{ID: "1", Arguments: []byte("{}"), Problem: llm.ProblemName}}, Stop: format.StopCalls}, nil},
		{"call without an id", llmtest.Reply{Calls: []llm.ToolCall{{Name: "weather", Arguments: []byte("{}")}}},
			llm.Response{Calls: []llm.ToolCall{{Name: "weather", Arguments: []byte("{}"), Problem: llm.ProblemID}}, Stop: format.StopCalls}, others},
		{"call without an id", llmtest.Reply{Calls: []llm.ToolCall{{Name: "weather", Arguments: []byte("{}")}}},
			llm.Response{Calls: []llm.ToolCall{{ID: "call_0", Name: "weather", Arguments: []byte("{}")}}, Stop: format.StopCalls}, google}, // Google leaves it out
		{"calls of one id", llmtest.Reply{Calls: []llm.ToolCall{call, call}},
			llm.Response{Calls: []llm.ToolCall{call, {ID: "call_1", Name: "weather", Arguments: call.Arguments, Problem: llm.ProblemTwice}}, Stop: format.StopCalls}, nil},
		{"arguments cut off", llmtest.Reply{Calls: []llm.ToolCall{broken(`{"city":"K`)}, Stop: format.StopLength},
			llm.Response{Calls: []llm.ToolCall{{ID: "call_1", Name: "weather", Arguments: []byte(`{"city":"K`), Problem: llm.ProblemArguments}}, Stop: format.StopLength}, formats[:2]},
		{"arguments twice", llmtest.Reply{Calls: []llm.ToolCall{broken(`{"city":"a","city":"b"}`)}},
			llm.Response{Calls: []llm.ToolCall{{ID: "call_1", Name: "weather", Arguments: []byte(`{"city":"a","city":"b"}`), Problem: llm.ProblemArguments}}, Stop: format.StopCalls}, formats[:2]},
		{"arguments that are a list", llmtest.Reply{Calls: []llm.ToolCall{broken(`[1]`)}},
			llm.Response{Calls: []llm.ToolCall{{ID: "call_1", Name: "weather", Arguments: []byte(`[1]`), Problem: llm.ProblemNoObject}}, Stop: format.StopCalls}, nil},
		{"calls that are not there", llmtest.Reply{Text: "x", Stop: format.StopCalls}, llm.Response{Text: "x", Stop: format.StopOther}, formats[:1]},
	} {
		if tt.want.Stop == none {
			t.Fatalf("%s: no stop", tt.name)
		}
		only := tt.only
		if only == nil {
			only = formats
		}
		for _, f := range only {
			for _, stream := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/stream=%v", tt.name, f, stream), func(t *testing.T) {
					reply := tt.reply
					reply.Usage = usage
					e, s := fake(t, f, llmtest.Always(reply))
					req := hello()
					req.Tools = []llm.Tool{weather}
					var got pieces
					if stream {
						req.Stream = got.add
					}
					r, err := e.Complete(ctx(t), req)
					if err != nil {
						t.Fatal(err)
					}
					want := tt.want
					want.Usage, want.Model, want.Attempts = usage, "model-1", 1
					if f == format.Chat {
						want.Fingerprint = "fp_fake"
					}
					if diff := cmp.Diff(want, r, cmpopts.IgnoreFields(llm.Response{}, "ID", "Duration", "Request", "Answer")); diff != "" {
						t.Error(diff)
					}
					if stream {
						got.check(t, r)
					}
					if !bytes.Equal(r.Request, s.Asks()[0].Raw) || r.Request.Digest() != sha256.Sum256(s.Asks()[0].Raw) || len(r.Answer) == 0 || r.ID == "" {
						t.Error("the bytes are not those of the exchange")
					}
				})
			}
		}
	}
}

// pieces collects what a stream hands over.
type pieces struct {
	text, reasoning, refusal strings.Builder
	calls                    []llm.ToolCall
}

func (p *pieces) add(d llm.Delta) error {
	switch d.Kind {
	case llm.DeltaText:
		p.text.WriteString(d.Text)
	case llm.DeltaReasoning:
		p.reasoning.WriteString(d.Text)
	case llm.DeltaRefusal:
		p.refusal.WriteString(d.Text)
	case llm.DeltaCall:
		p.calls = append(p.calls, d.Call)
	case llm.DeltaArguments:
		p.calls[d.Index].Arguments = append(p.calls[d.Index].Arguments, d.Text...)
	}
	return nil
}

func (p *pieces) check(t *testing.T, r llm.Response) {
	t.Helper()
	if p.text.String() != r.Text || p.reasoning.String() != r.Reasoning || p.refusal.String() != r.Refusal || len(p.calls) != len(r.Calls) {
		t.Fatalf("the pieces are not the answer: %+v", p)
	}
	for i, c := range p.calls {
		if got := string(c.Arguments); c.ID != r.Calls[i].ID || c.Name != r.Calls[i].Name || got != string(r.Calls[i].Arguments) && got != "" {
			t.Errorf("call %d in pieces: %+v", i, c)
		}
	}
}

// TestRequest compares what is sent with the documented formats, to the byte.
func TestRequest(t *testing.T) {
	seed := int64(7)
	req := llm.Request{
		System: "Be \"brief\".",
		Messages: []llm.Message{
			{Text: "Weather?"},
			{Role: llm.Assistant, Text: "I look.", Calls: []format.Call{{ID: "a", Name: "weather", Arguments: []byte(`{"city":"Bonn"}`)}, {ID: "b", Name: "weather"}}},
			{Role: llm.ToolResult, CallID: "a", Text: "rain"},
			{Role: llm.ToolResult, CallID: "b", Text: "no city", Failed: true},
			{Text: "And now?"},
		},
		Tools: []llm.Tool{weather, {Name: "now"}}, Choice: llm.ChooseAny, MaxTokens: 9, Seed: &seed, CachePrefix: true,
	}
	schema := string(weather.Schema)
	for f, want := range map[format.Name]string{
		format.Chat: `{"model":"model-1","messages":[{"role":"system","content":"Be \"brief\"."},{"role":"user","content":"Weather?"},` +
			`{"role":"assistant","content":"I look.","tool_calls":[{"id":"a","type":"function","function":{"name":"weather","arguments":"{\"city\":\"Bonn\"}"}},` +
			`{"id":"b","type":"function","function":{"name":"weather","arguments":"{}"}}]},` +
			`{"role":"tool","content":"rain","tool_call_id":"a"},{"role":"tool","content":"no city","tool_call_id":"b"},{"role":"user","content":"And now?"}],` +
			`"tools":[{"type":"function","function":{"name":"weather","description":"Says what the weather is.","parameters":` + schema + `}},` +
			`{"type":"function","function":{"name":"now","description":"","parameters":{"type":"object"}}}],"tool_choice":"required",` +
			`"max_tokens":9,"temperature":0,"seed":7}`,
		format.Responses: `{"model":"model-1","instructions":"Be \"brief\".","input":[{"role":"user","content":"Weather?"},{"role":"assistant","content":"I look."},` +
			`{"type":"function_call","call_id":"a","name":"weather","arguments":"{\"city\":\"Bonn\"}"},{"type":"function_call","call_id":"b","name":"weather","arguments":"{}"},` +
			`{"type":"function_call_output","call_id":"a","output":"rain"},{"type":"function_call_output","call_id":"b","output":"no city"},{"role":"user","content":"And now?"}],` +
			`"tools":[{"type":"function","name":"weather","description":"Says what the weather is.","parameters":` + schema + `,"strict":false},` +
			`{"type":"function","name":"now","description":"","parameters":{"type":"object"},"strict":false}],"tool_choice":"required",` +
			`"max_output_tokens":9,"temperature":0,"store":false}`,
		format.Messages: `{"model":"model-1","system":[{"type":"text","text":"Be \"brief\".","cache_control":{"type":"ephemeral"}}],` +
			`"messages":[{"role":"user","content":[{"type":"text","text":"Weather?"}]},` +
			`{"role":"assistant","content":[{"type":"text","text":"I look."},{"type":"tool_use","id":"a","name":"weather","input":{"city":"Bonn"}},{"type":"tool_use","id":"b","name":"weather","input":{}}]},` +
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"rain"},{"type":"tool_result","tool_use_id":"b","content":"no city","is_error":true},{"type":"text","text":"And now?"}]}],` +
			`"tools":[{"name":"weather","description":"Says what the weather is.","input_schema":` + schema + `},{"name":"now","description":"","input_schema":{"type":"object"}}],` +
			`"tool_choice":{"type":"any"},"max_tokens":9,"temperature":0}`,
	} {
		e, s := fake(t, f, llmtest.Always(llmtest.Reply{Text: "OK"}))
		if _, err := e.Complete(ctx(t), req); err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		ask := s.Asks()[0]
		if diff := cmp.Diff(want, string(ask.Raw)); diff != "" {
			t.Errorf("%s: %s", f, diff)
		}
		// What a service understands is what was meant.
		back := append([]llm.Message(nil), req.Messages...)
		back[1].Calls = []format.Call{back[1].Calls[0], {ID: "b", Name: "weather", Arguments: []byte("{}")}}
		if f != format.Messages {
			back[3].Failed = false
		}
		if diff := cmp.Diff(back, ask.Messages); diff != "" || ask.System != req.System || len(ask.Tools) != 2 || ask.MaxTokens != 9 {
			t.Errorf("%s: understood: %s", f, diff)
		}
		if got := ask.Header.Get("User-Agent"); got != "pellucid" {
			t.Errorf("User-Agent %q", got)
		}
	}
}

// TestBadRequest: what makes no sense is not sent.
func TestBadRequest(t *testing.T) {
	msg := []llm.Message{{Text: "x"}}
	for name, req := range map[string]llm.Request{
		"no message":       {},
		"not UTF-8":        {Messages: []llm.Message{{Text: "\xff"}}},
		"temperature":      {Messages: msg, Temperature: 3},
		"max tokens":       {Messages: msg, MaxTokens: -1},
		"input tokens":     {Messages: msg, InputTokens: -1},
		"choice":           {Messages: msg, Choice: llm.ChooseAny},
		"two of one name":  {Messages: msg, Tools: []llm.Tool{weather, weather}},
		"schema":           {Messages: msg, Tools: []llm.Tool{{Name: "a", Schema: []byte(`{"a":1,"a":2}`)}}},
		"schema, a list":   {Messages: msg, Tools: []llm.Tool{{Name: "a", Schema: []byte(`[]`)}}},
		"role":             {Messages: []llm.Message{{Role: 9}}},
		"call of the user": {Messages: []llm.Message{{Calls: []format.Call{{ID: "a", Name: "b"}}}}},
		"result of none":   {Messages: []llm.Message{{Role: llm.ToolResult}}},
		"too long":         {Messages: []llm.Message{{Text: strings.Repeat("x", 5000)}}},
	} {
		for _, f := range formats {
			e, s := fake(t, f, llmtest.Always(llmtest.Reply{}), func(o *llm.Options) { o.MaxRequest = 4096 })
			if _, err := e.Complete(ctx(t), req); codeOf(t, err) != llm.CodeRequest || s.Requests() != 0 {
				t.Errorf("%s: %s: %v", f, name, err)
			}
		}
	}
}

// TestRaw: what the caller has written is sent to the byte, if it can be paid for.
func TestRaw(t *testing.T) {
	const (
		good = `{"model":"other", "messages":[{"role":"user","content":[{"type":"text","text":"Hi"}]}],"max_tokens":50,"top_p":0.5}`
		item = `"input":"Hi","max_output_tokens":50`
	)
	for _, tt := range []struct {
		name   string
		format format.Name
		raw    string
		stream bool
		ok     bool
	}{
		{"chat", format.Chat, good, false, true},
		{"messages", format.Messages, good, false, true},
		{"responses", format.Responses, `{"model":"m",` + item + `}`, false, true},
		{"stream", format.Messages, strings.Replace(good, `"top_p":0.5`, `"stream":true`, 1), true, true},
		{"stream that nobody reads", format.Messages, strings.Replace(good, `"top_p":0.5`, `"stream":true`, 1), false, false},
		{"no stream", format.Messages, good, true, false},
		{"no bound", format.Chat, `{"model":"m","messages":[]}`, false, false},
		{"another format's bound", format.Chat, `{"model":"m",` + item + `}`, false, false},
		{"two bounds", format.Chat, strings.Replace(good, `"top_p":0.5`, `"max_completion_tokens":9`, 1), false, false},
		{"a bound of another case", format.Chat, strings.Replace(good, `"top_p":0.5`, `"Max_tokens":9000`, 1), false, false},
		{"many answers", format.Chat, strings.Replace(good, `"top_p":0.5`, `"n":5`, 1), false, false},
		{"no model", format.Chat, strings.Replace(good, `"other"`, `""`, 1), false, false},
		{"no JSON", format.Chat, good + "x", false, false},
	} {
		e, s := fake(t, tt.format, llmtest.Always(llmtest.Reply{Text: "OK", NoUsage: true}))
		b := llm.NewBudget(unlimited)
		req := llm.Request{Raw: []byte(tt.raw), InputTokens: 7, Budgets: []*llm.Budget{b}}
		if tt.stream {
			req = streamed(req)
		}
		r, err := e.Complete(ctx(t), req)
		if !tt.ok {
			if codeOf(t, err) != llm.CodeRequest || s.Requests() != 0 {
				t.Errorf("%s: %v", tt.name, err)
			}
			continue
		}
		if err != nil || r.Text != "OK" || string(s.Asks()[0].Raw) != tt.raw || b.Spent().Tokens != 57 {
			t.Errorf("%s: %v, spent %+v", tt.name, err, b.Spent())
		}
	}
}

// TestHeader: what a request brings along goes out in the place of the format's own,
// and is not observed.
func TestHeader(t *testing.T) {
	for _, f := range formats {
		seen := make(chan http.Header, 1)
		e, _ := fake(t, f, func(a llmtest.Ask) llmtest.Reply { seen <- a.Header; return llmtest.Reply{Text: "OK"} }, func(o *llm.Options) { o.Key = llm.Key{} })
		req := hello()
		req.Header = http.Header{"Authorization": {"Bearer " + secret}, "X-Api-Key": {secret}, "anthropic-version": {"2026-10-21"}}
		if _, err := e.Complete(ctx(t), req); err != nil {
			t.Fatal(err)
		}
		if h := <-seen; h.Get("Authorization") != "Bearer "+secret || len(h.Values("Anthropic-Version")) != 1 || h.Get("Anthropic-Version") != "2026-10-21" {
			t.Errorf("%s: %v", f, h)
		}
	}
}
