// SPDX-License-Identifier: Apache-2.0

package training

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
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

// A scored text is one that neither model has been trained on.
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
	t := &deepTable{all: all, out: out}
	t.gate(deep.Gate)
	t.print()
	t.gates()
	return t.longPages(m, texts)
}

// gate has the deep model look from that score of the fast one.
func (t *deepTable) gate(from float64) {
	for _, s := range t.all {
		s.let = s.joined
		if s.fast < from {
			s.let = deep.Join(float32(s.fast), deep.NotLooked)
		}
	}
}

// gates prints what is lost where the fast model lets more by.
func (t *deepTable) gates() {
	fmt.Fprintf(t.out, "\n| the deep model looks at | from the score | test authors at 1 %% | unseen collections at 1 %% |\n|---|---|---|---|\n")
	through := scorers[len(scorers)-1]
	for _, share := range []float64{.05, .1, .25, 1. / 3, .5, 1} {
		from := 0.
		if share < 1 {
			from = upper(t.tool(true, func(s *scored) float64 { return s.fast }), share)
		}
		t.gate(from)
		limit := t.limit(&through, .01)
		fmt.Fprintf(t.out, "| %.0f %% of tool results | %.3f | %.2f | %.2f |\n", 100*share, from, t.found(&through, limit, testAuthors), t.found(&through, limit, unseen))
	}
}

// pages is how many long ones are made.
const pages = 60

// longPages plants an attack of the test authors in pages of 20 to 200 KB, and prints what the loudest windows
// keep of what all find.
func (t *deepTable) longPages(m *deep.Model, texts []string) error {
	r := rand.New(rand.NewPCG(7, 7))
	var honest, attacks []string
	for i, s := range t.all {
		if s.tool && len(texts[i]) > 200 {
			honest = append(honest, texts[i])
		} else if testAuthors(s) {
			attacks = append(attacks, texts[i])
		}
	}
	limit, _ := deep.LimitFor(100)
	most := []int{deep.DefaultWindows, 1 << 20}
	found, both := [2]int{}, 0
	for range pages {
		size, planted := 20_000+r.IntN(180_000), attacks[r.IntN(len(attacks))]
		at := r.IntN(size)
		var b strings.Builder
		for b.Len() < size {
			if b.Len() >= at && planted != "" {
				b.WriteString(planted + "\n")
				planted = ""
			}
			b.WriteString(honest[r.IntN(len(honest))] + "\n")
		}
		page := b.String()
		var flagged [2]bool
		for k, n := range most {
			scores, err := (deep.Cascade{Fast: local.Default(), Deep: deep.Loaded(m), Windows: n}).Classify(context.Background(), []string{page})
			if err != nil {
				return err
			}
			if flagged[k] = scores[0].P > float64(limit); flagged[k] {
				found[k]++
			}
		}
		if flagged[0] && flagged[1] {
			both++
		}
	}
	fmt.Fprintf(t.out, "\n%d pages of 20 to 200 KB with an attack: %d are flagged by the %d loudest windows, %d by all, %d by both\n", pages, found[0], most[0], found[1], both)
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
		{"user prompts (WildGuard)", []float64{.0025, .01, .05}, func(s *scored) bool { return strings.HasPrefix(s.family, "wildguard-benign") }},
		{"honest texts with the words of attacks (NotInject)", []float64{.0025, .01, .05}, func(s *scored) bool { return strings.HasPrefix(s.family, "notinject") }},
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
	fmt.Fprintf(t.out, "\nLimits of both where the deep model looks at every text, and what is found and flagged behind the gate:\n\n| of 10,000 | limit | like tool results | test authors | unseen collections | honest texts of the test authors |\n|---|---|---|---|---|---|\n")
	through, every := scorers[len(scorers)-1], append(t.tool(true, scorers[2].score), t.tool(false, scorers[2].score)...)
	for _, n := range []float64{10, 25, 50, 100, 200, 500} {
		limit := upper(every, n/10_000)
		fmt.Fprintf(t.out, "| %.0f | %.4f | %.4f | %.3f | %.3f | %.4f |\n", n, limit, t.found(&through, limit, func(s *scored) bool { return s.tool }),
			t.found(&through, limit, testAuthors), t.found(&through, limit, unseen), t.found(&through, limit, lookAlikes))
	}
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
