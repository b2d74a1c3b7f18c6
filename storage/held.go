// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"github.com/pellucid-mcp/pellucid/record/hold"
)

var _ hold.Store = (*Store)(nil)

const heldColumns = `id, server, tool, principal, rule, code, call, digest, octets, at, until, state, decided, decider, found, hidden, people, proposed, proposer`

// destroyed ends the text of an item: what was held, what was asked, and what was decoded.
const destroyed = `body = NULL, question = NULL, hidden = ''`

// scanHeld reads heldColumns, and after them the columns for extra.
func scanHeld(r *sql.Rows, now time.Time, extra ...any) (hold.Item, error) {
	var it hold.Item
	var found string
	err := r.Scan(append([]any{&it.ID, &it.Server, &it.Tool, &it.Principal, &it.Rule, &it.Code, bytesIn(it.Call[:]), bytesIn(it.Digest[:]), &it.Bytes,
		stampIn{&it.Held}, stampIn{&it.Until}, &it.State, stampIn{&it.Decided}, &it.By, &found, &it.Hidden, &it.People, stampIn{&it.Proposed}, &it.Proposer}, extra...)...)
	if err != nil {
		return it, err
	}
	_ = json.Unmarshal([]byte(found), &it.Found) // what another process has damaged is as if nothing was found
	if (it.State == hold.Held || it.State == hold.Released) && !now.Before(it.Until) {
		it.State, it.Hidden = hold.Expired, ""
	}
	return it, nil
}

// AddHeld implements hold.Store.
func (s *Store) AddHeld(ctx context.Context, it hold.Item, room hold.Room, evidence []byte) error {
	var refused error
	err := s.Update(ctx, "hold", func(t *Tx) error {
		refused = nil
		n := 0
		count := func(r *sql.Rows) error { return r.Scan(&n) }
		if err := t.EachRow(ctx, count, `SELECT count(*) FROM held WHERE id = ?`, it.ID); err != nil {
			return err
		}
		if n > 0 {
			refused = hold.ErrExists
			return nil
		}
		fills, err := t.checkRoom(ctx, &it, room)
		if errors.Is(err, hold.ErrFull) {
			refused = err
			return nil
		}
		if err := errors.Join(err, t.AddRecords(ctx, evidence), t.post(ctx, heldNotice(&it)), t.postFull(ctx, &it, fills)); err != nil {
			return err
		}
		found, err := json.Marshal(it.Found)
		if err != nil {
			return err // never
		}
		return t.Execute(ctx, `INSERT INTO held (`+heldColumns+`, body, question) VALUES (`+Marks(21)+`)`,
			it.ID, it.Server, it.Tool, it.Principal, it.Rule, string(it.Code), it.Call[:], it.Digest[:], it.Bytes,
			Stamp(it.Held), Stamp(it.Until), string(it.State), "", "", string(found), it.Hidden, it.People, "", "", it.Body, it.Question)
	})
	return errors.Join(err, refused)
}

// GetHeld implements hold.Store.
func (s *Store) GetHeld(ctx context.Context, id string, now time.Time) (hold.Item, error) {
	it, found := hold.Item{}, false
	err := s.EachRow(ctx, func(r *sql.Rows) (err error) {
		var body, question []byte
		it, err = scanHeld(r, now, &body, &question)
		it.Body, it.Question, found = body, question, true
		return err
	}, `SELECT `+heldColumns+`, body, question FROM held WHERE id = ?`, id)
	switch {
	case err != nil:
		return it, s.Fail(ctx, "get held", err)
	case !found:
		return it, hold.ErrNotFound
	case it.State == hold.Expired:
		it.Body = nil
	}
	if it.Body == nil { // an older release that shares the store ends the body only
		it.Question, it.Hidden = nil, ""
	}
	return it, nil
}

// DecideHeld implements hold.Store.
func (s *Store) DecideHeld(ctx context.Context, id string, to hold.State, by string, now time.Time, body, evidence []byte) error {
	var refused error
	err := s.Update(ctx, "decide", func(t *Tx) error {
		it, err := t.heldItem(ctx, id, now, &refused)
		switch {
		case err != nil || refused != nil:
			return err
		case to == hold.Released && it.People > 1 && (it.Proposer == "" || hold.SamePerson(it.Proposer, by)):
			refused = hold.ErrSecond
			return nil
		}
		if err := t.AddRecords(ctx, evidence); err != nil {
			return err
		}
		switch {
		case to == hold.Denied:
			return t.Execute(ctx, `UPDATE held SET state = ?, decider = ?, decided = ?, `+destroyed+` WHERE id = ?`, string(to), by, Stamp(now), id)
		case body != nil:
			return t.Execute(ctx, `UPDATE held SET state = ?, decider = ?, decided = ?, body = ? WHERE id = ?`, string(to), by, Stamp(now), body, id)
		}
		return t.Execute(ctx, `UPDATE held SET state = ?, decider = ?, decided = ? WHERE id = ?`, string(to), by, Stamp(now), id)
	})
	if err == nil && refused == nil && (to == hold.Denied || body != nil) {
		s.wipe(ctx)
	}
	return errors.Join(err, refused)
}

// TakeHeld implements hold.Store.
func (s *Store) TakeHeld(ctx context.Context, call hold.Digest, now time.Time) (hold.Item, error) {
	it, found := hold.Item{}, false
	err := s.Update(ctx, "take held", func(t *Tx) error {
		found = false
		err := t.EachRow(ctx, func(r *sql.Rows) (err error) {
			var body []byte
			it, err = scanHeld(r, now, &body)
			it.Body, found = body, true
			return err
		}, `SELECT `+heldColumns+`, body FROM held WHERE call = ? AND state = 'released' AND until > ? ORDER BY at, id LIMIT 1`, call[:], Stamp(now))
		if err != nil || !found {
			return err
		}
		it.State = hold.Taken
		return t.Execute(ctx, `UPDATE held SET state = 'taken', `+destroyed+` WHERE id = ?`, it.ID)
	})
	if err == nil && !found {
		err = hold.ErrNotFound
	}
	if err == nil {
		s.wipe(ctx)
	}
	return it, err
}

// IsReleased implements hold.Store.
func (s *Store) IsReleased(ctx context.Context, call hold.Digest, now time.Time) (bool, error) {
	n := 0
	err := s.EachRow(ctx, func(r *sql.Rows) error { return r.Scan(&n) },
		`SELECT count(*) FROM held WHERE call = ? AND state = 'released' AND until > ?`, call[:], Stamp(now))
	return n > 0, s.Fail(ctx, "look for a released item", err)
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
		err = s.Update(ctx, "sweep held", func(t *Tx) error {
			n = 0
			return t.EachRow(ctx, func(*sql.Rows) error { n++; return nil },
				`DELETE FROM held WHERE id IN (SELECT id FROM held WHERE `+gone+` ORDER BY at, id LIMIT ?) RETURNING id`, Stamp(old), Stamp(old), Stamp(old), sweepBatch)
		})
		if err == nil {
			removed += n
		}
		more = n == sweepBatch
	}
	for more := true; more && err == nil; {
		err = s.Update(ctx, "sweep held", func(t *Tx) (err error) {
			more, err = t.expire(ctx, now, evidence)
			return err
		})
	}
	s.wipe(ctx) // also what a process has destroyed while a reader was in the way
	return removed, err
}

// expire lets the items expire that are past their time, and stores their records. It reports
// whether there may be more.
func (t *Tx) expire(ctx context.Context, now time.Time, evidence func(hold.Item) ([]byte, error)) (more bool, err error) {
	var records [][]byte
	var ids []any
	err = t.EachRow(ctx, func(r *sql.Rows) error {
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
	}, `SELECT `+heldColumns+` FROM held WHERE state IN ('held', 'released') AND until <= ? ORDER BY until, id LIMIT ?`, Stamp(now), sweepBatch)
	if err != nil || len(ids) == 0 {
		return false, err
	}
	if err := t.AddRecords(ctx, records...); err != nil {
		return false, err
	}
	more = len(ids) == sweepBatch
	ids = Pad(ids, ids[0])
	return more, t.Execute(ctx, `UPDATE held SET state = 'expired', `+destroyed+` WHERE id IN (`+Marks(len(ids))+`)`, ids...)
}
