// SPDX-License-Identifier: Apache-2.0

package format_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/model/format"
)

// TestWritten reads calls as models write them into their text, and texts that hold none.
func TestWritten(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"Hermes", "Ok.\n<tool_call>\n{\"name\": \"pay\", \"arguments\": {\"to\": \"Ann </tool\"}}\n</tool_call>", `pay {"to": "Ann </tool"}`},
		{"two", `<tool_call>{"name":"pay","arguments":{}}</tool_call><tool_call>{"name":"get","arguments":{"a":1}}</tool_call>`, `pay {}|get {"a":1}`},
		{"arguments as a string", `<tool_call>{"name":"pay","arguments":"{\"a\":1}"}</tool_call>`, `pay {"a":1}`},
		{"OpenAI's object", `<function_call>{"type":"function","function":{"name":"pay","parameters":{"a":1}}}</function_call>`, `pay {"a":1}`},
		{"not closed", `<tool_call>{"name":"pay","arguments":{"a":1}}`, `pay {"a":1}`},
		{"cut off", `<tool_call>{"name":"pay","arguments":{"to":"An`, `pay {"name":"pay","arguments":{"to":"An`},
		{"not strict", `<tool_call>{'name': 'pay', 'arguments': {'to': 'Ann'}}</tool_call>`, `pay {'name': 'pay', 'arguments': {'to': 'Ann'}}`},
		{"invoke", "<function_calls>\n<invoke name=\"pay\">\n<parameter name=\"to\">Ann</parameter><parameter name=\"sum\">9</parameter>\n</invoke>\n</function_calls>", `pay {"to":"Ann","sum":"9"}`},
		{"invoke in capitals", `<INVOKE NAME='pay'><parameter name='to'>Ann</parameter></INVOKE>`, `pay {"to":"Ann"}`},
		{"Llama", `<function=pay>{"to": "Ann"}</function>`, `pay {"to": "Ann"}`},
		{"Qwen", "<tool_call>\n<function=pay>\n<parameter=to>\nAnn\n</parameter>\n</function>\n</tool_call>", `pay {"to":"Ann"}`},
		{"GLM", "<tool_call>pay\n<arg_key>to</arg_key>\n<arg_value>Ann</arg_value>\n</tool_call>", `pay {"to":"Ann"}`},
		{"Mistral", `[TOOL_CALLS][{"name":"pay","arguments":{"a":1}}]`, `pay {"a":1}`},
		{"Mistral, newer", `[TOOL_CALLS]pay[ARGS]{"a":1}`, `pay {"a":1}`},
		{"a token that is not read", "<|tool_call_begin|>functions.pay:0<|tool_call_argument_begin|>...", `?|?`},
		{"tool_use", `<tool_use><name>pay</name></tool_use>`, ``},
		{"in a block of code", "So:\n```xml\n<tool_call>{\"name\":\"pay\"}</tool_call>\n```\n", `(pay {})`},
		{"in a block with tildes", "~~~\n<invoke name=\"pay\"></invoke>\n```\n<invoke name=\"get\"></invoke>\n~~~\n<invoke name=\"del\"></invoke>", `(pay {})|(get {})|del {}`},
		{"in a span of code", "Write `<function=pay>{}</function>` there.", `(pay {})`},
		{"behind a span of code", "See `x`: <function=pay>{}</function>", `pay {}`},
		{"behind a block of code", "```\nx\n```\n<function=pay>{}</function>", `pay {}`},
		{"prose", "The <tool_call> tag, [tools], <invoke>, a < b and <function name=\"f\"> call nothing.", ``},
		{"HTML", `<function class="a">pay</function><invoker name="pay"/>`, ``},
	} {
		calls, shown := format.Written(tt.text)
		var got []string
		for i, c := range calls {
			s := fmt.Sprint(c.Name, " ", string(c.Arguments))
			if c.Kind == format.CallOther {
				s = "?"
			}
			if shown[i] {
				s = "(" + s + ")"
			}
			got = append(got, s)
		}
		if got := strings.Join(got, "|"); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
	long := "<tool_call>{\"name\":\"pay\",\"arguments\":{\"a\":\"" + strings.Repeat("x", 1<<17) + "\"}}</tool_call>"
	if calls, _ := format.Written(long); len(calls) != 1 || calls[0].Kind != format.CallOther {
		t.Errorf("%d calls in a long text", len(calls))
	}
	if calls, _ := format.Written(strings.Repeat("<tool_call>", 1<<17)); len(calls) != 1 || calls[0].Kind != format.CallOther {
		t.Errorf("%d calls of many tags", len(calls))
	}
}

// FuzzWritten: any text is read; where a call is found, its opener was seen on the way,
// however the text is cut into pieces.
func FuzzWritten(f *testing.F) {
	f.Add("a <tool_call>{\"name\":\"pay\"}</tool_call> `<invoke name=\"x\">`", 3)
	f.Add("```\n<function=pay><parameter=to>\n```\n[TOOL_CALLS]pay[ARGS]{}", 1)
	f.Fuzz(func(t *testing.T, text string, size int) {
		calls, shown := format.Written(text)
		size = max(1, size)
		var w format.Writing
		began, plain := false, false
		for rest := text; rest != ""; {
			n := min(size, len(rest))
			b, s := w.Add(rest[:n])
			began, plain = began || b, plain || b && !s
			rest = rest[n:]
		}
		for i, c := range calls {
			if !began || !shown[i] && !plain {
				t.Errorf("no opener of %q was seen in %q", c.Name, text)
			}
			if c.Name == "" && c.Kind != format.CallOther {
				t.Errorf("a call of no tool in %q", text)
			}
		}
	})
}

// TestSpans: a call is shown as code only between two runs of as many backticks in one line.
func TestSpans(t *testing.T) {
	const call = `<tool_call>{"name":"pay"}</tool_call>`
	for text, want := range map[string]bool{
		"It is `" + call + "` there.":                             true,
		"It`s here: " + call:                                      false,
		"It`s `code`, and " + call:                                false,
		"`` " + call + " ` ``":                                    true,
		"`` " + call + " `":                                       false,
		"` " + call + " ``":                                       false,
		"`a` " + call + " `b`":                                    false,
		"`a\n" + call + "\nb`":                                    false,
		"`a` `" + call + "`":                                      true,
		"`" + strings.Repeat("x", 5000) + call + "`":              false,
		"```\n" + call + "\n```":                                  true,
		"`\n" + call:                                              false,
		"one ` two\nthree `" + call + "` four":                    true,
		strings.Repeat("`", 3000) + call + strings.Repeat("`", 9): false,
	} {
		calls, shown := format.Written(text)
		if len(calls) != 1 || shown[0] != want {
			t.Errorf("%.60q: %d calls, shown %v, want %v", text, len(calls), shown, want)
		}
	}
}
