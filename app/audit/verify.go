// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/record/sequence"
	"github.com/pellucid-mcp/pellucid/storage"
)

// rowFault is a row that does not say what the record says.
const rowFault ledger.Fault = "the row in the store differs from the record"

// Options say how a stored log is verified.
type Options struct {
	ledger.VerifyOptions
	Restored bool   // forget the checkpoint that was remembered
	OwnKey   func() // is told where no key is given: the log is held against its own first record
}

// Verify checks the log of a store and the columns beside its records. It returns how many
// acknowledged records wait for their signature, too.
func Verify(ctx context.Context, l *storage.Ledger, dir *state.Dir, o Options) (r *ledger.Report, waiting int, err error) {
	audit, err := l.Audit(ctx, l.Chain())
	if err != nil {
		return nil, 0, err
	}
	if len(o.Keys) == 0 {
		first, err := firstKey(ctx, l)
		if errors.Is(err, install.ErrNoLog) && !audit.Empty() || errors.Is(err, errFirst) {
			r = &ledger.Report{Problems: []ledger.Problem{{Place: "the first record", Index: 0, Fault: ledger.FaultFirst}}}
			return r, 0, audit.Rest(ctx, r)
		} else if err != nil {
			return nil, 0, err
		}
		o.Keys = []*ledger.Key{first}
		if o.OwnKey != nil {
			o.OwnKey()
		}
	}
	decisions := &decisionAudit{ctx: ctx, records: map[decisionKey][]recorded{}}
	audit.Each = decisions.addRecord
	rows := rowReader{ctx: ctx, l: l}
	var killed []time.Time
	o.Each = func(index int64, _ []byte, s *ledger.Statement) ledger.Fault {
		row, ok := rows.at(index)
		if !ok || row.ID != s.ID || row.Kind != s.Kind || row.Server != s.Server || !row.Time.Equal(s.Time) {
			return rowFault
		}
		audit.Record(index, s)
		if install.IsKilled(s) {
			killed = append(killed, s.Time)
		}
		return ""
	}
	if r, err = remembering(ctx, l, dir, o); err != nil {
		return nil, 0, err
	}
	if err = errors.Join(rows.err, audit.Rest(ctx, r)); err != nil {
		return nil, 0, err
	}
	notChecked, err := decisions.reportFaults(l, &audit.DecisionRows, audit.Problem)
	r.NotChecked = append(r.NotChecked, notChecked...)
	untold, listErr := install.Killed(dir, o.Keys[0].Name())
	if killed = slices.AppendSeq(killed, maps.Values(untold)); len(killed) > 0 {
		r.NotChecked = append(r.NotChecked, fmt.Sprintf("the last 50 ms before %s of a process, the last on %s: best-effort records may be missing",
			terminal.Plural(len(killed), "kill"), slices.MaxFunc(killed, time.Time.Compare).UTC().Format(time.RFC3339)))
	}
	return r, audit.Waiting, errors.Join(err, listErr)
}

// remembering verifies the log against the checkpoint that was remembered of it, too, and
// remembers the present one if all holds.
func remembering(ctx context.Context, l *storage.Ledger, dir *state.Dir, o Options) (*ledger.Report, error) {
	given := len(o.Older)
	known, err := seenOf(dir, o.Keys[0].Name())
	if err != nil {
		return nil, err
	}
	if known.was != nil && !o.Restored {
		o.Older = append(o.Older[:len(o.Older):len(o.Older)], known.was)
	}
	src := &keepingLog{Ledger: l}
	r, err := ledger.Verify(ctx, src, o.VerifyOptions)
	if err != nil {
		return nil, err
	}
	last := "older checkpoint " + strconv.Itoa(len(o.Older)-1)
	for i := range r.Problems {
		if p := &r.Problems[i]; len(o.Older) > given && p.Place == last {
			p.Place = "the checkpoint"
			if f := seenFaults[p.Fault]; f != "" {
				p.Fault = f
			}
		}
	}
	switch {
	case known.was == nil && known.others(dir):
		r.NotChecked = append(r.NotChecked, "whether this is the log that it was: other logs were verified with this state directory, this one was not")
	case known.was == nil:
		r.NotChecked = append(r.NotChecked, "whether records were removed before now: no earlier checkpoint is remembered")
	}
	if r.OK() {
		err = known.keep(src.checkpoint, r.Checkpoint.Size)
	}
	return r, err
}

// A rowReader reads rows in order, many at once.
type rowReader struct {
	ctx  context.Context
	l    *storage.Ledger
	rows []sequence.Entry
	err  error
}

func (r *rowReader) at(index int64) (sequence.Entry, bool) {
	if len(r.rows) == 0 || index < r.rows[0].Index || index > r.rows[len(r.rows)-1].Index {
		if r.rows, r.err = r.l.Rows(r.ctx, index, 4096); r.err != nil {
			return sequence.Entry{}, false
		}
	}
	for len(r.rows) > 0 && r.rows[0].Index < index {
		r.rows = r.rows[1:]
	}
	if len(r.rows) == 0 || r.rows[0].Index != index {
		return sequence.Entry{}, false
	}
	return r.rows[0], true
}
