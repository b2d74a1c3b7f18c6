// SPDX-License-Identifier: Apache-2.0

// Package index answers questions about the records of a log: which there are of a server, a tool, a verdict, a code or a principal, when, and how many.
//
// An index is derived from the log and proves nothing. A [Follower] adds each record of the log to it
// once, in the order of the log; the position up to which the index stands is stored with the
// rows, in one transaction. It can be emptied and made again from the log at any time.
//
// A [Filter] selects records. Its text form is the same on the command line and in the console:
//
//	server:mail code:hidden-tag since:24h
//
// Records hold salted digests. The index has the digests of contents and of principals only as keyed
// values ([Key]), made of the openings that the store has. Where an opening was erased, the index has none.
package index

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/record/sequence"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// A Row is what the index knows of one record.
type Row struct {
	Index    int64
	ID       ledger.ID
	Of       ledger.ID // the record or held item that this one is about; zero: none
	Time     time.Time
	Kind     ledger.Kind
	Server   string
	Tool     string
	Verdict  string
	Reason   string
	Codes    []ledger.Count   // of what was found, and for what something was withheld
	Subjects []ledger.Subject // plain digests; nil where the opening is not known. A row that was read has none.
}

// Unread is the kind of a record that cannot be read: it has an index and nothing else.
const Unread ledger.Kind = "unread"

// RowOf is the row of a record. An opening that is empty or cannot be read leaves the subjects out.
func RowOf(position int64, st *ledger.Statement, opening []byte) Row {
	r := Row{Index: position, ID: st.ID, Of: st.Of, Time: st.Time, Kind: st.Kind, Server: st.Server, Tool: st.Tool,
		Verdict: st.Verdict, Reason: st.Reason, Codes: codesOf(st)}
	r.open(opening)
	return r
}

func (r *Row) open(opening []byte) {
	if len(opening) == 0 {
		return
	}
	if o, err := ledger.ParseOpening(opening); err == nil && o.ID == r.ID {
		r.Subjects = o.Subjects
	}
}

// codesOf are the codes that a record counts for. A code stands once, with the greater number of
// what was found and of what was withheld. A record about a held result has its code as the reason.
func codesOf(st *ledger.Statement) []ledger.Count {
	var out []ledger.Count
	add := func(c ledger.Count) {
		i := slices.IndexFunc(out, func(o ledger.Count) bool { return o.Code == c.Code })
		if i < 0 {
			out = append(out, c)
		} else {
			out[i].N = max(out[i].N, c.N)
		}
	}
	for _, c := range st.Findings {
		add(c)
	}
	for _, c := range st.Withheld {
		add(c)
	}
	if code := finding.Code(st.Reason); code.Known() {
		add(ledger.Count{Code: code, N: 1})
	}
	slices.SortFunc(out, func(a, b ledger.Count) int { return compare(a.Code, b.Code) })
	return out
}

func compare[S ~string](a, b S) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// RowOfEntry is the row of a record of the log with its opening.
func RowOfEntry(e *sequence.Entry) Row {
	st, err := ledger.UnverifiedStatement(e.Envelope)
	if err != nil {
		return Row{Index: e.Index, ID: e.ID, Time: e.Time, Kind: Unread}
	}
	return RowOf(e.Index, st, e.Opening)
}

// A Status says how far an index is.
type Status struct {
	Log     int64 // records of the log
	Indexed int64 // of them in the index: the first ones
	// KeyMissing: principals and digests of some records stand under a key that this process does not
	// have, because it was retired. They are found again once the index is made anew.
	KeyMissing bool
}

// Behind is the number of records that are not in the index yet.
func (s Status) Behind() int64 { return max(0, s.Log-s.Indexed) }

// ErrMoved says that another process has added the records.
var ErrMoved = errors.New("index: another process has moved the index on")

// A Store has a log and its index.
type Store interface {
	Head(ctx context.Context) (sequence.Head, error)
	// Span returns up to n records from an index on, with their openings, in order.
	Span(ctx context.Context, first int64, n int) ([]sequence.Entry, error)
	// Indexed is the number of records that the index has.
	Indexed(ctx context.Context) (int64, error)
	// Index adds rows behind the first at records, with the position, whole or not at all. ErrMoved: the
	// index does not end there.
	Index(ctx context.Context, at int64, rows []Row) error
	// Unindex empties the index.
	Unindex(ctx context.Context) error
}
