// SPDX-License-Identifier: Apache-2.0

package detectors

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/pellucid-mcp/pellucid/model/interval"
)

// Of one sort of texts, the attacks and the benign ones. Bare requests are measured beside
// the benign texts of all data, since they stand in data.
func attacks(s sort) func(row) bool { return func(r row) bool { return r.attack && r.sort == s } }
func benign(s sort) func(row) bool {
	return func(r row) bool { return !r.attack && (r.sort == description) == (s == description) }
}

// write prints every table as Markdown.
func write(w io.Writer, rows []row, columns []*column) {
	var measured []*column
	for _, c := range columns {
		if len(c.answers) >= fewest {
			measured = append(measured, c)
		}
	}
	fmt.Fprintf(w, "%d attacks that a text shows, %d bare requests and %d poisoned descriptions, at most %d of a family; %d benign texts and %d benign descriptions. Intervals are Wilson's, 95 %%.\n",
		count(rows, attacks(told)), count(rows, attacks(bare)), count(rows, attacks(description)), most, count(rows, benign(told)), count(rows, benign(description)))
	index(w, columns)
	whole(w, rows, columns, measured)
	equal(w, rows, columns, measured)
	descriptions(w, rows, columns, measured)
	notEnglish := func(r row) bool { return r.sort != description && r.language != english }
	grid(w, rows, columns, measured, "Recall by language (texts)", "language", func(r row) string { return r.language }, func(r row) bool { return r.attack && r.sort == told })
	grid(w, rows, columns, measured, "False alarms by language", "language", func(r row) string { return r.language }, func(r row) bool { return !r.attack && notEnglish(r) })
	byFamily := func(r row) string { return r.family }
	grid(w, rows, columns, measured, "Recall by family, each at its own limit", "family", byFamily, attacks(told))
	grid(w, rows, columns, measured, "Recall by family of bare requests", "family", byFamily, attacks(bare))
	var same []*column
	for _, c := range measured {
		if c.scored() {
			same = append(same, c.at(rows, alarms, benign(told)))
		}
	}
	grid(w, rows, columns, same, "Recall by family, all at 1 % of false alarms", "family", byFamily, attacks(told))
	grid(w, rows, columns, measured, "False alarms by family, each at its own limit", "family", byFamily, benign(told))
}

func count(rows []row, keep func(row) bool) (n int) {
	for _, r := range rows {
		if keep(r) {
			n++
		}
	}
	return n
}

func heading(w io.Writer, title string, cells ...string) {
	fmt.Fprintf(w, "\n### %s\n\n| %s |\n|%s\n", title, strings.Join(cells, " | "), strings.Repeat("---|", len(cells)))
}

func line(w io.Writer, cells ...string) { fmt.Fprintf(w, "| %s |\n", strings.Join(cells, " | ")) }

// number is that of the detector in the first table.
func number(columns []*column, c *column) string {
	return fmt.Sprint(1 + slices.IndexFunc(columns, func(o *column) bool { return o.name == c.name }))
}

// index lists every detector, and what is not measured with its reason.
func index(w io.Writer, columns []*column) {
	heading(w, "Detectors", "no.", "detector", "version", "licence", "installed", "CPU a text, median", "measured")
	for _, c := range columns {
		state := "all texts"
		switch {
		case c.descriptions:
			state = "descriptions"
		case len(c.answers) < fewest:
			state = fmt.Sprintf("no: %s at %d texts", c.stopped, len(c.answers))
		case c.stopped != "":
			state = fmt.Sprintf("%d random texts: %s", len(c.answers), c.stopped)
		}
		line(w, number(columns, c), c.name, or(c.version, "–"), or(c.licence, "–"), size(c.bytes), duration(median(c.milliseconds)), state)
	}
	for _, a := range absent {
		line(w, "–", a.name, "–", "–", "–", "–", "not run here: "+a.needs)
	}
}

func or(s, def string) string {
	if s == "" {
		return def
	}
	return s
}

func size(n int64) string {
	switch {
	case n == 0:
		return "–"
	case n < 1<<20:
		return fmt.Sprintf("%d KB", (n+512)>>10)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/(1<<20))
}

func duration(ms float64) string {
	switch {
	case math.IsNaN(ms):
		return "–"
	case ms < 1:
		return fmt.Sprintf("%.0f µs", 1000*ms)
	case ms < 10:
		return fmt.Sprintf("%.1f ms", ms)
	}
	return fmt.Sprintf("%.0f ms", ms)
}

func share(t tally) string { return interval.Format(t.flagged, t.n) }

// whole compares each detector, at its own limit, with the fast model at as many false alarms.
func whole(w io.Writer, rows []row, columns, measured []*column) {
	heading(w, "Texts, each detector at its own limit", "no.", "detector", "recall", "false alarms", "fast model at as many false alarms", "bare requests", "not English")
	us := measured[slices.IndexFunc(measured, func(c *column) bool { return c.name == fast })]
	for _, c := range measured {
		if c.descriptions {
			continue
		}
		wrong := c.tally(rows, benign(told))
		ours := us.among(c).at(rows, float64(wrong.flagged)/float64(max(1, wrong.n)), benign(told))
		line(w, number(columns, c), c.name, share(c.tally(rows, attacks(told))), share(wrong), share(ours.tally(rows, attacks(told))), share(c.tally(rows, attacks(bare))),
			share(c.tally(rows, func(r row) bool { return attacks(told)(r) && r.language != english })))
	}
}

// equal compares those that give scores at the same false alarms.
func equal(w io.Writer, rows []row, columns, measured []*column) {
	heading(w, "Texts, detectors that give a score, at equal false alarms", "no.", "detector", "recall at 1 %", "recall at 5 %", "area under the curve", "bare requests at 1 %", "not English at 1 %")
	for _, c := range measured {
		if c.descriptions || !c.scored() {
			continue
		}
		one := c.at(rows, alarms, benign(told))
		line(w, number(columns, c), c.name, share(one.tally(rows, attacks(told))), share(c.at(rows, 5*alarms, benign(told)).tally(rows, attacks(told))),
			fmt.Sprintf("%.3f", area(c.scores(rows, attacks(told)), c.scores(rows, benign(told)))), share(one.tally(rows, attacks(bare))),
			share(one.tally(rows, func(r row) bool { return attacks(told)(r) && r.language != english })))
	}
}

// descriptions compares them on what servers say of their tools.
func descriptions(w io.Writer, rows []row, columns, measured []*column) {
	heading(w, "Descriptions of tools", "no.", "detector", "recall", "false alarms", "recall at 0.5 %", "area under the curve")
	for _, c := range measured {
		half, curve := "–", "–"
		if c.scored() {
			half = share(c.at(rows, alarms/2, benign(description)).tally(rows, attacks(description)))
			curve = fmt.Sprintf("%.3f", area(c.scores(rows, attacks(description)), c.scores(rows, benign(description))))
		}
		line(w, number(columns, c), c.name, share(c.tally(rows, attacks(description))), share(c.tally(rows, benign(description))), half, curve)
	}
}

// grid has a line for each family or language, and a column for each detector; the detectors
// of it are named by their number, and the shares are in per cent.
func grid(w io.Writer, rows []row, columns, measured []*column, title, what string, of func(row) string, keep func(row) bool) {
	cells := []string{what, "n"}
	var shown []*column
	for _, c := range measured {
		if !c.descriptions {
			shown, cells = append(shown, c), append(cells, number(columns, c))
		}
	}
	heading(w, title+" (per cent)", cells...)
	names := map[string]int{}
	for _, r := range rows {
		if keep(r) {
			names[of(r)]++
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		cells := []string{name, fmt.Sprint(names[name])}
		for _, c := range shown {
			cells = append(cells, rounded(c.tally(rows, func(r row) bool { return keep(r) && of(r) == name })))
		}
		line(w, cells...)
	}
}

func rounded(t tally) string {
	if t.n == 0 {
		return "–"
	}
	return fmt.Sprintf("%.0f", 100*float64(t.flagged)/float64(t.n))
}
