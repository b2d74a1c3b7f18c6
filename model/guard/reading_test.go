// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/model/counterfactual"
	"github.com/pellucid-mcp/pellucid/model/format"
	"github.com/pellucid-mcp/pellucid/text/eventstream"
)

// TestReading: what each event is to whoever waits for it.
func TestReading(t *testing.T) {
	const (
		chat      = 0
		responses = 1
		messages  = 2
	)
	for _, tt := range []struct {
		format int
		data   string // the last event; others stand before it, on lines of their own
		want   part
		calls  string // names, in order
	}{
		{chat, `{"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}`, partPreamble, ""},
		{chat, `{"choices":[{"index":0,"delta":{"content":"a"}}]}`, partShown, ""},
		{chat, `{"choices":[{"index":0,"delta":{"reasoning_content":"a"}}]}`, partShown, ""},
		{chat, `{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"x","function":{"name":"get_it","arguments":""}}]}}]}`, partShown, "get_it"},
		{chat, `{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"x","function":{"name":"pay","arguments":""}}]}}]}`, partHeld, "pay"},
		{chat, `{"choices":[{"index":0,"delta":{"tool_calls":[{"id":"x","function":{"name":"get_it"}},{"id":"y","function":{"name":"pay"}}]}}]}`, partHeld, "get_it pay"},
		{chat, `{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"name":"get_it"}}]}}]}` + "\n" +
			`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"name":"pay"}}]}}]}`, partHeld, "get_it"},
		{chat, `{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"type":"custom","custom":{"name":"get_it"}}]}}]}`, partHeld, ""},
		{chat, `{"choices":[{"index":0,"delta":{"tool_calls":[{"index":7,"function":{"name":"get_it"}}]}}]}`, partHeld, ""},
		{chat, `{"choices":[{"index":0,"delta":{"function_call":{"name":"get_it"}}}]}`, partShown, "get_it"},
		{chat, `{"choices":[{"index":0,"delta":{"function_call":{"name":"pay"}}}]}`, partHeld, "pay"},
		{chat, "{\"choices\":[{\"delta\":{\"function_call\":{\"name\":\"get_it\"}}}]}\n{\"choices\":[{\"delta\":{\"function_call\":{\"name\":\"pay\"}}}]}", partHeld, "get_it"},
		{chat, "{\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"name\":\"get_it\"}}]}}]}\n{\"choices\":[{\"delta\":{\"function_call\":{\"name\":\"get_it\"}}}]}", partHeld, "get_it"},
		{chat, "{\"choices\":[{\"delta\":{\"function_call\":{\"name\":\"get_it\"}}}]}\n{\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":1,\"function\":{\"name\":\"get_it\"}}]}}]}", partHeld, "get_it"},
		{chat, `{"choices":[{"index":1,"delta":{"content":"a"}}]}`, partHeld, ""},
		{chat, `{"choices":[{"index":0,"delta":{"Tool_Calls":[]}}]}`, partHeld, ""},
		{chat, `{"choices":[{"index":0,"message":{"tool_calls":[]}}]}`, partHeld, ""},
		{chat, `{"choices":[{"index":0,"delta":{"content":"a","content":"b"}}]}`, partHeld, ""},
		{chat, `{"choices":`, partHeld, ""},
		{chat, `{"error":{"message":"no"}}`, partFault, ""},
		{chat, `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`, partShown, ""},
		{chat, `[DONE]`, partEnd, ""},

		{responses, `{"type":"response.created","response":{"output":[]}}`, partPreamble, ""},
		{responses, `{"type":"response.output_item.added","item":{"type":"message"}}`, partShown, ""},
		{responses, `{"type":"response.output_item.added","item":{"type":"web_search_call"}}`, partShown, ""},
		{responses, `{"type":"response.output_item.added","item":{"type":"function_call","name":"get_it"}}`, partShown, "get_it"},
		{responses, `{"type":"response.output_item.added","item":{"type":"function_call","name":"pay"}}`, partHeld, "pay"},
		{responses, `{"type":"response.output_item.added","item":{"type":"custom_tool_call","name":"pay"}}`, partHeld, "pay"},
		{responses, `{"type":"response.output_item.done","item":{"type":"function_call","name":"pay"}}`, partHeld, ""},
		{responses, `{"type":"response.output_item.added","item":{"type":"local_shell_call"}}`, partHeld, ""},
		{responses, `{"type":"response.output_item.added","item":{"type":"mcp_approval_request"}}`, partHeld, ""},
		{responses, `{"type":"response.output_item.added","item":{"type":"new_thing"}}`, partHeld, ""},
		{responses, `{"type":"response.created","response":{"output":[{"type":"function_call","name":"pay"}]}}`, partHeld, ""},
		{responses, `{"type":"response.completed","response":{"output":[{"type":"function_call","name":"pay","arguments":"{}"}]}}`, partEnd, "pay"},
		{responses, `{"type":"error","message":"no"}`, partFault, ""},

		{messages, `{"type":"message_start","message":{"content":[]}}`, partPreamble, ""},
		{messages, `{"type":"message_start","message":{"content":[{"type":"tool_use","name":"pay"}]}}`, partHeld, ""},
		{messages, `{"type":"ping"}`, partPreamble, ""},
		{messages, `{"type":"content_block_start","content_block":{"type":"text","text":""}}`, partShown, ""},
		{messages, `{"type":"content_block_start","content_block":{"type":"thinking","thinking":""}}`, partShown, ""},
		{messages, `{"type":"content_block_start","content_block":{"type":"server_tool_use","name":"web_search"}}`, partShown, ""},
		{messages, `{"type":"content_block_start","content_block":{"type":"tool_use","name":"get_it","input":{}}}`, partShown, "get_it"},
		{messages, `{"type":"content_block_start","content_block":{"type":"tool_use","name":"pay","input":{}}}`, partHeld, "pay"},
		{messages, `{"type":"content_block_start","content_block":{"type":"new_tool_use","name":"get_it"}}`, partHeld, ""},
		{messages, `{"type":"content_block_start","Content_Block":{"type":"tool_use","name":"get_it"}}`, partHeld, ""},
		{messages, `{"type":"error"}`, partFault, ""},
		{messages, `{"type":"message_stop"}`, partEnd, ""},
	} {
		read := newReading(format.All[tt.format], gate{policy: counterfactual.GuessPrivileges()})
		var got part
		for line := range strings.Lines(tt.data) {
			got = read.event(eventstream.Event{Data: []byte(strings.TrimSpace(line)), HasData: true})
		}
		var names []string
		for _, c := range read.answer().said.Calls {
			names = append(names, c.Name)
		}
		if got != tt.want || strings.Join(names, " ") != tt.calls {
			t.Errorf("%s: %d, want %d; calls %q", tt.data, got, tt.want, names)
		}
		if got == partHeld && tt.format != responses && !read.answer().decides(gate{policy: counterfactual.GuessPrivileges()}) {
			t.Errorf("%s: held, and no decision is needed", tt.data)
		}
	}
	// An event by another name than its own is not read.
	for _, i := range []int{responses, messages} {
		read := newReading(format.All[i], gate{policy: counterfactual.GuessPrivileges()})
		if got := read.event(eventstream.Event{Name: "ping", Data: []byte(`{"type":"error"}`), HasData: true}); got != partHeld {
			t.Errorf("another name: %d", got)
		}
	}
}

// TestWhole: what a body that is no stream is found to be.
func TestWhole(t *testing.T) {
	for _, tt := range []struct {
		format     int
		body       string
		privileged bool
	}{
		{0, `{"choices":[{"message":{"content":"a"}}]}`, false},
		{0, `{"choices":[{"message":{"tool_calls":[{"type":"function","function":{"name":"get_it","arguments":"{}"}}]}}]}`, false},
		{0, `{"choices":[{"message":{"tool_calls":[{"type":"function","function":{"name":"pay","arguments":"{}"}}]}}]}`, true},
		{0, `{"choices":[{"message":{"tool_calls":[{"type":"custom","custom":{"name":"get_it"}}]}}]}`, true},
		{0, `{"choices":[{"message":{"function_call":{"name":"get_it"}}}]}`, false},
		{0, `{"choices":[{"message":{"function_call":{"name":"pay","arguments":"{}"}}}]}`, true},
		{0, `{"choices":[{"message":{"function_call":{"name":"get_it","Arguments":"{}"}}}]}`, true},
		{0, `{"choices":[{"message":{"function_call":{"name":"get_it"},"tool_calls":[{"type":"function","function":{"name":"get_it"}}]}}]}`, true},
		{0, `{"choices":[{"message":{"content":"a"}},{"message":{"content":"b"}}]}`, true},
		{1, `{"output":[{"type":"message","content":[]},{"type":"reasoning"},{"type":"code_interpreter_call"}]}`, false},
		{1, `{"output":[{"type":"function_call","name":"get_it","arguments":"{}"}]}`, false},
		{1, `{"output":[{"type":"custom_tool_call","name":"pay","input":"x"}]}`, true},
		{1, `{"output":[{"type":"computer_call"}]}`, true},
		{2, `{"content":[{"type":"text","text":"a"},{"type":"web_search_tool_result"}]}`, false},
		{2, `{"content":[{"type":"tool_use","name":"get_it","input":{}}]}`, false},
		{2, `{"content":[{"type":"tool_use","name":"pay","input":{}}]}`, true},
		{2, `{"content":[{"type":"other_use","name":"get_it"}]}`, true},
		{2, `nothing`, true},
	} {
		if got := read(format.All[tt.format], []byte(tt.body), nil).decides(gate{policy: counterfactual.GuessPrivileges()}); got != tt.privileged {
			t.Errorf("%s: %v", tt.body, got)
		}
	}
}
