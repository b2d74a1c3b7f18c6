// SPDX-License-Identifier: Apache-2.0

package guard_test

import (
	"slices"
	"testing"

	"github.com/pellucid-mcp/pellucid/model/counterfactual"
	"github.com/pellucid-mcp/pellucid/model/delegation"
	"github.com/pellucid-mcp/pellucid/model/format"
	"github.com/pellucid-mcp/pellucid/model/guard"
)

// TestCapsules: while a text of a capsule is in the context, a call that the capsule forbids is put
// to a reviewer, although it is the user's own; a sterner rule goes before it.
func TestCapsules(t *testing.T) {
	for _, tt := range []struct {
		name    string
		capsule guard.Capsule
		rule    delegation.Response
		act     string
		said    string
	}{
		{"no calls", guard.Capsule{Sources: []string{"?/read_*"}, Capsule: counterfactual.Capsule{NoExternalCalls: true}}, "", "refused", "capsule staff external-call"},
		{"words", guard.Capsule{Sources: []string{"hr/*", "?/read_mail"}, Capsule: counterfactual.Capsule{ForbiddenTopics: []string{"BOB"}}}, "", "refused", "capsule staff forbidden-topic"},
		{"other words", guard.Capsule{Sources: []string{"*"}, Capsule: counterfactual.Capsule{ForbiddenTopics: []string{"salary"}}}, "", "forwarded", ""},
		{"other sources", guard.Capsule{Sources: []string{"hr/*"}, Capsule: counterfactual.Capsule{NoExternalCalls: true}}, "", "forwarded", ""},
		{"a milder rule", guard.Capsule{Sources: []string{"*"}, Capsule: counterfactual.Capsule{NoExternalCalls: true}}, delegation.Pass, "refused", "capsule staff external-call"},
		{"a sterner rule", guard.Capsule{Sources: []string{"*"}, Capsule: counterfactual.Capsule{NoExternalCalls: true}}, delegation.Hold, "refused", "payees"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.capsule.ID = "staff"
			r := newRig(t, obedient, func(o *guard.Options) {
				o.Capsules = []guard.Capsule{tt.capsule}
				if tt.rule != "" {
					o.Rules = ruled{"send_money", []delegation.Ruling{{Rule: "payees", Says: tt.rule, Verdicts: []delegation.Verdict{delegation.Stated}}}}
				}
			})
			if _, err := r.through(format.Chat, conversation(format.Chat, false, "Please pay bob 100.", "Nothing new."), false); err != nil {
				t.Fatal(err)
			}
			s := r.sink.last(t)
			if s.Act != tt.act || len(s.Calls) != 1 || tt.said == "" && len(s.Calls[0].Rulings) > 0 ||
				tt.said != "" && !slices.ContainsFunc(s.Calls[0].Rulings, func(r delegation.Ruling) bool { return r.Rule == tt.said }) {
				t.Errorf("%s, %+v", s.Act, s.Calls)
			}
			// Without a text of the capsule the call is the user's, and only the rule can hold it.
			want := 1
			if tt.rule == delegation.Hold {
				want = 0
			}
			if got, err := r.through(format.Chat, conversation(format.Chat, false, "Please pay bob 100."), false); err != nil || len(got.Calls) != want {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}
