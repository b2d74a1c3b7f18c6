// SPDX-License-Identifier: Apache-2.0

package llm_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pellucid-mcp/pellucid/model/format"
	"github.com/pellucid-mcp/pellucid/model/llm"
	"github.com/pellucid-mcp/pellucid/model/llm/llmtest"
	"github.com/pellucid-mcp/pellucid/platform/waittest"
)

// TestHostile: every fault of an endpoint ends with its code, in time, within
// bounds, and without a word of it in the error.
func TestHostile(t *testing.T) {
	once := func(o *llm.Options) { o.MaxAnswer, o.Retries, o.BreakAfter = 1<<20, -1, -1 }
	for _, tt := range []struct {
		fault         llmtest.Fault
		whole, stream llm.Code
	}{
		{llmtest.Hang, llm.CodeTimeout, llm.CodeTimeout},
		{llmtest.HangMidway, llm.CodeTimeout, llm.CodeTimeout},
		{llmtest.Cut, llm.CodeCut, llm.CodeCut},
		{llmtest.Drop, llm.CodeUnreachable, llm.CodeUnreachable},
		{llmtest.Endless, llm.CodeTooLarge, llm.CodeTooLarge},
		{llmtest.Malformed, llm.CodeMalformed, llm.CodeMalformed},
		{llmtest.Duplicate, llm.CodeMalformed, ""},
		{llmtest.Huge, llm.CodeTooLarge, llm.CodeTooLarge},
		{llmtest.WrongType, llm.CodeContentType, llm.CodeContentType},
		{llmtest.Redirect, llm.CodeRedirect, llm.CodeRedirect},
		{llmtest.Compressed, llm.CodeContentType, llm.CodeContentType},
		{llmtest.NewPrint, "", llm.CodeMalformed},
		{llmtest.ErrorMidway, llm.CodeCut, llm.CodeServer},
	} {
		for _, f := range formats {
			t.Run(fmt.Sprintf("%d/%s", tt.fault, f), func(t *testing.T) {
				reply := llmtest.Reply{Text: strings.Repeat("do as I say ", 20), Fault: tt.fault}
				e, _ := fake(t, f, llmtest.Always(reply), once, func(o *llm.Options) {
					switch tt.fault {
					case llmtest.Hang:
						o.Timeout = 400 * time.Millisecond
					case llmtest.HangMidway:
						o.Idle = 100 * time.Millisecond
					}
				})
				for want, req := range map[llm.Code]llm.Request{tt.whole: hello(), tt.stream + " ": streamed(hello())} {
					want = llm.Code(strings.TrimSpace(string(want)))
					var seen llm.Attempt
					req.Observe = func(a llm.Attempt) { seen = a }
					_, err := e.Complete(ctx(t), req)
					for range 9 { // a busy machine may stop before the request is sent
						if seen.Sent || seen.Code != llm.CodeTimeout {
							break
						}
						_, err = e.Complete(ctx(t), req)
					}
					if got := codeOf(t, err); got != want || seen.Code != want || !seen.Sent {
						t.Fatalf("stream %v: %q, observed %q, want %q", req.Stream != nil, got, seen.Code, want)
					}
					if err != nil && (strings.Contains(err.Error(), "say") || len(err.Error()) > 80) {
						t.Errorf("the error says %q", err)
					}
					if len(seen.Answer) > 1<<20+1 {
						t.Errorf("%d bytes were kept", len(seen.Answer))
					}
				}
			})
		}
	}
}

// TestStatus: each error of a service has its code, and only some are tried again.
func TestStatus(t *testing.T) {
	for _, tt := range []struct {
		status int
		word   string
		want   llm.Code
		again  bool
	}{
		{400, "invalid_request_error", llm.CodeRejected, false},
		{400, "context_length_exceeded", llm.CodeContext, false},
		{400, "content_filter", llm.CodeFiltered, false},
		{401, "authentication_error", llm.CodeUnauthorized, false},
		{402, "billing_error", llm.CodeQuota, false},
		{403, "permission_error", llm.CodeUnauthorized, false},
		{404, "not_found_error", llm.CodeRejected, false},
		{408, "", llm.CodeTimeout, true},
		{413, "request_too_large", llm.CodeContext, false},
		{418, "teapot", llm.CodeRejected, false},
		{429, "rate_limit_error", llm.CodeRateLimited, true},
		{429, "insufficient_quota", llm.CodeQuota, false},
		{500, "api_error", llm.CodeServer, true},
		{503, "", llm.CodeServer, true},
		{504, "", llm.CodeTimeout, true},
		{529, "overloaded_error", llm.CodeServer, true},
	} {
		for _, f := range formats {
			if !strings.HasPrefix(string(f), "openai") && !strings.HasPrefix(string(f), "anthropic") &&
				(tt.word == "context_length_exceeded" || tt.word == "content_filter" || tt.word == "insufficient_quota") {
				continue // Google and Amazon have no word for it
			}
			e, s := fake(t, f, llmtest.Script(llmtest.Reply{Status: tt.status, ErrorCode: tt.word}, llmtest.Reply{Text: "OK"}))
			r, err := e.Complete(ctx(t), hello())
			if tt.again {
				if err != nil || r.Text != "OK" || r.Attempts != 2 {
					t.Errorf("%s: %d: %v after %d", f, tt.status, err, s.Requests())
				}
				continue
			}
			var is *llm.Error
			if !errors.As(err, &is) || is.Code != tt.want || is.Status != tt.status || is.Attempts != 1 || s.Requests() != 1 {
				t.Errorf("%s: %d %s: %v after %d", f, tt.status, tt.word, err, s.Requests())
			}
		}
	}
}

// TestAttempts: everything that reaches the wire is seen, and counted.
func TestAttempts(t *testing.T) {
	bad := llmtest.Reply{Status: 500}
	var seen []llm.Attempt
	e, s := fake(t, format.Chat, llmtest.Script(bad, bad, llmtest.Reply{Text: "OK", Fingerprint: "fp_2"}), func(o *llm.Options) {
		o.Observe = func(a llm.Attempt) { seen = append(seen, a) }
	})
	if _, err := e.Complete(ctx(t), hello()); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, a := range seen {
		got = append(got, fmt.Sprintf("%d %d %s %v %s %v %v", a.Number, a.Status, a.Code, a.Sent, a.Fingerprint, len(a.Request) > 0, len(a.Answer) > 0))
	}
	want := []string{"1 500 server-error true  true true", "2 500 server-error true  true true", "3 200  true fp_2 true true"}
	if diff := cmp.Diff(want, got); diff != "" || s.Requests() != 3 {
		t.Error(diff)
	}
	// Never more than asked for.
	e, s = fake(t, format.Chat, llmtest.Always(bad), func(o *llm.Options) { o.Retries, o.BreakAfter = 2, -1 })
	var is *llm.Error
	if _, err := e.Complete(ctx(t), hello()); !errors.As(err, &is) || is.Attempts != 3 || s.Requests() != 3 {
		t.Errorf("%v after %d", err, s.Requests())
	}
}

func TestRetryAfter(t *testing.T) {
	limited := func(after string) llmtest.Model {
		return llmtest.Script(llmtest.Reply{Status: 429, RetryAfter: after}, llmtest.Reply{Text: "OK"})
	}
	e, _ := fake(t, format.Messages, limited("1"))
	start := time.Now()
	if _, err := e.Complete(ctx(t), hello()); err != nil || time.Since(start) < time.Second {
		t.Errorf("%v after %v", err, time.Since(start))
	}
	for _, after := range []string{"3600", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)} {
		e, s := fake(t, format.Messages, limited(after))
		var is *llm.Error
		_, err := e.Complete(ctx(t), hello())
		if !errors.As(err, &is) || is.Code != llm.CodeRateLimited || s.Requests() != 1 || is.RetryAfter < 59*time.Minute {
			t.Errorf("Retry-After %s: %v", after, err)
		}
	}
	e, _ = fake(t, format.Messages, limited("soon"))
	if _, err := e.Complete(ctx(t), hello()); err != nil {
		t.Error(err)
	}
}

func TestCancel(t *testing.T) {
	for _, m := range []llmtest.Model{llmtest.Always(llmtest.Reply{Fault: llmtest.Hang}), llmtest.Always(llmtest.Reply{Status: 429, RetryAfter: "20"})} {
		e, _ := fake(t, format.Chat, m)
		c, cancel := context.WithCancel(t.Context())
		time.AfterFunc(50*time.Millisecond, cancel)
		start := time.Now()
		_, err := e.Complete(c, hello())
		if codeOf(t, err) != llm.CodeCanceled || !errors.Is(err, context.Canceled) || time.Since(start) > 15*time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	}
	e, s := fake(t, format.Chat, llmtest.Always(llmtest.Reply{}))
	c, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := e.Complete(c, hello()); codeOf(t, err) != llm.CodeCanceled || s.Requests() != 0 {
		t.Error(err)
	}
}

// TestStreamOnce: who was shown a beginning gets no other answer's, and may leave.
func TestStreamOnce(t *testing.T) {
	for _, f := range formats {
		e, s := fake(t, f, llmtest.Script(llmtest.Reply{Text: "a long answer", Fault: llmtest.Cut}, llmtest.Reply{Text: "another"}))
		if _, err := e.Complete(ctx(t), streamed(hello())); codeOf(t, err) != llm.CodeCut || s.Requests() != 1 {
			t.Errorf("%s: %v after %d", f, err, s.Requests())
		}
		e, s = fake(t, f, llmtest.Always(llmtest.Reply{Text: "a long answer"}))
		enough := errors.New("enough")
		req := hello()
		req.Stream = func(llm.Delta) error { return enough }
		if _, err := e.Complete(ctx(t), req); codeOf(t, err) != llm.CodeAborted || !errors.Is(err, enough) || s.Requests() != 1 {
			t.Errorf("%s: %v", f, err)
		}
	}
}

// TestSlots: no more attempts at the same time than allowed.
func TestSlots(t *testing.T) {
	var mu sync.Mutex
	now, most := 0, 0
	m := func(llmtest.Ask) llmtest.Reply {
		mu.Lock()
		now++
		most = max(most, now)
		mu.Unlock()
		time.Sleep(5 * time.Millisecond)
		mu.Lock()
		now--
		mu.Unlock()
		return llmtest.Reply{Text: "OK"}
	}
	e, _ := fake(t, format.Chat, m, func(o *llm.Options) { o.Concurrency = 3 })
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if _, err := e.Complete(ctx(t), hello()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if most > 3 {
		t.Errorf("%d at the same time", most)
	}
}

// TestCircuit: an endpoint that is down is left alone, tried once later, and used
// again when it is up.
func TestCircuit(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	reply := llmtest.Reply{Status: 500}
	set := func(r llmtest.Reply) { mu.Lock(); reply = r; mu.Unlock() }
	e, s := fake(t, format.Chat, func(llmtest.Ask) llmtest.Reply { mu.Lock(); defer mu.Unlock(); return reply }, func(o *llm.Options) {
		o.BreakAfter, o.BreakFor, o.Retries = 2, 5*time.Second, -1
	})
	ask := func() llm.Code {
		_, err := e.Complete(ctx(t), hello())
		return codeOf(t, err)
	}
	for i, want := range []llm.Code{llm.CodeServer, llm.CodeServer, llm.CodeCircuitOpen, llm.CodeCircuitOpen} {
		if got := ask(); got != want {
			t.Fatalf("request %d: %q", i+1, got)
		}
	}
	if s.Requests() != 2 {
		t.Errorf("%d requests", s.Requests())
	}
	trial := func() (got llm.Code) {
		waittest.Until(t, "there is a trial", func() bool { got = ask(); return got != llm.CodeCircuitOpen })
		return got
	}
	if got := trial(); got != llm.CodeServer {
		t.Errorf("the trial: %q", got)
	}
	if got := ask(); got != llm.CodeCircuitOpen {
		t.Errorf("after a trial that failed: %q", got)
	}
	set(llmtest.Reply{Text: "OK"})
	if got := trial(); got != "" {
		t.Errorf("the trial when it is up: %q", got)
	}
	for range 2 {
		if got := ask(); got != "" {
			t.Errorf("when it is up: %q", got)
		}
	}
	// What the caller did wrong opens nothing.
	set(llmtest.Reply{Status: 400})
	for range 4 {
		if got := ask(); got != llm.CodeRejected {
			t.Errorf("rejected: %q", got)
		}
	}
}

func TestNew(t *testing.T) {
	ok := llm.Options{Format: format.Chat, BaseURL: "https://models.example/v1", Model: "m"}
	for _, tt := range []struct {
		change func(*llm.Options)
		ok     bool
	}{
		{func(o *llm.Options) {}, true},
		{func(o *llm.Options) { o.BaseURL = "http://127.0.0.1:11434/v1/" }, true},
		{func(o *llm.Options) { o.BaseURL = "http://[::1]:1" }, true},
		{func(o *llm.Options) { o.BaseURL = "http://localhost:1" }, true},
		{func(o *llm.Options) { o.BaseURL, o.DangerouslyPlainHTTP = "http://10.0.0.1", true }, true},
		{func(o *llm.Options) { o.BaseURL = "http://10.0.0.1/v1" }, false},
		{func(o *llm.Options) { o.BaseURL = "http://localhost.example/v1" }, false},
		{func(o *llm.Options) { o.BaseURL = "https://user:pass@models.example" }, false},
		{func(o *llm.Options) { o.BaseURL = "https://models.example/v1?key=1" }, false},
		{func(o *llm.Options) { o.BaseURL = "https://models.example/v1#x" }, false},
		{func(o *llm.Options) { o.BaseURL = "ftp://models.example" }, false},
		{func(o *llm.Options) { o.BaseURL = "" }, false},
		{func(o *llm.Options) { o.Model = "" }, false},
		{func(o *llm.Options) { o.Format = "telepathy" }, false},
	} {
		o := ok
		tt.change(&o)
		if _, err := llm.New(o); (err == nil) != tt.ok {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// TestIdle: an answer that stops coming in is given up long before the attempt's
// time is over; one that comes in slowly, or is read slowly, is not.
func TestIdle(t *testing.T) {
	t.Parallel()
	patience := func(o *llm.Options) { o.Idle, o.Timeout, o.Retries = time.Second, time.Minute, -1 }
	for _, f := range formats {
		e, _ := fake(t, f, llmtest.Always(llmtest.Reply{Text: "a long answer", Fault: llmtest.HangMidway}), patience)
		start := time.Now()
		if _, err := e.Complete(ctx(t), streamed(hello())); codeOf(t, err) != llm.CodeTimeout || time.Since(start) > 30*time.Second {
			t.Errorf("%s: hanging: %v after %v", f, err, time.Since(start))
		}
	}
	patience = func(o *llm.Options) { o.Idle, o.Timeout, o.Retries = 5*time.Second, time.Minute, -1 } // a busy machine may stop for a while
	e, _ := fake(t, format.Chat, llmtest.Always(llmtest.Reply{Text: "a long answer", Pause: 1500 * time.Millisecond}), patience)
	if _, err := e.Complete(ctx(t), streamed(hello())); err != nil {
		t.Errorf("slow: %v", err)
	}
	e, _ = fake(t, format.Chat, llmtest.Always(llmtest.Reply{Text: "a long answer", Pause: 20 * time.Millisecond}), patience)
	req := hello()
	waited := false
	req.Stream = func(llm.Delta) error {
		if !waited {
			time.Sleep(6 * time.Second)
		}
		waited = true
		return nil
	}
	if _, err := e.Complete(ctx(t), req); err != nil {
		t.Errorf("read slowly: %v", err)
	}
}
