// SPDX-License-Identifier: Apache-2.0

package index

import (
	"iter"
	"slices"
	"time"

	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// A Filter selects records. Members that are set must all hold; of a list, one value must.
type Filter struct {
	Since, Until time.Time // Until is not part of it; both are cut to microseconds
	Kinds        []ledger.Kind
	Servers      []string
	Tools        []string
	Verdicts     []string
	Code         finding.Code
	Principal    ledger.Digest // SHA-256 of the name; zero: any
	By           ledger.Digest // SHA-256 of the name of the person who decided; zero: any
	Digest       ledger.Digest // of a content, whatever its role; zero: any
	ID           ledger.ID     // zero: any
	Of           ledger.ID     // zero: any
}

// Personal reports whether the filter asks for a person or content, which the index finds by a key alone.
func (f *Filter) Personal() bool {
	return f.Principal != ledger.Digest{} || f.By != ledger.Digest{} || f.Digest != ledger.Digest{}
}

// Grouped reports whether the filter asks for a kind, server, tool or verdict.
func (f *Filter) Grouped() bool {
	return len(f.Kinds)+len(f.Servers)+len(f.Tools)+len(f.Verdicts) > 0
}

// Match reports whether the filter selects a row that has its subjects.
func (f *Filter) Match(r *Row) bool {
	at := Micros(r.Time)
	from, to := f.Span()
	has := func(c string, d ledger.Digest) bool {
		return d == ledger.Digest{} || slices.ContainsFunc(r.Subjects, func(s ledger.Subject) bool { return class(s.Role) == c && s.Digest == d })
	}
	switch {
	case at < from || at >= to:
	case len(f.Kinds) > 0 && !slices.Contains(f.Kinds, r.Kind):
	case len(f.Servers) > 0 && !slices.Contains(f.Servers, r.Server):
	case len(f.Tools) > 0 && !slices.Contains(f.Tools, r.Tool):
	case len(f.Verdicts) > 0 && !slices.Contains(f.Verdicts, r.Verdict):
	case f.Code != "" && !slices.ContainsFunc(r.Codes, func(c ledger.Count) bool { return c.Code == f.Code }):
	case f.ID != ledger.ID{} && f.ID != r.ID, f.Of != ledger.ID{} && f.Of != r.Of:
	case !has(classPrincipal, f.Principal), !has(classBy, f.By), !has(classContent, f.Digest):
	default:
		return true
	}
	return false
}

// Newest returns the rows that f selects, at most limit of them, the newest first. asRow returns what an index would have
// of a row.
func Newest[T any](rows iter.Seq2[T, error], f *Filter, limit int, asRow func(*T) Row) ([]T, error) {
	type timed struct {
		at  time.Time
		row T
	}
	var list []timed
	cut := func() {
		slices.SortStableFunc(list, func(a, b timed) int { return b.at.Compare(a.at) })
		list = list[:min(len(list), limit)]
	}
	for r, err := range rows {
		if err != nil {
			return nil, err
		}
		if row := asRow(&r); f.Match(&row) {
			list = append(list, timed{row.Time, r})
		}
		if len(list) >= 2*limit {
			cut()
		}
	}
	cut()
	out := make([]T, len(list))
	for i := range list {
		out[i] = list[i].row
	}
	return out, nil
}

// latest is the last microsecond of the year 9999.
const latest = 253402300799999999

// Micros is the time of a record as an index keeps it: microseconds since 1970; what is before or after
// the year 9999 is moved to the end of that range.
func Micros(t time.Time) int64 {
	if t.Year() > 9999 {
		return latest
	}
	return min(latest, max(0, t.UnixMicro()))
}

// Span is the time that the filter selects, in microseconds: to is not part of it.
func (f *Filter) Span() (from, to int64) {
	to = latest + 1
	if !f.Since.IsZero() {
		from = Micros(f.Since)
	}
	if !f.Until.IsZero() {
		to = Micros(f.Until)
	}
	return from, to
}
