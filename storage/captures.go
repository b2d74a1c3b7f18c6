// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"database/sql"
	"time"

	"github.com/pellucid-mcp/pellucid/record/captures"
)

var _ captures.Store = (*Store)(nil)

// PutCaptures implements captures.Store.
func (s *Store) PutCaptures(ctx context.Context, rows []captures.Row) error {
	return s.Update(ctx, "keep captures", func(t *Tx) error {
		for i := range rows {
			r := &rows[i]
			err := t.Execute(ctx, `INSERT INTO captures (id, principal, at, until, size, sealed) VALUES (`+Marks(6)+`) ON CONFLICT (id) DO NOTHING`,
				r.ID, r.Principal[:], Stamp(r.At), Stamp(r.Until), len(r.Sealed), r.Sealed)
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// GetCapture implements captures.Store.
func (s *Store) GetCapture(ctx context.Context, id string, now time.Time) (captures.Row, error) {
	out, found := captures.Row{ID: id}, false
	err := s.EachRow(ctx, func(r *sql.Rows) error {
		found = true
		return r.Scan(stampIn{&out.At}, stampIn{&out.Until}, &out.Sealed)
	}, `SELECT at, until, sealed FROM captures WHERE id = ? AND until > ?`, id, Stamp(now))
	if err == nil && !found {
		return out, captures.ErrNotKept
	}
	return out, s.Fail(ctx, "find capture", err)
}

// SweepCaptures implements captures.Store.
func (s *Store) SweepCaptures(ctx context.Context, now time.Time, most int64) error {
	var total int64
	first := ""
	err := s.EachRow(ctx, func(r *sql.Rows) error { return r.Scan(&total, &first) },
		`SELECT CAST(coalesce(sum(size), 0) AS BIGINT), coalesce(min(until), '') FROM captures`)
	if err != nil {
		return s.Fail(ctx, "sweep captures", err)
	}
	for more := first != "" && first <= Stamp(now); more; {
		n := 0
		err = s.Update(ctx, "sweep captures", func(t *Tx) error {
			n = 0
			return t.EachRow(ctx, func(*sql.Rows) error { n++; return nil },
				`DELETE FROM captures WHERE id IN (SELECT id FROM captures WHERE until <= ? ORDER BY until LIMIT ?) RETURNING id`, Stamp(now), sweepBatch)
		})
		if err != nil {
			return err
		}
		if more = n == sweepBatch; !more { // what has ended does not count any more
			err = s.EachRow(ctx, func(r *sql.Rows) error { return r.Scan(&total) }, `SELECT CAST(coalesce(sum(size), 0) AS BIGINT) FROM captures`)
		}
	}
	for err == nil && total > most {
		var gone int64
		err = s.Update(ctx, "sweep captures", func(t *Tx) (err error) {
			gone, err = t.dropCaptures(ctx, total-most)
			return err
		})
		if gone == 0 {
			break
		}
		total -= gone
	}
	return s.Fail(ctx, "sweep captures", err)
}

// dropCaptures removes the oldest captures, of size bytes together or a little more, and at most sweepBatch of them.
func (t *Tx) dropCaptures(ctx context.Context, size int64) (gone int64, err error) {
	var ids []any
	err = t.EachRow(ctx, func(r *sql.Rows) error {
		var id string
		var n int64
		err := r.Scan(&id, &n)
		if err == nil && gone < size {
			ids, gone = append(ids, id), gone+n
		}
		return err
	}, `SELECT id, size FROM captures ORDER BY at, id LIMIT ?`, sweepBatch)
	if err != nil || len(ids) == 0 {
		return 0, err
	}
	ids = Pad(ids, ids[0])
	return gone, t.Execute(ctx, `DELETE FROM captures WHERE id IN (`+Marks(len(ids))+`)`, ids...)
}

// forgetCaptures removes the captures of calls of a principal.
func (s *Store) forgetCaptures(ctx context.Context, principal string) (erased int, err error) {
	digest := captures.PrincipalDigest(principal)
	err = s.Update(ctx, "forget", func(t *Tx) error {
		erased = 0
		return t.EachRow(ctx, func(*sql.Rows) error { erased++; return nil }, `DELETE FROM captures WHERE principal = ? RETURNING id`, digest[:])
	})
	return erased, err
}
