// SPDX-License-Identifier: Apache-2.0

package residue

import (
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/platform/terminal"
)

// TestPrint: a line for each family under its collection, the sum, and which targets were
// reached; names come from files, and stay on their line.
func TestPrint(t *testing.T) {
	r := &Report{
		Families: []Family{{Collection: "c", Family: "one", Rows: 2, Hidden: 2, HiddenAfter: 1}, {Collection: "c", Family: "two\x1b[2J\n", Rows: 3}, {Collection: "d", Family: "one", Rows: 4}},
		Targets:  []Target{{Name: "a", Met: true, Got: "0", Want: "0"}, {Name: "b", Got: "1", Want: "0"}},
		Misses:   []string{"id\x1b"},
	}
	var b strings.Builder
	if err := r.Print(&b, terminal.Palette{}); err != nil {
		t.Fatal(err)
	}
	for want, n := range map[string]int{"\nc\n": 1, "\nd\n": 1, "\n  one ": 2, "2 > 1": 2, "\nall ": 1, "     9 ": 1, "\nreached  a ": 1, "\nMISSED   b ": 1, "1, wanted 0\nrows that missed: id": 1, "\x1b": 0} {
		if got := strings.Count(b.String(), want); got != n {
			t.Errorf("%q is there %d times, want %d:\n%s", want, got, n, b.String())
		}
	}
}
