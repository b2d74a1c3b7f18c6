package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/pellucid-mcp/pellucid/internal/interval"
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
	family string
	attack bool
	n      int
	model  int
	phrase int
}

func (t *tally) add(j judgement, limit float32) {
	t.n++
	if j.p > limit {
		t.model++
	}
	if phrases.MatchString(j.clean) {
		t.phrase++
	}
}

// table writes what was flagged by family, as Markdown.
func table(w io.Writer, js []judgement, limit float32) {
	var attacks, benign []*tally
	for _, j := range js {
		list := &benign
		if j.attack {
			list = &attacks
		}
		i := slices.IndexFunc(*list, func(t *tally) bool { return t.family == j.family })
		if i < 0 {
			i = len(*list)
			*list = append(*list, &tally{family: j.family, attack: j.attack})
		}
		(*list)[i].add(j, limit)
	}
	fmt.Fprintf(w, "Limit %.4f: the score that 1 %% of %d left-out benign texts exceed. Intervals are Wilson's, 95 %%.\n", limit, sum(benign).n)
	section(w, "Attacks: recall", attacks)
	section(w, "Benign texts: false alarms", benign)
	fmt.Fprintf(w, "\n| figure | model | phrases |\n|---|---|---|\n")
	row(w, "AgentDojo construction, recall (`ipi-agentdojo-629`)", only(attacks, "ipi-agentdojo-629"))
	row(w, "AgentDojo construction, false alarms (`agentdojo-97-benign`)", only(benign, "agentdojo-97-benign"))
	row(w, "NotInject, false alarms", only(benign, "notinject-"))
	row(w, "tool results as JSON, false alarms", only(benign, "tool-result-json"))
}

func section(w io.Writer, title string, list []*tally) {
	slices.SortFunc(list, func(a, b *tally) int { return cmp.Compare(a.family, b.family) })
	fmt.Fprintf(w, "\n| %s | n | model | phrases |\n|---|---|---|---|\n", title)
	for _, t := range list {
		fmt.Fprintf(w, "| %s | %d | %s | %s |\n", t.family, t.n, interval.Format(t.model, t.n), interval.Format(t.phrase, t.n))
	}
}

func row(w io.Writer, what string, t tally) {
	fmt.Fprintf(w, "| %s, n = %d | %s | %s |\n", what, t.n, interval.Format(t.model, t.n), interval.Format(t.phrase, t.n))
}

func only(list []*tally, prefix string) (out tally) {
	for _, t := range list {
		if strings.HasPrefix(t.family, prefix) {
			out.n, out.model, out.phrase = out.n+t.n, out.model+t.model, out.phrase+t.phrase
		}
	}
	return out
}

func sum(list []*tally) tally { return only(list, "") }
