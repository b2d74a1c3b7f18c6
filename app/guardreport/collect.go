// SPDX-License-Identifier: Apache-2.0

package guardreport

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/model/guard"
	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/record/sequence"
	"github.com/pellucid-mcp/pellucid/storage"
)

// A Query says which decisions are added up.
type Query struct {
	Since, Until time.Time // Until is not part of it
	Limit        int       // calls that are listed
}

const (
	pageSize     = 200      // records that are read at once
	maxStatement = 32 << 20 // bytes
	maxWaiting   = 10_000   // records that are counted
)

// Collect adds up the decisions that the ledger of a database has. Of each it reads the statement
// in the state directory of this machine.
func (q Query) Collect(db install.Database) (*Report, error) {
	r := newReport(q.Since, q.Until, q.Limit)
	err := db.WithIntegratedLog(func(ctx context.Context, l *storage.Ledger, dir *state.Dir) error {
		kept, err := dir.Sub("guard")
		if err != nil {
			return err
		}
		if err := settle(ctx, l); err != nil {
			return err
		}
		if r.Missing.Waiting, err = l.Waiting(ctx, maxWaiting); err != nil {
			return err
		}
		f := sequence.Filter{Kind: ledger.Counterfactual, Since: q.Since, Until: q.Until, Limit: pageSize}
		for {
			list, err := l.List(ctx, f)
			if err != nil || len(list) == 0 {
				return err
			}
			for i := range list {
				f.Before = list[i].Index
				if err := r.record(&list[i], kept); err != nil {
					return err
				}
			}
			if f.Before == 0 {
				return nil
			}
		}
	})
	if err != nil {
		return nil, err
	}
	r.finish()
	return r, nil
}

// settle waits until the log has what waits now: the process that carries it on takes up
// records every second or so.
func settle(ctx context.Context, l *storage.Ledger) error {
	n, err := l.Waiting(ctx, maxWaiting)
	if err != nil || n == 0 {
		return err
	}
	first, err := l.Head(ctx)
	if err != nil && !errors.Is(err, sequence.ErrNoLog) { // the first records wait for the log to begin
		return err
	}
	for end := time.Now().Add(install.IntegrateWait); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		left, err := l.Waiting(ctx, 1)
		if err != nil || left == 0 {
			return err
		}
		head, err := l.Head(ctx)
		if err != nil && !errors.Is(err, sequence.ErrNoLog) || head.Size >= first.Size+int64(n) {
			return err
		}
	}
	return nil
}

// record counts the decision of one record, if it is one of the guard's.
func (r *Report) record(entry *sequence.Entry, kept *state.Dir) error {
	st, err := ledger.UnverifiedStatement(entry.Envelope)
	if err != nil {
		return fmt.Errorf("guard: record %d: %w", entry.Index, err)
	}
	act := guard.Act(st.Verdict)
	if !slices.Contains(guard.Acts, act) {
		return nil // of ccr analyze, of an approval, or of a source
	}
	name := st.ID.String() + ".json"
	b, err := kept.Read(name, maxStatement)
	var e *guard.Evidence
	switch {
	case errors.Is(err, fs.ErrNotExist):
		r.Missing.Absent++
	case err != nil:
		r.Missing.Unread++
	default:
		if e, err = guard.Replay(b); err == nil && (e.ID == st.ID.String() && e.Act == act && isDigest(entry, st, b)) {
			at := len(r.Held)
			r.add(st.Time, e)
			for i := range r.Held[at:] {
				r.Held[at+i].show(kept.File(name))
			}
			return nil
		}
		if errors.Is(err, guard.ErrVersion) {
			r.Missing.Version++
		} else {
			r.Missing.Changed++
		}
	}
	if (&guard.Evidence{Act: act}).Held() {
		r.Missing.Held++
	}
	return nil
}

// isDigest reports whether the record has the digest of the statement. If its opening was erased,
// nothing says that it has another one.
func isDigest(entry *sequence.Entry, st *ledger.Statement, statement []byte) bool {
	if entry.Opening == nil {
		return true
	}
	o, err := ledger.ParseOpening(entry.Opening)
	return err == nil && o.Check(st) == nil && slices.Contains(o.Subjects, ledger.Subject{Role: ledger.Output, Digest: sha256.Sum256(statement)})
}

// show names the commands that show the call, whose statement is in the file.
func (x *HeldCall) show(file string) {
	x.Show = []string{"pellucid ccr replay " + terminal.ShellWord(file)}
	if x.waits {
		x.Show = append(x.Show, "pellucid quarantine show "+x.ID)
	}
}
