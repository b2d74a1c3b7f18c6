// SPDX-License-Identifier: Apache-2.0

package llm

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pellucid-mcp/pellucid/model/format"
)

// A canned answers every request with one text.
type canned struct{ contentType, text string }

func (c canned) RoundTrip(req *http.Request) (*http.Response, error) {
	req.Body.Close()
	return &http.Response{
		StatusCode: 200, Header: http.Header{"Content-Type": {c.contentType}}, ContentLength: -1,
		Body: io.NopCloser(strings.NewReader(c.text)), Request: req,
	}, nil
}

// complete reads text as the answer to a request with one tool, get_weather.
func complete(t testing.TB, f format.Name, stream bool, text string) (Response, *Error) {
	c := canned{"application/json; charset=utf-8", text}
	req := Request{Messages: []Message{{Text: "x"}}, Tools: []Tool{{Name: "get_weather"}}}
	if stream {
		c.contentType = "text/event-stream; charset=utf-8"
		req.Stream = func(Delta) error { return nil }
	}
	e, err := New(Options{Format: f, BaseURL: "https://models.example/v1", Model: "m", Retries: -1, Transport: c})
	if err != nil {
		t.Fatal(err)
	}
	r, err := e.Complete(t.Context(), req)
	if err != nil {
		return r, err.(*Error)
	}
	return r, nil
}

type wireCase struct {
	name   string
	format format.Name
	stream bool
	text   string
	code   Code
	want   Response
}

// events joins the data of events.
func events(data ...string) string { return "data: " + strings.Join(data, "\n\ndata: ") + "\n\n" }

// named puts the name of its type before each event.
func named(data ...string) string {
	var b strings.Builder
	for _, d := range data {
		_, kind, _ := strings.Cut(d, `"type":"`)
		kind, _, _ = strings.Cut(kind, `"`)
		b.WriteString("event: " + kind + "\ndata: " + d + "\n\n")
	}
	return b.String()
}

const (
	chatTop  = `"id":"chatcmpl-B9MBs8","object":"chat.completion","created":1741569952,"model":"gpt-4.1-2025-04-14"`
	chunkTop = `"id":"c1","object":"chat.completion.chunk","created":1694268190,"model":"gpt-4o-mini","system_fingerprint":"fp_44709d6fcb"`
	msgStart = `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","content":[],"model":"claude-x","stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":472,"output_tokens":2}}}`
)

func usage(input, cached, written, output, reasoning int64) format.Usage {
	return format.Usage{Known: true, Input: input, Cached: cached, CacheWrite: written, Output: output, Reasoning: reasoning}
}

// wireCases are exchanges as the providers document them, and as other servers of
// the same formats deviate, and what breaks the formats.
var wireCases = []wireCase{
	{"chat", format.Chat, false, `{` + chatTop + `,"choices":[{"index":0,"message":{"role":"assistant","content":"Hello!","refusal":null,"annotations":[]},"logprobs":null,"finish_reason":"stop"}],` +
		`"usage":{"prompt_tokens":19,"completion_tokens":10,"total_tokens":29,"prompt_tokens_details":{"cached_tokens":8,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":4,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}},"service_tier":"default"}`,
		"", Response{ID: "chatcmpl-B9MBs8", Model: "gpt-4.1-2025-04-14", Text: "Hello!", Stop: format.StopEnd, Usage: usage(19, 8, 0, 10, 4)}},
	{"chat, call", format.Chat, false, `{` + chatTop + `,"choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"call_abc123","type":"function","function":{"name":"get_weather","arguments":"{\n\"location\": \"Boston, MA\"\n}"}}]},"logprobs":null,"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":82,"completion_tokens":17,"total_tokens":99}}`,
		"", Response{ID: "chatcmpl-B9MBs8", Model: "gpt-4.1-2025-04-14", Stop: format.StopCalls, Usage: usage(82, 0, 0, 17, 0),
			Calls: []ToolCall{{ID: "call_abc123", Name: "get_weather", Arguments: []byte("{\n\"location\": \"Boston, MA\"\n}")}}}},
	{"chat, call with the reason stop", format.Chat, false, `{"choices":[{"message":{"role":"assistant","tool_calls":[{"id":"1","function":{"name":"get_weather","arguments":""}}]},"finish_reason":"stop"}]}`,
		"", Response{Stop: format.StopCalls, Calls: []ToolCall{{ID: "1", Name: "get_weather", Arguments: []byte("{}")}}}},
	{"chat, call of the old kind", format.Chat, false, `{"choices":[{"message":{"role":"assistant","content":null,"function_call":{"name":"get_weather","arguments":"{}"}},"finish_reason":"function_call"}]}`,
		"", Response{Stop: format.StopCalls, Calls: []ToolCall{{Name: "get_weather", Arguments: []byte("{}"), Problem: ProblemKind}}}},
	{"chat, custom call", format.Chat, false, `{"choices":[{"message":{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"custom","custom":{"name":"get_weather","input":"x"}}]},"finish_reason":"tool_calls"}]}`,
		"", Response{Stop: format.StopCalls, Calls: []ToolCall{{ID: "1", Arguments: []byte("{}"), Problem: ProblemKind}}}},
	{"chat, half a surrogate pair", format.Chat, false, `{"choices":[{"message":{"role":"assistant","content":"\ud83d"},"finish_reason":"length"}]}`, "", Response{Text: "\ufffd", Stop: format.StopLength}},
	{"chat, usage out of range", format.Chat, false, `{"choices":[{"message":{"role":"assistant","content":""}}],"usage":{"prompt_tokens":-5,"completion_tokens":1e30}}`, "", Response{Stop: format.StopOther}},
	{"chat, error with status 200", format.Chat, false, `{"error":{"message":"x","type":"server_error","code":"rate_limit_exceeded"}}`, CodeRateLimited, Response{}},
	{"chat, two choices", format.Chat, false, `{"choices":[{"message":{"role":"assistant","content":"a"}},{"message":{"role":"assistant","content":"b"}}]}`, CodeMalformed, Response{}},
	{"chat, no choice", format.Chat, false, `{"choices":[]}`, CodeMalformed, Response{}},
	{"chat, a user speaks", format.Chat, false, `{"choices":[{"message":{"role":"user","content":"OK"},"finish_reason":"stop"}]}`, CodeMalformed, Response{}},
	{"chat, content that is a number", format.Chat, false, `{"choices":[{"message":{"role":"assistant","content":1}}]}`, CodeMalformed, Response{}},
	{"chat, two contents", format.Chat, false, `{"choices":[{"message":{"role":"assistant","content":"OK","content":"no"}}]}`, CodeMalformed, Response{}},
	{"chat, trailing", format.Chat, false, `{"choices":[{"message":{"role":"assistant","content":"OK"}}]}{}`, CodeMalformed, Response{}},
	{"chat, too many calls", format.Chat, false, `{"choices":[{"message":{"role":"assistant","tool_calls":[` + strings.Repeat(`{"id":"1"},`, 128) + `{"id":"2"}]}}]}`, CodeMalformed, Response{}},

	{"chunks", format.Chat, true, events(`{`+chunkTop+`,"choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]}`,
		`{`+chunkTop+`,"choices":[{"index":0,"delta":{"content":"Hel"},"finish_reason":null}],"obfuscation":"8I3E9E"}`, `{`+chunkTop+`,"choices":[{"index":0,"delta":{"content":"lo"},"finish_reason":null}],"usage":null}`,
		`{`+chunkTop+`,"choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}]}`, `{`+chunkTop+`,"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":7,"total_tokens":12}}`, `[DONE]`),
		"", Response{ID: "c1", Model: "gpt-4o-mini", Fingerprint: "fp_44709d6fcb", Text: "Hello", Stop: format.StopEnd, Usage: usage(5, 0, 0, 7, 0)}},
	{"chunks, first one empty", format.Chat, true, events(`{"choices":[],"created":0,"id":"","model":"","object":"","prompt_filter_results":[]}`, `{`+chunkTop+`,"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}]}`, `[DONE]`),
		"", Response{ID: "c1", Model: "gpt-4o-mini", Fingerprint: "fp_44709d6fcb", Text: "a", Stop: format.StopEnd}},
	{"chunks, calls without an index", format.Chat, true, events(`{"choices":[{"index":0,"delta":{"tool_calls":[{"id":"1","type":"function","function":{"name":"get_weather","arguments":"{}"}}]}}]}`,
		`{"choices":[{"index":0,"delta":{"tool_calls":[{"id":"2","type":"function","function":{"name":"get_weather","arguments":"{\"a\":1}"}}]},"finish_reason":"tool_calls"}]}`, `[DONE]`),
		"", Response{Stop: format.StopCalls, Calls: []ToolCall{{ID: "1", Name: "get_weather", Arguments: []byte("{}")}, {ID: "2", Name: "get_weather", Arguments: []byte(`{"a":1}`)}}}},
	{"chunks, comments, CRLF and a byte order mark", format.Chat, true, "\xef\xbb\xbf: OPENROUTER PROCESSING\r\n\r\ndata: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"},\r\ndata:\"finish_reason\":\"stop\"}]}\r\n\r\ndata:[DONE]\r\n\r\n", "", Response{Text: "a", Stop: format.StopEnd}},
	{"chunks without an end", format.Chat, true, events(`{"choices":[{"index":0,"delta":{"content":"OK"},"finish_reason":"stop"}]}`), CodeCut, Response{}},
	{"chunks, end not ended", format.Chat, true, events(`{"choices":[]}`) + "data: [DONE]\n", CodeCut, Response{}},
	{"chunks, another choice", format.Chat, true, events(`{"choices":[{"index":1,"delta":{"content":"OK"}}]}`, `[DONE]`), CodeMalformed, Response{}},
	{"chunks, another id", format.Chat, true, events(`{"id":"a","choices":[]}`, `{"id":"b","choices":[]}`, `[DONE]`), CodeMalformed, Response{}},
	{"chunks, another reason", format.Chat, true, events(`{"choices":[{"index":0,"finish_reason":"length"}]}`, `{"choices":[{"index":0,"finish_reason":"stop"}]}`, `[DONE]`), CodeMalformed, Response{}},
	{"chunks, a call from nowhere", format.Chat, true, events(`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":3}]}}]}`, `[DONE]`), CodeMalformed, Response{}},
	{"chunks, a call becomes another", format.Chat, true, events(`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"1","function":{"name":"get_weather"}}]}}]}`, `{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"name":"rm"}}]}}]}`, `[DONE]`), CodeMalformed, Response{}},
	{"chunks, error", format.Chat, true, events(`{"error":{"message":"x","type":"overloaded_error"}}`), CodeServer, Response{}},

	{"messages", format.Messages, false, `{"id":"msg_1","type":"message","role":"assistant","content":[{"type":"thinking","thinking":"Hm.","signature":"x"},{"type":"text","text":"Hi"},{"type":"redacted_thinking","data":"x"},{"type":"tool_use","id":"toolu_1","name":"get_weather","input":{"unit":"C"}}],"model":"claude-x","stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":10,"cache_creation_input_tokens":5,"cache_read_input_tokens":100,"output_tokens":25,"service_tier":"standard"}}`,
		"", Response{ID: "msg_1", Model: "claude-x", Text: "Hi", Reasoning: "Hm.", Stop: format.StopCalls, Usage: usage(115, 100, 5, 25, 0), Calls: []ToolCall{{ID: "toolu_1", Name: "get_weather", Arguments: []byte(`{"unit":"C"}`)}}}},
	{"messages, window", format.Messages, false, `{"type":"message","role":"assistant","content":[],"stop_reason":"model_context_window_exceeded"}`, "", Response{Stop: format.StopLength}},
	{"messages, input that is a text", format.Messages, false, `{"type":"message","role":"assistant","content":[{"type":"tool_use","id":"1","name":"get_weather","input":"{}"}],"stop_reason":"tool_use"}`,
		"", Response{Stop: format.StopCalls, Calls: []ToolCall{{ID: "1", Name: "get_weather", Arguments: []byte(`"{}"`), Problem: ProblemNoObject}}}},
	{"messages, error with status 200", format.Messages, false, `{"type":"error","error":{"type":"overloaded_error","message":"x"}}`, CodeServer, Response{}},
	{"messages, a block of another kind", format.Messages, false, `{"type":"message","role":"assistant","content":[{"type":"server_tool_use","id":"1","name":"web_search","input":{}}],"stop_reason":"end_turn"}`, CodeMalformed, Response{}},
	{"messages, a user speaks", format.Messages, false, `{"type":"message","role":"user","content":[],"stop_reason":"end_turn"}`, CodeMalformed, Response{}},

	{"message events", format.Messages, true, named(msgStart, `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`, `{"type":"ping"}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Okay"}}`, `{"type":"content_block_stop","index":0}`,
		`{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"toolu_1","name":"get_weather","input":{}}}`,
		`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":""}}`, `{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"location\": \"San"}}`,
		`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":" Francisco\"}"}}`, `{"type":"content_block_stop","index":1}`,
		`{"type":"brand_new_event"}`, `{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":89}}`, `{"type":"message_stop"}`),
		"", Response{ID: "msg_1", Model: "claude-x", Text: "Okay", Stop: format.StopCalls, Usage: usage(472, 0, 0, 89, 0), Calls: []ToolCall{{ID: "toolu_1", Name: "get_weather", Arguments: []byte(`{"location": "San Francisco"}`)}}}},
	{"message events, no start", format.Messages, true, named(`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"OK"}}`), CodeMalformed, Response{}},
	{"message events, no reason", format.Messages, true, named(msgStart, `{"type":"message_stop"}`), CodeMalformed, Response{}},
	{"message events, cut", format.Messages, true, named(msgStart, `{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`), CodeCut, Response{}},
	{"message events, wrong index", format.Messages, true, named(msgStart, `{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}`), CodeMalformed, Response{}},
	{"message events, delta of another kind", format.Messages, true, named(msgStart, `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`, `{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{}"}}`), CodeMalformed, Response{}},
	{"message events, name and type differ", format.Messages, true, "event: ping\ndata: " + msgStart + "\n\n", CodeMalformed, Response{}},
	{"message events, error", format.Messages, true, named(msgStart, `{"type":"error","error":{"type":"rate_limit_error","message":"x"}}`), CodeRateLimited, Response{}},

	{"responses", format.Responses, false, `{"id":"resp_1","object":"response","created_at":1741476542,"status":"completed","error":null,"incomplete_details":null,"model":"gpt-4.1","output":[{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"Hm."}]},{"type":"message","id":"msg_1","status":"completed","role":"assistant","content":[{"type":"output_text","text":"Hi","annotations":[]}]}],"usage":{"input_tokens":36,"input_tokens_details":{"cached_tokens":4},"output_tokens":87,"output_tokens_details":{"reasoning_tokens":8},"total_tokens":123}}`,
		"", Response{ID: "resp_1", Model: "gpt-4.1", Text: "Hi", Reasoning: "Hm.", Stop: format.StopEnd, Usage: usage(36, 4, 0, 87, 8)}},
	{"responses, call", format.Responses, false, `{"object":"response","status":"completed","output":[{"type":"function_call","id":"fc_1","call_id":"call_1","name":"get_weather","arguments":"{}","status":"completed"}]}`,
		"", Response{Stop: format.StopCalls, Calls: []ToolCall{{ID: "call_1", Name: "get_weather", Arguments: []byte("{}")}}}},
	{"responses, failed", format.Responses, false, `{"object":"response","status":"failed","error":{"code":"rate_limit_exceeded","message":"x"},"output":[]}`, CodeRateLimited, Response{}},
	{"responses, an item of another kind", format.Responses, false, `{"object":"response","status":"completed","output":[{"type":"computer_call"}]}`, CodeMalformed, Response{}},
	{"response events, another last word", format.Responses, true, named(`{"type":"response.output_text.delta","delta":"yes"}`, `{"type":"response.completed","response":{"object":"response","status":"completed","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"no"}]}]}}`), CodeMalformed, Response{}},
	{"response events, error", format.Responses, true, named(`{"type":"error","code":"insufficient_quota","message":"x","param":null}`), CodeQuota, Response{}},
	{"response events, failed", format.Responses, true, named(`{"type":"response.failed","response":{"object":"response","status":"failed","error":{"code":"server_error","message":"x"},"output":[]}}`), CodeServer, Response{}},
}

func TestWire(t *testing.T) {
	for _, tt := range wireCases {
		t.Run(tt.name, func(t *testing.T) {
			got, err := complete(t, tt.format, tt.stream, tt.text)
			if err != nil || tt.code != "" {
				if err == nil || err.Code != tt.code {
					t.Fatalf("%v, want %q", err, tt.code)
				}
				return
			}
			tt.want.Attempts = 1
			if diff := cmp.Diff(tt.want, got, cmpopts.IgnoreFields(Response{}, "Duration", "Request", "Answer")); diff != "" {
				t.Error(diff)
			}
		})
	}
}
