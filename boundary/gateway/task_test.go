// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/boundary/policy"
	"github.com/pellucid-mcp/pellucid/record/hold"
)

// taskAnswers are what a server can say of a task, by the method that asks for it, with a result of a tool in it.
func taskAnswers(result string) map[string]string {
	const task = `"taskId":"t","status":"completed","createdAt":"2026-11-01T10:00:00Z","lastUpdatedAt":"2026-11-01T10:00:00Z","ttl":1000`
	return map[string]string{
		"tasks/result": result,
		"tasks/get":    `{` + task + `,"result":` + result + `}`,
		"tasks/cancel": `{` + task + `,"result":` + result + `}`,
		"tasks/list":   `{"tasks":[{` + task + `,"result":` + result + `}]}`,
	}
}

// TestHoldTasks: what a server's rule wants held is withheld also where the server answers by a task, and no more than that.
func TestHoldTasks(t *testing.T) {
	w := newWard(t, hold.Options{})
	for method, result := range taskAnswers(poisoned) {
		got := w.result(w.request("1", method, `{"taskId":"t"}`), result)
		if d := w.last(); strings.Contains(string(got.at()), "fore") || d.Verdict != Withheld || !strings.Contains(string(got.at("error")), d.ID.String()) {
			t.Errorf("%s: delivered %s, %+v", method, got.at(), d)
		}
	}
	for method, result := range taskAnswers(harmless) {
		if got := w.result(w.request("2", method, `{"taskId":"t"}`), result); !strings.Contains(string(got.at("result")), "fine") {
			t.Errorf("%s: delivered %s", method, got.at())
		}
	}
	w = newWard(t, hold.Options{}, func(c *Config) { c.Tools = nil })
	if got := w.result(w.request("1", "tasks/result", `{"taskId":"t"}`), poisoned); !strings.Contains(got.text("result", "content", 0, "text"), "\nbefore\n") {
		t.Errorf("without a rule: %s", got.at())
	}
}

// TestPolicyTasks: the policy is asked about a tool that has no name and may do everything.
func TestPolicyTasks(t *testing.T) {
	for _, a := range []policy.Action{policy.Allow, policy.Ask, policy.Hold, policy.Deny} {
		j := &judge{result: outcome(a)}
		w := newWard(t, hold.Options{}, policed(j)...)
		for method, result := range taskAnswers(harmless) {
			got := w.result(w.request("1", method, `{"taskId":"t"}`), result)
			if shown := strings.Contains(string(got.at()), "fine"); shown != (a == policy.Allow) {
				t.Errorf("%s, %s: %s", a, method, got.at())
			}
			if e := j.last(); e.Direction != policy.Result || e.Tool != "" || !e.Privileged || !e.Destructive || !e.OpenWorld {
				t.Errorf("%s, %s: asked about %+v", a, method, e)
			}
		}
	}
}
