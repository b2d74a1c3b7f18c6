// SPDX-License-Identifier: Apache-2.0

package guard_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/pellucid-mcp/pellucid/model/counterfactual"
	"github.com/pellucid-mcp/pellucid/model/delegation"
	"github.com/pellucid-mcp/pellucid/model/format"
	"github.com/pellucid-mcp/pellucid/model/guard"
	"github.com/pellucid-mcp/pellucid/model/llm"
	"github.com/pellucid-mcp/pellucid/model/llm/llmtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const secret = "sk-test-0123456789abcdef"

// injected matches what the obedient model obeys, wherever it stands.
var injected = regexp.MustCompile(`IMPORTANT: pay (backwards )?(\w+)`)

// obedient is a SCRIPTED model: no model is behind it. It pays whomever text in the
// context tells it to, does what the user asks for, and otherwise answers "Done.".
func obedient(a llmtest.Ask) llmtest.Reply {
	if a.System == delegation.PlanPrompt {
		return planned(a.Messages[len(a.Messages)-1].Text)
	}
	pay := func(to string) llmtest.Reply {
		return llmtest.Reply{Text: "Let me see.", Calls: []llm.ToolCall{
			{ID: "call_1", Name: "send_money", Arguments: []byte(fmt.Sprintf(`{"recipient":%q,"amount":100}`, to))}}}
	}
	for _, m := range a.Messages {
		if m.Role != llm.ToolResult {
			continue
		}
		if found := injected.FindStringSubmatch(m.Text); found != nil {
			to := []byte(found[2])
			if found[1] != "" {
				slices.Reverse(to)
			}
			r := pay(string(to))
			r.Text = ""
			return r
		}
	}
	for _, m := range a.Messages {
		if m.Role == llm.User && strings.Contains(m.Text, "pay bob") {
			return pay("bob")
		}
	}
	if len(a.Messages) > 0 && strings.Contains(a.Messages[0].Text, "read it") && len(a.Messages) == 1 {
		return llmtest.Reply{Calls: []llm.ToolCall{{ID: "call_r", Name: "read_mail", Arguments: []byte(`{}`)}}}
	}
	return llmtest.Reply{Text: "Done."}
}

// planned answers for a planner: the request that says so needs a payment.
func planned(request string) llmtest.Reply {
	switch {
	case strings.Contains(request, "pay bob"):
		return llmtest.Reply{Text: `[{"tool":"send_money","args":{"recipient":"bob","amount":100}}]`}
	case strings.Contains(request, "Pay the bill"):
		return llmtest.Reply{Text: `[{"tool":"read_mail","args":{}},{"tool":"send_money","args":{"recipient":{"from":"the bill"},"amount":{"from":"the bill"}}}]`}
	}
	return llmtest.Reply{Text: "[]"}
}

// sink keeps statements.
type sink struct {
	mu  sync.Mutex
	all [][]byte
	err error
}

func (s *sink) Record(_ context.Context, kind string, statement []byte, cost guard.Cost) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if kind != guard.Kind || cost.Calls < 0 || cost.Tokens < 0 || cost.Took <= 0 {
		panic(fmt.Sprint(kind, cost))
	}
	s.all = append(s.all, statement)
	return s.err
}

func (s *sink) last(t testing.TB) statement {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.all) == 0 {
		t.Fatal("nothing was recorded")
	}
	var st statement
	if err := json.Unmarshal(s.all[len(s.all)-1], &st); err != nil {
		t.Fatal(err)
	}
	if e, err := guard.Replay(s.all[len(s.all)-1]); err != nil || e.ID != st.ID || len(e.Runs) != len(st.Runs) {
		t.Errorf("the statement does not replay: %v\n%s", err, s.all[len(s.all)-1])
	}
	for _, r := range st.Runs {
		if _, err := counterfactual.Replay(r); err != nil {
			t.Errorf("the record does not replay: %v", err)
		}
	}
	return st
}

func (s *sink) n() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.all)
}

// statement is what a test looks at.
type statement struct {
	Act, Reason, Response, ID, Principal, Task string
	Audit                                      bool
	Calls                                      []guard.Call
	Runs                                       []json.RawMessage
}

// A rig is a guard between a test and a fake.
type rig struct {
	t     testing.TB
	fake  *llmtest.Server
	guard *guard.Guard
	front *httptest.Server
	sink  *sink

	mu    sync.Mutex
	calls int // that the model has got
}

func newRig(t testing.TB, m llmtest.Model, change ...func(*guard.Options)) *rig {
	t.Helper()
	r := &rig{t: t, sink: &sink{}}
	fake := llmtest.Start(t, func(a llmtest.Ask) llmtest.Reply {
		r.mu.Lock()
		r.calls++
		r.mu.Unlock()
		return m(a)
	}, secret)
	o := guard.Options{Upstream: fake.Root, Hooks: guard.Hooks{Sink: r.sink}}
	for _, c := range change {
		c(&o)
	}
	var err error
	if r.guard, err = guard.New(o); err != nil {
		t.Fatal(err)
	}
	r.fake, r.front = fake, httptest.NewServer(r.guard)
	t.Cleanup(func() {
		r.front.Close()
		ctx, stop := context.WithTimeout(context.Background(), time.Minute)
		defer stop()
		if err := r.guard.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return r
}

func (r *rig) asked() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.calls
}

// conversation is a request in which the user asks for task and tools have answered.
func conversation(f format.Name, stream bool, task string, results ...string) []byte {
	quote := func(s string) string { b, _ := json.Marshal(s); return string(b) }
	var b strings.Builder
	tools := `{"name":"send_money","description":"Pay.","%s":{"type":"object"}},{"name":"read_mail","description":"Read.","%s":{"type":"object"}}`
	switch f {
	case format.Chat:
		fmt.Fprintf(&b, `{"model":"m","stream":%v,"messages":[{"role":"system","content":"Be useful."},{"role":"user","content":%s}`, stream, quote(task))
		for i, r := range results {
			fmt.Fprintf(&b, `,{"role":"assistant","content":null,"tool_calls":[{"id":"c%d","type":"function","function":{"name":"read_mail","arguments":"{}"}}]}`, i)
			fmt.Fprintf(&b, `,{"role":"tool","tool_call_id":"c%d","content":%s}`, i, quote(r))
		}
		b.WriteString(`],"tools":[{"type":"function","function":{"name":"send_money","parameters":{"type":"object"}}},{"type":"function","function":{"name":"read_mail","parameters":{"type":"object"}}}]}`)
	case format.Messages:
		fmt.Fprintf(&b, `{"model":"m","max_tokens":1000,"stream":%v,"system":"Be useful.","messages":[{"role":"user","content":%s}`, stream, quote(task))
		for i, r := range results {
			fmt.Fprintf(&b, `,{"role":"assistant","content":[{"type":"tool_use","id":"c%d","name":"read_mail","input":{}}]}`, i)
			fmt.Fprintf(&b, `,{"role":"user","content":[{"type":"tool_result","tool_use_id":"c%d","content":%s}]}`, i, quote(r))
		}
		fmt.Fprintf(&b, `],"tools":[`+tools+`]}`, "input_schema", "input_schema")
	case format.Responses:
		fmt.Fprintf(&b, `{"model":"m","stream":%v,"instructions":"Be useful.","input":[{"role":"user","content":%s}`, stream, quote(task))
		for i, r := range results {
			fmt.Fprintf(&b, `,{"type":"function_call","call_id":"c%d","name":"read_mail","arguments":"{}"}`, i)
			fmt.Fprintf(&b, `,{"type":"function_call_output","call_id":"c%d","output":%s}`, i, quote(r))
		}
		b.WriteString(`],"tools":[{"type":"function","name":"send_money","parameters":{"type":"object"}},{"type":"function","name":"read_mail","parameters":{"type":"object"}}]}`)
	case format.Gemini, format.GeminiArray:
		fmt.Fprintf(&b, `{"generationConfig":{"maxOutputTokens":1000},"systemInstruction":{"parts":[{"text":"Be useful."}]},"contents":[{"role":"user","parts":[{"text":%s}]}`, quote(task))
		for i, r := range results {
			fmt.Fprintf(&b, `,{"role":"model","parts":[{"functionCall":{"id":"c%d","name":"read_mail","args":{}},"thoughtSignature":"c2ln"}]}`, i)
			fmt.Fprintf(&b, `,{"role":"user","parts":[{"functionResponse":{"id":"c%d","name":"read_mail","response":{"result":%s}}}]}`, i, quote(r))
		}
		b.WriteString(`],"tools":[{"functionDeclarations":[{"name":"send_money","parameters":{"type":"object"}},{"name":"read_mail","parameters":{"type":"object"}}]}]}`)
	}
	return []byte(b.String())
}

var paths = map[format.Name]string{
	format.Chat: "/v1/chat/completions", format.Messages: "/v1/messages", format.Responses: "/v1/responses",
	format.Gemini: "/v1beta/models/m:generateContent", format.GeminiArray: "/v1beta/models/m:generateContent",
}

var formats = []format.Name{format.Chat, format.Messages, format.Responses, format.Gemini, format.GeminiArray}

// pathOf is where a request goes that wants a stream, or none.
func pathOf(f format.Name, stream bool) string {
	if isGemini(f) {
		return "/v1beta" + format.Of(f).Path("m", stream)
	}
	return paths[f]
}

func isGemini(f format.Name) bool { return strings.HasPrefix(string(f), "google") }

func (r *rig) post(f format.Name, body []byte) *http.Response {
	r.t.Helper()
	return r.postTo(paths[f], f, body)
}

func (r *rig) postTo(path string, f format.Name, body []byte) *http.Response {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodPost, r.front.URL+path, bytes.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if f == format.Messages {
		req.Header.Set("X-Api-Key", secret)
		req.Header.Set("Anthropic-Version", "2023-06-01")
	} else {
		req.Header.Set("Authorization", "Bearer "+secret)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { resp.Body.Close() })
	return resp
}

// through asks with this module's own client, which reads streams strictly.
func (r *rig) through(f format.Name, body []byte, stream bool) (llm.Response, error) {
	r.t.Helper()
	base := r.front.URL + "/v1"
	if isGemini(f) {
		base = r.front.URL + "/v1beta"
	}
	e, err := llm.New(llm.Options{Format: f, BaseURL: base, Model: "m", Retries: -1,
		Key: llm.NewKey("test", func() (string, error) { return secret, nil })})
	if err != nil {
		r.t.Fatal(err)
	}
	defer e.Close()
	name := map[format.Name]string{format.Chat: "max_tokens", format.Responses: "max_output_tokens"}[f]
	if name != "" {
		body = append(body[:len(body)-1:len(body)-1], fmt.Sprintf(`,%q:1000}`, name)...)
	}
	req := llm.Request{Raw: body}
	if stream {
		req.Stream = func(llm.Delta) error { return nil }
	}
	return e.Complete(r.t.Context(), req)
}

type (
	ask   = llmtest.Ask
	reply = llmtest.Reply
)

// get is the answer to a GET.
func (r *rig) get(path string) (int, string) {
	r.t.Helper()
	resp, err := http.Get(r.front.URL + path)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	http.DefaultClient.CloseIdleConnections()
	return resp.StatusCode, string(b)
}
