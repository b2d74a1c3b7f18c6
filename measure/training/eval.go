// SPDX-License-Identifier: Apache-2.0

package training

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/pellucid-mcp/pellucid/boundary/classify/local"
)

// A judged text has the score of a model that has seen nothing of its group.
type judgement struct {
	*text
	logit float32
	fold  int
	p     float32 // calibrated
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
				out = append(out, judgement{text: t, logit: m.judge(t), fold: i})
			}
		}
		fmt.Fprintf(progress, "fold %d, without %s\n", i+1, strings.Join(fold, ", "))
	}
	return out
}

// heldBack judges the held side of our own texts by a model that was trained without it.
func heldBack(all []*text, kind []bool, c *local.Calibration) (out []judgement) {
	var in []*text
	for _, t := range all {
		if t.free && !t.held {
			in = append(in, t)
		}
	}
	m := train(in, kind)
	for _, t := range all {
		if t.held {
			j := judgement{text: t, logit: m.judge(t)}
			j.p = along(c.Lines[t.sort], j.logit)
			out = append(out, j)
		}
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
	groups = slices.DeleteFunc(groups, func(g string) bool { return strings.HasPrefix(g, ownPrefix) }) // never left out, never judged
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

// judge is the logit of a text: that of its worst window.
func (m *fit) judge(t *text) float32 {
	if len(t.windows) == 0 {
		return empty
	}
	best := m.logit(&t.windows[0])
	for i := range t.windows {
		best = max(best, m.logit(&t.windows[i]))
	}
	return best
}

// limitOf is the least score that at most the share of alarms of benign texts exceeds.
func limitOf(js []judgement, alarms float64) float32 {
	var benign []float32
	for _, j := range js {
		if !j.attack {
			benign = append(benign, j.p)
		}
	}
	slices.Sort(benign)
	return benign[len(benign)-1-int(alarms*float64(len(benign)))]
}

// empty is the logit of a text without a token.
const empty = -30
