package ccrbench

import (
	"fmt"
	"maps"
	"slices"
)

// A Target is a figure to be reached. Each is one stratum's; none is of a sum over
// suites.
type Target struct {
	Track string `json:"track"`
	Name  string `json:"name"`
	Want  string `json:"want"`
	Got   string `json:"got"`
	Met   bool   `json:"met"`
}

// Met reports whether every target was reached.
func (r *Report) Met() bool {
	for _, t := range r.Targets {
		if !t.Met {
			return false
		}
	}
	return true
}

func (r *Report) judge() []Target {
	var out []Target
	for _, p := range r.Pairs {
		if p.Model == "" && p.Signal == signals()[signalSix] && p.Labels != LabelsClean {
			out = append(out, Target{"A", p.Suite + ", recurrence, labels: " + p.Labels, "TPR >= 0.90, FPR <= 0.10",
				fmt.Sprintf("%.3f, %.3f", p.TPR.Rate(), p.FPR.Rate()), p.TPR.Rate() >= 0.9 && p.FPR.Rate() <= 0.1})
		}
	}
	worst := map[string]NoiseRow{}
	for _, n := range r.Noise {
		if defended.MatchString(n.Model) || n.Alarm.N == 0 {
			continue
		}
		if w, ok := worst[n.Suite]; !ok || n.Alarm.Rate() > w.Alarm.Rate() {
			worst[n.Suite] = n
		}
	}
	for _, s := range sortedKeys(worst) {
		w := worst[s]
		out = append(out, Target{"B", s + ", false alarms of the noisiest model", fmt.Sprintf("<= %.2f", Alpha),
			fmt.Sprintf("%.3f (n=%d)", w.Alarm.Rate(), w.Alarm.N), w.Alarm.Rate() <= Alpha})
	}
	for _, c := range r.Contexts {
		if c.Model != "" || c.Method != ours {
			continue
		}
		t := Target{"C", c.Suite + ", carriers: " + c.Copies, "exact >= 0.98, calls <= 3", fmt.Sprintf("%.3f, %.2f", c.Exact.Rate(), c.Calls),
			c.Exact.Rate() >= 0.98 && c.Calls <= 3}
		if c.Copies != "1" {
			t.Want, t.Met = "exact >= 0.95", c.Exact.Rate() >= 0.95
		}
		out = append(out, t)
	}
	for _, d := range r.Synthetic {
		if d.N == 128 && d.Method == ours && d.Case == "single" {
			out = append(out, Target{"D", fmt.Sprintf("n=128, single cause, noise %g", d.Noise), "calls <= 25",
				fmt.Sprintf("%.1f (exact %.3f)", d.Calls, d.Exact.Rate()), d.Calls <= 25})
		}
	}
	for _, c := range r.Cost {
		if c.Model == "" {
			out = append(out, Target{"E", c.Suite + ", calls added to benign runs", "<= +20 %",
				fmt.Sprintf("first probe +%.1f %%, verdicts +%.1f %%", 100*c.First, 100*c.Extra), c.Extra <= 0.2})
		}
	}
	for _, g := range r.Evidence {
		out = append(out, Target{"G", g.Check, "all", fmt.Sprintf("%d of %d", g.Held.K, g.Held.N), g.Held.K == g.Held.N})
	}
	return out
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
