// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/model/counterfactual"
)

// FuzzCalibration reads bytes as a calibration: rates that come of one are probabilities.
func FuzzCalibration(f *testing.F) {
	f.Add([]byte(`{"version":"ccr-calibration/1","name":"m","model":"sha256:00","repeats":9,"trials":10,"slips":0,"slip_trials":4,"null":{"tool-shift/1":[0,3]}}`))
	f.Fuzz(func(t *testing.T, src []byte) {
		if c, err := ParseCalibration(src); err == nil && max(c.Trials, c.SlipTrials) < 1000 {
			if r, err := c.Rates(); err == nil && (r.P1 < 0 || r.P1 > 1_000_000 || r.P0 < 0 || r.P0 > 1_000_000) {
				t.Fatalf("%+v", r)
			}
		}
	})
}

// TestForemost: of many segments a person is shown the causes, then the largest
// effects, in the order of the context.
func TestForemost(t *testing.T) {
	r := &Report{}
	for i := range 3 * mostBars {
		r.Segments = append(r.Segments, Segment{ID: fmt.Sprint("s", i+1), Influence: counterfactual.Influence{Shown: 1, Hidden: 1}})
	}
	r.Segments[100].Cause = true
	r.Segments[70].Influence.Effect = 300
	r.Segments[3].Influence.Effect = -300
	got := r.foremost()
	if len(got) != mostBars || got[len(got)-1] != 100 || got[len(got)-2] != 70 || got[3] == 3 {
		t.Errorf("%v", got)
	}
	if r.Segments = r.Segments[:mostBars]; len(r.foremost()) != mostBars {
		t.Error("few segments are all shown")
	}
}

func TestEffectBar(t *testing.T) {
	for _, c := range []struct {
		f    counterfactual.Influence
		want string
	}{
		{counterfactual.Influence{Shown: 2, Hidden: 2, Effect: 1000}, strings.Repeat("#", barWidth)},
		{counterfactual.Influence{Shown: 2, Hidden: 2, Effect: 500}, strings.Repeat("#", barWidth/2) + strings.Repeat(".", barWidth/2)},
		{counterfactual.Influence{Shown: 2, Hidden: 2, Effect: -500}, strings.Repeat(".", barWidth)},
		{counterfactual.Influence{Hidden: 2, Effect: 250}, strings.Repeat(" ", barWidth)}, // never seen shown
	} {
		if got := effectBar(c.f); got != c.want {
			t.Errorf("%+v: %q", c.f, got)
		}
	}
}
