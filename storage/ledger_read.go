// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/pellucid-mcp/pellucid/record/index"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/record/sequence"
)

// Checkpoint implements ledger.Source. It has the cosignatures of witnesses where they have signed the
// latest checkpoint.
func (l *Ledger) Checkpoint(ctx context.Context) ([]byte, error) {
	latest, cosigned, _, err := l.checkpoints(ctx)
	switch {
	case err != nil:
		return nil, err
	case latest == nil:
		return nil, ledger.ErrNotFound
	case sameText(latest, cosigned):
		return cosigned, nil
	}
	return latest, nil
}

// checkpoints are the latest checkpoint and the latest that enough witnesses have cosigned, each nil if
// there is none.
func (l *Ledger) checkpoints(ctx context.Context) (latest, cosigned []byte, at time.Time, err error) {
	var when string
	err = l.s.EachRow(ctx, func(r *sql.Rows) error { return r.Scan(&latest, &cosigned, &when) },
		`SELECT h.checkpoint, c.checkpoint, COALESCE(c.at, '') FROM ledger_head h LEFT JOIN ledger_cosigned c ON c.one = h.one`)
	if len(latest) == 0 {
		latest = nil
	}
	at, _ = ParseStamp(when)
	return latest, cosigned, at, l.s.Fail(ctx, "read the checkpoint", err)
}

// CosignedSize is the size of the log up to which enough witnesses have cosigned it, and when that was; 0: never.
func (l *Ledger) CosignedSize(ctx context.Context) (size int64, at time.Time, err error) {
	_, cosigned, at, err := l.checkpoints(ctx)
	if err != nil || cosigned == nil {
		return 0, time.Time{}, err
	}
	return ledger.CheckpointSize(cosigned), at, nil
}

func sameText(a, b []byte) bool {
	x, _, ok := bytes.Cut(a, []byte("\n\n"))
	y, _, ok2 := bytes.Cut(b, []byte("\n\n"))
	return ok && ok2 && bytes.Equal(x, y)
}

// SaveCosigned keeps a checkpoint that enough witnesses have cosigned, unless a larger one is kept.
func (l *Ledger) SaveCosigned(ctx context.Context, checkpoint []byte, at time.Time) error {
	return l.update(ctx, "keep a cosigned checkpoint", func(t *Tx) error {
		return t.Execute(ctx, `INSERT INTO ledger_cosigned (one, size, checkpoint, at) VALUES (1, ?, ?, ?) ON CONFLICT (one)
			DO UPDATE SET size = excluded.size, checkpoint = excluded.checkpoint, at = excluded.at
			WHERE excluded.size >= ledger_cosigned.size`, ledger.CheckpointSize(checkpoint), checkpoint, Stamp(at))
	})
}

// Cosigned is the latest checkpoint that enough witnesses have cosigned, however old it is; without
// one the latest.
func (l *Ledger) Cosigned(ctx context.Context) ([]byte, error) {
	latest, cosigned, _, err := l.checkpoints(ctx)
	switch {
	case err != nil:
		return nil, err
	case latest == nil:
		return nil, ledger.ErrNotFound
	case cosigned != nil && ledger.CheckpointSize(cosigned) <= ledger.CheckpointSize(latest):
		return cosigned, nil
	}
	return latest, nil
}

// Published is the log as readers are shown it: with the latest checkpoint that witnesses have
// cosigned, unless that is more than stale old and the log has grown since.
func (l *Ledger) Published(stale time.Duration) ledger.Source { return published{l, stale} }

type published struct {
	*Ledger
	stale time.Duration
}

// Checkpoint implements ledger.Source.
func (p published) Checkpoint(ctx context.Context) ([]byte, error) {
	latest, cosigned, at, err := p.checkpoints(ctx)
	switch {
	case err != nil:
		return nil, err
	case latest == nil:
		return nil, ledger.ErrNotFound
	case sameText(latest, cosigned), cosigned != nil && time.Since(at) < p.stale && ledger.CheckpointSize(cosigned) <= ledger.CheckpointSize(latest):
		return cosigned, nil
	}
	return latest, nil
}

// Tile implements ledger.Source.
func (l *Ledger) Tile(ctx context.Context, level int, n int64, width int) ([]byte, error) {
	var hashes []byte
	err := l.s.EachRow(ctx, func(r *sql.Rows) error { return r.Scan(&hashes) },
		`SELECT hashes FROM ledger_tiles WHERE level = ? AND n = ?`, level, n)
	switch {
	case err != nil:
		return nil, l.s.Fail(ctx, "read a tile", err)
	case len(hashes) == 0 || len(hashes) < width*len(ledger.Hash{}):
		return nil, ledger.ErrNotFound
	}
	return hashes, nil
}

// Entries implements ledger.Source.
func (l *Ledger) Entries(ctx context.Context, first int64, n int) ([][]byte, error) {
	var out [][]byte
	err := l.s.EachRow(ctx, func(r *sql.Rows) error {
		var index int64
		var envelope []byte
		err := r.Scan(&index, &envelope)
		if err == nil && index != first+int64(len(out)) {
			err = errEnough // a row is missing: what follows is not what was asked for
		}
		if err == nil {
			out = append(out, envelope)
		}
		return err
	}, `SELECT idx, envelope FROM ledger_leaves WHERE idx >= ? ORDER BY idx LIMIT ?`, first, n)
	switch {
	case err != nil && !errors.Is(err, errEnough):
		return nil, l.s.Fail(ctx, "read records", err)
	case len(out) == 0:
		return nil, ledger.ErrNotFound
	}
	return out, nil
}

const entryColumns = `e.idx, e.id, e.at, e.server, e.kind, e.opening, l.envelope
	FROM ledger_entries e JOIN ledger_leaves l ON l.idx = e.idx`

func scanEntry(r *sql.Rows) (e sequence.Entry, err error) {
	var id []byte
	var at, kind string
	if err := r.Scan(&e.Index, &id, &at, &e.Server, &kind, &e.Opening, &e.Envelope); err != nil {
		return e, err
	}
	e.ID, e.Kind = idOf(id), ledger.Kind(kind)
	e.Time, err = ParseStamp(at)
	return e, err
}

// List returns records with their openings, the newest first.
func (l *Ledger) List(ctx context.Context, f sequence.Filter) ([]sequence.Entry, error) {
	var c condition
	if !f.Since.IsZero() {
		c.and(`e.at >= ?`, Stamp(f.Since))
	}
	if !f.Until.IsZero() {
		c.and(`e.at < ?`, Stamp(f.Until))
	}
	if f.Server != "" {
		c.and(`e.server = ?`, f.Server)
	}
	if f.Kind != "" {
		c.and(`e.kind = ?`, string(f.Kind))
	}
	if f.Before > 0 {
		c.and(`e.idx < ?`, f.Before)
	}
	limit := f.Limit
	if limit <= 0 {
		limit = 100
	}
	out := []sequence.Entry{}
	err := l.s.EachRow(ctx, func(r *sql.Rows) error {
		e, err := scanEntry(r)
		out = append(out, e)
		return err
	}, `SELECT `+entryColumns+` WHERE `+c.text()+` ORDER BY e.idx DESC LIMIT ?`, append(c.args, min(limit, 1000))...)
	return out, l.s.Fail(ctx, "list records", err)
}

// Get returns the record of that id; ledger.ErrNotFound if the log has none.
func (l *Ledger) Get(ctx context.Context, id ledger.ID) (sequence.Entry, error) {
	return l.entryBy(ctx, `SELECT `+entryColumns+` WHERE e.id = ?`, id[:])
}

// At returns the record of that index; ledger.ErrNotFound if the log has none.
func (l *Ledger) At(ctx context.Context, index int64) (sequence.Entry, error) {
	return l.entryBy(ctx, `SELECT `+entryColumns+` WHERE e.idx = ?`, index)
}

// aboutKinds are the kinds of records that are about another record or about a held item.
const aboutKinds = `'result-held', 'result-released', 'result-taken', 'result-denied', 'result-expired', 'classified', 'counterfactual', 'policy-decided', 'principal-forgotten'`

// maxAbout is how many records About looks at.
const maxAbout = 50_000

// About returns the records that are about the record or held item of, in the order of the log:
// those of a server from the time since on. The index finds them, as far as it is; the records behind
// it are looked at one by one. more says that there are records that it did not look at.
func (l *Ledger) About(ctx context.Context, of ledger.ID, server string, since time.Time) (out []sequence.Entry, more bool, err error) {
	const about = ` AND e.at >= ? AND e.kind IN (` + aboutKinds + `) AND (e.server = ? OR e.kind = 'counterfactual')`
	looked := 0
	look := func(r *sql.Rows) error {
		e, err := scanEntry(r)
		if err != nil {
			return err
		}
		looked++
		st, err := ledger.UnverifiedStatement(e.Envelope)
		if err == nil && st.Of == of { // the value in the index is not the whole id
			out = append(out, e)
		}
		return nil // ledger verify names the records that cannot be read
	}
	err = l.View(ctx, func(v *View) error {
		// The size is an argument: Postgres does not know otherwise that few records are behind the index, and reads all.
		size := v.Status.Indexed
		err := v.query(look, `SELECT `+entryColumns+` WHERE e.idx IN (SELECT k.idx FROM decision_keys k WHERE k.key = ? AND k.idx < ?)`+about+
			` ORDER BY e.idx LIMIT ?`, index.OfValue(of), size, Stamp(since), server, maxAbout)
		if err != nil {
			return err
		}
		return v.query(look, `SELECT `+entryColumns+` WHERE e.idx >= ? AND l.idx >= ?`+about+` ORDER BY e.idx LIMIT ?`, size, size, Stamp(since), server, maxAbout-looked)
	})
	if err != nil {
		return nil, false, l.s.Fail(ctx, "read records", err)
	}
	return out, looked == maxAbout, nil
}

func (l *Ledger) entryBy(ctx context.Context, query string, arg any) (e sequence.Entry, err error) {
	e, found, err := queryOne(ctx, l.s, scanEntry, query, arg)
	if err == nil && !found {
		return e, ledger.ErrNotFound
	}
	return e, l.s.Fail(ctx, "read a record", err)
}

// Keys are the public keys that the records name which install one, in the order of the records.
func (l *Ledger) Keys(ctx context.Context) (keys []*ledger.Key, err error) {
	// The kind stands in the query itself, so that the index of these records is used.
	err = l.s.EachRow(ctx, func(r *sql.Rows) error {
		var envelope []byte
		if err := r.Scan(&envelope); err != nil {
			return err
		}
		st, err := ledger.UnverifiedStatement(envelope)
		if err != nil {
			return err
		}
		k, err := ledger.ParseKey(st.Key)
		keys = append(keys, k)
		return err
	}, `SELECT l.envelope FROM ledger_entries e JOIN ledger_leaves l ON l.idx = e.idx WHERE e.kind = 'key-installed' ORDER BY e.idx`)
	return keys, l.s.Fail(ctx, "read the keys of the log", err)
}

// Openings implements ledger.Opener.
func (l *Ledger) Openings(ctx context.Context, first int64, n int) ([][]byte, error) {
	rows, err := l.Rows(ctx, first, n)
	if err != nil {
		return nil, err
	}
	var out [][]byte
	for i := range rows {
		if rows[i].Index != first+int64(i) {
			break // a row is missing
		}
		out = append(out, rows[i].Opening)
	}
	if len(out) == 0 {
		return nil, ledger.ErrNotFound
	}
	return out, nil
}

// idOf is the zero ID where a column does not hold an ID.
func idOf(b []byte) (id ledger.ID) {
	if len(b) == len(id) {
		copy(id[:], b)
	}
	return id
}

// Rows returns up to n records from index first on, in order and without their
// envelopes.
func (l *Ledger) Rows(ctx context.Context, first int64, n int) ([]sequence.Entry, error) {
	var out []sequence.Entry
	err := l.s.EachRow(ctx, func(r *sql.Rows) error {
		var e sequence.Entry
		var id []byte
		var at, kind string
		if err := r.Scan(&e.Index, &id, &at, &e.Server, &kind, &e.Opening); err != nil {
			return err
		}
		e.ID, e.Kind = idOf(id), ledger.Kind(kind)
		e.Time, _ = ParseStamp(at) // zero: no time, which is for the caller to find
		out = append(out, e)
		return nil
	}, `SELECT idx, id, at, server, kind, opening FROM ledger_entries WHERE idx >= ? ORDER BY idx LIMIT ?`, first, n)
	return out, l.s.Fail(ctx, "read rows", err)
}
