// SPDX-License-Identifier: Apache-2.0

package ccrbench

import (
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/lab/guardbench"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
)

// TestPrint: what is measured stands under its track; without every, the rows that matter
// alone; names come from files, and stay on their line.
func TestPrint(t *testing.T) {
	r := &Report{
		Targets: []Target{{Track: "A", Name: "one", Got: "1", Want: "2", Met: true}, {Track: "B", Name: "two"}},
		Pairs: []PairRow{
			{Suite: "banking\x1b[2J", Signal: "divergence", TPR: Share{K: 1, N: 2}},
			{Suite: "banking\x1b[2J", Signal: "other"},
			{Suite: "banking\x1b[2J", Model: "m", Signal: "divergence"},
		},
		Noise: []NoiseRow{
			{Suite: "s", Model: "quiet"}, {Suite: "s", Model: "loud", Alarm: Share{K: 9, N: 10}}, {Suite: "s", Model: "b", Alarm: Share{K: 1, N: 10}}, {Suite: "s", Model: "c", Alarm: Share{K: 2, N: 10}},
		},
		Synthetic: []SyntheticRow{{Case: "x", N: shortSize, Noise: shortNoise, Method: "ours"}, {Case: "x", N: shortSize, Noise: shortNoise, Method: "told", Told: true}, {Case: "x", N: 4, Noise: 0.5, Method: "ours"}},
		Guard: &guardbench.Report{
			Rows:    []guardbench.Row{{Suite: "slack\x1b", Rule: "a rule", Stopped: guardbench.Share{K: 1, N: 2}}, {Suite: "slack\x1b", Rule: "a rule", Half: "confirmation"}},
			Suites:  []guardbench.Suite{{Suite: "slack\x1b"}},
			Written: []guardbench.WrittenRow{{Line: "a line", Name: "passes", Acts: map[string]guardbench.Act{guardbench.Ours: guardbench.Passed}}},
		},
		Evidence: []EvidenceRow{{Check: "replays", Held: Share{K: 3, N: 3}}},
	}
	for _, c := range []struct {
		every     bool
		want, not []string
	}{
		{false, []string{"reached", "MISSED ", "\nA  recorded pairs", "divergence ", "(all undefended models)", "loud", "told *", "3 of 3", "a rule", "BAD   a line", "\nEvery row: --models."},
			[]string{"quiet", "    other", "noise 0.5", "confirmation"}},
		{true, []string{"quiet", "    other ", "x, n=4, noise 0.5", "noise 0.5", "a rule (confirmation)"}, []string{"Every row"}},
	} {
		var b strings.Builder
		if err := r.Print(&b, terminal.Palette{}, c.every); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(b.String(), "\x1b") {
			t.Errorf("raw characters: %+q", b.String())
		}
		for _, want := range c.want {
			if !strings.Contains(b.String(), want) {
				t.Errorf("every %t: %q is missing:\n%s", c.every, want, b.String())
			}
		}
		for _, not := range c.not {
			if strings.Contains(b.String(), not) {
				t.Errorf("every %t: %q is there:\n%s", c.every, not, b.String())
			}
		}
	}
}
