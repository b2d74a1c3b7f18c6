// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"time"

	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

var _ hold.Store = (*Store)(nil)

const (
	defaultHeld = 100
	maxHeld     = 1000
)

const heldColumns = `id, server, tool, principal, rule, code, call, digest, octets, at, until, state, decided, decider`

// scanHeld reads heldColumns, and after them the columns for extra.
func scanHeld(r *sql.Rows, now time.Time, extra ...any) (hold.Item, error) {
	var it hold.Item
	var call, digest []byte
	var code, state, at, until, decided string
	err := r.Scan(append([]any{&it.ID, &it.Server, &it.Tool, &it.Principal, &it.Rule, &code, &call, &digest, &it.Bytes,
		&at, &until, &state, &decided, &it.By}, extra...)...)
	if err != nil {
		return it, err
	}
	it.Code, it.State = finding.Code(code), hold.State(state)
	copy(it.Call[:], call)
	copy(it.Digest[:], digest)
	var errs [3]error
	it.Held, errs[0] = parseStamp(at)
	it.Until, errs[1] = parseStamp(until)
	it.Decided, errs[2] = parseStamp(decided)
	if (it.State == hold.Held || it.State == hold.Released) && !now.Before(it.Until) {
		it.State = hold.Expired
	}
	return it, errors.Join(errs[:]...)
}

// AddHeld implements hold.Store.
func (s *Store) AddHeld(ctx context.Context, it hold.Item, most int, evidence []byte) error {
	var refused error
	err := s.update(ctx, "hold", func(t *tx) error {
		refused = nil
		n := 0
		count := func(r *sql.Rows) error { return r.Scan(&n) }
		if err := t.query(ctx, count, `SELECT count(*) FROM held WHERE id = ?`, it.ID); err != nil {
			return err
		}
		if n > 0 {
			refused = hold.ErrExists
			return nil
		}
		err := t.query(ctx, count, `SELECT count(*) FROM held WHERE state IN ('held', 'released') AND server = ? AND until > ?`,
			it.Server, stamp(it.Held))
		if err != nil {
			return err
		}
		if n >= most {
			refused = hold.ErrFull
			return nil
		}
		if err := errors.Join(t.pend(ctx, evidence), t.post(ctx, heldNotice(&it))); err != nil {
			return err
		}
		return t.exec(ctx, `INSERT INTO held (`+heldColumns+`, body) VALUES (`+marks(15)+`)`,
			it.ID, it.Server, it.Tool, it.Principal, it.Rule, string(it.Code), it.Call[:], it.Digest[:], it.Bytes,
			stamp(it.Held), stamp(it.Until), string(it.State), "", "", it.Body)
	})
	return errors.Join(err, refused)
}

// ListHeld implements hold.Store.
func (s *Store) ListHeld(ctx context.Context, f hold.Filter, now time.Time) ([]hold.Item, error) {
	limit := f.Limit
	if limit <= 0 {
		limit = defaultHeld
	}
	limit = min(limit, maxHeld)
	where, args := `1 = 1`, []any(nil)
	and := func(condition string, more ...any) { where, args = where+` AND `+condition, append(args, more...) }
	if f.Server != "" {
		and(`server = ?`, f.Server)
	}
	if f.Tool != "" {
		and(`tool = ?`, f.Tool)
	}
	if f.After != "" {
		at, found := "", false
		err := s.query(ctx, func(r *sql.Rows) error { found = true; return r.Scan(&at) }, `SELECT at FROM held WHERE id = ?`, f.After)
		if err != nil {
			return nil, s.fail(ctx, "list held", err)
		}
		if !found {
			return nil, hold.ErrNotFound
		}
		and(`(at, id) < (?, ?)`, at, f.After)
	}
	const order = ` ORDER BY at DESC, id DESC LIMIT ?`
	page := func(condition string, more ...any) (string, []any) {
		return `SELECT ` + heldColumns + ` FROM held WHERE ` + where + ` AND ` + condition + order, append(append(slices.Clone(args), more...), limit)
	}
	var query string
	switch f.State {
	case "":
		query, args = page(`1 = 1`)
	case hold.Held, hold.Released:
		query, args = page(`state = ? AND until > ?`, string(f.State), stamp(now))
	case hold.Expired:
		// What has expired and was not swept yet is not much, and is found by its time. One condition
		// for both would have the engine read the whole table.
		swept, sweptArgs := page(`state = 'expired'`)
		unswept, unsweptArgs := page(`state IN ('held', 'released') AND until <= ?`, stamp(now))
		query = `SELECT * FROM (SELECT * FROM (` + swept + `) AS swept UNION ALL SELECT * FROM (` + unswept + `) AS unswept) AS expired` + order
		args = append(append(sweptArgs, unsweptArgs...), limit)
	default:
		query, args = page(`state = ?`, string(f.State))
	}
	items := []hold.Item{}
	err := s.query(ctx, func(r *sql.Rows) error {
		it, err := scanHeld(r, now)
		items = append(items, it)
		return err
	}, query, args...)
	return items, s.fail(ctx, "list held", err)
}

// GetHeld implements hold.Store.
func (s *Store) GetHeld(ctx context.Context, id string, now time.Time) (hold.Item, error) {
	it, found := hold.Item{}, false
	err := s.query(ctx, func(r *sql.Rows) (err error) {
		var body []byte
		it, err = scanHeld(r, now, &body)
		it.Body, found = body, true
		return err
	}, `SELECT `+heldColumns+`, body FROM held WHERE id = ?`, id)
	switch {
	case err != nil:
		return it, s.fail(ctx, "get held", err)
	case !found:
		return it, hold.ErrNotFound
	case it.State == hold.Expired:
		it.Body = nil
	}
	return it, nil
}

// DecideHeld implements hold.Store.
func (s *Store) DecideHeld(ctx context.Context, id string, to hold.State, by string, now time.Time, body, evidence []byte) error {
	var refused error
	err := s.update(ctx, "decide", func(t *tx) error {
		refused = hold.ErrNotFound
		var was hold.Item
		err := t.query(ctx, func(r *sql.Rows) error {
			it, err := scanHeld(r, now)
			was, refused = it, nil
			return err
		}, `SELECT `+heldColumns+` FROM held WHERE id = ?`, id)
		switch {
		case err != nil || refused != nil:
			return err
		case was.State == hold.Expired:
			refused = &hold.DecidedError{What: "item", State: string(was.State), At: was.Until}
			return nil
		case was.State != hold.Held:
			refused = &hold.DecidedError{What: "item", State: string(was.State), At: was.Decided, By: was.By}
			return nil
		}
		if err := t.pend(ctx, evidence); err != nil {
			return err
		}
		if to == hold.Denied || body != nil {
			if to == hold.Denied {
				body = nil
			}
			return t.exec(ctx, `UPDATE held SET state = ?, decider = ?, decided = ?, body = ? WHERE id = ?`, string(to), by, stamp(now), body, id)
		}
		return t.exec(ctx, `UPDATE held SET state = ?, decider = ?, decided = ? WHERE id = ?`, string(to), by, stamp(now), id)
	})
	return errors.Join(err, refused)
}

// TakeHeld implements hold.Store.
func (s *Store) TakeHeld(ctx context.Context, call hold.Digest, now time.Time) (hold.Item, error) {
	it, found := hold.Item{}, false
	err := s.update(ctx, "take held", func(t *tx) error {
		found = false
		err := t.query(ctx, func(r *sql.Rows) (err error) {
			var body []byte
			it, err = scanHeld(r, now, &body)
			it.Body, found = body, true
			return err
		}, `SELECT `+heldColumns+`, body FROM held WHERE call = ? AND state = 'released' AND until > ? ORDER BY at, id LIMIT 1`, call[:], stamp(now))
		if err != nil || !found {
			return err
		}
		it.State = hold.Taken
		return t.exec(ctx, `UPDATE held SET state = 'taken', body = NULL WHERE id = ?`, it.ID)
	})
	if err == nil && !found {
		err = hold.ErrNotFound
	}
	return it, err
}

// IsReleased implements hold.Store.
func (s *Store) IsReleased(ctx context.Context, call hold.Digest, now time.Time) (bool, error) {
	n := 0
	err := s.query(ctx, func(r *sql.Rows) error { return r.Scan(&n) },
		`SELECT count(*) FROM held WHERE call = ? AND state = 'released' AND until > ?`, call[:], stamp(now))
	return n > 0, s.fail(ctx, "look for a released item", err)
}

// sweepBatch bounds the items that one transaction of a sweep removes or lets expire: the others
// that write wait for it.
const sweepBatch = 500

// SweepHeld implements hold.Store.
func (s *Store) SweepHeld(ctx context.Context, now, old time.Time, evidence func(hold.Item) ([]byte, error)) (removed int, err error) {
	// No item is decided before it is held: at < old is what an index finds.
	const gone = `at < ? AND state NOT IN ('held', 'released') AND (decided <> '' AND decided < ? OR decided = '' AND until < ?)`
	for more := true; more && err == nil; {
		n := 0
		err = s.update(ctx, "sweep held", func(t *tx) error {
			n = 0
			return t.query(ctx, func(*sql.Rows) error { n++; return nil },
				`DELETE FROM held WHERE id IN (SELECT id FROM held WHERE `+gone+` ORDER BY at, id LIMIT ?) RETURNING id`, stamp(old), stamp(old), stamp(old), sweepBatch)
		})
		if err == nil {
			removed += n
		}
		more = n == sweepBatch
	}
	for more := true; more && err == nil; {
		err = s.update(ctx, "sweep held", func(t *tx) (err error) {
			more, err = t.expire(ctx, now, evidence)
			return err
		})
	}
	return removed, err
}

// expire lets the items expire that are past their time, and stores their records. It reports
// whether there may be more.
func (t *tx) expire(ctx context.Context, now time.Time, evidence func(hold.Item) ([]byte, error)) (more bool, err error) {
	var records [][]byte
	var ids []any
	err = t.query(ctx, func(r *sql.Rows) error {
		it, err := scanHeld(r, now)
		if err != nil {
			return err
		}
		ids = append(ids, it.ID)
		if evidence == nil {
			return nil
		}
		record, err := evidence(it)
		records = append(records, record)
		return err
	}, `SELECT `+heldColumns+` FROM held WHERE state IN ('held', 'released') AND until <= ? ORDER BY until, id LIMIT ?`, stamp(now), sweepBatch)
	if err != nil || len(ids) == 0 {
		return false, err
	}
	if err := t.pend(ctx, records...); err != nil {
		return false, err
	}
	more = len(ids) == sweepBatch
	ids = pad(ids, ids[0])
	return more, t.exec(ctx, `UPDATE held SET state = 'expired', body = NULL WHERE id IN (`+marks(len(ids))+`)`, ids...)
}
