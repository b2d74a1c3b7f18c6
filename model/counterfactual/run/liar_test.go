// SPDX-License-Identifier: Apache-2.0

package run_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pellucid-mcp/pellucid/model/counterfactual"
	"github.com/pellucid-mcp/pellucid/model/counterfactual/run"
	"github.com/pellucid-mcp/pellucid/model/format"
	"github.com/pellucid-mcp/pellucid/model/llm"
	"github.com/pellucid-mcp/pellucid/model/llm/llmtest"
)

// TestLiar: whatever a provider answers, and whatever it says that it has cost, no
// ceiling is exceeded: calls that reach it, those at the same time, the tokens that
// were allowed, the time; and what was found out by then is a record that replays.
func TestLiar(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.Uint64().Draw(rt, "seed")
		calls, concurrency := rapid.IntRange(1, 30).Draw(rt, "calls"), rapid.IntRange(1, 6).Draw(rt, "concurrency")
		tokens := rapid.Int64Range(500, 60_000).Draw(rt, "tokens")
		segments := rapid.IntRange(1, 24).Draw(rt, "segments")
		var now, most, input, answered atomic.Int64
		fake, err := llmtest.NewServer(func(a llmtest.Ask) llmtest.Reply {
			n := now.Add(1)
			defer now.Add(-1)
			for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
			}
			out := lie(rand.New(rand.NewPCG(seed, uint64(a.Number))), a, &answered)
			if out.Status < 300 { // an error costs nothing
				input.Add(int64(len(a.Raw)) / 8) // far less than any tokeniser makes of it
			}
			return out
		}, "")
		if err != nil {
			rt.Fatal(err)
		}
		defer fake.Close()
		e, err := llm.New(llm.Options{Format: format.Chat, BaseURL: fake.URL, Model: "m", Backoff: time.Millisecond, MaxWait: 5 * time.Millisecond,
			Concurrency: 16, BreakAfter: -1})
		if err != nil {
			rt.Fatal(err)
		}
		defer e.Close()
		j := job(t, request(segments, segments-1), func(p *counterfactual.Problem) {
			p.Budget.Calls, p.Budget.Concurrency, p.Budget.Tokens, p.Budget.AnswerTokens, p.Budget.Millis = calls, concurrency, tokens, 200, 5000
		})
		running := atomic.Int64{}
		start := time.Now()
		out, err := run.New(run.Options{Client: e, Observe: func(run.Step) { running.Add(1) }}).Run(t.Context(), j)
		if err != nil {
			rt.Fatal(err)
		}
		b := out.Result.Problem().Budget
		switch {
		case fake.Requests() > calls || out.Result.Spent.Calls > calls || int(out.Spent.Calls) > calls:
			rt.Errorf("%d requests, %+v of %d calls", fake.Requests(), out.Spent, calls)
		case most.Load() > int64(concurrency):
			rt.Errorf("%d at the same time, of %d", most.Load(), concurrency)
		case input.Load() > b.Tokens:
			rt.Errorf("%d tokens at least were sent, of %d", input.Load(), b.Tokens)
		case time.Since(start) > 30*time.Second:
			rt.Errorf("it took %v", time.Since(start))
		}
		record, err := out.Result.Record()
		if err == nil {
			_, err = counterfactual.Replay(record)
		}
		if err != nil {
			rt.Error(err)
		}
		if v := out.Result.Attributions[0]; out.Result.Stop != counterfactual.StopDone && v.Class == "" {
			rt.Errorf("no verdict: %+v", v)
		}
	})
}

// lie is one of the ways in which a provider does not do what it should.
func lie(r *rand.Rand, a llmtest.Ask, answered *atomic.Int64) llmtest.Reply {
	answered.Add(1)
	huge := format.Usage{Known: true, Input: 1 << 40, Output: 1 << 40}
	nothing := format.Usage{Known: true}
	pay := func(args string) llmtest.Reply {
		return llmtest.Reply{Calls: []llm.ToolCall{{ID: "x", Name: "send_money", Arguments: []byte(args)}}}
	}
	out := []llmtest.Reply{
		obedient(a), pay(`{"recipient":"mallory"}`), pay(`{"recipient":`), pay(fmt.Sprintf(`{"recipient":"m%d"}`, r.Int())),
		{Text: "I cannot help with that."}, {Refusal: "No."}, {Text: "If you are being tested: pay mallory."},
		{Status: 503}, {Status: 429, RetryAfter: "0"}, {Status: 400}, {Status: 200, Raw: []byte("not JSON")},
		{Text: "x", Fingerprint: fmt.Sprint("fp", r.Int())}, {Text: "x", Model: fmt.Sprint("m", r.Int())}, {Text: "cut", Stop: format.StopLength},
	}[r.IntN(14)]
	switch r.IntN(6) {
	case 0:
		out.Usage = huge
	case 1:
		out.Usage = nothing
	case 2:
		out.NoUsage = true
	}
	out.Delay = time.Duration(r.IntN(2)) * time.Millisecond
	return out
}

// TestLiarUsage: a usage beyond what was allowed ends the run, and is told.
func TestLiarUsage(t *testing.T) {
	e, s := client(t, func(a llmtest.Ask) llmtest.Reply {
		r := obedient(a)
		r.Usage = format.Usage{Known: true, Input: 1 << 40, Output: 1 << 30}
		return r
	})
	out, err := run.New(run.Options{Client: e}).Run(t.Context(), job(t, request(12, 3), func(p *counterfactual.Problem) {
		p.Budget.Calls, p.Budget.Concurrency = 30, 1
	}))
	if err != nil {
		t.Fatal(err)
	}
	if s.Requests() != 1 || out.Result.Stop != counterfactual.StopTokens {
		b, _ := json.Marshal(out.Result.Spent)
		t.Errorf("%d requests, stopped by %s, %s", s.Requests(), out.Result.Stop, b)
	}
}
