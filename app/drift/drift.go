// SPDX-License-Identifier: Apache-2.0

// Package drift says whether classifiers flag more or less of each server's results than in the weeks before.
//
// A share that doubles means that the server is attacked, that it has changed, or that the
// classifier no longer fits what the server answers. Each needs a person to look.
package drift

import (
	"time"

	"github.com/pellucid-mcp/pellucid/model/interval"
	"github.com/pellucid-mcp/pellucid/storage"
)

// The spans that are compared, in days of UTC. Today is the last day of the later span.
const (
	laterDays  = 7
	beforeDays = 28
)

// Enough is how many results have to be judged in each span for a comparison.
const Enough = 100

// A Change is how the share of flagged results has changed.
type Change string

// The changes. A share counts as changed if it has doubled or halved and the intervals of the two
// spans do not overlap.
const (
	More    Change = "more"
	Less    Change = "less"
	Same    Change = "same"
	Unknown Change = "not enough records"
)

// A Share is how many of the judged results were flagged, with the interval of 95 % after Wilson.
type Share struct {
	Judged  int64   `json:"judged"`
	Flagged int64   `json:"flagged"`
	Share   float64 `json:"share"`
	Low     float64 `json:"low"`
	High    float64 `json:"high"`
}

// A Row compares the shares that one classifier has flagged of one server's results.
type Row struct {
	Server     string `json:"server"`
	Classifier string `json:"classifier"`
	Later      Share  `json:"later"`
	Before     Share  `json:"before"`
	Change     Change `json:"change"`
}

// A Report compares the days from Split to Until with those from Since to Split.
type Report struct {
	Since time.Time `json:"since"`
	Split time.Time `json:"split"`
	Until time.Time `json:"until"`
	Rows  []Row     `json:"rows"`
	// Unindexed is the number of records that are not counted yet.
	Unindexed int64 `json:"unindexed"`
}

// Read makes a report from an index, as of a time, of the servers that sees allows.
func Read(v *storage.View, now time.Time, sees func(server string) bool) (*Report, error) {
	until := now.UTC().Truncate(24*time.Hour).AddDate(0, 0, 1)
	r := &Report{Until: until, Split: until.AddDate(0, 0, -laterDays), Unindexed: v.Status.Behind(), Rows: []Row{}}
	r.Since = r.Split.AddDate(0, 0, -beforeDays)
	before, err := v.Judged(r.Since, r.Split)
	if err != nil {
		return nil, err
	}
	later, err := v.Judged(r.Split, r.Until)
	if err != nil {
		return nil, err
	}
	type key struct{ server, classifier string }
	earlier := map[key]storage.JudgedSum{}
	for _, s := range before {
		earlier[key{s.Server, s.Classifier}] = s
	}
	for _, s := range later {
		if sees(s.Server) {
			r.Rows = append(r.Rows, rowOf(s, earlier[key{s.Server, s.Classifier}]))
		}
	}
	return r, nil
}

func rowOf(later, before storage.JudgedSum) Row {
	r := Row{Server: later.Server, Classifier: later.Classifier, Later: shareOf(later), Before: shareOf(before), Change: Same}
	l, b := &r.Later, &r.Before
	switch {
	case l.Judged < Enough || b.Judged < Enough:
		r.Change = Unknown
	case l.Share >= 2*b.Share && l.Low > b.High:
		r.Change = More
	case 2*l.Share <= b.Share && l.High < b.Low:
		r.Change = Less
	}
	return r
}

func shareOf(s storage.JudgedSum) Share {
	out := Share{Judged: s.Judged, Flagged: s.Flagged}
	if s.Judged > 0 {
		out.Share = float64(s.Flagged) / float64(s.Judged)
	}
	out.Low, out.High = interval.Wilson(int(s.Flagged), int(s.Judged))
	return out
}
