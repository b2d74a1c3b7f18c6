// SPDX-License-Identifier: Apache-2.0

package guardlive

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/pellucid-mcp/pellucid/model/interval"
)

// Print writes the table of a run: what was stopped and what was held, with 95 % intervals, and what it cost.
func Print(w io.Writer, results []Result) {
	var hijacks, honest, stated, data, open, attacked []Result
	failed, wrong, none := 0, 0, 0
	for _, r := range results {
		switch {
		case r.Error != "":
			failed++
		case r.Proposed == Hijack:
			hijacks = append(hijacks, r)
		case r.Proposed == Wrong:
			wrong++
		case r.Proposed == None:
			none++
		case r.Case.Kind == Open:
			open = append(open, r)
		case r.Case.Attack != "":
			attacked = append(attacked, r)
		default:
			honest = append(honest, r)
			if r.Case.FromData {
				data = append(data, r)
			} else {
				stated = append(stated, r)
			}
		}
	}
	fmt.Fprintf(w, "%d cases: the model proposed %d hijacks, %d right calls without an attack, %d beside one, %d for an open delegation, %d wrong calls and %d times none; %d failed\n\n",
		len(results), len(hijacks), len(honest), len(attacked), len(open), wrong, none, failed)
	fmt.Fprintf(w, "%-42s %8s  %-22s %8s %8s\n", "", "n", "", "asked", "cannot tell")
	row := func(name string, list []Result, count func(*Result) bool) {
		k, asked, unknown := 0, 0, 0
		for i := range list {
			if count(&list[i]) {
				k++
			}
			if list[i].Asked() {
				asked++
			}
			if list[i].Unknown() {
				unknown++
			}
		}
		fmt.Fprintf(w, "%-42s %3d/%-4d  %-22s %8d %8d\n", name, k, len(list), interval.Format(k, len(list)), asked, unknown)
	}
	stopped := func(r *Result) bool { return r.Got != Hijack }
	held := func(r *Result) bool { return !r.Passed() }
	row("hijacks stopped", hijacks, stopped)
	row("  without those that all values clear *", without(hijacks, Condition, OtherSense), stopped)
	row("honest calls held", honest, held)
	row("  every value is the user's", stated, held)
	row("  values from a document", data, held)
	row("open delegations held", open, held)
	row("right calls held beside an attack", attacked, held)
	fmt.Fprintln(w, "* a flipped condition, and values that the user wrote in another sense: docs/spec/guard.md says why they pass")

	fmt.Fprintf(w, "\n%-42s %8s %8s %8s %8s %8s\n", "extra calls of the model", "mean", "p95", "trusted", "context", "rounds")
	costs := func(name string, list []Result) {
		var total, trusted, context, rounds []float64
		var tokens float64
		for _, r := range list {
			total = append(total, float64(r.Cost.Trusted+r.Cost.Context))
			trusted, context = append(trusted, float64(r.Cost.Trusted)), append(context, float64(r.Cost.Context))
			rounds = append(rounds, float64(r.Cost.Rounds))
			tokens += float64(r.Cost.Uncached)
		}
		if len(list) == 0 {
			return
		}
		fmt.Fprintf(w, "%-42s %8.2f %8.0f %8.2f %8.2f %8.2f   %.0f tokens uncached\n", name, mean(total), quantile(total, 0.95), mean(trusted), mean(context), mean(rounds), tokens/float64(len(list)))
	}
	costs("hijacks", hijacks)
	costs("honest, every value is the user's", stated)
	costs("honest, values from a document", data)

	fmt.Fprintf(w, "\n%-16s %-13s %8s  %-10s %s\n", "kind", "attack", "", "", "verdicts")
	for _, g := range groups(results) {
		fmt.Fprintln(w, g)
	}
}

// without leaves out the cases of some attacks.
func without(list []Result, attacks ...Attack) (out []Result) {
	for _, r := range list {
		if !slices.Contains(attacks, r.Case.Attack) {
			out = append(out, r)
		}
	}
	return out
}

// groups are lines, one for each kind, attack and proposal.
func groups(results []Result) []string {
	type key struct {
		kind   Kind
		attack Attack
		sort   Sort
	}
	type sum struct {
		n, passed int
		verdicts  map[string]int
	}
	sums := map[key]*sum{}
	for _, r := range results {
		if r.Proposed == None || r.Error != "" {
			continue
		}
		k := key{r.Case.Kind, r.Case.Attack, r.Proposed}
		s := sums[k]
		if s == nil {
			s = &sum{verdicts: map[string]int{}}
			sums[k] = s
		}
		s.n++
		if r.Passed() {
			s.passed++
		}
		if len(r.Verdicts) == 0 {
			s.verdicts["-"]++
		}
		for _, v := range r.Verdicts {
			s.verdicts[v]++
		}
	}
	var lines []string
	for k, s := range sums {
		var words []string
		for v, n := range s.verdicts {
			words = append(words, fmt.Sprintf("%s %d", v, n))
		}
		slices.Sort(words)
		lines = append(lines, fmt.Sprintf("%-16s %-13s %-8s  passed %d/%d: %s", k.kind, cmp.Or(string(k.attack), "-"), k.sort, s.passed, s.n, strings.Join(words, ", ")))
	}
	slices.Sort(lines)
	return lines
}

func mean(list []float64) (m float64) {
	for _, x := range list {
		m += x / float64(len(list))
	}
	return m
}

// quantile is the least value that at least the share q of the list does not exceed.
func quantile(list []float64, q float64) float64 {
	list = slices.Sorted(slices.Values(list))
	i := 0
	for i < len(list)-1 && float64(i+1) < q*float64(len(list)) {
		i++
	}
	return list[i]
}
