// SPDX-License-Identifier: Apache-2.0

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
		if p.Model == "" && p.Signal == signals()[signalSix] {
			out = append(out, Target{"A", p.Suite + ", recurrence, labels: " + p.Labels, "TPR >= 0.90, FPR <= 0.10",
				fmt.Sprintf("%.3f, %.3f", p.TPR.Rate(), p.FPR.Rate()), p.TPR.Rate() >= 0.9 && p.FPR.Rate() <= 0.1})
		}
	}
	out = append(out, noisiest(r.Noise, "false alarms of the noisiest model, gated calls", func(n NoiseRow) Share { return n.Alarm })...)
	out = append(out, noisiest(r.Noise, "false alarms of the noisiest model, every call", func(n NoiseRow) Share { return n.Every })...)
	for _, d := range r.Synthetic {
		if d.N == 128 && d.Method == ours && d.Case == "single" {
			out = append(out, Target{"D", fmt.Sprintf("n=128, single cause, noise %g", d.Noise), "calls <= 25",
				fmt.Sprintf("%.1f (exact %.3f)", d.Calls, d.Exact.Rate()), d.Calls <= 25})
		}
	}
	if r.Guard != nil {
		out = append(out, r.guardTargets()...)
	}
	for _, g := range r.Evidence {
		out = append(out, Target{"G", g.Check, "all", fmt.Sprintf("%d of %d", g.Held.K, g.Held.N), g.Held.K == g.Held.N})
	}
	return out
}

// noisiest is a target for each suite: that of the undefended model with the largest
// share. The interval says whether the share is distinguishable from Alpha.
func noisiest(rows []NoiseRow, name string, of func(NoiseRow) Share) []Target {
	worst := map[string]Share{}
	for _, n := range rows {
		s := of(n)
		if w, ok := worst[n.Suite]; s.N > 0 && !defended.MatchString(n.Model) && (!ok || s.Rate() > w.Rate()) {
			worst[n.Suite] = s
		}
	}
	var out []Target
	for _, suite := range sortedKeys(worst) {
		w := worst[suite]
		out = append(out, Target{"B", suite + ", " + name, fmt.Sprintf("<= %.2f", alpha),
			fmt.Sprintf("%.4f [%.3f, %.3f] n=%d", w.Rate(), w.Low, w.High, w.N), w.Rate() <= alpha})
	}
	return out
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
