// SPDX-License-Identifier: Apache-2.0

package training

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pellucid-mcp/pellucid/boundary/classify/deep"
	"github.com/pellucid-mcp/pellucid/boundary/classify/local"
	"github.com/pellucid-mcp/pellucid/lab/injections"
	"github.com/pellucid-mcp/pellucid/text/scrub"
)

// DeepTableOptions say what DeepTable measures.
type DeepTableOptions struct {
	Root  string   // of the repository
	Model string   // file of the deep model, relative to it
	Left  []Judged // the collections, with what a fast model says that has not seen their groups
}

// A side of the table: texts that neither model has been trained on.
type scored struct {
	id, family, author, language string
	attack, tool                 bool // tool: honest and like what a tool returns
	even                         bool // on the half that limits and gate are measured on, not the one that is reported
	fast, deep, joined, let      float64
}

// held are the groups of collections that the deep model was not trained on, although their licence
// allows it.
var held = []string{"agentdojo", "deepset", "pallms", "garak", "giskard", "tool-poison", "tool-result-json", "notinject", "tldr", "agent-instructions"}

// toolGroups are the groups whose honest texts are like what tools return.
var toolGroups = []string{"tool-result-json", "tool-description", "code", "tldr", "ud", "udhr", "agent-instructions", "agentdojo"}

// DeepTable measures the fast model, the deep one and both together on texts that neither has seen.
func DeepTable(o DeepTableOptions, out, progress io.Writer) error {
	m, err := readModel(filepath.Join(o.Root, o.Model))
	if err != nil {
		return err
	}
	all, texts, err := o.rows()
	if err != nil {
		return err
	}
	for i, s := range all {
		logit, err := m.Logit(context.Background(), texts[i])
		if err != nil {
			return err
		}
		s.deep, s.joined = float64(logit), deep.Join(float32(s.fast), logit)
		if i%1000 == 0 {
			fmt.Fprintf(progress, "deep model: %d of %d texts\n", i, len(all))
		}
	}
	print := func(gate float64) {
		for _, s := range all {
			s.let = s.joined
			if s.fast < gate {
				s.let = deep.Join(float32(s.fast), deep.NotLooked)
			}
		}
	}
	t := &deepTable{all: all, out: out}
	print(deep.Gate)
	t.print()
	fmt.Fprintf(out, "\n| the fast model lets by | from its score | test authors at 1 %% | unseen collections at 1 %% |\n|---|---|---|---|\n")
	for _, share := range []float64{.65, .75, .5, 0} {
		gate := upper(t.tool(true, func(s *scored) float64 { return s.fast }), 1-share)
		if share == 0 {
			gate = 0
		}
		print(gate)
		of := scorers[3]
		limit := t.limit(&of, .01)
		fmt.Fprintf(out, "| %.0f %% | %.3f | %.2f | %.2f |\n", 100*share, gate, t.found(&of, limit, testAuthors), t.found(&of, limit, unseen))
	}
	return nil
}

func readModel(path string) (*deep.Model, error) {
	f, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return deep.Open(path, deep.Digest(f)) // whatever it is: it may have been trained here
}

// rows are the collections that the deep model has not seen, and the texts of the test authors.
func (o DeepTableOptions) rows() (all []*scored, texts []string, err error) {
	for i, j := range o.Left {
		g := groupOf(j.Family)
		if !j.Free || slices.Contains(held, g) {
			all = append(all, &scored{id: j.ID, family: j.Family, attack: j.Attack, tool: !j.Attack && slices.Contains(toolGroups, g), even: i%2 == 0, fast: j.Score})
			texts = append(texts, j.Text)
		}
	}
	rows, err := injections.Rows(injections.Seed)
	if err != nil {
		return nil, nil, err
	}
	view, err := scrub.Compile(scrub.Policy{Profile: scrub.MCP})
	if err != nil {
		return nil, nil, err
	}
	var r scrub.Result
	for _, row := range rows {
		if row.Test {
			view.Scrub(row.Text, &r)
			text := r.Clean.String()
			all = append(all, &scored{id: row.ID, family: ownPrefix + row.Family, author: row.Author, language: row.Language, attack: row.Attack, fast: float64(local.Default().Score(text).P)})
			texts = append(texts, text)
		}
	}
	return all, texts, nil
}

// A scorer is a column of the table.
type scorer struct {
	name  string
	score func(*scored) float64
}

var scorers = []scorer{
	{"fast", func(s *scored) float64 { return s.fast }},
	{"deep alone", func(s *scored) float64 { return s.deep }},
	{"both on every text", func(s *scored) float64 { return s.joined }},
	{"both, through the gate", func(s *scored) float64 { return s.let }},
}

type deepTable struct {
	all []*scored
	out io.Writer
}

// Sorts of rows.
func testAuthors(s *scored) bool { return s.author != "" && s.attack }
func lookAlikes(s *scored) bool  { return s.author != "" && !s.attack }
func unseen(s *scored) bool      { return s.author == "" && s.attack && s.decidable() }

// decidable reports whether the text alone can show the attack: the other ones are requests
// that say nothing without the user's task.
func (s *scored) decidable() bool {
	return !strings.HasPrefix(s.family, "ipi-bipia") && !strings.HasPrefix(s.family, "taxonomy-") && !strings.HasPrefix(s.family, "tool-poison-")
}

// tool lists the scores of one half of the texts that are like what tools return.
func (t *deepTable) tool(even bool, of func(*scored) float64) (list []float64) {
	for _, s := range t.all {
		if s.tool && s.even == even {
			list = append(list, of(s))
		}
	}
	return list
}

// limit is the score that the share of the texts like a tool's exceed.
func (t *deepTable) limit(d *scorer, share float64) float64 {
	return upper(t.tool(true, d.score), share)
}

// found is the share of the rows of a sort above a limit.
func (t *deepTable) found(d *scorer, limit float64, is func(*scored) bool) float64 {
	n, above := 0, 0
	for _, s := range t.all {
		if is(s) {
			n++
			if d.score(s) > limit {
				above++
			}
		}
	}
	return float64(above) / float64(max(n, 1))
}

func (t *deepTable) print() {
	rows := []struct {
		name   string
		shares []float64
		is     func(*scored) bool
	}{
		{"four test authors", []float64{.0025, .01, .05}, testAuthors},
		{"unseen collections", []float64{.0025, .01, .05}, unseen},
		{"honest texts of the test authors", []float64{.01}, lookAlikes},
		{"like what tools return, the other half", []float64{.0025, .01, .05}, func(s *scored) bool { return s.tool && !s.even }},
	}
	for _, family := range []string{"wildguard", "notinject", "articles"} {
		rows = append(rows, struct {
			name   string
			shares []float64
			is     func(*scored) bool
		}{"honest: " + family, []float64{.0025, .01, .05}, func(s *scored) bool { return !s.attack && strings.Contains(s.family, family) }})
	}
	fmt.Fprintf(t.out, "%d texts, %d like what tools return, %d attacks of test authors, %d of unseen collections\n\n| |", len(t.all), many(t.all, func(s *scored) bool { return s.tool }), many(t.all, testAuthors), many(t.all, unseen))
	for _, d := range scorers {
		fmt.Fprintf(t.out, " %s |", d.name)
	}
	fmt.Fprintf(t.out, "\n|---|%s\n", strings.Repeat("---|", len(scorers)))
	for _, r := range rows {
		fmt.Fprintf(t.out, "| %s (%d) at", r.name, many(t.all, r.is))
		for _, share := range r.shares {
			fmt.Fprintf(t.out, " %.4g", 100*share)
		}
		fmt.Fprint(t.out, " % |")
		for _, d := range scorers {
			for _, share := range r.shares {
				fmt.Fprintf(t.out, " %.3f", t.found(&d, t.limit(&d, share), r.is))
			}
			fmt.Fprint(t.out, " |")
		}
		fmt.Fprintln(t.out)
	}
	t.languages()
	fmt.Fprintf(t.out, "\nlimits of both, through the gate, for 10, 25, 50, 100, 200 and 500 of 10,000 (all %d):", many(t.all, func(s *scored) bool { return s.tool }))
	list := append(t.tool(true, scorers[3].score), t.tool(false, scorers[3].score)...)
	for _, share := range []float64{.001, .0025, .005, .01, .02, .05} {
		fmt.Fprintf(t.out, " %.6f", upper(list, share))
	}
	fast := append(t.tool(true, scorers[0].score), t.tool(false, scorers[0].score)...)
	fmt.Fprintf(t.out, "\ngate for a third, of the even half: %.4f; all: %.4f\n", upper(t.tool(true, scorers[0].score), 1./3), upper(fast, 1./3))
}

// languages prints the area under the curve of each language of the author who wrote in all of them.
func (t *deepTable) languages() {
	codes := map[string]bool{}
	for _, s := range t.all {
		if s.author == "letters" {
			codes[s.language] = true
		}
	}
	fmt.Fprintf(t.out, "\n| language of letters: area under the curve |")
	for _, d := range scorers[:3] {
		fmt.Fprintf(t.out, " %s |", d.name)
	}
	fmt.Fprintln(t.out, "\n|---|---|---|---|")
	for _, code := range slices.Sorted(maps.Keys(codes)) {
		fmt.Fprintf(t.out, "| %s |", code)
		for _, d := range scorers[:3] {
			fmt.Fprintf(t.out, " %.3f |", d.rank(slices.DeleteFunc(slices.Clone(t.all), func(s *scored) bool { return s.author != "letters" || s.language != code })))
		}
		fmt.Fprintln(t.out)
	}
}

// rank is the area under the curve of a scorer.
func (d *scorer) rank(all []*scored) float64 {
	list := slices.Clone(all)
	slices.SortFunc(list, func(a, b *scored) int { return cmp.Compare(d.score(a), d.score(b)) })
	var sum, honest, attacks float64
	for i := 0; i < len(list); {
		j, a, h := i, 0., 0.
		for ; j < len(list) && d.score(list[j]) == d.score(list[i]); j++ {
			if list[j].attack {
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

func many(all []*scored, is func(*scored) bool) (n int) {
	for _, s := range all {
		if is(s) {
			n++
		}
	}
	return n
}

// upper is the number that the share of xs exceed.
func upper(xs []float64, share float64) float64 {
	if len(xs) == 0 {
		return 0
	}
	xs = slices.Sorted(slices.Values(xs))
	return xs[max(0, len(xs)-1-int(share*float64(len(xs))))]
}
