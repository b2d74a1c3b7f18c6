// SPDX-License-Identifier: Apache-2.0

package guard_test

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/model/counterfactual"
	"github.com/pellucid-mcp/pellucid/model/delegation"
	"github.com/pellucid-mcp/pellucid/model/format"
	"github.com/pellucid-mcp/pellucid/model/guard"
	"github.com/pellucid-mcp/pellucid/text/frame"
)

// ruled are rules that say the same of every call of one tool.
type ruled struct {
	tool string
	says []delegation.Ruling
}

func (r ruled) Names(tool string) bool { return tool == r.tool }

func (r ruled) Rulings(_ *counterfactual.Assembly, c counterfactual.Call, _ []counterfactual.Origin) []delegation.Ruling {
	if c.Name != r.tool {
		return nil
	}
	return r.says
}

// TestValueRules: a rule that tightens holds what the verdict lets pass, also where the context
// holds no third-party text; one that loosens is for its verdicts alone. The verdict stays in
// the evidence.
func TestValueRules(t *testing.T) {
	pass := func(of ...delegation.Verdict) delegation.Ruling {
		return delegation.Ruling{Rule: "known", Says: delegation.Pass, Verdicts: of}
	}
	ask := delegation.Ruling{Rule: "large", Says: delegation.Ask}
	hold := delegation.Ruling{Rule: "never", Says: delegation.Hold}
	failed := pass(delegation.NotAsked)
	failed.Failed = true
	mine, err := frame.NewKey(bytes.Repeat([]byte{7}, 32))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, task, tool string
		results          []string
		says             []delegation.Ruling
		quarantined      bool
		verdict          delegation.Verdict // "": no statement
		response         delegation.Response
	}{
		{"tightened", "Please pay bob 100.", "send_money", []string{"News."}, []delegation.Ruling{ask}, false, delegation.Stated, delegation.Ask},
		{"the sternest", "Please pay bob 100.", "send_money", []string{"News."}, []delegation.Ruling{ask, hold, pass(delegation.Stated)}, false, delegation.Stated, delegation.Hold},
		{"no third-party text", "Please pay bob 100.", "send_money", nil, []delegation.Ruling{ask}, false, delegation.Stated, delegation.Ask},
		{"no third-party text, loosened", "Please pay bob 100.", "send_money", nil, []delegation.Ruling{pass(delegation.Stated)}, false, "", ""},
		{"no third-party text, nothing said", "Please pay bob 100.", "send_money", nil, nil, false, "", ""},
		{"tightened as the verdict is already", "Sum up.", "send_money", []string{attack}, []delegation.Ruling{ask}, false, delegation.NotAsked, delegation.Repair},
		{"loosened for another verdict", "Sum up.", "send_money", []string{attack}, []delegation.Ruling{pass(delegation.Delegated)}, false, delegation.NotAsked, delegation.Repair},
		{"loosened", "Sum up.", "send_money", []string{attack}, []delegation.Ruling{pass(delegation.NotAsked)}, false, delegation.NotAsked, delegation.Pass},
		{"loosened and quarantined", "Sum up.", "send_money", []string{attack}, []delegation.Ruling{pass(delegation.NotAsked)}, true, delegation.NotAsked, delegation.Repair},
		{"loosened and failed", "Sum up.", "send_money", []string{attack}, []delegation.Ruling{failed}, false, delegation.NotAsked, delegation.Repair},
		{"loosened and tightened", "Sum up.", "send_money", []string{attack}, []delegation.Ruling{pass(delegation.NotAsked), hold}, false, delegation.NotAsked, delegation.Repair},
		{"a tool that reads", "Please read it.", "read_mail", nil, []delegation.Ruling{hold}, false, delegation.Stated, delegation.Hold},
	} {
		for _, stream := range []bool{false, true} {
			t.Run(tt.name, func(t *testing.T) {
				r := newRig(t, obedient, func(o *guard.Options) {
					o.Rules = ruled{tt.tool, tt.says}
					if tt.quarantined {
						o.Hooks.Quarantined = func(context.Context, guard.Source) bool { return true }
						o.Frame = func() frame.Key { return mine }
					}
				})
				results := tt.results
				if tt.quarantined {
					results = []string{fence(t, mine, "mail", tt.results[0])}
				}
				got, err := r.through(format.Chat, conversation(format.Chat, stream, tt.task, results...), stream)
				if err != nil {
					t.Fatal(err)
				}
				passes := tt.response == "" || tt.response.Passes()
				if (len(got.Calls) > 0) != passes {
					t.Errorf("%d calls arrive", len(got.Calls))
				}
				if tt.verdict == "" {
					if r.sink.n() > 0 {
						t.Error("there is a statement")
					}
					return
				}
				s := r.sink.last(t)
				if len(s.Calls) != 1 || s.Calls[0].Verdict != tt.verdict || s.Calls[0].Response != tt.response || len(s.Calls[0].Rulings) != len(tt.says) ||
					s.Calls[0].Usual != delegation.Default(tt.verdict) {
					t.Errorf("%+v", s)
				}
				if _, err := guard.Replay(bytes.Replace(r.sink.all[0], []byte(`"usual":"`), []byte(`"usual":"x`), 1)); err == nil {
					t.Error("a statement with another response of the verdict replays")
				}
			})
		}
	}
}

// TestTask: a declared task is the user's words, and the provider does not get it.
func TestTask(t *testing.T) {
	const bob = "Please pay bob 100."
	for _, tt := range []struct {
		name    string
		setting guard.Task
		turn    string
		header  []string
		status  int
		call    bool
	}{
		{"not declared", "", bob, nil, 200, true},
		{"instead of the user's turn", "", bob, []string{"Sum up the mail."}, 200, false},
		{"said by both", "", bob, []string{bob}, 200, true},
		{"encoded", "", bob, []string{"UTF-8''Please%20pay%20bob%20100%2E%20%E2%82%AC"}, 200, true},
		{"beside the user's turn", guard.TaskBoth, bob, []string{"Sum up the mail."}, 200, true},
		{"ignored", guard.TaskUserTurns, bob, []string{"\xff"}, 200, true},
		{"twice", "", bob, []string{bob, bob}, 400, false},
		{"empty", "", bob, []string{" "}, 400, false},
		{"not ASCII", "", bob, []string{"Zahl\u00e9"}, 400, false},
		{"badly encoded", "", bob, []string{"utf-8''%zz"}, 400, false},
		{"no UTF-8", "", bob, []string{"utf-8''%ff"}, 400, false},
		{"too long", "", bob, []string{strings.Repeat("x", 17<<10)}, 400, false},
	} {
		for _, f := range formats {
			t.Run(tt.name+"/"+string(f), func(t *testing.T) {
				r := newRig(t, obedient, func(o *guard.Options) { o.Task = tt.setting })
				body := conversation(f, false, tt.turn, "Nothing new.")
				req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.front.URL+paths[f], bytes.NewReader(body))
				if err != nil {
					t.Fatal(err)
				}
				req.Header.Set("X-Api-Key", secret)
				req.Header.Set("Authorization", "Bearer "+secret)
				req.Header["X-Pellucid-Task"] = tt.header
				if f == format.Messages {
					req.Header.Set("Anthropic-Version", "2023-06-01")
				}
				resp, err := http.DefaultClient.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				defer http.DefaultClient.CloseIdleConnections()
				var got bytes.Buffer
				if _, err := got.ReadFrom(resp.Body); err != nil {
					t.Fatal(err)
				}
				if resp.StatusCode != tt.status || strings.Contains(got.String(), `bob`) != tt.call {
					t.Fatalf("%d: %s", resp.StatusCode, got.String())
				}
				if tt.status != 200 {
					if r.asked() > 0 {
						t.Error("the model was asked")
					}
					return
				}
				s := r.sink.last(t)
				if (s.Task != "") != (len(tt.header) > 0 && tt.setting != guard.TaskUserTurns) || strings.Contains(string(r.sink.all[0]), "Sum up") {
					t.Errorf("%s", r.sink.all[0])
				}
				for _, h := range r.fake.Asks() {
					if _, there := h.Header["X-Pellucid-Task"]; there {
						t.Error("the provider got the task")
					}
				}
			})
		}
	}
}
