package store

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"

	"github.com/pellucid-mcp/pellucid/internal/sequence"
	"github.com/pellucid-mcp/pellucid/ledger"
)

// pend stores records for the ledger with whatever else the transaction does.
func (t *tx) pend(ctx context.Context, records ...[]byte) error {
	for _, r := range records {
		if r == nil {
			continue
		}
		if err := t.exec(ctx, insertPending, r); err != nil {
			return err
		}
	}
	return nil
}

const insertPending = `INSERT INTO ledger_pending (record) VALUES (?)`

// A Ledger is the log in a store, as sequence.Store asks.
type Ledger struct{ s *Store }

var (
	_ sequence.Store = (*Ledger)(nil)
	_ ledger.Opener  = (*Ledger)(nil)
)

// Ledger returns the store's log, which ends with it.
func (s *Store) Ledger() *Ledger { return &Ledger{s} }

// update is that of the store, but keeps nobody out: the fence of the head's row does
// where it matters.
func (l *Ledger) update(ctx context.Context, what string, f func(*tx) error) error {
	return l.s.updating(ctx, what, f, func(*sql.Tx) error { return nil })
}

// Add implements sequence.Store.
func (l *Ledger) Add(ctx context.Context, records [][]byte) error {
	if len(records) == 1 { // a statement is a transaction
		return l.s.retry(ctx, "add records", func() error {
			st, err := l.s.writing(ctx, insertPending)
			if err == nil {
				_, err = st.ExecContext(ctx, records[0])
			}
			return err
		})
	}
	args := make([]any, len(records))
	for i, r := range records {
		args[i] = r
	}
	return l.update(ctx, "add records", func(t *tx) error {
		return t.insert(ctx, "ledger_pending (record)", 1, "", args)
	})
}

// Pending implements sequence.Store.
func (l *Ledger) Pending(ctx context.Context, limit, octets int) (out []sequence.Pending, err error) {
	sum := 0
	err = l.s.query(ctx, func(r *sql.Rows) error {
		var p sequence.Pending
		if sum >= octets {
			return errEnough
		}
		err := r.Scan(&p.Seq, &p.Record)
		sum += len(p.Record)
		out = append(out, p)
		return err
	}, `SELECT seq, record FROM ledger_pending ORDER BY seq LIMIT ?`, limit)
	if errors.Is(err, errEnough) {
		err = nil
	}
	return out, l.s.fail(ctx, "read what waits", err)
}

var errEnough = errors.New("store: enough")

// Waiting implements sequence.Store.
func (l *Ledger) Waiting(ctx context.Context, limit int) (n int, err error) {
	err = l.s.query(ctx, func(r *sql.Rows) error { return r.Scan(&n) },
		`SELECT count(*) FROM (SELECT 1 FROM ledger_pending LIMIT ?) AS first`, limit)
	return n, l.s.fail(ctx, "count what waits", err)
}

// Head implements sequence.Store.
func (l *Ledger) Head(ctx context.Context) (h sequence.Head, err error) {
	found := false
	err = l.s.query(ctx, func(r *sql.Rows) error {
		found = true
		return r.Scan(&h.Origin, &h.Signer, &h.Size, &h.Checkpoint, &h.Holder, &h.Fence, &h.Beat)
	}, `SELECT origin, signer, size, checkpoint, holder, fence, beat FROM ledger_head`)
	switch {
	case err != nil:
		return h, l.s.fail(ctx, "read the log's head", err)
	case !found:
		return h, sequence.ErrNoLog
	case len(h.Checkpoint) == 0:
		h.Checkpoint = nil
	}
	return h, nil
}

// Begin implements sequence.Store.
func (l *Ledger) Begin(ctx context.Context, origin, signer string) error {
	return l.update(ctx, "begin the log", func(t *tx) error {
		return t.exec(ctx, `INSERT INTO ledger_head (one, origin, signer, size, checkpoint, holder, fence, beat)
			VALUES (1, ?, ?, 0, ?, '', 0, 0) ON CONFLICT (one) DO NOTHING`, origin, signer, []byte{})
	})
}

// Claim implements sequence.Store.
func (l *Ledger) Claim(ctx context.Context, holder string, seen sequence.Head) (sequence.Head, error) {
	err := l.move(ctx, "claim the log", nil,
		`UPDATE ledger_head SET holder = ?, fence = fence + 1, beat = beat + 1 WHERE fence = ? AND beat = ?`, holder, seen.Fence, seen.Beat)
	if err != nil {
		return sequence.Head{}, err
	}
	h, err := l.Head(ctx)
	if err == nil && (h.Holder != holder || h.Fence != seen.Fence+1) {
		err = sequence.ErrLost
	}
	return h, err
}

// Release implements sequence.Store.
func (l *Ledger) Release(ctx context.Context, held sequence.Head) error {
	return l.move(ctx, "release the log", nil,
		`UPDATE ledger_head SET holder = '', beat = beat + 1 WHERE fence = ? AND holder = ?`, held.Fence, held.Holder)
}

// move changes the head if it is as the condition of the statement says, and does the
// rest with it.
func (l *Ledger) move(ctx context.Context, what string, rest func(*tx) error, statement string, args ...any) error {
	var refused error
	err := l.update(ctx, what, func(t *tx) error {
		refused = nil
		st, err := t.prepare(ctx, statement)
		if err != nil {
			return err
		}
		res, err := st.ExecContext(ctx, args...)
		if err != nil {
			return err
		}
		n, err := res.RowsAffected()
		switch {
		case err != nil:
			return err
		case n == 0:
			refused = sequence.ErrLost
		case rest != nil:
			return rest(t)
		}
		return nil
	})
	return errors.Join(err, refused)
}

// Known implements sequence.Store.
func (l *Ledger) Known(ctx context.Context, ids []ledger.ID) (map[ledger.ID]bool, error) {
	known := map[ledger.ID]bool{}
	for part := range slices.Chunk(ids, chunk) {
		args := make([]any, len(part))
		for i := range part {
			args[i] = part[i][:]
		}
		args = pad(args, part[0][:])
		err := l.s.query(ctx, func(r *sql.Rows) error {
			var id []byte
			err := r.Scan(&id)
			known[idOf(id)] = true
			return err
		}, `SELECT id FROM ledger_entries WHERE id IN (`+marks(len(args))+`)`, args...)
		if err != nil {
			return nil, l.s.fail(ctx, "find records", err)
		}
	}
	return known, nil
}

// Integrate implements sequence.Store.
func (l *Ledger) Integrate(ctx context.Context, held sequence.Head, b *sequence.Batch) (sequence.Head, error) {
	next := held
	next.Size, next.Checkpoint, next.Signer, next.Beat = held.Size+int64(len(b.Entries)), b.Checkpoint, b.Signer, held.Beat+1
	var entries, leaves, tiles []any
	for i := range b.Entries {
		e := &b.Entries[i]
		entries = append(entries, e.Index, e.ID[:], stamp(e.Time), e.Server, string(e.Kind), octets(e.Opening))
		leaves = append(leaves, e.Index, e.Envelope)
	}
	for _, t := range b.Tiles {
		tiles = append(tiles, t.Level, t.N, t.Data)
	}
	err := l.move(ctx, "carry the log on", func(t *tx) error {
		err := t.insert(ctx, "ledger_entries (idx, id, at, server, kind, opening)", 6, "", entries)
		if err == nil {
			err = t.insert(ctx, "ledger_leaves (idx, envelope)", 2, "", leaves)
		}
		if err == nil {
			err = t.insert(ctx, "ledger_tiles (level, n, hashes)", 3, " ON CONFLICT (level, n) DO UPDATE SET hashes = excluded.hashes", tiles)
		}
		if err == nil {
			err = t.unpend(ctx, b.Done)
		}
		return err
	}, `UPDATE ledger_head SET size = ?, checkpoint = ?, signer = ?, beat = ? WHERE fence = ? AND holder = ? AND size = ?`,
		next.Size, next.Checkpoint, next.Signer, next.Beat, held.Fence, held.Holder, held.Size)
	if err != nil {
		return held, err
	}
	return next, nil
}

// unpend removes what waits under the given numbers, and nothing between them: what is
// not yet committed may lie there.
func (t *tx) unpend(ctx context.Context, done []int64) error {
	slices.Sort(done)
	for i := 0; i < len(done); {
		k := i + 1
		for k < len(done) && done[k] == done[k-1]+1 {
			k++
		}
		if err := t.exec(ctx, `DELETE FROM ledger_pending WHERE seq BETWEEN ? AND ?`, done[i], done[k-1]); err != nil {
			return err
		}
		i = k
	}
	return nil
}

// Checkpoint implements ledger.Source.
func (l *Ledger) Checkpoint(ctx context.Context) ([]byte, error) {
	h, err := l.Head(ctx)
	switch {
	case errors.Is(err, sequence.ErrNoLog), err == nil && h.Checkpoint == nil:
		return nil, ledger.ErrNotFound
	}
	return h.Checkpoint, err
}

// Tile implements ledger.Source.
func (l *Ledger) Tile(ctx context.Context, level int, n int64, width int) ([]byte, error) {
	var hashes []byte
	err := l.s.query(ctx, func(r *sql.Rows) error { return r.Scan(&hashes) },
		`SELECT hashes FROM ledger_tiles WHERE level = ? AND n = ?`, level, n)
	switch {
	case err != nil:
		return nil, l.s.fail(ctx, "read a tile", err)
	case len(hashes) == 0 || len(hashes) < width*len(ledger.Hash{}):
		return nil, ledger.ErrNotFound
	}
	return hashes, nil
}

// Entries implements ledger.Source.
func (l *Ledger) Entries(ctx context.Context, first int64, n int) ([][]byte, error) {
	var out [][]byte
	err := l.s.query(ctx, func(r *sql.Rows) error {
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
		return nil, l.s.fail(ctx, "read records", err)
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
	e.Time, err = parseStamp(at)
	return e, err
}

// List returns records with their openings, the newest first.
func (l *Ledger) List(ctx context.Context, f sequence.Filter) ([]sequence.Entry, error) {
	conditions, args := []string{"1 = 1"}, []any(nil)
	and := func(condition string, arg any) { conditions, args = append(conditions, condition), append(args, arg) }
	if !f.Since.IsZero() {
		and(`e.at >= ?`, stamp(f.Since))
	}
	if !f.Until.IsZero() {
		and(`e.at < ?`, stamp(f.Until))
	}
	if f.Server != "" {
		and(`e.server = ?`, f.Server)
	}
	if f.Kind != "" {
		and(`e.kind = ?`, string(f.Kind))
	}
	if f.Before > 0 {
		and(`e.idx < ?`, f.Before)
	}
	limit := f.Limit
	if limit <= 0 {
		limit = 100
	}
	out := []sequence.Entry{}
	err := l.s.query(ctx, func(r *sql.Rows) error {
		e, err := scanEntry(r)
		out = append(out, e)
		return err
	}, `SELECT `+entryColumns+` WHERE `+strings.Join(conditions, " AND ")+` ORDER BY e.idx DESC LIMIT ?`, append(args, min(limit, 1000))...)
	return out, l.s.fail(ctx, "list records", err)
}

// Get returns the record of that id; ledger.ErrNotFound if the log has none.
func (l *Ledger) Get(ctx context.Context, id ledger.ID) (sequence.Entry, error) {
	return l.one(ctx, `SELECT `+entryColumns+` WHERE e.id = ?`, id[:])
}

// At returns the record of that index; ledger.ErrNotFound if the log has none.
func (l *Ledger) At(ctx context.Context, index int64) (sequence.Entry, error) {
	return l.one(ctx, `SELECT `+entryColumns+` WHERE e.idx = ?`, index)
}

func (l *Ledger) one(ctx context.Context, query string, arg any) (e sequence.Entry, err error) {
	found := false
	err = l.s.query(ctx, func(r *sql.Rows) (err error) {
		found = true
		e, err = scanEntry(r)
		return err
	}, query, arg)
	if err == nil && !found {
		return e, ledger.ErrNotFound
	}
	return e, l.s.fail(ctx, "read a record", err)
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

func idOf(b []byte) (id ledger.ID) {
	copy(id[:], b)
	return id
}

// Rows returns up to n records from index first on, in order and without their
// envelopes.
func (l *Ledger) Rows(ctx context.Context, first int64, n int) ([]sequence.Entry, error) {
	var out []sequence.Entry
	err := l.s.query(ctx, func(r *sql.Rows) error {
		var e sequence.Entry
		var id []byte
		var at, kind string
		if err := r.Scan(&e.Index, &id, &at, &e.Server, &kind, &e.Opening); err != nil {
			return err
		}
		e.ID, e.Kind = idOf(id), ledger.Kind(kind)
		e.Time, _ = parseStamp(at) // zero: no time, which is for the caller to find
		out = append(out, e)
		return nil
	}, `SELECT idx, id, at, server, kind, opening FROM ledger_entries WHERE idx >= ? ORDER BY idx LIMIT ?`, first, n)
	return out, l.s.fail(ctx, "read rows", err)
}

// LoadScores implements standing.Store.
func (l *Ledger) LoadScores(ctx context.Context, options string) (snapshot []byte, size int64, err error) {
	err = l.s.query(ctx, func(r *sql.Rows) error { return r.Scan(&size, &snapshot) },
		`SELECT size, snapshot FROM trust_scores WHERE options = ?`, options)
	return snapshot, size, l.s.fail(ctx, "load scores", err)
}

// SaveScores implements standing.Store.
func (l *Ledger) SaveScores(ctx context.Context, options string, snapshot []byte, size int64) error {
	return l.update(ctx, "save scores", func(t *tx) error {
		return t.exec(ctx, `INSERT INTO trust_scores (options, size, snapshot) VALUES (?, ?, ?) ON CONFLICT (options)
			DO UPDATE SET size = excluded.size, snapshot = excluded.snapshot WHERE excluded.size > trust_scores.size`, options, size, octets(snapshot))
	})
}
