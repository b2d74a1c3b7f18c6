// SPDX-License-Identifier: Apache-2.0

package training

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/pellucid-mcp/pellucid/boundary/classify/deep"
	"github.com/pellucid-mcp/pellucid/boundary/classify/local"
	"github.com/pellucid-mcp/pellucid/platform/datatest"
)

// DeepTableOptions say what DeepTable measures.
type DeepTableOptions struct {
	Root    string   // of the repository, beside which the data are
	Model   string   // the file of a model that was trained without the groups of Leave
	Leave   []string // groups; "held" stands for the rows of More that are held
	More    []string // as in DeepOptions
	Numbers string   // file that gets the limits and the calibration as JSON; "": none
}

// A scored text has what both models say of it.
type scored struct {
	*deepRow
	fast   float32 // of a model that has not seen its group
	logit  float32 // of the deep model, which has not seen it either
	joined float64 // both
	p      float64 // as the cascade answers: the deep model may not have looked
	looked bool
}

// ordinary are the groups of honest text that a gateway sees all day; the others are honest texts
// that were collected because they are hard.
var ordinary = []string{"tool-result-json", "code", "tldr", "ud", "udhr", "agent-instructions", "agentdojo", "tool-description"}

// goesOn is the share of ordinary honest texts that the deep model may look at.
const goesOn = .08

// DeepTable measures the fast model, the deep one and both together on texts that neither has
// seen, writes the table to out and the calibration to a file.
func DeepTable(o DeepTableOptions, out, progress io.Writer) error {
	m, err := openAny(o.Model)
	if err != nil {
		return err
	}
	rows, texts, err := deepTexts(DeepOptions{Root: o.Root, More: o.More})
	if err != nil {
		return err
	}
	fast, err := leftOutScores(o.Root, progress)
	if err != nil {
		return err
	}
	var all []*scored
	for i := range rows {
		r := &rows[i]
		if r.Free && !slices.Contains(o.Leave, r.Group) && !(r.Held && slices.Contains(o.Leave, "held")) {
			continue
		}
		s := &scored{deepRow: r, logit: m.Logit(texts[i])}
		if p, ok := fast[r.ID]; ok {
			s.fast = p
		} else {
			s.fast = local.Default().Score(texts[i]).P
		}
		all = append(all, s)
	}
	n := fitCascade(all)
	var tab bytes.Buffer
	deepTable(&tab, all)
	if _, err := out.Write(tab.Bytes()); err != nil {
		return err
	}
	if o.Numbers != "" {
		b, err := json.Marshal(map[string]float32{"limit": n.Limit, "low": n.Low, "high": n.High, "fast": n.Fast, "deep": n.Deep,
			"bias": n.Bias, "below": n.Below, "above": n.Above})
		if err == nil {
			err = os.WriteFile(o.Numbers, append(b, '\n'), 0o644)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// alarms is the share of honest texts that may score above a limit.
const alarms = 0.01

// openAny reads a model whatever its digest: it was trained on this machine.
func openAny(path string) (*deep.Model, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return deep.Open(path, deep.Digest(b))
}

// leftOutScores are what fast models say of texts whose groups they have not seen, and of the held
// side of our own texts, by id.
func leftOutScores(root string, progress io.Writer) (map[string]float32, error) {
	dir, err := datatest.CorporaDir(root)
	if err != nil {
		return nil, err
	}
	all, kind, err := loadAll(root, dir)
	if err != nil {
		return nil, err
	}
	js := leaveOut(all, kind, progress)
	c := calibrate(js)
	out := map[string]float32{}
	for _, j := range append(js, heldBack(all, kind, &c)...) {
		out[j.id] = j.p
	}
	return out, nil
}

// decidable reports whether the text alone can show the attack: the other ones are requests
// that say nothing without the user's task.
func (s *scored) decidable() bool {
	return !strings.HasPrefix(s.Family, "ipi-bipia") && !strings.HasPrefix(s.Family, "taxonomy-") &&
		!strings.HasPrefix(s.Family, "tool-poison-asb") && s.Family != "own-bare"
}

// fitCascade chooses the limits, and fits the logistic function of both logits by gradient descent.
// Every group counts by the root of its size.
func fitCascade(all []*scored) deep.Numbers {
	weight := map[string]float64{}
	for _, s := range all {
		weight[s.side()]++
	}
	total := map[bool]float64{}
	for side, n := range weight {
		weight[side] = 1 / math.Sqrt(n)
		total[strings.HasPrefix(side, "+")] += math.Sqrt(n)
	}
	var w [3]float64 // of the fast logit, of the deep one, bias
	w[0], w[1] = .5, .5
	for range 3000 {
		var g [3]float64
		for _, s := range all {
			if s.Attack && !s.decidable() {
				continue
			}
			x := [3]float64{logit(s.fast), float64(s.logit), 1}
			p := 1 / (1 + math.Exp(-(w[0]*x[0] + w[1]*x[1] + w[2])))
			y := 0.
			if s.Attack {
				y = 1
			}
			for i := range g {
				g[i] += (p - y) * x[i] * weight[s.side()] / total[s.Attack] / 2
			}
		}
		for i := range w {
			w[i] = w[i] - .3*g[i]
		}
		w[0], w[1] = max(w[0], 0), max(w[1], 0)
	}
	n := deep.Numbers{Fast: float32(w[0]), Deep: float32(w[1]), Bias: float32(w[2])}
	cascadeLimits(&n, all)
	return n
}

func (s *scored) side() string {
	if s.Attack {
		return "+" + s.block()
	}
	return "-" + s.block()
}

// block is what a row counts with: its group, or the family of a row that was written for this project.
func (s *scored) block() string {
	if s.Own {
		return s.Family
	}
	return s.Group
}

func logit(p float32) float64 {
	x := min(max(float64(p), 1e-6), 1-1e-6)
	return math.Log(x / (1 - x))
}

// cascadeLimits chooses between which scores of the fast model the deep one looks, and from which
// score of the cascade a text counts as an injection; it fills in what the cascade answers.
func cascadeLimits(n *deep.Numbers, all []*scored) {
	var easy, hard, below, above []float64
	for _, s := range all {
		s.joined = n.Score(s.fast, s.logit)
		if !s.Attack {
			hard = append(hard, float64(s.fast))
			if slices.Contains(ordinary, s.Group) {
				easy = append(easy, float64(s.fast))
			}
		}
	}
	n.Low, n.High = float32(upper(easy, goesOn)), float32(upper(hard, .001))
	n.High = max(n.Low, n.High)
	for _, s := range all {
		switch {
		case !s.Attack && s.fast < n.Low:
			below = append(below, float64(s.logit))
		case s.Attack && s.fast > n.High:
			above = append(above, float64(s.logit))
		}
	}
	n.Below, n.Above = float32(upper(below, .5)), float32(upper(above, .5))
	var honest []float64
	for _, s := range all {
		if s.looked = n.Unsure(s.fast); s.looked {
			s.p = s.joined
		} else if s.fast < n.Low {
			s.p = n.Score(s.fast, n.Below)
		} else {
			s.p = n.Score(s.fast, n.Above)
		}
		if !s.Attack {
			honest = append(honest, s.p)
		}
	}
	n.Limit = float32(math.Nextafter(upper(honest, alarms), 2))
}

// upper is the number that the share of xs does not stay below.
func upper(xs []float64, share float64) float64 {
	if len(xs) == 0 {
		return 0
	}
	xs = slices.Sorted(slices.Values(xs))
	return xs[max(0, len(xs)-1-int(share*float64(len(xs))))]
}

// A scorer is a column of the table.
type scorer struct {
	name  string
	score func(*scored) float64
}

var scorers = []scorer{
	{"fast", func(s *scored) float64 { return float64(s.fast) }},
	{"deep", func(s *scored) float64 { return float64(s.logit) }},
	{"both", func(s *scored) float64 { return s.joined }},
	{"cascade", func(s *scored) float64 { return s.p }},
}

// rank is the area under the curve of a scorer.
func (d *scorer) rank(all []*scored) float64 {
	list := slices.Clone(all)
	slices.SortFunc(list, func(a, b *scored) int { return cmp.Compare(d.score(a), d.score(b)) })
	var sum, honest, attacks float64
	for i := 0; i < len(list); {
		j, a, h := i, 0., 0.
		for ; j < len(list) && d.score(list[j]) == d.score(list[i]); j++ {
			if list[j].Attack {
				a++
			} else {
				h++
			}
		}
		sum += a * (honest + h/2)
		attacks, honest, i = attacks+a, honest+h, j
	}
	return sum / (attacks * honest)
}

// limit is the score that the share of honest texts exceed.
func (d *scorer) limit(all []*scored, share float64) float64 {
	var honest []float64
	for _, s := range all {
		if !s.Attack {
			honest = append(honest, d.score(s))
		}
	}
	return upper(honest, share)
}

// found is the share of texts above a limit.
func (d *scorer) found(list []*scored, limit float64) float64 {
	n := 0
	for _, s := range list {
		if d.score(s) > limit {
			n++
		}
	}
	return float64(n) / float64(max(1, len(list)))
}

// deepTable writes the figures: for everything, by block, and by language.
func deepTable(w io.Writer, all []*scored) {
	var judged, attacks, honest, easy []*scored
	for _, s := range all {
		if s.Attack && !s.decidable() {
			continue
		}
		judged = append(judged, s)
		switch {
		case s.Attack:
			attacks = append(attacks, s)
		default:
			honest = append(honest, s)
			if slices.Contains(ordinary, s.Group) {
				easy = append(easy, s)
			}
		}
	}
	fmt.Fprintf(w, "%d attacks and %d honest texts that neither model has seen, of which %d and %d are published collections.\n\n",
		len(attacks), len(honest), len(published(attacks)), len(published(honest)))
	fmt.Fprintf(w, "| | fast | deep | both | cascade |\n|---|---|---|---|---|\n")
	line := func(name string, of func(d *scorer) float64) {
		fmt.Fprintf(w, "| %s |", name)
		for i := range scorers {
			fmt.Fprintf(w, " %.3f |", of(&scorers[i]))
		}
		fmt.Fprintln(w)
	}
	for _, part := range []struct {
		name string
		of   func([]*scored) []*scored
	}{{"published", published}, {"all", func(l []*scored) []*scored { return l }}} {
		line(part.name+": found at 1 % false alarms", func(d *scorer) float64 { return d.found(part.of(attacks), d.limit(part.of(honest), alarms)) })
		line(part.name+": found at 5 % false alarms", func(d *scorer) float64 { return d.found(part.of(attacks), d.limit(part.of(honest), 5*alarms)) })
		line(part.name+": area under the curve", func(d *scorer) float64 { return d.rank(part.of(judged)) })
	}
	looked := func(list []*scored) float64 {
		k := 0
		for _, s := range list {
			if s.looked {
				k++
			}
		}
		return 100 * float64(k) / float64(max(1, len(list)))
	}
	fmt.Fprintf(w, "\nThe deep model looks at %.1f %% of ordinary honest texts, at %.1f %% of all honest ones here and at %.1f %% of attacks.\n",
		looked(easy), looked(honest), looked(attacks))
	blocks(w, all, "block", (*scored).block)
	blocks(w, all, "language (texts that were written for this project)", func(s *scored) string {
		if !s.Own {
			return ""
		}
		return s.Language
	})
}

// published are the texts that were not written for this project.
func published(list []*scored) (out []*scored) {
	for _, s := range list {
		if !s.Own {
			out = append(out, s)
		}
	}
	return out
}

// blocks writes the share above the limit of 1 % by what a row belongs to; "" leaves it out.
func blocks(w io.Writer, all []*scored, title string, of func(*scored) string) {
	by := map[string][2][]*scored{}
	for _, s := range all {
		if k := of(s); k != "" {
			pair := by[k]
			side := 0
			if s.Attack {
				side = 1
			}
			pair[side] = append(pair[side], s)
			by[k] = pair
		}
	}
	fmt.Fprintf(w, "\n| %s | attacks | fast | deep | both | cascade | honest | fast | deep | both | cascade |\n|---|---|---|---|---|---|---|---|---|---|---|\n", title)
	for _, k := range slices.Sorted(maps.Keys(by)) {
		fmt.Fprintf(w, "| %s |", k)
		for _, side := range []int{1, 0} {
			list := by[k][side]
			fmt.Fprintf(w, " %d |", len(list))
			for i := range scorers {
				if len(list) == 0 {
					fmt.Fprint(w, " |")
					continue
				}
				d := &scorers[i]
				fmt.Fprintf(w, " %.2f |", d.found(list, d.limit(all, alarms)))
			}
		}
		fmt.Fprintln(w)
	}
}
