// SPDX-License-Identifier: Apache-2.0

package llm_test

import (
	"errors"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/pellucid-mcp/pellucid/model/format"
	"github.com/pellucid-mcp/pellucid/model/llm"
	"github.com/pellucid-mcp/pellucid/model/llm/llmtest"
)

var unlimited = llm.Limits{Calls: llm.Unlimited, Tokens: llm.Unlimited}

// TestBudget: each ceiling refuses before anything is sent, and says which it is.
func TestBudget(t *testing.T) {
	usage := format.Usage{Known: true, Input: 50, Cached: 20, Output: 10}
	for _, tt := range []struct {
		ceiling llm.Ceiling
		limits  func(*llm.Limits)
	}{
		{llm.CeilingCalls, func(l *llm.Limits) { l.Calls = 3 }},
		{llm.CeilingTokens, func(l *llm.Limits) { l.Tokens = 3*60 + 100 }}, // an attempt sets 160 aside
	} {
		limits := unlimited
		tt.limits(&limits)
		b := llm.NewBudget(limits)
		e, s := fake(t, format.Chat, llmtest.Always(llmtest.Reply{Text: "OK", Usage: usage}))
		req := hello()
		req.InputTokens, req.MaxTokens, req.Budgets = 60, 100, []*llm.Budget{b}
		var err error
		n := 0
		for ; err == nil && n < 10; n++ {
			_, err = e.Complete(ctx(t), req)
		}
		var is *llm.Error
		if !errors.As(err, &is) || is.Code != llm.CodeBudget || is.Ceiling != tt.ceiling || is.Attempts != 0 || s.Requests() != n-1 {
			t.Errorf("%s: %v after %d requests", tt.ceiling, err, s.Requests())
		}
		got := b.Spent()
		calls := int64(n - 1)
		if got.Calls != calls || got.Tokens != 60*calls || got.Guessed != 0 || got.Usage.Cached != 20*calls || !got.Usage.Known {
			t.Errorf("%s: %d calls, spent %+v", tt.ceiling, calls, got)
		}
	}
}

// TestBudgetZero: the zero Limits let nothing through.
func TestBudgetZero(t *testing.T) {
	e, s := fake(t, format.Messages, llmtest.Always(llmtest.Reply{}))
	req := hello()
	req.Budgets = []*llm.Budget{nil, llm.NewBudget(llm.Limits{})}
	if _, err := e.Complete(ctx(t), req); codeOf(t, err) != llm.CodeBudget || s.Requests() != 0 {
		t.Error(err)
	}
}

// TestBudgetGuess: what nobody has counted is charged as it was set aside, what was
// refused by the service only as a call, and what never left not at all.
func TestBudgetGuess(t *testing.T) {
	for _, tt := range []struct {
		name  string
		reply llmtest.Reply
		want  llm.Spent
	}{
		{"cut", llmtest.Reply{Text: "a long answer", Fault: llmtest.Cut}, llm.Spent{Calls: 1, Tokens: 160, Guessed: 1}},
		{"no usage", llmtest.Reply{Text: "OK", NoUsage: true}, llm.Spent{Calls: 1, Tokens: 160, Guessed: 1}},
		{"contradiction", llmtest.Reply{Usage: format.Usage{Known: true, Input: 1, Cached: 5}}, llm.Spent{Calls: 1, Tokens: 160, Guessed: 1}},
		{"refused", llmtest.Reply{Status: 400}, llm.Spent{Calls: 1}},
		{"rate limited", llmtest.Reply{Status: 429}, llm.Spent{Calls: 1}},
	} {
		for _, f := range formats[:2] {
			for _, stream := range []bool{false, true} {
				b := llm.NewBudget(unlimited)
				e, _ := fake(t, f, llmtest.Always(tt.reply), func(o *llm.Options) {
					o.Retries = -1
					o.Budgets = []*llm.Budget{b}
				})
				req := hello()
				req.InputTokens, req.MaxTokens = 60, 100
				if stream {
					req = streamed(req)
				}
				_, _ = e.Complete(ctx(t), req)
				if got := b.Spent(); got != tt.want {
					t.Errorf("%s: %s: stream %v: %+v", f, tt.name, stream, got)
				}
			}
		}
	}
	e, s := fake(t, format.Chat, nil, func(o *llm.Options) { o.Retries = -1 })
	s.Close()
	b := llm.NewBudget(unlimited)
	req := hello()
	req.Budgets = []*llm.Budget{b}
	if _, err := e.Complete(ctx(t), req); codeOf(t, err) != llm.CodeUnreachable || b.Spent() != (llm.Spent{}) {
		t.Errorf("%v, spent %+v", err, b.Spent())
	}
}

// TestBudgetNeverExceeded: whatever happens at the same time, no ceiling is passed,
// and in the end nothing is left set aside.
func TestBudgetNeverExceeded(t *testing.T) {
	faults := []llmtest.Reply{
		{Text: "OK"}, {Text: "OK"}, {Text: "OK, at length", NoUsage: true}, {Status: 500}, {Status: 429}, {Status: 400},
		{Text: "a long answer", Fault: llmtest.Cut}, {Fault: llmtest.Malformed}, {Fault: llmtest.Drop},
	}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 24).Draw(t, "requests")
		limits := llm.Limits{
			Calls:  rapid.Int64Range(0, 30).Draw(t, "calls"),
			Tokens: rapid.Int64Range(0, 20_000).Draw(t, "tokens"),
		}
		replies := rapid.SliceOfN(rapid.SampledFrom(faults), n*3, n*3).Draw(t, "replies")
		s, err := llmtest.NewServer(llmtest.Script(replies...), "")
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		one, other := llm.NewBudget(limits), llm.NewBudget(unlimited)
		var mu sync.Mutex
		sent := int64(0)
		e, err := llm.New(llm.Options{
			Format: format.Chat, BaseURL: s.URL, Model: "m", Backoff: 1, MaxWait: 2, Retries: 2, BreakAfter: -1, Concurrency: 8,
			Budgets: []*llm.Budget{other},
			Observe: func(a llm.Attempt) {
				mu.Lock()
				defer mu.Unlock()
				if a.Sent {
					sent++
				}
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		var wg sync.WaitGroup
		for range n {
			wg.Go(func() {
				req := hello()
				req.Budgets = []*llm.Budget{one}
				_, _ = e.Complete(t.Context(), req)
			})
		}
		wg.Wait()
		got := one.Spent()
		if got.Calls > limits.Calls || got.Tokens > limits.Tokens {
			t.Fatalf("spent %+v of %+v", got, limits)
		}
		if got.Calls != sent || int64(s.Requests()) != sent {
			t.Fatalf("%d attempts observed, %d charged, %d served", sent, got.Calls, s.Requests())
		}
		if both := other.Spent(); both != got {
			t.Fatalf("two budgets of the same requests: %+v and %+v", got, both)
		}
		if one.Reserved() != 0 || other.Reserved() != 0 {
			t.Fatal("something is still set aside")
		}
	})
}
