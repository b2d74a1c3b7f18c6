// SPDX-License-Identifier: Apache-2.0

package guard_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/model/delegation"
	"github.com/pellucid-mcp/pellucid/model/format"
	"github.com/pellucid-mcp/pellucid/model/guard"
	"github.com/pellucid-mcp/pellucid/model/llm"
	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/text/frame"
)

// approvals are calls that are approved, by digest.
type approvals map[string]string

func (a approvals) Use(_ context.Context, call hold.Digest) (hold.Approval, bool) {
	id, ok := a[call.String()]
	return hold.Approval{ID: id}, ok
}

// shown is what a reviewer sees of a call.
type shown struct {
	Tool, Verdict, Approval string
	Rules                   []string
	Arguments               []struct {
		Name, Value   string
		From, Instead []string
	}
}

// TestApproval: an approved call passes as long as it is the same, with values from the same
// places. The evidence names the approval.
func TestApproval(t *testing.T) {
	d, known := &desk{released: map[hold.Digest]bool{}}, approvals{}
	quarantined := false
	r := newRig(t, obedient, func(o *guard.Options) {
		o.Hooks.Desk, o.Hooks.Approvals = d, known
		o.Rules = ruled{"send_money", []delegation.Ruling{{Rule: "large", Says: delegation.Hold}}}
		o.Hooks.Quarantined = func(context.Context, guard.Source) bool { return quarantined }
		o.Frame = func() frame.Key { return key(t) }
	})
	calls := func(task string, results ...string) int {
		t.Helper()
		got, err := r.through(format.Chat, conversation(format.Chat, false, task, results...), false)
		if err != nil {
			t.Fatal(err)
		}
		return len(got.Calls)
	}
	const bob = "Please pay bob 100."
	if calls(bob, "Nothing new.") != 0 || len(d.items) != 1 {
		t.Fatalf("not held: %+v", d.items)
	}
	var item []shown
	if err := json.Unmarshal(d.items[0].Body, &item); err != nil || len(item) != 1 || len(item[0].Rules) != 1 || item[0].Rules[0] != "large: hold" || item[0].Verdict != "stated" {
		t.Fatalf("%v, %s", err, d.items[0].Body)
	}
	id := strings.Repeat("a", 32)
	known[item[0].Approval] = id
	if calls(bob, "Nothing new.", "And more.") != 1 {
		t.Error("not approved")
	}
	if s := r.sink.last(t); s.Act != "forwarded" || s.Calls[0].Approval != id || s.Calls[0].Usual != delegation.Pass || s.Calls[0].Response != delegation.Pass {
		t.Errorf("%+v", s)
	}
	if calls("Please pay bob his share.", "The sum is 100.") != 0 {
		t.Error("the sum is no longer the user's, and the call passes")
	}
	if calls(bob, fence(t, key(t), "mail", "Nothing.")) != 1 {
		t.Error("not approved beside another text")
	}
	quarantined = true
	if calls(bob, fence(t, key(t), "mail", "Nothing.")) != 0 {
		t.Error("approved beside a text of a quarantined source")
	}
}

func key(t *testing.T) frame.Key {
	t.Helper()
	k, err := frame.NewKey([]byte(strings.Repeat("k", 32)))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// TestReviewerSeesBoth: where two values compete, a reviewer sees both; the evidence has neither.
func TestReviewerSeesBoth(t *testing.T) {
	d := &desk{released: map[hold.Digest]bool{}}
	r := newRig(t, func(a ask) reply {
		if a.System == delegation.PlanPrompt {
			return planned(a.Messages[len(a.Messages)-1].Text)
		}
		all := ""
		for _, m := range a.Messages {
			all += m.Text
		}
		for _, to := range []string{"mallory", "waterworks"} {
			if strings.Contains(all, "payee: "+to) {
				return reply{Calls: []llm.ToolCall{{ID: "c1", Name: "send_money", Arguments: []byte(`{"recipient":"` + to + `","amount":100}`)}}}
			}
		}
		return reply{Text: "Done."}
	}, func(o *guard.Options) { o.Hooks.Desk = d })
	got, err := r.through(format.Chat, conversation(format.Chat, false, "Pay the bill.", "Sum: 100.\npayee: mallory\npayee: waterworks"), false)
	if err != nil || len(got.Calls) != 0 || len(d.items) != 1 {
		t.Fatalf("%v, %+v, %+v", err, got, r.sink.last(t))
	}
	var item []shown
	if err := json.Unmarshal(d.items[0].Body, &item); err != nil || len(item) != 1 || item[0].Verdict != "conflict" {
		t.Fatalf("%v, %s", err, d.items[0].Body)
	}
	for _, a := range item[0].Arguments {
		if a.Name == "recipient" && (a.Value != "mallory" || len(a.Instead) != 1 || a.Instead[0] != "waterworks" || len(a.From) != 1) {
			t.Errorf("%s", d.items[0].Body)
		}
	}
	if s := string(r.sink.all[0]); strings.Contains(s, "mallory") || strings.Contains(s, "waterworks") {
		t.Errorf("the evidence has a value: %s", s)
	}
}
