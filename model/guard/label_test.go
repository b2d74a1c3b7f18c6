// SPDX-License-Identifier: Apache-2.0

package guard_test

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/model/delegation"
	"github.com/pellucid-mcp/pellucid/model/format"
	"github.com/pellucid-mcp/pellucid/model/guard"
)

// TestLabel: an answer that was repaired or refused, and one that passes with a mark, says so in a
// member of its own, in a body and in a stream. One that passes without a mark has none.
func TestLabel(t *testing.T) {
	const bill = "Monthly bill. Pay 120 to Waterworks."
	for _, tt := range []struct {
		name, task string
		change     func(*guard.Options)
		act        string // "": no label
	}{
		{"marked", "Pay the bill in bill.txt.", func(*guard.Options) {}, `{"act":"forwarded","id":"ID","verdicts":["delegated"]}`},
		{"passed", "Pay the bill in bill.txt.", func(o *guard.Options) { o.Verdicts = delegation.Policy{delegation.Delegated: delegation.Pass} }, ""},
		{"repaired", "Sum up bill.txt.", func(*guard.Options) {}, `{"act":"repaired","id":"ID","verdicts":["not-asked-for"]}`},
		{"refused", "Sum up bill.txt.", func(o *guard.Options) { o.Verdicts = delegation.Policy{delegation.NotAsked: delegation.Hold} }, `{"act":"refused","id":"ID","verdicts":["not-asked-for"]}`},
	} {
		for _, f := range formats {
			for _, stream := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/%v", tt.name, f, stream), func(t *testing.T) {
					r := newRig(t, clerk, tt.change)
					resp := r.postTo(pathOf(f, stream), f, conversation(f, stream, tt.task, bill))
					body, err := io.ReadAll(resp.Body)
					if err != nil {
						t.Fatal(err)
					}
					want, s := tt.act, r.sink.last(t)
					got := string(body)
					if want == "" {
						if strings.Contains(got, `"pellucid"`) {
							t.Errorf("a label: %s", got)
						}
						return
					}
					want = `"pellucid":` + strings.Replace(want, "ID", s.ID, 1)
					last := strings.LastIndex(got, want)
					if last < 0 {
						t.Fatalf("no label: %s", got)
					}
					if stream && strings.Contains(got[last:], `"delta"`) && f != format.Chat {
						t.Errorf("the label is not in the last event: %s", got)
					}
				})
			}
		}
	}
}
