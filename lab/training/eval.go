// SPDX-License-Identifier: Apache-2.0

package training

import (
	"cmp"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

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
	list := folds(all)
	return each(len(list), func(i int) (out []judgement) {
		m := trainWithout(all, kind, func(t *text) bool { return slices.Contains(list[i], t.group) })
		for _, t := range all {
			if slices.Contains(list[i], t.group) {
				out = append(out, judgement{text: t, logit: m.judge(t), fold: i})
			}
		}
		return out
	}, func(i int) { fmt.Fprintf(progress, "fold %d, without %s\n", i+1, strings.Join(list[i], ", ")) })
}

// each joins what of gives for every number below n, in order. Several are made at once.
func each(n int, of func(i int) []judgement, done func(i int)) (out []judgement) {
	parts := make([][]judgement, n)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range runtime.NumCPU() {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				parts[i] = of(i)
			}
		})
	}
	wg.Wait()
	for i, p := range parts {
		done(i)
		out = append(out, p...)
	}
	return out
}

// heldBack judges the held side of our own texts by a model that was trained without it.
func heldBack(all []*text, kind []bool, c *local.Calibration) []judgement {
	return judgedWithout(all, kind, c, func(t *text) bool { return t.held })
}

// judgedWithout judges texts by a model that was trained without them.
func judgedWithout(all []*text, kind []bool, c *local.Calibration, left func(*text) bool) (out []judgement) {
	m := trainWithout(all, kind, left)
	for _, t := range all {
		if left(t) {
			out = append(out, m.score(t, c))
		}
	}
	return out
}

// kin are languages of our own texts that are left out together, since words of theirs are alike.
var kin = [...][]string{{"ar"}, {"bn", "hi"}, {"de", "nl"}, {"es", "fr", "it", "pt"}, {"id", "tl", "vi"}, {"ja", "ko", "zh"}, {"pl", "ru", "uk"}, {"th"}, {"tr"}}

// named are the languages as the collections of others name them.
var named = map[string]string{"Arabic": "ar", "Bengali": "bn", "Chinese": "zh", "Filipino/Tagalog": "tl", "French": "fr", "German": "de", "Hindi": "hi", "Indonesian": "id",
	"Italian": "it", "Japanese": "ja", "Korean": "ko", "Portuguese": "pt", "Russian": "ru", "Spanish": "es", "Thai": "th", "Turkish": "tr", "Vietnamese": "vi"}

// inAnother are attacks whose order is in another language than the text around it.
const inAnother = ownPrefix + "mixed"

// leftOutLanguages judges our own texts of each language by a model that has seen no text, of
// others either, that is known to be in it or in one of its kin.
func leftOutLanguages(all []*text, kind []bool, c *local.Calibration, progress io.Writer) []judgement {
	return each(len(kin), func(i int) (out []judgement) {
		m := trainWithout(all, kind, func(t *text) bool { return slices.Contains(kin[i], cmp.Or(named[t.lang], t.lang)) })
		for _, t := range all {
			if strings.HasPrefix(t.group, ownPrefix) && !t.test && t.family != inAnother && slices.Contains(kin[i], t.lang) {
				out = append(out, m.score(t, c))
			}
		}
		return out
	}, func(i int) { fmt.Fprintf(progress, "without the languages %s\n", strings.Join(kin[i], ", ")) })
}

// leftOutRows judges the texts of the collections of others by models that have seen other rows of
// the same collection.
func leftOutRows(all []*text, kind []bool, c *local.Calibration, progress io.Writer) []judgement {
	return each(parts, func(i int) []judgement {
		return judgedWithout(all, kind, c, func(t *text) bool { return t.part() == i && !strings.HasPrefix(t.group, ownPrefix) })
	}, func(i int) { fmt.Fprintf(progress, "part %d of %d\n", i+1, parts) })
}

func (m *fit) score(t *text, c *local.Calibration) judgement {
	j := judgement{text: t, logit: m.judge(t)}
	j.p = along(c.Lines[t.sort], j.logit)
	return j
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
