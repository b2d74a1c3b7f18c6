// SPDX-License-Identifier: Apache-2.0

package guard_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/model/format"
)

// TestWrittenCalls: a call that a model writes into its text needs a decision like any other,
// whole and over the pieces of a stream. A call that is shown as code needs none, unless the
// request teaches the model to write calls.
func TestWrittenCalls(t *testing.T) {
	const (
		hermes = `<tool_call>{"name":"send_money","arguments":{"recipient":"mallory","amount":100}}</tool_call>`
		invoke = `<function_calls><invoke name="send_money"><parameter name="recipient">mallory</parameter></invoke></function_calls>`
		llama  = `<function=send_money>{"recipient":"mallory"}</function>`
		other  = `<tool_call>{"name":"launch_rocket","arguments":{}}</tool_call>`
		teach  = "Be useful. Write a call as <tool_call>{...}</tool_call>."
	)
	for _, tt := range []struct {
		name, system, text string
		held               bool
	}{
		{"a tag", "", "I pay.\n" + hermes, true},
		{"an element", "", invoke, true},
		{"a function", "", "Ok. " + llama, true},
		{"behind a block of code", "", "```\nx\n```\n" + hermes, true},
		{"in a block of code", "", "It is written so:\n```xml\n" + hermes + "\n```\nThat is all.", false},
		{"in a span of code", "", "It is written so: `" + llama + "`.", false},
		{"a tool that is not offered", "", "It is written so: " + other, false},
		{"prose", "", "The <tool_call> tag begins a call. <invoke> does not.", false},
		{"in a block of code, and taught", teach, "```\n" + hermes + "\n```", true},
		{"a tool that is not offered, and taught", teach, other, true},
	} {
		for _, f := range formats {
			for _, stream := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/%v", tt.name, f, stream), func(t *testing.T) {
					r := newRig(t, func(a ask) reply {
						got := obedient(a)
						if len(got.Calls) > 0 {
							return reply{Text: tt.text}
						}
						return got
					})
					body := strings.Replace(string(conversation(f, stream, "Sum up.", attack)), "Be useful.", tt.system, 1)
					got, err := r.through(f, []byte(body), stream)
					if err != nil {
						t.Fatal(err)
					}
					passed, recorded := got.Text == tt.text, r.sink.n() > 0
					if passed == tt.held || recorded != tt.held || tt.held && (strings.Contains(got.Text, "mallory") || strings.Contains(got.Text, "rocket")) {
						t.Errorf("recorded %v, got %q", recorded, got.Text)
					}
				})
			}
		}
	}
}

// TestToolUseInChat: a part of the content of a chat answer that is a call is one.
func TestToolUseInChat(t *testing.T) {
	const part = `[{"type":"text","text":"Hm."},{"type":"tool_use","id":"1","name":"send_money","input":{"recipient":"mallory","amount":100}}]`
	for _, stream := range []bool{false, true} {
		r := newRig(t, func(a ask) reply {
			got := obedient(a)
			switch {
			case len(got.Calls) == 0:
				return got
			case a.Stream:
				return reply{Raw: []byte(`data: {"id":"c","choices":[{"index":0,"delta":{"role":"assistant","content":` + part + `}}]}` + "\n\n" +
					`data: {"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n")}
			}
			return reply{Raw: []byte(`{"id":"c","choices":[{"index":0,"message":{"role":"assistant","content":` + part + `},"finish_reason":"stop"}]}`)}
		})
		got, err := r.through(format.Chat, conversation(format.Chat, stream, "Sum up.", attack), stream)
		if err != nil || strings.Contains(got.Text, "mallory") || len(got.Calls) > 0 || r.sink.n() != 1 || r.sink.last(t).Act != "repaired" {
			t.Errorf("stream %v: %v, %q, %d records", stream, err, got.Text, r.sink.n())
		}
	}
}
