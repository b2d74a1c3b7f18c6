// SPDX-License-Identifier: Apache-2.0

package counterfactual_test

import (
	"testing"

	"github.com/pellucid-mcp/pellucid/model/counterfactual"
	"github.com/pellucid-mcp/pellucid/model/format"
)

// TestMade: a call whose result says that it has failed does not count as made, where the format
// has a word for it.
func TestMade(t *testing.T) {
	for _, f := range format.All {
		call := func(id string) format.Message {
			return format.Message{Role: format.RoleAssistant, Calls: []format.Call{{ID: id, Name: "pay", Arguments: []byte("{}")}}}
		}
		src, err := f.AppendRequest(nil, &format.Request{Model: "m", MaxTokens: 9, Messages: []format.Message{{Text: "Pay."},
			call("a"), {Role: format.RoleTool, CallID: "a", Text: "no connection", Failed: true},
			call("b"), {Role: format.RoleTool, CallID: "b", Text: "done"}}})
		if err != nil {
			t.Fatal(f.Name(), err)
		}
		a, err := counterfactual.Parse(f.Name(), src, counterfactual.ParseOptions{})
		if err != nil {
			t.Fatal(f.Name(), err)
		}
		want := 1
		if f.Name() == format.Chat || f.Name() == format.Responses {
			want = 2
		}
		if got := a.Made("pay"); got != want || len(a.Prior) != 2 || a.Made("read") != 0 {
			t.Errorf("%s: %d calls count, want %d", f.Name(), got, want)
		}
	}
}
