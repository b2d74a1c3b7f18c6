// SPDX-License-Identifier: Apache-2.0

package hook

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/boundary/gateway"
	"github.com/pellucid-mcp/pellucid/text/frame"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

type discardSink struct{}

func (discardSink) Record(gateway.Decision) error { return nil }

func testOptions(t testing.TB) Options {
	t.Helper()
	key, err := frame.NewKey(make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	i, err := gateway.NewInspector(gateway.Config{Key: key, Sink: discardSink{}, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		t.Fatal(err)
	}
	return Options{i, key}
}

// recorded are events of the hosts, as they sent them, with the texts of the test in them.
var recorded = []struct{ host, event string }{
	{"claude-code", `{"session_id":"s","hook_event_name":"PostToolUse","tool_name":"Read","tool_input":{"file_path":"/p/a.txt"},"tool_response":{"type":"text","file":{"filePath":"/p/a.txt","content":"one\ntwo\n","numLines":3,"startLine":1,"totalLines":3}},"tool_use_id":"toolu_00","duration_ms":118}`},
	{"claude-code", `{"hook_event_name":"PostToolUse","tool_name":"Bash","tool_input":{"command":"cat a"},"tool_response":{"stdout":"one","stderr":"two","interrupted":false,"isImage":false,"noOutputExpected":false}}`},
	{"claude-code", `{"hook_event_name":"PostToolUse","tool_name":"Agent","tool_response":{"status":"completed","prompt":"p","agentId":"a","toolsUsed":["Bash"],"content":[{"type":"text","text":"one"},{"type":"text","text":"two"}],"totalTokens":10,"usage":{"iterations":[],"speed":"standard","fallback_credit":null}}}`},
	{"claude-code", `{"hook_event_name":"PostToolUse","tool_name":"mcp__s__t","tool_response":[{"type":"text","text":"one"},{"type":"image","data":"aGk=","mimeType":"image/png"}],"mcp_server":{"name":"s"}}`},
	{"claude-code", `{"hook_event_name":"PostToolUse","tool_name":"Later","tool_response":{"new":[{"deep":"one"}],"n":1.50,"big":12345678901234567890}}`},
	{"codex", `{"hook_event_name":"PostToolUse","tool_name":"Bash","tool_response":"one"}`},
	{"codex", `{"hook_event_name":"PostToolUse","tool_name":"apply_patch","tool_response":"one"}`},
	{"gemini-cli", `{"hook_event_name":"AfterTool","tool_name":"run_shell_command","tool_response":{"llmContent":"one","returnDisplay":"x"}}`},
	{"gemini-cli", `{"hook_event_name":"AfterTool","tool_name":"read_file","tool_response":{"llmContent":[{"text":"one"}],"returnDisplay":"x"}}`},
	{"opencode", `{"hook_event_name":"tool.execute.after","tool_name":"bash","tool_response":"one"}`},
	{"opencode", `{"hook_event_name":"tool.execute.after","tool_name":"read","tool_response":"<file>\n00001| one\n</file>"}`},
}

const marker = "\u200b<|im_start|>"

// TestEveryString: a hidden character and a token in any string of a tool's result do not reach the model, wherever they
// stand, and the shape of the result stays.
func TestEveryString(t *testing.T) {
	o := testOptions(t)
	for _, x := range recorded {
		host, _ := HostOf(x.host)
		var doc strictjson.Doc
		if err := doc.Reset([]byte(x.event), strictjson.Limits{}); err != nil {
			t.Fatal(err)
		}
		response := doc.Root().Get("tool_response")
		if host.resultMember != "" {
			response = response.Get(host.resultMember)
		}
		places := stringsIn(response, nil)
		if len(places) == 0 {
			t.Fatalf("%s: no string", x.event)
		}
		for _, place := range places {
			var e strictjson.Edits
			e.ReplaceText(place, place.Text()[:len(place.Text())/2]+marker+place.Text()[len(place.Text())/2:])
			event := e.Apply(nil, doc.Root())
			answer, err := host.Answer(t.Context(), o, event)
			if err != nil {
				t.Errorf("%s: %v", event, err)
				continue
			}
			if string(answer) == Nothing {
				if !isEncoded(place) {
					t.Errorf("%s: passed as it was", event)
				}
				continue
			}
			if s := string(answer); strings.Contains(s, "\u200b") || strings.Contains(s, `\u200b`) || strings.Contains(s, "<|im_start|>") || !json.Valid(answer) {
				t.Errorf("%s: %s", event, s)
			}
			if host == claudeCode {
				var a struct {
					Out struct {
						Result json.RawMessage `json:"updatedToolOutput"`
					} `json:"hookSpecificOutput"`
				}
				if err := json.Unmarshal(answer, &a); err != nil || shapeOf(t, a.Out.Result) != shapeOf(t, response.Raw()) {
					t.Errorf("another shape: %s: %s", response.Raw(), a.Out.Result)
				}
			}
		}
	}
}

// isEncoded reports whether a string is the data of a file, of which no character is text.
func isEncoded(v strictjson.Value) bool { return v.Text() == "aGk=" }

// shapeOf is JSON with its strings left out.
func shapeOf(t *testing.T, raw []byte) string {
	t.Helper()
	var doc strictjson.Doc
	if err := doc.Reset(raw, strictjson.Limits{}); err != nil {
		t.Fatal(err)
	}
	var e strictjson.Edits
	for _, v := range stringsIn(doc.Root(), nil) {
		e.Replace(v, []byte(`""`))
	}
	return string(e.Apply(nil, doc.Root()))
}

// TestHonest: what is honest and has no fence passes without a change, and a fence goes around the text alone.
func TestHonest(t *testing.T) {
	o := testOptions(t)
	for _, x := range recorded {
		host, _ := HostOf(x.host)
		answer, err := host.Answer(t.Context(), o, []byte(x.event))
		if err != nil {
			t.Fatal(err)
		}
		fenced := strings.Contains(string(answer), "untrusted=")
		if !fenced && string(answer) != Nothing {
			t.Errorf("%s: %s", x.event, answer)
		}
		if want := strings.Contains(x.event, `"Bash"`) || strings.Contains(x.event, `"bash"`) || strings.Contains(x.event, `"Agent"`) || strings.Contains(x.event, "mcp__"); fenced != want {
			t.Errorf("%s: fence %v, want %v", x.event, fenced, want)
		}
	}
}

// TestOwnFence: a result that wrap has framed is not framed again; one that only looks so is.
func TestOwnFence(t *testing.T) {
	o := testOptions(t)
	first, err := claudeCode.Answer(t.Context(), o, []byte(`{"hook_event_name":"PostToolUse","tool_name":"mcp__s__t","tool_response":[{"type":"text","text":"one"},{"type":"text","text":"two"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	var a struct {
		Out struct {
			Result json.RawMessage `json:"updatedToolOutput"`
		} `json:"hookSpecificOutput"`
	}
	if err := json.Unmarshal(first, &a); err != nil {
		t.Fatal(err)
	}
	event := fmt.Sprintf(`{"hook_event_name":"PostToolUse","tool_name":"mcp__s__t","tool_response":%s}`, a.Out.Result)
	if again, err := claudeCode.Answer(t.Context(), o, []byte(event)); err != nil || string(again) != Nothing {
		t.Errorf("framed again: %s %v", again, err)
	}
	forged := strings.Replace(event, "one", "obey", 1)
	if again, err := claudeCode.Answer(t.Context(), o, []byte(forged)); err != nil || string(again) == Nothing {
		t.Errorf("a forged fence passes: %s %v", again, err)
	}
}

// TestRestored: what the model writes back holds the tokens that the file holds.
func TestRestored(t *testing.T) {
	o := testOptions(t)
	read := `{"hook_event_name":"PostToolUse","tool_name":"Read","tool_response":{"type":"text","file":{"filePath":"/a","content":"x <|im_start|> y"}}}`
	answer, err := claudeCode.Answer(t.Context(), o, []byte(read))
	if err != nil || strings.Contains(string(answer), "<|im_start|>") {
		t.Fatalf("%s %v", answer, err)
	}
	var a struct {
		Out struct {
			Result struct{ File struct{ Content string } } `json:"updatedToolOutput"`
		} `json:"hookSpecificOutput"`
	}
	if err := json.Unmarshal(answer, &a); err != nil {
		t.Fatal(err)
	}
	for host, event := range map[string]string{"claude-code": "PreToolUse", "codex": "PreToolUse", "gemini-cli": "BeforeTool", "opencode": "tool.execute.before"} {
		h, _ := HostOf(host)
		text, _ := json.Marshal(a.Out.Result.File.Content)
		answer, err := h.Answer(t.Context(), o, fmt.Appendf(nil, `{"hook_event_name":%q,"tool_name":"Edit","tool_input":{"old_string":%s,"n":1.0}}`, event, text))
		if err != nil || !strings.Contains(string(answer), `x <|im_start|> y`) || !strings.Contains(string(answer), `"n":1.0`) {
			t.Errorf("%s: %s %v", host, answer, err)
		}
		if answer, err := h.Answer(t.Context(), o, fmt.Appendf(nil, `{"hook_event_name":%q,"tool_name":"Edit","tool_input":{"old_string":"plain"}}`, event)); err != nil || string(answer) != Nothing {
			t.Errorf("%s: %s %v", host, answer, err)
		}
	}
}

// withholding is a boundary that lets no result through.
type withholding struct{ *gateway.Inspector }

func (w withholding) Inspect(_ context.Context, r gateway.ToolResult) ([]byte, gateway.Decision, error) {
	return []byte(`{"content":[{"type":"text","text":"held"}],"isError":true}`), gateway.Decision{Verdict: gateway.Withheld}, nil
}

// TestWithheld: nothing of a result that is held reaches the model, and the result keeps the host's form.
func TestWithheld(t *testing.T) {
	o := testOptions(t)
	o.Boundary = withholding{o.Boundary.(*gateway.Inspector)}
	for _, x := range recorded {
		host, _ := HostOf(x.host)
		answer, err := host.Answer(t.Context(), o, []byte(x.event))
		if err != nil || strings.Contains(string(answer), "one") || strings.Contains(string(answer), "two") || !strings.Contains(string(answer), `"held"`) && !strings.Contains(string(answer), `\"held\"`) {
			t.Errorf("%s: %s %v", x.event, answer, err)
		}
		if strings.Contains(x.event, `"Read"`) && !strings.Contains(string(answer), `"type":"text"`) {
			t.Errorf("no form that the host knows: %s", answer)
		}
	}
}

func TestStrangeEvents(t *testing.T) {
	o := testOptions(t)
	for _, event := range []string{"", "null", "[]", `{"hook_event_name":`, `{"hook_event_name":"PostToolUse"`, strings.Repeat("[", 1000), `{"a":1,"a":2}`} {
		if _, err := claudeCode.Answer(t.Context(), o, []byte(event)); err == nil {
			t.Errorf("%.40s: no error", event)
		}
	}
	for _, event := range []string{`{}`, `{"hook_event_name":7}`, `{"hook_event_name":"Later"}`, `{"hook_event_name":"PostToolUse"}`, `{"hook_event_name":"PreToolUse","tool_input":"x"}`} {
		if answer, err := claudeCode.Answer(t.Context(), o, []byte(event)); err != nil || string(answer) != Nothing {
			t.Errorf("%s: %s %v", event, answer, err)
		}
	}
}

func FuzzAnswer(f *testing.F) {
	for _, x := range recorded {
		f.Add([]byte(x.event))
	}
	o := testOptions(f)
	f.Fuzz(func(t *testing.T, event []byte) {
		for _, h := range Hosts {
			answer, err := h.Answer(t.Context(), o, event)
			if err == nil && !json.Valid(answer) {
				t.Errorf("%s: %q: no JSON", h.Name, answer)
			}
		}
	})
}
