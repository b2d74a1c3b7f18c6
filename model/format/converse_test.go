// SPDX-License-Identifier: Apache-2.0

package format_test

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/model/format"
	"github.com/pellucid-mcp/pellucid/text/awsstream"
	"github.com/pellucid-mcp/pellucid/text/eventstream"
)

var bedrock = []format.Format{format.Of(format.Converse), format.Of(format.BedrockMessages)}

// A frame is a message of a stream: its type, and its payload.
type frame struct{ kind, payload string }

// bytes is the message. A kind that begins with "!" is that of an exception.
func (f frame) bytes() []byte {
	if kind, failed := strings.CutPrefix(f.kind, "!"); failed {
		return awsstream.Append(nil, []byte(f.payload), ":exception-type", kind, ":content-type", "application/json", ":message-type", "exception")
	}
	return awsstream.Append(nil, []byte(f.payload), ":event-type", f.kind, ":content-type", "application/json", ":message-type", "event")
}

// sent is the stream in which a provider sends the server-sent events in src: as they are,
// or as messages.
func sent(f format.Format, src []byte) []byte {
	if !strings.HasPrefix(string(f.Name()), "bedrock") {
		return src
	}
	var out []byte
	d := eventstream.Decoder{}
	d.Feed(src)
	for e, ok, _ := d.Next(); ok; e, ok, _ = d.Next() {
		fr := frame{e.Name, string(e.Data)}
		if f.Name() == format.BedrockMessages {
			fr = chunk(string(e.Data))
		}
		out = append(out, fr.bytes()...)
	}
	return out
}

// chunk is an event of messages in a stream of InvokeModel.
func chunk(data string) frame {
	return frame{"chunk", `{"bytes":"` + base64.StdEncoding.EncodeToString([]byte(data)) + `","p":"abcdefgh"}`}
}

const converseSeed = `event: messageStart
data: {"role":"assistant"}

event: contentBlockDelta
data: {"contentBlockIndex":0,"delta":{"text":"Hi"}}

event: contentBlockStop
data: {"contentBlockIndex":0}

event: contentBlockStart
data: {"contentBlockIndex":1,"start":{"toolUse":{"toolUseId":"1","name":"pay"}}}

event: contentBlockDelta
data: {"contentBlockIndex":1,"delta":{"toolUse":{"input":"{}"}}}

event: contentBlockStop
data: {"contentBlockIndex":1}

event: messageStop
data: {"stopReason":"tool_use"}

event: metadata
data: {"usage":{"inputTokens":3,"outputTokens":2,"totalTokens":9,"cacheReadInputTokens":4},"metrics":{"latencyMs":1}}

`

func converseOf(frames ...frame) (*format.Answer, format.Odd, []format.PartKind) {
	var src []byte
	for _, f := range frames {
		src = append(src, f.bytes()...)
	}
	return stream(bedrock[0], src)
}

func block(kind string, i int, v string) frame {
	return frame{"contentBlock" + kind, `{"contentBlockIndex":` + string(rune('0'+i)) + v + "}"}
}

var (
	begin = frame{"messageStart", `{"role":"assistant","p":"abcd"}`}
	pay   = `,"start":{"toolUse":{"toolUseId":"1","name":"pay"}}`
	input = `,"delta":{"toolUse":{"input":"{}"}}`
	stop  = frame{"messageStop", `{"stopReason":"tool_use"}`}
	meta  = frame{"metadata", `{"usage":{"inputTokens":1,"outputTokens":1,"totalTokens":2},"metrics":{"latencyMs":1}}`}
)

func TestConverseStream(t *testing.T) {
	a, odd, kinds := stream(bedrock[0], sent(bedrock[0], []byte(converseSeed)))
	if odd != 0 || a.Text(format.PartText, "") != "Hi" || len(a.Calls()) != 1 || a.Stop != format.StopCalls || !slices.Contains(kinds, format.PartEnd) {
		t.Errorf("odd %d, %+v, %v", odd, a, kinds)
	}
	if want := (format.Usage{Known: true, Input: 7, Cached: 4, Output: 2}); a.Usage != want {
		t.Errorf("usage %+v", a.Usage)
	}
	if a, _, kinds := converseOf(begin, block("Delta", 0, `,"delta":{"text":"a"}`), block("Stop", 0, ""), stop); a.Stop != format.StopCalls || kinds[len(kinds)-1] != format.PartEnd {
		t.Errorf("without metadata: %+v, %v", a, kinds)
	}
	text := block("Delta", 0, `,"delta":{"text":"a"}`)
	for _, tt := range []struct {
		name   string
		frames []frame
		odd    format.Odd
		calls  int
	}{
		{"text without a start", []frame{begin, text, block("Stop", 0, ""), stop, meta}, 0, 0},
		{"text with a start", []frame{begin, block("Start", 0, `,"start":{}`), text, block("Stop", 0, ""), stop, meta}, 0, 0},
		{"reasoning", []frame{begin, block("Delta", 0, `,"delta":{"reasoningContent":{"text":"a"}}`), block("Delta", 0, `,"delta":{"reasoningContent":{"signature":"a"}}`),
			block("Stop", 0, ""), stop, meta}, 0, 0},
		{"two calls", []frame{begin, block("Start", 0, pay), block("Delta", 0, input), block("Stop", 0, ""), block("Start", 1, pay), block("Stop", 1, ""), stop, meta}, 0, 2},
		{"a tool of the provider", []frame{begin, block("Start", 0, `,"start":{"toolUse":{"toolUseId":"1","name":"web","type":"server_tool_use"}}`), block("Delta", 0, input),
			block("Stop", 0, ""), block("Start", 1, `,"start":{"toolResult":{"toolUseId":"1"}}`), block("Stop", 1, ""), stop, meta}, 0, 0},
		{"an event of a new type", []frame{begin, {"newEvent", "{}"}, text, block("Stop", 0, ""), stop, meta}, 0, 0},
		{"an event in another case", []frame{begin, {"ContentBlockStart", `{"contentBlockIndex":0` + pay + "}"}}, format.OddCall, 0},
		{"a member in another case", []frame{begin, block("Start", 0, `,"Start":{"toolUse":{"name":"pay"}}`)}, format.OddCall, 0},
		{"a block of a new kind", []frame{begin, block("Start", 0, `,"start":{"newUse":{"name":"pay"}}`)}, format.OddCall, 0},
		{"a block of two kinds", []frame{begin, block("Start", 0, `,"start":{"image":{},"toolUse":{"name":"pay"}}`)}, format.OddCall, 1},
		{"a call of a new type", []frame{begin, block("Start", 0, `,"start":{"toolUse":{"name":"pay","type":"x"}}`)}, format.OddCall, 1},
		{"arguments of no call", []frame{begin, text, block("Delta", 0, input)}, format.OddCall, 0},
		{"one block within another", []frame{begin, block("Start", 0, pay), block("Start", 1, pay), block("Delta", 0, input)}, format.OddCall | format.OddOrder, 2},
		{"a block twice", []frame{begin, block("Start", 0, pay), block("Stop", 0, ""), block("Start", 0, pay)}, format.OddOrder, 2},
		{"no index", []frame{begin, {"contentBlockStart", `{"start":{"toolUse":{"name":"pay"}}}`}}, format.OddOrder, 1},
		{"no JSON", []frame{begin, {"contentBlockStart", `{"contentBlockIndex":0,"contentBlockIndex":1}`}}, format.OddCall | format.OddOrder, 0},
	} {
		a, odd, _ := converseOf(tt.frames...)
		if odd&(format.OddCall|format.OddOrder) != tt.odd || len(a.Calls()) != tt.calls {
			t.Errorf("%s: odd %d, %d calls", tt.name, odd, len(a.Calls()))
		}
	}
}

// TestFrames: what a message says of itself in a way that another reader may take otherwise
// is odd, and an exception is an error and nothing else.
func TestFrames(t *testing.T) {
	payload := `{"contentBlockIndex":0` + pay + "}"
	for _, f := range bedrock {
		for _, tt := range []struct {
			name    string
			headers []string
			odd     bool
			failed  bool
		}{
			{"exception", []string{":message-type", "exception", ":exception-type", "throttlingException"}, false, true},
			{"error", []string{":message-type", "error", ":error-code", "500"}, false, true},
			{"no type of a message", []string{":event-type", "contentBlockStart"}, true, false},
			{"another type of a message", []string{":message-type", "Event", ":event-type", "contentBlockStart"}, true, false},
			{"no type of an event", []string{":message-type", "event"}, true, false},
			{"an event called as an exception", []string{":message-type", "event", ":event-type", ":exception"}, true, false},
			{"a header in two cases", []string{":message-type", "exception", ":Message-Type", "event", ":event-type", "contentBlockStart"}, true, false},
		} {
			s := f.NewStream()
			for _, e := range eventsOf(f, awsstream.Append(nil, []byte(payload), tt.headers...)) {
				parts, odd := s.Event(e)
				if failed := len(parts) == 1 && parts[0].Kind == format.PartError; failed != tt.failed || (odd&format.OddCall != 0) != tt.odd {
					t.Errorf("%s, %s: odd %d, %v", f.Name(), tt.name, odd, parts)
				}
			}
		}
		if got := eventsOf(f, f.AppendBeat(nil)); len(got) != 1 || got[0].Odd {
			t.Errorf("%s: beat %v", f.Name(), got)
		}
	}
}

// TestChunks: an event stands in a chunk as base64 text, and what is no such text is odd.
func TestChunks(t *testing.T) {
	f := bedrock[1]
	for _, tt := range []struct {
		frame frame
		odd   bool
		kinds int
	}{
		{chunk(`{"type":"ping"}`), false, 0},
		{chunk(`{"type":"error","error":{"type":"overloaded_error"}}`), false, 2},
		{frame{"newEvent", "{}"}, false, 0},
		{frame{"Chunk", "{}"}, true, 0},
		{frame{"chunk", "{}"}, true, 0},
		{frame{"chunk", `{"bytes":"e30"}`}, true, 0},
		{frame{"chunk", `{"bytes":"e30=","Bytes":"e30="}`}, true, 0},
		{frame{"chunk", `{"bytes":"e*30="}`}, true, 0},
		{frame{"chunk", `{"bytes":7}`}, true, 0},
		{frame{"!throttlingException", `{"message":"no"}`}, false, 1},
	} {
		_, odd, kinds := stream(f, tt.frame.bytes())
		if (odd&format.OddCall != 0) != tt.odd || len(kinds) != tt.kinds {
			t.Errorf("%+v: odd %d, %v", tt.frame, odd, kinds)
		}
	}
}

func TestConverseBody(t *testing.T) {
	for _, tt := range []struct {
		content string
		odd     format.Odd
		calls   int
	}{
		{`[{"text":"a"},{"image":{"format":"png"}}]`, 0, 0},
		{`[{"reasoningContent":{"reasoningText":{"text":"a","signature":"b"}}},{"citationsContent":{"content":[{"text":"a"}],"citations":[]}}]`, 0, 0},
		{`[{"toolUse":{"toolUseId":"1","name":"pay","input":{}}},{"toolUse":{"toolUseId":"2","name":"pay","input":[1]}}]`, 0, 2},
		{`[{"toolUse":{"toolUseId":"1","name":"web","type":"server_tool_use","input":{}}},{"toolResult":{"toolUseId":"1","content":[]}}]`, 0, 0},
		{`[{"newUse":{"name":"pay"}}]`, format.OddCall, 0},
		{`[{"text":"a","toolUse":{"name":"pay"}}]`, format.OddCall, 1},
		{`[{"toolUse":{"Name":"pay"}}]`, format.OddCall, 1},
		{`{"text":"a"}`, format.OddCall, 0},
		{`["a"]`, format.OddCall, 0},
	} {
		a := bedrock[0].Read(format.Parse([]byte(`{"output":{"message":{"role":"assistant","content":` + tt.content + `}},"stopReason":"end_turn"}`)))
		if a.Odd&format.OddCall != tt.odd || len(a.Calls()) != tt.calls {
			t.Errorf("%s: odd %d, %d calls", tt.content, a.Odd, len(a.Calls()))
		}
	}
	for _, body := range []string{"{}", `{"output":{}}`, `{"output":{"Message":{"content":[]}}}`, `{"Output":{"message":{"content":[]}}}`} {
		if a := bedrock[0].Read(format.Parse([]byte(body))); a.Odd&format.OddCall == 0 {
			t.Errorf("%s is an answer", body)
		}
	}
}

// TestBedrockPath: a model's id stands in the path as Amazon's clients spell it.
func TestBedrockPath(t *testing.T) {
	for _, tt := range []struct {
		form   int
		model  string
		stream bool
		want   string
	}{
		{0, "anthropic.claude-sonnet-4-20250514-v1:0", false, "/model/anthropic.claude-sonnet-4-20250514-v1%3A0/converse"},
		{0, "m", true, "/model/m/converse-stream"},
		{1, "m", false, "/model/m/invoke"},
		{1, "arn:aws:bedrock:us-east-1:1:inference-profile/m", true, "/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Ainference-profile%2Fm/invoke-with-response-stream"},
	} {
		if got := bedrock[tt.form].Path(tt.model, tt.stream); got != tt.want {
			t.Errorf("%s", got)
		}
	}
}

// TestConverseError: the code of an error stands where Amazon's clients look for it.
func TestConverseError(t *testing.T) {
	for kind, want := range map[string]string{"rate_limit_error": "ThrottlingException", "new_error": "InternalServerException"} {
		var got struct {
			Type    string `json:"__type"`
			Code    string `json:"code"`
			Message string `json:"message"`
		}
		if err := json.Unmarshal(bedrock[0].AppendError(nil, kind, "no"), &got); err != nil || got.Type != want || got.Code != want || got.Message != "no" {
			t.Errorf("%s: %+v, %v", kind, got, err)
		}
	}
}
