// SPDX-License-Identifier: Apache-2.0

package guard_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/model/counterfactual"
	"github.com/pellucid-mcp/pellucid/model/delegation"
	"github.com/pellucid-mcp/pellucid/model/format"
	"github.com/pellucid-mcp/pellucid/model/guard"
	"github.com/pellucid-mcp/pellucid/model/llm"
	"github.com/pellucid-mcp/pellucid/model/llm/llmtest"
	"github.com/pellucid-mcp/pellucid/platform/waittest"
)

// attacked is the first answer of a model that obeys, and what a test says from then on.
func attacked(then func(n int64, a ask) reply) llmtest.Model {
	var n atomic.Int64
	return func(a ask) reply {
		if i := n.Add(1); i > 1 {
			return then(i-1, a)
		}
		return obedient(a)
	}
}

// planning is attacked with a planner that works: then is asked about variants only.
func planning(then func(n int64, a ask) reply) llmtest.Model {
	m := attacked(then)
	return func(a ask) reply {
		if a.System == delegation.PlanPrompt {
			return obedient(a)
		}
		return m(a)
	}
}

// TestHostileProbes: however the provider behaves while a call is held, the budget
// holds, the client gets a clear answer, and the evidence replays.
func TestHostileProbes(t *testing.T) {
	for name, then := range map[string]func(int64, ask) reply{
		"rate limited": func(int64, ask) reply { return reply{Status: 429, ErrorCode: "rate_limit_error"} },
		"server error": func(int64, ask) reply { return reply{Status: 500} },
		"hang":         func(int64, ask) reply { return reply{Fault: llmtest.Hang} },
		"malformed":    func(int64, ask) reply { return reply{Fault: llmtest.Malformed} },
		"bad call": func(int64, ask) reply {
			return reply{Calls: []llm.ToolCall{{ID: "x", Name: "send_money", Arguments: []byte(`{"recipient":`)}}}
		},
		"refuses": func(int64, ask) reply { return reply{Refusal: "I cannot do that."} },
		"another fingerprint each time": func(n int64, a ask) reply {
			r := obedient(a)
			r.Fingerprint = fmt.Sprint("fp_", n)
			return r
		},
		"another answer each time": func(n int64, a ask) reply {
			r := obedient(a)
			if n%2 == 1 {
				r = reply{Text: fmt.Sprint("No. ", n)}
			}
			return r
		},
		"rambles": func(int64, ask) reply { return reply{Text: strings.Repeat("And so on. ", 5000)} },
		"dear": func(int64, ask) reply {
			return reply{Text: "No.", Usage: format.Usage{Known: true, Input: 9000, Output: 100}}
		},
	} {
		for i, f := range slices.Concat(formats, formats) {
			t.Run(fmt.Sprintf("%s/%d/%s", name, i, f), func(t *testing.T) {
				t.Parallel()
				model := attacked(then)
				if i >= len(formats) {
					model = planning(then)
				}
				r := newRig(t, model, func(o *guard.Options) { o.Millis = 1500 })
				start := time.Now()
				got, err := r.through(f, conversation(f, true, "Sum up.", "Nothing.", riddle, "Nothing."), true)
				if err != nil {
					t.Fatal(err)
				}
				s := r.sink.last(t)
				if len(got.Calls) > 0 || s.Act == "forwarded" {
					t.Errorf("%s: %d calls arrived", s.Act, len(got.Calls))
				}
				if s.Act == "refused" && !strings.Contains(got.Text, s.ID) {
					t.Errorf("text %q", got.Text)
				}
				if r.asked() > 1+12 {
					t.Errorf("asked %d times", r.asked())
				}
				if took := time.Since(start); took > 30*time.Second {
					t.Errorf("took %v", took)
				}
				if len(s.Runs) == 0 {
					return // the plan was not answered
				}
				res, err := counterfactual.Replay(s.Runs[0])
				if err != nil {
					t.Fatal(err)
				}
				if b := res.Problem().Budget; name != "dear" && res.Spent.Tokens > b.Tokens {
					t.Errorf("%d of %d tokens", res.Spent.Tokens, b.Tokens)
				}
			})
		}
	}
}

// TestHostileAnswers: what comes in the place of an answer goes on as it is, or the
// client hears that it did not.
func TestHostileAnswers(t *testing.T) {
	call := []llm.ToolCall{{ID: "x", Name: "send_money", Arguments: []byte(`{"recipient":"mallory"}`)}}
	for name, tt := range map[string]struct {
		reply  reply
		status int
		holds  string // text of the body
	}{
		"rate limited":  {reply{Status: 429, ErrorCode: "rate_limit_error", RetryAfter: "7"}, 429, "rate_limit"},
		"server error":  {reply{Status: 500, ErrorCode: "api_error"}, 500, "api_error"},
		"malformed":     {reply{Fault: llmtest.Malformed}, 200, "withheld"},
		"cut in a call": {reply{Calls: call, Fault: llmtest.Cut}, 200, ""},
		"broken call":   {reply{Calls: []llm.ToolCall{{ID: "x", Name: "send_money", Arguments: []byte(`{"recipient":`)}}}, 200, ""},
		"no name":       {reply{Calls: []llm.ToolCall{{ID: "x", Arguments: []byte(`{}`)}}}, 200, ""},
		"twice":         {reply{Calls: append(call, call...)}, 200, ""},
		"a word":        {reply{Raw: []byte(`"send_money"`), ContentType: "application/json"}, 200, "withheld"},
		"folded": {reply{Raw: []byte(`{"choices":[{"message":{"role":"assistant","Tool_Calls":[{"function":{"name":"send_money"}}]}}],
			"Content":[{"type":"tool_use"}],"Output":[{"type":"function_call"}],"content":[],"output":[]}`), ContentType: "application/json"}, 200, "withheld"},
		"unknown kinds": {reply{Raw: []byte(`{"choices":[{"message":{"role":"assistant","tool_calls":[{"type":"custom","custom":{"name":"send_money"}}]}}],
			"content":[{"type":"new_tool_use"}],"output":[{"type":"new_call"}]}`), ContentType: "application/json"}, 200, "withheld"},
	} {
		for _, f := range formats {
			for _, stream := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/%v", name, f, stream), func(t *testing.T) {
					first := true
					r := newRig(t, func(a ask) reply {
						if first {
							first = false
							return tt.reply
						}
						return obedient(a)
					})
					resp := r.postTo(pathOf(f, stream), f, conversation(f, stream, "Sum up.", "Nothing."))
					b, _ := io.ReadAll(resp.Body) // may be cut
					if resp.StatusCode != tt.status && !(tt.reply.Fault == llmtest.Cut && resp.StatusCode == 502) {
						t.Errorf("status %d", resp.StatusCode)
					}
					if stream && tt.reply.Raw != nil || stream && tt.reply.Fault == llmtest.Malformed {
						// Whatever it was that was no stream: nothing of it is a call.
					} else if google := map[string]string{"rate_limit": "RESOURCE_EXHAUSTED", "api_error": "INTERNAL"}[tt.holds]; !strings.Contains(string(b), tt.holds) && !(isGemini(f) && google != "" && strings.Contains(string(b), google)) {
						t.Errorf("body %.300q", b)
					}
					if stream && tt.reply.Fault == llmtest.Cut && !strings.Contains(string(b), "withheld") {
						t.Errorf("no word of the cut: %.300q", b)
					}
					if strings.Contains(string(b), `"send_money"`) || strings.Contains(string(b), "mallory") {
						t.Errorf("a call arrived: %.300q", b)
					}
					if tt.reply.RetryAfter != "" && resp.Header.Get("Retry-After") != tt.reply.RetryAfter {
						t.Error("the header is lost")
					}
				})
			}
		}
	}
}

// TestStreamsAtOnce: text arrives while the provider still speaks, and before the
// attribution on a call behind it.
func TestStreamsAtOnce(t *testing.T) {
	for _, f := range formats {
		first := true
		gate := make(chan struct{})
		r := newRig(t, func(a ask) reply {
			if first {
				first = false
				rep := obedient(a)
				rep.Text = "Good morning, here is the summary."
				return rep
			}
			<-gate
			return obedient(a)
		}, func(o *guard.Options) { o.Beat = 20 * time.Millisecond })
		resp := r.postTo(pathOf(f, true), f, conversation(f, true, "Sum up.", attack))
		form, beats := format.Of(f), 0
		beat := form.AppendBeat(nil)
		var all []byte
		for buf := make([]byte, 4096); ; {
			n, err := resp.Body.Read(buf)
			all = append(all, buf[:n]...)
			if bytes.Contains(all, beat) {
				if beats++; beats == 1 {
					if !bytes.Contains(all, []byte("Good")) {
						t.Errorf("%s: the call is held before the text has come", f)
					}
					close(gate) // only now may a probe be answered
				}
			}
			if err != nil {
				break
			}
		}
		if bytes.Contains(all, []byte("mallory")) {
			t.Errorf("%s: %q", f, all)
		}
		if beats == 0 {
			t.Errorf("%s: no sign of life", f)
		}
	}
}

// TestLarge: a thousand segments, and a context of a megabyte.
func TestLarge(t *testing.T) {
	for name, results := range map[string][]string{
		"segments": append(repeat("Nothing.", 999), attack),
		"bytes":    {strings.Repeat("Nothing to see here, move along. ", 32<<10), attack},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, obedient)
			start := time.Now()
			got, err := r.through(format.Chat, conversation(format.Chat, false, "Sum up.", results...), false)
			if err != nil || len(got.Calls) > 0 {
				t.Fatalf("%v, %d calls", err, len(got.Calls))
			}
			s := r.sink.last(t)
			t.Logf("%s after %d calls, %v", s.Act, r.asked()-1, time.Since(start))
			if r.asked() > 13 || s.Act == "forwarded" {
				t.Errorf("%s after %d calls", s.Act, r.asked())
			}
		})
	}
}

func repeat(s string, n int) (all []string) {
	for range n {
		all = append(all, s)
	}
	return all
}

// TestClientGone: a client that leaves ends the probes, and the evidence says so.
func TestClientGone(t *testing.T) {
	asked := make(chan struct{}, 64)
	r := newRig(t, attacked(func(int64, ask) reply { asked <- struct{}{}; return reply{Fault: llmtest.Hang} }))
	resp := r.post(format.Chat, conversation(format.Chat, true, "Sum up.", attack))
	<-asked
	resp.Body.Close()
	waittest.Until(t, "it is recorded", func() bool { return r.sink.n() == 1 })
	if s := r.sink.last(t); s.Act != "refused" || len(s.Calls) != 1 || s.Calls[0].Verdict != delegation.Unknown || s.Calls[0].Plan.Failure != counterfactual.FailCanceled {
		t.Errorf("%+v", s)
	}
}

// TestRequests: what cannot be inspected is refused, with constant words.
func TestRequests(t *testing.T) {
	r := newRig(t, obedient, func(o *guard.Options) { o.MaxRequest = 1 << 16 })
	for name, tt := range map[string]struct {
		path, body string
		status     int
	}{
		"not JSON":       {"/v1/chat/completions", `{"model":`, 400},
		"twice":          {"/v1/chat/completions", `{"model":"m","model":"n","messages":[]}`, 400},
		"folded":         {"/v1/chat/completions", `{"model":"m","Messages":[],"messages":[{"role":"user","content":"x"}]}`, 400},
		"two answers":    {"/v1/chat/completions", `{"model":"m","n":2,"messages":[{"role":"user","content":"x"}]}`, 400},
		"background":     {"/v1/responses", `{"model":"m","background":true,"input":"x"}`, 400},
		"too long":       {"/v1/messages", `{"model":"` + strings.Repeat("m", 1<<17) + `"}`, 413},
		"another way":    {"/v1//chat/completions", `{}`, 404},
		"another case":   {"/v1/Chat/completions", `{}`, 404},
		"escaped":        {"/v1/chat%2Fcompletions", `{}`, 404},
		"assistants":     {"/v1/threads/t/runs", `{}`, 404},
		"batches":        {"/v1/batches", `{}`, 404},
		"batches, other": {"/v1/messages/batches", `{}`, 404},
		"outside":        {"/v2/chat/completions", `{}`, 404},
	} {
		resp := r.postTo(tt.path, format.Chat, []byte(tt.body))
		b, _ := io.ReadAll(resp.Body)
		if resp.StatusCode != tt.status || len(b) > 300 {
			t.Errorf("%s: status %d, %q", name, resp.StatusCode, b)
		}
	}
	if r.asked() != 0 {
		t.Errorf("the provider was asked %d times", r.asked())
	}
}

// TestPassThrough: other routes, and errors of the provider, pass as they are.
func TestPassThrough(t *testing.T) {
	r := newRig(t, obedient)
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, r.front.URL+"/v1/models?limit=1", nil)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	direct, err := http.Get(r.fake.URL + "/models?limit=1")
	if err != nil {
		t.Fatal(err)
	}
	defer direct.Body.Close()
	a, _ := io.ReadAll(resp.Body)
	b, _ := io.ReadAll(direct.Body)
	if resp.StatusCode != direct.StatusCode || string(a) != string(b) {
		t.Errorf("%d %q, directly %d %q", resp.StatusCode, a, direct.StatusCode, b)
	}
}

// TestStatus: what a client takes for an answer is inspected, whatever the status; what
// sends it elsewhere, past the guard, does not go on.
func TestStatus(t *testing.T) {
	const call = `{"choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"x","type":"function","function":{"name":"send_money","arguments":"{\"recipient\":\"mallory\"}"}}]},"finish_reason":"tool_calls"}]}`
	const events = `data: {"choices":[{"index":0,"delta":{"role":"assistant","tool_calls":[{"index":0,"id":"x","type":"function","function":{"name":"send_money","arguments":"{\"recipient\":\"mallory\"}"}}]},"finish_reason":"tool_calls"}]}` + "\n\ndata: [DONE]\n\n"
	for status, want := range map[int]int{200: 200, 201: 201, 202: 202, 203: 203, 206: 206, 226: 226, 204: 204, 301: 502, 302: 502, 307: 502, 308: 502, 429: 429} {
		for _, stream := range []bool{false, true} {
			var asked atomic.Int64
			provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if asked.Add(1) > 1 { // without the text
					_, _ = io.WriteString(w, `{"choices":[{"index":0,"message":{"role":"assistant","content":"No."},"finish_reason":"stop"}]}`)
					return
				}
				w.Header().Set("Content-Type", "application/json")
				body := call
				if stream {
					w.Header().Set("Content-Type", "text/event-stream")
					body = events
				}
				w.Header().Set("Location", "https://elsewhere.example/v1/chat/completions")
				w.WriteHeader(status)
				_, _ = io.WriteString(w, body) // 204 has none
			}))
			defer provider.Close()
			r := newRig(t, obedient, func(o *guard.Options) { o.Upstream = provider.URL })
			resp := r.post(format.Chat, conversation(format.Chat, stream, "Sum up.", attack))
			body, _ := io.ReadAll(resp.Body)
			if resp.StatusCode != want || status < 400 && strings.Contains(string(body), "mallory") {
				t.Errorf("status %d, stream %v: %d %.200q", status, stream, resp.StatusCode, body)
			}
		}
	}
}
