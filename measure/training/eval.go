// SPDX-License-Identifier: Apache-2.0

package training

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/pellucid-mcp/pellucid/measure/interval"
)

// share of benign texts that the limit lets be flagged.
const alarms = 0.01

// A judged text has the score of a model that has seen nothing of its group.
type judgement struct {
	*text
	p float32
}

// leaveOut judges every text by a model that was trained without its group, and
// without the other groups of its fold.
func leaveOut(all []*text, kind []bool, progress io.Writer) []judgement {
	var out []judgement
	for i, fold := range folds(all) {
		var in []*text
		for _, t := range all {
			if t.free && !slices.Contains(fold, t.group) {
				in = append(in, t)
			}
		}
		m := train(in, kind)
		for _, t := range all {
			if slices.Contains(fold, t.group) {
				out = append(out, judgement{t, m.judge(t)})
			}
		}
		fmt.Fprintf(progress, "fold %d, without %s\n", i+1, strings.Join(fold, ", "))
	}
	return out
}

// folds puts every group that has attacks into a fold of its own, and the others to
// them in turn.
func folds(all []*text) (folds [][]string) {
	var groups []string
	attack := map[string]bool{}
	for _, t := range all {
		if !slices.Contains(groups, t.group) {
			groups = append(groups, t.group)
		}
		attack[t.group] = attack[t.group] || t.attack
	}
	slices.Sort(groups)
	var benign []string
	for _, g := range groups {
		if attack[g] {
			folds = append(folds, []string{g})
		} else {
			benign = append(benign, g)
		}
	}
	for i, g := range benign {
		folds[i%len(folds)] = append(folds[i%len(folds)], g)
	}
	return folds
}

// judge is the score of a text: that of its worst window.
func (m *fit) judge(t *text) float32 {
	if len(t.windows) == 0 {
		return 0
	}
	best := m.logit(&t.windows[0])
	for i := range t.windows {
		best = max(best, m.logit(&t.windows[i]))
	}
	return sigmoid(best)
}

// limitOf is the least score that at most the share of alarms of benign texts exceeds.
func limitOf(js []judgement) float32 {
	var benign []float32
	for _, j := range js {
		if !j.attack {
			benign = append(benign, j.p)
		}
	}
	slices.Sort(benign)
	return benign[len(benign)-1-int(alarms*float64(len(benign)))]
}

type tally struct {
	family  string
	attack  bool
	n       int
	flagged []int // by column
}

// A column is one that judges, in the order of the table.
type column struct {
	name  string
	flags func(j judgement) bool
}

// columns are the model at its limit, and the phrases.
func columns(limit float32) []column {
	return []column{
		{"model", func(j judgement) bool { return j.p > limit }},
		{"phrases", func(j judgement) bool { return phrases.MatchString(j.clean) }},
	}
}

// table writes what was flagged by family, as Markdown.
func table(w io.Writer, js []judgement, limit float32) {
	by := columns(limit)
	var attacks, benign []*tally
	for _, j := range js {
		list := &benign
		if j.attack {
			list = &attacks
		}
		i := slices.IndexFunc(*list, func(t *tally) bool { return t.family == j.family })
		if i < 0 {
			i = len(*list)
			*list = append(*list, &tally{family: j.family, attack: j.attack, flagged: make([]int, len(by))})
		}
		t := (*list)[i]
		t.n++
		for k, c := range by {
			if c.flags(j) {
				t.flagged[k]++
			}
		}
	}
	fmt.Fprintf(w, "Limit %.4f: the score that 1 %% of %d left-out benign texts exceed. Intervals are Wilson's, 95 %%.\n", limit, only(benign, "", by).n)
	section(w, "Attacks: recall", attacks, by)
	section(w, "Benign texts: false alarms", benign, by)
	head(w, "figure", by)
	figure := func(what string, t tally) { line(w, fmt.Sprintf("%s, n = %d", what, t.n), t) }
	figure("AgentDojo construction, recall (`ipi-agentdojo-629`)", only(attacks, "ipi-agentdojo-629", by))
	figure("AgentDojo construction, false alarms (`agentdojo-97-benign`)", only(benign, "agentdojo-97-benign", by))
	figure("NotInject, false alarms", only(benign, "notinject-", by))
	figure("tool results as JSON, false alarms", only(benign, "tool-result-json", by))
	figure("all benign texts, false alarms", only(benign, "", by))
}

func head(w io.Writer, what string, by []column) {
	fmt.Fprintf(w, "\n| %s |", what)
	for _, c := range by {
		fmt.Fprintf(w, " %s |", c.name)
	}
	fmt.Fprintf(w, "\n|%s\n", strings.Repeat("---|", len(by)+1+strings.Count(what, "|")))
}

func section(w io.Writer, title string, list []*tally, by []column) {
	slices.SortFunc(list, func(a, b *tally) int { return cmp.Compare(a.family, b.family) })
	head(w, title+" | n", by)
	for _, t := range list {
		line(w, fmt.Sprintf("%s | %d", t.family, t.n), *t)
	}
}

func line(w io.Writer, what string, t tally) {
	fmt.Fprintf(w, "| %s |", what)
	for _, k := range t.flagged {
		fmt.Fprintf(w, " %s |", interval.Format(k, t.n))
	}
	fmt.Fprintln(w)
}

// only adds up the families whose names begin so.
func only(list []*tally, prefix string, by []column) tally {
	out := tally{flagged: make([]int, len(by))}
	for _, t := range list {
		if strings.HasPrefix(t.family, prefix) {
			out.n += t.n
			for k, n := range t.flagged {
				out.flagged[k] += n
			}
		}
	}
	return out
}
