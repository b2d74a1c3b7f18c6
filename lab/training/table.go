// SPDX-License-Identifier: Apache-2.0

package training

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/pellucid-mcp/pellucid/boundary/classify/local"
	"github.com/pellucid-mcp/pellucid/model/interval"
)

// mostOf bounds how many texts of one family count in a figure over all, so that none is most of it.
const mostOf = 45

// undecidable names the families whose attacks are requests like any other: only the user's task, or
// what the agent then does, shows that they are attacks.
func undecidable(family string) bool {
	return strings.HasPrefix(family, "ipi-bipia") || family == "ipi-agentdojo-direct" || family == "ipi-agentdyn-direct"
}

// extra are judgements beside those of the groups that are left out.
type extra struct {
	held    []judgement // the held side of our own texts
	tongues []judgement // our own texts, by models that know nothing of their language
	rows    []judgement // by models that have seen other rows of the same collections
	authors []judgement // texts of the test authors
}

// A tally counts the texts of one name, and those that each column flags.
type tally struct {
	name    string
	n       int
	flagged []int
}

// A column is one that judges, in the order of the table.
type column struct {
	name  string
	flags func(j judgement) bool
}

// columns are the model at two limits, and the phrases.
func columns(js []judgement) []column {
	one, five := limitOf(js, 0.01), limitOf(js, 0.05)
	return []column{
		{"at 1 %", func(j judgement) bool { return j.p > one }},
		{"at 5 %", func(j judgement) bool { return j.p > five }},
		{"phrases", func(j judgement) bool { return phrases.MatchString(j.clean) }},
	}
}

// count tallies the judgements by name, in the order of names. It leaves out those that of names "".
func count(js []judgement, by []column, of func(j judgement) string) (list []*tally) {
	at := map[string]*tally{}
	for _, j := range js {
		name := of(j)
		if name == "" {
			continue
		}
		t := at[name]
		if t == nil {
			t = &tally{name: name, flagged: make([]int, len(by))}
			at[name] = t
			list = append(list, t)
		}
		t.n++
		for k, c := range by {
			if c.flags(j) {
				t.flagged[k]++
			}
		}
	}
	slices.SortFunc(list, func(a, b *tally) int { return cmp.Compare(a.name, b.name) })
	return list
}

// table writes what was flagged, as Markdown: over all, by family, by language, and how far the score
// is a probability.
func table(w io.Writer, js []judgement, x *extra, c *local.Calibration) {
	by := columns(js)
	attacks := count(js, by, func(j judgement) string { return nameIf(j.attack && !undecidable(j.family), j.family) })
	apart := count(js, by, func(j judgement) string { return nameIf(j.attack && undecidable(j.family), j.family) })
	honest := count(js, by, func(j judgement) string { return nameIf(!j.attack, j.family) })
	all := sum("", honest)
	fmt.Fprintf(w, "Limits: the scores %.4f and %.4f, which 1 %% and 5 %% of %d left-out honest texts exceed. Intervals are Wilson's, 95 %%.\n", limitOf(js, 0.01), limitOf(js, 0.05), all.n)
	overall(w, js, attacks, by)
	section(w, "Attacks that text alone can decide: recall", attacks, by)
	section(w, "Attacks that are requests like any other: recall", apart, by)
	section(w, "Honest texts: false alarms", honest, by)
	section(w, "Honest texts together: false alarms", []*tally{sum("notinject-", honest), sum("code-", honest), sum("agent", honest),
		sum("tool-result-json", honest), sum("tool-description", honest), sum("tldr-", honest), sum("ud-", honest), sum("udhr-", honest), all}, by)
	section(w, "Attacks by language, as the collections name it: recall", count(js, by, func(j judgement) string { return nameIf(j.attack, j.lang) }), by)
	section(w, "Our own attacks of the held side by language: recall", count(x.held, by, func(j judgement) string { return nameIf(j.attack, j.lang) }), by)
	section(w, "Our own honest texts of the held side by language: false alarms", count(x.held, by, func(j judgement) string { return nameIf(!j.attack, j.lang) }), by)
	section(w, "Our own attacks by language, which the model has not seen: recall", count(x.tongues, by, func(j judgement) string { return nameIf(j.attack, j.lang) }), by)
	section(w, "Our own honest texts by language, which the model has not seen: false alarms", count(x.tongues, by, func(j judgement) string { return nameIf(!j.attack, j.lang) }), by)
	of := func(attack bool, name func(judgement) string) []*tally {
		return count(x.authors, by, func(j judgement) string { return nameIf(j.attack == attack, name(j)) })
	}
	author := func(j judgement) string { return strings.TrimPrefix(j.family, ownPrefix) }
	language := func(j judgement) string { return j.lang }
	section(w, "Attacks by test authors: recall", of(true, author), by)
	section(w, "Attacks by test authors, by language: recall", of(true, language), by)
	section(w, "Honest texts by test authors: false alarms", of(false, author), by)
	section(w, "Honest texts by test authors, by language: false alarms", of(false, language), by)
	byRow(w, x.rows)
	reliability(w, js)
	limits(w, c, all.n)
}

// byRow writes the figures of models that have seen other rows of the same collections.
func byRow(w io.Writer, js []judgement) {
	by := columns(js)
	attacks := count(js, by, func(j judgement) string { return nameIf(j.attack && !undecidable(j.family), j.family) })
	fmt.Fprint(w, "\nThe tables from here to the scores are by models that have seen other rows of the same collections, with limits of their own.\n")
	overall(w, js, attacks, by)
	section(w, "Of collections whose other rows the model has seen, attacks: recall", attacks, by)
	section(w, "Of these, not in English: recall", count(js, by, func(j judgement) string {
		return nameIf(j.attack && named[j.lang] != "", "all languages")
	}), by)
	section(w, "Of collections whose other rows the model has seen, honest texts: false alarms", count(js, by, func(j judgement) string { return nameIf(!j.attack, j.group) }), by)
}

func nameIf(yes bool, name string) string {
	if yes {
		return name
	}
	return ""
}

// overall writes the figures over the families that text alone can decide.
func overall(w io.Writer, js []judgement, attacks []*tally, by []column) {
	fmt.Fprintf(w, "\n| Over all families that text alone can decide, each with %d texts at most |", mostOf)
	for _, c := range by {
		fmt.Fprintf(w, " %s |", c.name)
	}
	fmt.Fprintf(w, "\n|%s\n| recall |", strings.Repeat("---|", len(by)+1))
	for k := range by {
		fmt.Fprintf(w, " %.1f %% |", 100*capped(attacks, k))
	}
	fmt.Fprintf(w, "\n\nArea under the curve (the share of pairs of an attack and an honest text that the score orders rightly): %.3f, each family with %d texts at most.\n", area(js), mostOf)
}

// capped is the share of attacks that a column finds, each family with mostOf texts at most.
func capped(attacks []*tally, k int) float64 {
	found, n := 0.0, 0.0
	for _, t := range attacks {
		of := float64(min(t.n, mostOf))
		found, n = found+of*float64(t.flagged[k])/float64(t.n), n+of
	}
	return found / n
}

// area is that under the ROC curve.
func area(js []judgement) float64 {
	var honest []float32
	sizes := map[string]int{}
	for _, j := range js {
		if !j.attack {
			honest = append(honest, j.p)
		} else if !undecidable(j.family) {
			sizes[j.family]++
		}
	}
	slices.Sort(honest)
	right, n := 0.0, 0.0
	for _, j := range js {
		if size := sizes[j.family]; j.attack && size > 0 {
			below, _ := slices.BinarySearch(honest, j.p)
			weight := float64(min(size, mostOf)) / float64(size)
			right, n = right+weight*float64(below)/float64(len(honest)), n+weight
		}
	}
	return right / n
}

func section(w io.Writer, title string, list []*tally, by []column) {
	if len(list) == 0 {
		return
	}
	fmt.Fprintf(w, "\n| %s | n |", title)
	for _, c := range by {
		fmt.Fprintf(w, " %s |", c.name)
	}
	fmt.Fprintf(w, "\n|%s\n", strings.Repeat("---|", len(by)+2))
	for _, t := range list {
		fmt.Fprintf(w, "| %s | %d |", t.name, t.n)
		for _, k := range t.flagged {
			fmt.Fprintf(w, " %s |", interval.Format(k, t.n))
		}
		fmt.Fprintln(w)
	}
}

// sum adds up the families whose names begin so.
func sum(prefix string, list []*tally) *tally {
	out := &tally{name: cmp.Or(prefix, "all")}
	for _, t := range list {
		if strings.HasPrefix(t.name, prefix) {
			if out.flagged == nil {
				out.flagged = make([]int, len(t.flagged))
			}
			out.n += t.n
			for k, n := range t.flagged {
				out.flagged[k] += n
			}
		}
	}
	return out
}

// reliability compares the score with the share of attacks among the texts that have it, where both
// sides weigh the same and a family as the root of its size.
func reliability(w io.Writer, js []judgement) {
	const bins = 10
	var n [bins]int
	var score, attack, weight [bins]float64
	weights := weigh(js)
	for i, j := range js {
		k := min(int(j.p*bins), bins-1)
		n[k]++
		score[k] += weights[i] * float64(j.p)
		attack[k] += weights[i] * float64(sideOf(j))
		weight[k] += weights[i]
	}
	fmt.Fprint(w, "\n| Score | n | mean score | share of attacks |\n|---|---|---|---|\n")
	total, off := 0.0, 0.0
	for k := range bins {
		if n[k] == 0 {
			continue
		}
		s, a := score[k]/weight[k], attack[k]/weight[k]
		total, off = total+weight[k], off+weight[k]*max(s-a, a-s)
		fmt.Fprintf(w, "| %.1f to %.1f | %d | %.2f | %.2f |\n", float64(k)/bins, float64(k+1)/bins, n[k], s, a)
	}
	fmt.Fprintf(w, "\nThe mean distance between the two is %.3f.\n", off/total)
}

// limits writes the limit that belongs to a rate of false alarms.
func limits(w io.Writer, c *local.Calibration, n int) {
	fmt.Fprintf(w, "\n| False alarms of 10,000 | limit | honest texts above it, of %d |\n|---|---|---|\n", n)
	for i, rate := range local.Rates {
		fmt.Fprintf(w, "| %d | %.4f | %d |\n", rate, c.Limits[i], rate*n/10_000)
	}
}
