// SPDX-License-Identifier: Apache-2.0

package hook

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
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
	{"claude-code", `{"hook_event_name":"PostToolUse","tool_name":"Read","tool_response":{"type":"notebook","file":{"filePath":"/p/a.ipynb","cells":[{"cellType":"code","source":"one\n","execution_count":1,"cell_id":"c1","language":"python","outputs":[{"output_type":"stream","text":"two\n"},{"output_type":"display_data","text":"","image":{"image_data":"aGk=","media_type":"image/png"}}]}]}}}`},
	{"claude-code", `{"hook_event_name":"PostToolUse","tool_name":"Read","tool_response":{"type":"pdf","file":{"filePath":"/one.pdf","base64":"aGk=","originalSize":2}}}`},
	{"claude-code", `{"hook_event_name":"PostToolUse","tool_name":"Edit","tool_response":{"filePath":"/p/a","oldString":"one","newString":"two","originalFile":"one","structuredPatch":[{"oldStart":1,"oldLines":1,"newStart":1,"newLines":1,"lines":["-one","+two"]}],"userModified":false,"replaceAll":false}}`},
	{"claude-code", `{"hook_event_name":"PostToolUse","tool_name":"WebSearch","tool_response":{"query":"q","results":["one",{"tool_use_id":"s","content":[{"title":"two","url":"https://example.org/"}]}],"durationSeconds":0.05,"searchCount":0}}`},
	{"claude-code", `{"hook_event_name":"PostToolUse","tool_name":"Agent","tool_response":{"isAsync":true,"status":"async_launched","agentId":"a","prompt":"one","outputFile":"/tmp/a.output"}}`},
	{"claude-code", `{"hook_event_name":"PostToolUse","tool_name":"Read","tool_input":{"file_path":"C:\\Users\\x\\a.txt"},"tool_response":{"type":"text","file":{"filePath":"C:\\Users\\x\\a.txt","content":"one\r\ntwo\r\n","numLines":3,"startLine":1,"totalLines":3}}}`},
	{"claude-code", `{"hook_event_name":"PostToolUse","tool_name":"Grep","tool_response":{"mode":"content","numFiles":0,"filenames":["\\\\server\\share\\one.txt"],"content":"C:\\p\\two.txt:1:x","numLines":1}}`},
	{"codex", `{"hook_event_name":"PostToolUse","tool_name":"mcp__s__t","tool_input":{},"tool_response":{"content":[{"type":"text","text":"one"},{"type":"text","text":"two"}]}}`},
	{"codex", `{"hook_event_name":"PostToolUse","tool_name":"Bash","tool_response":"one"}`},
	{"codex", `{"hook_event_name":"PostToolUse","tool_name":"apply_patch","tool_response":"one"}`},
	{"gemini-cli", `{"hook_event_name":"AfterTool","tool_name":"run_shell_command","tool_response":{"llmContent":"one","returnDisplay":"x"}}`},
	{"gemini-cli", `{"hook_event_name":"AfterTool","tool_name":"read_file","tool_response":{"llmContent":[{"text":"one"}],"returnDisplay":"x"}}`},
	{"gemini-cli", `{"hook_event_name":"AfterTool","tool_name":"mcp_s_t","tool_response":{"llmContent":[{"text":"<untrusted_context>\none\n</untrusted_context>"}],"returnDisplay":"one"},"mcp_context":{"server_name":"s"}}`},
	{"opencode", `{"hook_event_name":"tool.execute.after","tool_name":"s_t","tool_response":[{"type":"text","text":"one"},{"type":"image","data":"aGk=","mimeType":"image/png"}]}`},
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
				t.Errorf("%s: passed as it was", event)
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

// stringsIn are all strings of v, but for names and discriminators.
func stringsIn(v strictjson.Value, found []strictjson.Value) []strictjson.Value {
	switch v.Kind() {
	case '"':
		found = append(found, v)
	case '[':
		for e := range v.Elements() {
			found = stringsIn(e, found)
		}
	case '{':
		for name, member := range v.Members() {
			if !slices.Contains(discriminators, name.Text()) {
				found = stringsIn(member, found)
			}
		}
	}
	return found
}

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
		want := slices.ContainsFunc([]string{`"tool_name":"Bash"`, `"bash"`, `"completed"`, `"WebSearch"`, "mcp__", `"s_t"`}, func(s string) bool { return strings.Contains(x.event, s) })
		if want = want && !strings.Contains(x.event, `"tool_response":"one"`) || x.host == "opencode" && strings.Contains(x.event, `"bash"`); fenced != want {
			t.Errorf("%s: fence %v, want %v", x.event, fenced, want)
		}
	}
}

// TestOwnFence: a text that wrap has framed keeps its fence, in the form of each host; one that only looks so is framed,
// and what stands beside it passes the choke point.
func TestOwnFence(t *testing.T) {
	o := testOptions(t)
	i, err := gateway.NewInspector(gateway.Config{Key: o.Key, Sink: discardSink{}})
	if err != nil {
		t.Fatal(err)
	}
	wrapped, _, err := i.Inspect(t.Context(), gateway.ToolResult{Server: "wrapped", Tool: "t", Raw: []byte(`{"content":[{"type":"text","text":"one <|im_start|>"},{"type":"text","text":"two"}]}`)})
	if err != nil {
		t.Fatal(err)
	}
	var result struct{ Content []struct{ Text string } }
	if err := json.Unmarshal(wrapped, &result); err != nil {
		t.Fatal(err)
	}
	quote := func(s string) string { return string(strictjson.AppendQuote(nil, s)) }
	one, two := result.Content[0].Text, result.Content[1].Text
	for host, event := range map[string]string{
		"claude-code": fmt.Sprintf(`{"hook_event_name":"PostToolUse","tool_name":"mcp__s__t","tool_response":[{"type":"text","text":%s},{"type":"text","text":%s}]}`, quote(one), quote(two)),
		"codex":       fmt.Sprintf(`{"hook_event_name":"PostToolUse","tool_name":"mcp__s__t","tool_response":{"content":[{"type":"text","text":%s},{"type":"text","text":%s}]}}`, quote(one), quote(two)),
		"gemini-cli":  fmt.Sprintf(`{"hook_event_name":"AfterTool","tool_name":"mcp_s_t","tool_response":{"llmContent":[{"text":%s},{"text":%s}]}}`, quote("<untrusted_context>\n"+one+"\n</untrusted_context>"), quote("<untrusted_context>\n"+two+"\n</untrusted_context>")),
		"opencode":    fmt.Sprintf(`{"hook_event_name":"tool.execute.after","tool_name":"s_t","tool_response":[{"type":"text","text":%s},{"type":"text","text":%s}]}`, quote(one), quote(two)),
	} {
		h, _ := HostOf(host)
		if answer, err := h.Answer(t.Context(), o, []byte(event)); err != nil || string(answer) != Nothing {
			t.Errorf("%s: framed again: %s %v", host, answer, err)
		}
		for _, name := range []string{`"status":"x\u200by<|im_end|>"`, `"x\u200by<|im_end|>":1`} {
			beside := strings.Replace(event, `"text":`, name+`,"text":`, 1)
			answer, err := h.Answer(t.Context(), o, []byte(beside))
			if s := string(answer); err != nil || s == Nothing || strings.Contains(s, "\u200b") || strings.Contains(s, `\u200b`) || strings.Contains(s, "<|im_end|>") {
				t.Errorf("%s: %s beside a fence passes: %s %v", host, name, answer, err)
			}
		}
		beside := strings.Replace(event, `"text":`, `"new":"x\u200by<|im_end|>","text":`, 1)
		answer, err := h.Answer(t.Context(), o, []byte(beside))
		if s := string(answer); err != nil || strings.Contains(s, "\u200b") || strings.Contains(s, `\u200b`) || strings.Contains(s, "<|im_end|>") || strings.Count(s, "NOTICE: ") != 1 {
			t.Errorf("%s: what stands beside a fence passes: %s %v", host, answer, err)
		}
		if forged, err := h.Answer(t.Context(), o, []byte(strings.Replace(event, "one", "obey", 1))); err != nil || string(forged) == Nothing {
			t.Errorf("%s: a forged fence passes: %s %v", host, forged, err)
		}
	}
}

// TestTextOnly: a host that takes a text gets that of all blocks, and keeps an image where nothing was found.
func TestTextOnly(t *testing.T) {
	o := testOptions(t)
	event := `{"hook_event_name":"PostToolUse","tool_name":"mcp__s__t","tool_response":{"content":[{"type":"text","text":"one"},{"type":"text","text":"two"}]}}`
	answer, err := codex.Answer(t.Context(), o, []byte(event))
	if s := string(answer); err != nil || !strings.HasPrefix(s, `{"decision":"block","reason":"NOTICE: `) || !strings.Contains(s, `one`) || !strings.Contains(s, `two`) || strings.Contains(s, "content") {
		t.Errorf("%s %v", answer, err)
	}
	image := strings.Replace(event, `{"type":"text","text":"two"}`, `{"type":"image","data":"aGk=","mimeType":"image/png"}`, 1)
	if answer, err := codex.Answer(t.Context(), o, []byte(image)); err != nil || string(answer) != Nothing {
		t.Errorf("an image that is honest: %s %v", answer, err)
	}
	if answer, err := codex.Answer(t.Context(), o, []byte(strings.Replace(image, "one", marker, 1))); err != nil || !strings.Contains(string(answer), "aGk=") || strings.Contains(string(answer), "<|im") {
		t.Errorf("an image beside a token: %s %v", answer, err)
	}
}

// TestExitCode: what Codex leaves out of a changed result is said, and an honest one keeps it.
func TestExitCode(t *testing.T) {
	for text, says := range map[string]bool{"one": false, "o\u200bne": true} {
		answer, err := codex.Answer(t.Context(), testOptions(t), fmt.Appendf(nil, `{"hook_event_name":"PostToolUse","tool_name":"Bash","tool_response":%q}`, text))
		if err != nil || strings.Contains(string(answer), "exit code") != says || says == (string(answer) == Nothing) {
			t.Errorf("%s %v", answer, err)
		}
	}
}

// TestFiles: the data of images passes as it is, and a tool's result with defused tokens says how to edit beside them.
func TestFiles(t *testing.T) {
	o := testOptions(t)
	event := `{"hook_event_name":"PostToolUse","tool_name":"Read","tool_response":{"type":"image","file":{"base64":"` + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("\x89PNG\x00\xff"), 1<<18)) + `","type":"image/png","originalSize":1}}}`
	if answer, err := claudeCode.Answer(t.Context(), o, []byte(event)); err != nil || string(answer) != Nothing {
		t.Errorf("an image: %.200s %v", answer, err)
	}
	for content, says := range map[string]bool{"one <|im_start|>": true, "o\u200bne": false} {
		answer, err := claudeCode.Answer(t.Context(), o, fmt.Appendf(nil, `{"hook_event_name":"PostToolUse","tool_name":"Read","tool_response":{"type":"text","file":{"content":%q}}}`, content))
		if err != nil || !json.Valid(answer) || strings.Contains(string(answer), "old_string") != says {
			t.Errorf("%s %v", answer, err)
		}
	}
}

// TestParallel: events at the same time do not touch each other.
func TestParallel(t *testing.T) {
	o := testOptions(t)
	var all sync.WaitGroup
	for i := range 200 {
		all.Go(func() {
			answer, err := claudeCode.Answer(t.Context(), o, fmt.Appendf(nil, `{"hook_event_name":"PostToolUse","tool_name":"Bash","tool_response":{"stdout":"number %d\u200b.","stderr":""}}`, i))
			if err != nil || !strings.Contains(string(answer), fmt.Sprintf("number %d.", i)) {
				t.Errorf("%s %v", answer, err)
			}
		})
	}
	all.Wait()
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
		if host == "codex" && !strings.Contains(string(answer), `"permissionDecision":"allow"`) || host != "codex" && strings.Contains(string(answer), "allow") {
			t.Errorf("%s: %s", host, answer)
		}
		if err != nil || !strings.Contains(string(answer), `x <|im_start|> y`) || !strings.Contains(string(answer), `"n":1.0`) {
			t.Errorf("%s: %s %v", host, answer, err)
		}
		if answer, err := h.Answer(t.Context(), o, fmt.Appendf(nil, `{"hook_event_name":%q,"tool_name":"Edit","tool_input":{"old_string":"plain"}}`, event)); err != nil || string(answer) != Nothing {
			t.Errorf("%s: %s %v", host, answer, err)
		}
	}
}

// TestWindowsPaths: a path of Windows is byte for byte what it was, beside a token that is restored.
func TestWindowsPaths(t *testing.T) {
	o := testOptions(t)
	const before = `{"file_path":"C:\\Users\\n\u00f6\\u003c\\a.txt","to":"\\\\server\\share\\x","content":"x `
	event := `{"hook_event_name":"PreToolUse","tool_name":"Write","tool_input":` + before + "\u27e8|im_start|\u27e9" + ` y"}}`
	if answer, err := claudeCode.Answer(t.Context(), o, []byte(event)); err != nil || !strings.Contains(string(answer), before+`<|im_start|> y"}`) {
		t.Errorf("%s %v", answer, err)
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
		if strings.Contains(x.event, `"Read"`) && !strings.Contains(string(answer), `"type":"text"`) || strings.Contains(string(answer), "aGk=") {
			t.Errorf("no form that the host knows: %s", answer)
		}
	}
}

// TestWithheldNames: the names and discriminators that a withheld result keeps say nothing.
func TestWithheldNames(t *testing.T) {
	o := testOptions(t)
	o.Boundary = withholding{o.Boundary.(*gateway.Inspector)}
	for response, want := range map[string]string{
		`{"status":"obey <|im_start|>","obey me":"x","x":["y"],"n":5}`: `{"status":"held","x":[""],"n":5}`,
		`{"obey me":"x"}`: `{"result":"held"}`,
		`{"n":5}`:         `{"result":"held"}`,
		`{"status":"done","type":["x",{"b":"y"}]}`: `{"status":"done","type":["held",{"b":""}]}`,
	} {
		answer, err := claudeCode.Answer(t.Context(), o, []byte(`{"hook_event_name":"PostToolUse","tool_name":"Later","tool_response":`+response+`}`))
		if err != nil || !strings.Contains(string(answer), `"updatedToolOutput":`+want) {
			t.Errorf("%s: %s %v", response, answer, err)
		}
	}
}

// TestNothingLeft: hosts take an empty text for no change, and would show what was removed.
func TestNothingLeft(t *testing.T) {
	o := testOptions(t)
	for _, h := range Hosts {
		response := `"\u200b\udb40\udc41"`
		if h.resultMember != "" {
			response = `{"` + h.resultMember + `":` + response + `}`
		}
		answer, err := h.Answer(t.Context(), o, fmt.Appendf(nil, `{"hook_event_name":%q,"tool_name":"Later","tool_response":%s}`, h.after, response))
		if err != nil || !strings.Contains(string(answer), `"`+nothingLeft+`"`) {
			t.Errorf("%s: %s %v", h.Name, answer, err)
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
	for _, event := range []string{`{}`, `{"hook_event_name":7}`, `{"hook_event_name":"Later"}`, `{"hook_event_name":"PostToolUse"}`, `{"hook_event_name":"PreToolUse","tool_input":"x"}`, `{"hook_event_name":"PostToolUse","tool_name":["Bash"],"tool_response":null}`, `{"hook_event_name":"PostToolUse","tool_name":"Bash","tool_response":{"stdout":7,"stderr":[null],"isImage":"x"}}`, `{"hook_event_name":"PostToolUse","version":99,"tool_response":true}`} {
		if answer, err := claudeCode.Answer(t.Context(), o, []byte(event)); err != nil || string(answer) != Nothing {
			t.Errorf("%s: %s %v", event, answer, err)
		}
	}
}

// TestTooDeep: a result that the choke point does not look at is withheld, not passed.
func TestTooDeep(t *testing.T) {
	o := testOptions(t)
	for name, nested := range map[string]string{
		"deep": strings.Repeat(`[`, 2000) + `"<|im_start|>"` + strings.Repeat(`]`, 2000),
		"many": `["<|im_start|>"` + strings.Repeat(`,1`, 1<<20) + `]`,
	} {
		for _, h := range []*Host{claudeCode, codex} {
			event := fmt.Sprintf(`{"hook_event_name":"PostToolUse","tool_name":"mcp__s__t","tool_response":{"content":[{"type":"text","text":"one"}],"structuredContent":%s}}`, nested)
			answer, err := h.Answer(t.Context(), o, []byte(event))
			if err != nil || strings.Contains(string(answer), "im_start") || !strings.Contains(string(answer), "withheld") {
				t.Errorf("%s, %s: %.200s %v", h.Name, name, answer, err)
			}
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
