// SPDX-License-Identifier: Apache-2.0

package training

import (
	"fmt"
	"hash/fnv"
	"io"
	"slices"
	"strings"

	"github.com/pellucid-mcp/pellucid/boundary/classify/local"
	"github.com/pellucid-mcp/pellucid/model/interval"
	"github.com/pellucid-mcp/pellucid/platform/datatest"
)

// Parts into which the rows of descriptions are cut where rows and not families are left out.
const parts = 3

// alarmsOfDescriptions is the share of honest descriptions that may be flagged.
const alarmsOfDescriptions = 0.005

// isDescription reports whether a text is a server's description of a tool, or its instructions.
func (t *text) isDescription() bool {
	for _, p := range []string{"tool-poison", "tool-description", "server-instructions"} {
		if strings.HasPrefix(t.family, p) {
			return true
		}
	}
	return false
}

// part is by the text's id, so that it does not depend on the order of the files.
func (t *text) part() int {
	h := fnv.New32a()
	h.Write([]byte(t.id))
	return int(h.Sum32()>>8) % parts
}

// Descriptions writes how many poisoned descriptions a model tells at 0.5 % of honest ones: the
// weights that come with the program, most of whose texts these are; models that have not
// seen the row; and models that have seen no row of its group.
func Descriptions(root string, out, progress io.Writer) error {
	dir, err := datatest.CorporaDir(root)
	if err != nil {
		return err
	}
	all, kind, err := loadAll(root, dir)
	if err != nil {
		return err
	}
	var list []*text
	for _, t := range all {
		if t.isDescription() {
			list = append(list, t)
		}
	}
	fmt.Fprintln(out, "| judged by | limit | honest flagged | poisoned flagged | of them in `tool-poison-asb-attack-tool` | others |")
	fmt.Fprintln(out, "|---|---|---|---|---|---|")
	shipped := local.Default()
	lines := shipped.Calibration().Lines
	described(out, "the weights of the program, trained on most of these rows", list, func(t *text) float32 { return shipped.Score(t.clean).P })
	rows, groups := map[*text]float32{}, map[*text]float32{}
	for i := range parts {
		m := trainWithout(all, kind, func(t *text) bool { return t.isDescription() && t.part() == i })
		for _, t := range list {
			if t.part() == i {
				rows[t] = along(lines[t.sort], m.judge(t))
			}
		}
		fmt.Fprintf(progress, "part %d of %d\n", i+1, parts)
	}
	var names []string
	for _, t := range list {
		if !slices.Contains(names, t.group) {
			names = append(names, t.group)
		}
	}
	for _, g := range names {
		m := trainWithout(all, kind, func(t *text) bool { return t.group == g })
		for _, t := range list {
			if t.group == g {
				groups[t] = along(lines[t.sort], m.judge(t))
			}
		}
		fmt.Fprintf(progress, "without %s\n", g)
	}
	described(out, "models that have not seen the row", list, func(t *text) float32 { return rows[t] })
	described(out, "models that have not seen the row's group", list, func(t *text) float32 { return groups[t] })
	return nil
}

// trainWithout is a model of the texts that may be trained on and are not left out.
func trainWithout(all []*text, kind []bool, out func(*text) bool) *fit {
	var in []*text
	for _, t := range all {
		if t.free && !out(t) {
			in = append(in, t)
		}
	}
	return train(in, kind)
}

// described writes a line of the table.
func described(w io.Writer, what string, list []*text, score func(*text) float32) {
	var honest []float32
	for _, t := range list {
		if !t.attack {
			honest = append(honest, score(t))
		}
	}
	slices.Sort(honest)
	k := int(alarmsOfDescriptions * float64(len(honest)))
	limit := honest[len(honest)-1-k]
	var flagged, n [2]int // generated tools of ASB, and others
	for _, t := range list {
		if !t.attack {
			continue
		}
		of := 0
		if t.group != "asb" {
			of = 1
		}
		if n[of]++; score(t) > limit {
			flagged[of]++
		}
	}
	alarms := 0
	for _, p := range honest {
		if p > limit {
			alarms++
		}
	}
	fmt.Fprintf(w, "| %s | %.3f | %s | %s | %s | %s |\n", what, limit, interval.Format(alarms, len(honest)),
		interval.Format(flagged[0]+flagged[1], n[0]+n[1]), interval.Format(flagged[0], n[0]), interval.Format(flagged[1], n[1]))
}
