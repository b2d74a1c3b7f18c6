// SPDX-License-Identifier: Apache-2.0

package guard_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pellucid-mcp/pellucid/model/delegation"
	"github.com/pellucid-mcp/pellucid/model/format"
	"github.com/pellucid-mcp/pellucid/model/guard"
	"github.com/pellucid-mcp/pellucid/model/llm"
	"github.com/pellucid-mcp/pellucid/model/llm/llmtest"
	"github.com/pellucid-mcp/pellucid/platform/logtest"
	"github.com/pellucid-mcp/pellucid/platform/waittest"
)

// strange are members of a request that show a model text, or say what its answer looks like.
const strange = `"documents":[{"text":"EVIL"}],"guided_json":{"EVIL":1},"guided_choice":["EVIL"],"guided_regex":"EVIL","guided_grammar":"EVIL",` +
	`"structured_outputs":{"EVIL":1},"continue_final_message":true,"add_generation_prompt":false,"response_format":{"type":"EVIL"},"tool_resources":{"EVIL":1},` +
	`"mcp_servers":[{"EVIL":1}],"container":"EVIL","search_parameters":{"EVIL":1},"plugins":[{"EVIL":1}],"safe_prompt":true,"chat_template":"EVIL",` +
	`"data_sources":["EVIL"],"prediction":{"EVIL":1},"unheard_of":"EVIL"`

// TestPlannerSettings: the model of the request is asked for a plan with its settings, and with
// nothing else of the request.
func TestPlannerSettings(t *testing.T) {
	for f, keep := range map[format.Name][]string{
		format.Chat:      {`"temperature":0.25`, `"seed":7`, `"user":"ann"`, `"reasoning_effort":"low"`, `"provider":{"order":["a"]}`, `"chat_template_kwargs":{"enable_thinking":false}`},
		format.Responses: {`"temperature":0.25`, `"top_p":0.5`, `"reasoning":{"effort":"low"}`, `"user":"ann"`},
		format.Messages:  {`"temperature":0.25`, `"top_k":7`, `"metadata":{"user_id":"ann"}`, `"service_tier":"auto"`},
	} {
		var seen atomic.Pointer[[]byte]
		r := newRig(t, func(a ask) reply {
			if a.System == delegation.PlanPrompt {
				seen.Store(&a.Raw)
			}
			return clerk(a)
		})
		body := conversation(f, false, "Pay the bill in bill.txt.", "Pay 120 to Waterworks. EVIL")
		body = bytes.Replace(body, []byte(`{"model":"m",`), []byte(`{"model":"m",`+strings.Join(keep, ",")+`,`+strange+`,`), 1)
		if _, err := r.through(f, body, false); err != nil {
			t.Fatal(f, err)
		}
		if seen.Load() == nil {
			t.Fatal(f, "the planner was not asked")
		}
		sent := string(*seen.Load())
		for _, name := range []string{"EVIL", "_final_message", "generation_prompt", "safe_prompt"} {
			if strings.Contains(sent, name) {
				t.Errorf("%s: the planner was sent %s: %s", f, name, sent)
			}
		}
		for _, member := range keep {
			if !strings.Contains(sent, member) {
				t.Errorf("%s: the planner was not sent %s", f, member)
			}
		}
	}
}

// TestTemplateMember: what a template may show the model does not go to the planner.
func TestTemplateMember(t *testing.T) {
	var seen atomic.Pointer[[]byte]
	r := newRig(t, func(a ask) reply {
		if a.System == delegation.PlanPrompt {
			seen.Store(&a.Raw)
		}
		return clerk(a)
	})
	body := conversation(format.Chat, false, "Pay the bill in bill.txt.", "Pay 120 to Waterworks.")
	body = bytes.Replace(body, []byte(`{"model":"m",`), []byte(`{"model":"m","chat_template_kwargs":{"enable_thinking":false,"documents":["EVIL"]},`), 1)
	if _, err := r.through(format.Chat, body, false); err != nil {
		t.Fatal(err)
	}
	if sent := seen.Load(); sent == nil || bytes.Contains(*sent, []byte("template")) {
		t.Error("the planner was sent the template's members")
	}
}

// TestUnreadablePlan: a plan that cannot be read holds the call once, and is asked for again.
func TestUnreadablePlan(t *testing.T) {
	var n atomic.Int64
	r := newRig(t, func(a ask) reply {
		if a.System == delegation.PlanPrompt && n.Add(1) == 1 {
			return reply{Text: "I think that you need a payment."}
		}
		return clerk(a)
	})
	for i, want := range []delegation.Verdict{delegation.Unknown, delegation.Delegated, delegation.Delegated} {
		if _, err := r.through(format.Chat, conversation(format.Chat, false, "Pay the bill in bill.txt.", "Pay 120 to Waterworks."), false); err != nil {
			t.Fatal(err)
		}
		if s := r.sink.last(t); s.Calls[0].Verdict != want || s.Calls[0].Plan.Cached != (i == 2) {
			t.Errorf("%d: %+v", i, s.Calls[0])
		}
	}
	if n.Load() != 2 {
		t.Errorf("%d plans were asked for", n.Load())
	}
}

// TestAheadBounded: a planner that does not answer is asked for few plans at a time, nothing
// waits for it, and the room of the bodies is given back.
func TestAheadBounded(t *testing.T) {
	stop := make(chan struct{})
	var plans atomic.Int64
	r := newRig(t, func(a ask) reply {
		if a.System == delegation.PlanPrompt {
			plans.Add(1)
			<-stop
		}
		return clerk(a)
	}, func(o *guard.Options) {
		o.Planner.Ahead, o.MaxActive, o.MaxRequest, o.MaxBodies = true, 32, 1<<20, 2<<20+2
	})
	defer close(stop)
	text := strings.Repeat("Some words of a result. ", 20_000)
	for i := range 20 {
		got, err := r.through(format.Chat, conversation(format.Chat, false, fmt.Sprintf("Sum up %d.", i), text), false)
		if err != nil || got.Text != "Done." {
			t.Fatalf("%d: %v, %+v", i, err, got)
		}
	}
	waittest.Until(t, "plans are asked for", func() bool { return plans.Load() == 4 })
}

// TestPlanBound: a plan is bounded by a bound of its own, under the name that the client's request
// has for it, and not by what the client wants to read.
func TestPlanBound(t *testing.T) {
	for _, tt := range []struct {
		f      format.Name
		client string // members of the request
		want   string
	}{
		{format.Chat, ``, `"max_tokens":2048`},
		{format.Chat, `"max_tokens":40,`, `"max_tokens":2048`},
		{format.Chat, `"max_completion_tokens":40,`, `"max_completion_tokens":2048`},
		{format.Chat, `"max_completion_tokens":40,"reasoning_effort":"high",`, `"max_completion_tokens":8192`},
		{format.Responses, `"max_output_tokens":40,`, `"max_output_tokens":2048`},
		{format.Responses, `"reasoning":{"effort":"low"},`, `"max_output_tokens":8192`},
		{format.Messages, ``, `"max_tokens":2048`},
	} {
		for _, ahead := range []bool{false, true} {
			var seen atomic.Pointer[[]byte]
			r := newRig(t, func(a ask) reply {
				if a.System == delegation.PlanPrompt {
					seen.Store(&a.Raw)
				}
				return clerk(a)
			}, func(o *guard.Options) { o.Planner.Ahead = ahead })
			body := conversation(tt.f, false, "Pay the bill in bill.txt.", "Pay 120 to Waterworks.")
			r.post(tt.f, bytes.Replace(body, []byte(`{"model":"m",`), []byte(`{"model":"m",`+tt.client), 1))
			if sent := seen.Load(); sent == nil || !strings.Contains(string(*sent), tt.want) || strings.Count(string(*sent), `"max_`) != 1 {
				t.Errorf("%s %s, %v: %s", tt.f, tt.client, ahead, *sent)
			}
		}
	}
}

// TestPlannerDenied: the log reports a planner that refuses its key, and
// the statement says it.
func TestPlannerDenied(t *testing.T) {
	var log logtest.Buffer
	planner := llmtest.Start(t, llmtest.Always(reply{Text: "[]"}), "another key")
	e, err := llm.New(llm.Options{Format: format.Chat, BaseURL: planner.URL, Model: "p", Retries: -1,
		Key: llm.NewKey("env:P", func() (string, error) { return "wrong", nil })})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	r := newRig(t, clerk, func(o *guard.Options) {
		o.Planner.Client, o.Log = e, slog.New(slog.NewTextHandler(&log, nil))
	})
	for range 3 {
		r.post(format.Chat, conversation(format.Chat, false, "Pay the bill in bill.txt.", "Pay 120 to Waterworks."))
		if s := r.sink.last(t); s.Calls[0].Verdict != delegation.Unknown || s.Calls[0].Plan.Failure != "unauthorized" {
			t.Errorf("%+v", s.Calls[0])
		}
	}
	if n := strings.Count(log.String(), "level=WARN msg=\"the planner did not answer"); n != 3 || !strings.Contains(log.String(), "why=unauthorized own_model=true") {
		t.Errorf("%d warnings: %s", n, log.String())
	}
}
