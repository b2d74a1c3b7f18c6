// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/lease"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/record/sequence"
)

// A Ledger is the log in a store. It implements sequence.Store.
type Ledger struct{ s *Store }

var (
	_ sequence.Store = (*Ledger)(nil)
	_ ledger.Opener  = (*Ledger)(nil)
)

// Chain is the key that authenticates the records that wait.
func (l *Ledger) Chain() *sequence.ChainKey { return l.s.chain }

// Ledger returns the log of the store. It is closed with the store.
func (s *Store) Ledger() *Ledger { return &Ledger{s} }

// update is the update of the store without its lock: the condition on the row of the head
// excludes other writers where that matters.
func (l *Ledger) update(ctx context.Context, what string, f func(*Tx) error) error {
	return l.s.updating(ctx, what, f, func(*sql.Tx) error { return nil })
}

// Add implements sequence.Store.
func (l *Ledger) Add(ctx context.Context, records [][]byte) error {
	return l.update(ctx, "add records", func(t *Tx) error {
		t.writer = l.s.adds
		return t.AddRecords(ctx, records...)
	})
}

// Probe reports whether the store takes a record at present: it writes one, removes it
// again and commits both.
func (l *Ledger) Probe(ctx context.Context) error {
	return l.update(ctx, "write to the store", func(t *Tx) error {
		var seq int64
		row := t.QueryRowContext(ctx, t.engine.rebind(`INSERT INTO ledger_pending (record) VALUES (?) RETURNING seq`), make([]byte, 256))
		if err := row.Scan(&seq); err != nil {
			return err
		}
		return t.Execute(ctx, `DELETE FROM ledger_pending WHERE seq = ?`, seq)
	})
}

// Pending implements sequence.Store.
func (l *Ledger) Pending(ctx context.Context, limit, size int) (out []sequence.Pending, err error) {
	sum := 0
	err = l.s.EachRow(ctx, func(r *sql.Rows) error {
		var p sequence.Pending
		if sum >= size {
			return errEnough
		}
		err := r.Scan(&p.Seq, &p.Record, &p.Link.Writer, &p.Link.Seq, &p.Link.Prev, &p.Link.MAC)
		sum += len(p.Record)
		out = append(out, p)
		return err
	}, `SELECT seq, record, writer, wseq, prev, mac FROM ledger_pending ORDER BY seq LIMIT ?`, limit)
	if errors.Is(err, errEnough) {
		err = nil
	}
	return out, l.s.Fail(ctx, "read what waits", err)
}

var errEnough = errors.New("store: enough")

// Waiting implements sequence.Store.
func (l *Ledger) Waiting(ctx context.Context, limit int) (n int, err error) {
	err = l.s.EachRow(ctx, func(r *sql.Rows) error { return r.Scan(&n) },
		`SELECT count(*) FROM (SELECT 1 FROM ledger_pending LIMIT ?) AS first`, limit)
	return n, l.s.Fail(ctx, "count what waits", err)
}

// Still is for how long the log stands still at now: since when the oldest of the records that wait was stored, by the clock of
// the process that stored it. It is zero where the log keeps up.
func (l *Ledger) Still(ctx context.Context, now time.Time) (time.Duration, error) {
	waiting, err := l.Pending(ctx, 1, 1)
	if err != nil || len(waiting) == 0 {
		return 0, err
	}
	r, err := ledger.ReadSealed(waiting[0].Record)
	if err != nil { // the log leaves it out
		return 0, nil
	}
	if age := now.Sub(r.Parsed.Time); age > sequence.StillAfter {
		return age, nil
	}
	return 0, nil
}

// Head implements sequence.Store.
func (l *Ledger) Head(ctx context.Context) (h sequence.Head, err error) {
	found := false
	err = l.s.EachRow(ctx, func(r *sql.Rows) error {
		found = true
		var stop sequence.Stop
		var at string
		if err := r.Scan(&h.Origin, &h.Signer, &h.Size, &h.Checkpoint, &h.Lease.Holder, &h.Lease.Fence, &h.Lease.Beat, &stop.Reason, &stop.Size, &stop.Checkpoint, &at); err != nil {
			return err
		}
		if stop.Reason != "" {
			stop.At, _ = ParseStamp(at) // zero where it cannot be read: the log is stopped all the same
			h.Stop = &stop
		}
		return nil
	}, `SELECT h.origin, h.signer, h.size, h.checkpoint, COALESCE(l.holder, ''), COALESCE(l.fence, 0), COALESCE(l.beat, 0),
			COALESCE(s.reason, ''), COALESCE(s.size, 0), s.checkpoint, COALESCE(s.at, '')
		FROM ledger_head h LEFT JOIN ledger_stop s ON s.one = h.one LEFT JOIN leases l ON l.name = ?`, logLease)
	h.Lease.Name = logLease
	switch {
	case err != nil:
		return h, l.s.Fail(ctx, "read the log's head", err)
	case !found:
		return h, sequence.ErrNoLog
	case len(h.Checkpoint) == 0:
		h.Checkpoint = nil
	}
	if h.Stop != nil && len(h.Stop.Checkpoint) == 0 {
		h.Stop.Checkpoint = nil
	}
	return h, nil
}

// Epoch implements sequence.Store.
func (l *Ledger) Epoch(ctx context.Context) (epoch string, err error) {
	query := l.s.engine.epoch()
	if query == "" {
		return "", nil
	}
	err = l.s.EachRow(ctx, func(r *sql.Rows) error { return r.Scan(&epoch) }, query)
	return epoch, l.s.Fail(ctx, "ask which server answers", err)
}

// Halt implements sequence.Store. It takes the lease from its holder, so that an integration that is
// under way fails.
func (l *Ledger) Halt(ctx context.Context, why sequence.Stop) error {
	return l.update(ctx, "stop the log", func(t *Tx) error {
		if err := t.takeLease(ctx, logLease); err != nil {
			return err
		}
		return t.Execute(ctx, `INSERT INTO ledger_stop (one, reason, size, checkpoint, at) VALUES (1, ?, ?, ?, ?) ON CONFLICT (one)
			DO UPDATE SET reason = excluded.reason, size = excluded.size, checkpoint = excluded.checkpoint, at = excluded.at
			WHERE excluded.size > ledger_stop.size`, string(why.Reason), why.Size, Blob(why.Checkpoint), Stamp(why.At))
	})
}

// Resume implements sequence.Store.
func (l *Ledger) Resume(ctx context.Context) error {
	return l.update(ctx, "resume the log", func(t *Tx) error { return t.Execute(ctx, `DELETE FROM ledger_stop`) })
}

// Begin implements sequence.Store.
func (l *Ledger) Begin(ctx context.Context, origin, signer string) error {
	return l.update(ctx, "begin the log", func(t *Tx) error {
		return t.Execute(ctx, `INSERT INTO ledger_head (one, origin, signer, size, checkpoint)
			VALUES (1, ?, ?, 0, ?) ON CONFLICT (one) DO NOTHING`, origin, signer, []byte{})
	})
}

// Claim implements sequence.Store.
func (l *Ledger) Claim(ctx context.Context, holder string, seen sequence.Head) (sequence.Head, error) {
	held := seen.Lease
	err := l.holding(ctx, "claim the log", func(t *Tx) (err error) {
		if held, err = t.claimLease(ctx, seen.Lease, holder, ""); err != nil {
			return err
		}
		stopped := false
		err = t.EachRow(ctx, func(*sql.Rows) error { stopped = true; return nil }, `SELECT 1 FROM ledger_stop`)
		if err == nil && stopped {
			err = lease.ErrLost
		}
		return err
	})
	if err != nil {
		return sequence.Head{}, err
	}
	h, err := l.Head(ctx)
	if err == nil && (h.Lease.Holder != holder || h.Lease.Fence != held.Fence) {
		err = sequence.ErrLost
	}
	return h, err
}

// Release implements sequence.Store.
func (l *Ledger) Release(ctx context.Context, held sequence.Head) error {
	return l.holding(ctx, "release the log", func(t *Tx) error { return t.freeLease(ctx, held.Lease, false) })
}

// holding is update for a change that only the holder of the lease may make.
func (l *Ledger) holding(ctx context.Context, what string, f func(*Tx) error) error {
	err := l.s.holding(ctx, what, f)
	if errors.Is(err, lease.ErrLost) {
		return sequence.ErrLost
	}
	return err
}

// Known implements sequence.Store.
func (l *Ledger) Known(ctx context.Context, ids []ledger.ID) (map[ledger.ID]int64, error) {
	known := map[ledger.ID]int64{}
	for part := range slices.Chunk(ids, Chunk) {
		args := make([]any, len(part))
		for i := range part {
			args[i] = part[i][:]
		}
		args = Pad(args, part[0][:])
		err := l.s.EachRow(ctx, func(r *sql.Rows) error {
			var id []byte
			var index int64
			err := r.Scan(&id, &index)
			known[idOf(id)] = index
			return err
		}, `SELECT id, idx FROM ledger_entries WHERE id IN (`+Marks(len(args))+`)`, args...)
		if err != nil {
			return nil, l.s.Fail(ctx, "find records", err)
		}
	}
	return known, nil
}

// Integrate implements sequence.Store.
func (l *Ledger) Integrate(ctx context.Context, held sequence.Head, b *sequence.Batch) (sequence.Head, error) {
	next := held
	next.Size, next.Checkpoint, next.Signer = held.Size+int64(len(b.Entries)), b.Checkpoint, b.Signer
	next.Lease.Beat++
	err := l.holding(ctx, "carry the log on", func(t *Tx) error {
		if err := t.beatLease(ctx, held.Lease); err != nil {
			return err
		}
		n, err := t.change(ctx, `UPDATE ledger_head SET size = ?, checkpoint = ?, signer = ? WHERE size = ?
			AND NOT EXISTS (SELECT 1 FROM ledger_stop)`, next.Size, next.Checkpoint, next.Signer, held.Size)
		if err == nil && n == 0 {
			err = lease.ErrLost
		}
		if err == nil {
			err = t.add(ctx, b)
		}
		if err == nil {
			err = t.unpend(ctx, b.Done)
		}
		return err
	})
	if err != nil {
		return held, err
	}
	return next, nil
}

// add inserts the records of a batch, its tiles and its links.
func (t *Tx) add(ctx context.Context, b *sequence.Batch) error {
	var entries, leaves, tiles, links []any
	for i := range b.Entries {
		e := &b.Entries[i]
		entries = append(entries, e.Index, e.ID[:], Stamp(e.Time), e.Server, string(e.Kind), Blob(e.Opening))
		leaves = append(leaves, e.Index, e.Envelope)
	}
	for _, k := range b.Links {
		links = append(links, k.Writer, k.Seq, k.Index, Blob(k.MAC))
	}
	for _, tile := range b.Tiles {
		tiles = append(tiles, tile.Level, tile.N, tile.Data)
	}
	err := t.InsertRows(ctx, "ledger_entries (idx, id, at, server, kind, opening)", 6, "", entries)
	if err == nil {
		err = t.InsertRows(ctx, "ledger_leaves (idx, envelope)", 2, "", leaves)
	}
	if err == nil {
		err = t.InsertRows(ctx, "ledger_tiles (level, n, hashes)", 3, " ON CONFLICT (level, n) DO UPDATE SET hashes = excluded.hashes", tiles)
	}
	if err == nil {
		err = t.InsertRows(ctx, "ledger_chain (writer, wseq, idx, mac)", 4, " ON CONFLICT (writer, wseq) DO NOTHING", links)
	}
	return err
}

// unpend removes the waiting records with the given numbers, and no other: records between them
// may not be committed yet.
func (t *Tx) unpend(ctx context.Context, done []int64) error {
	slices.Sort(done)
	for i := 0; i < len(done); {
		k := i + 1
		for k < len(done) && done[k] == done[k-1]+1 {
			k++
		}
		if err := t.Execute(ctx, `DELETE FROM ledger_pending WHERE seq BETWEEN ? AND ?`, done[i], done[k-1]); err != nil {
			return err
		}
		i = k
	}
	return nil
}

// LoadScores implements standing.Store.
func (l *Ledger) LoadScores(ctx context.Context, options string) (snapshot []byte, size int64, err error) {
	err = l.s.EachRow(ctx, func(r *sql.Rows) error { return r.Scan(&size, &snapshot) },
		`SELECT size, snapshot FROM trust_scores WHERE options = ?`, options)
	return snapshot, size, l.s.Fail(ctx, "load scores", err)
}

// SaveScores implements standing.Store.
func (l *Ledger) SaveScores(ctx context.Context, options string, snapshot []byte, size int64) error {
	return l.update(ctx, "save scores", func(t *Tx) error {
		return t.Execute(ctx, `INSERT INTO trust_scores (options, size, snapshot) VALUES (?, ?, ?) ON CONFLICT (options)
			DO UPDATE SET size = excluded.size, snapshot = excluded.snapshot WHERE excluded.size > trust_scores.size`, options, size, Blob(snapshot))
	})
}
