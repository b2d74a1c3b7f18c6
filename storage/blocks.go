// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/record/webhook"
)

var _ hold.BlockStore = (*Store)(nil)

const blockColumns = `id, server, tool, text, evidence, severity, since, until, lifted, lifter`

func scanBlock(r *sql.Rows) (b hold.Block, err error) {
	var text []byte
	var since, until, lifted string
	if err := r.Scan(&b.ID, &b.Server, &b.Tool, &text, &b.Evidence, &b.Severity, &since, &until, &lifted, &b.By); err != nil {
		return b, err
	}
	copy(b.Text[:], text)
	var errs [3]error
	b.Since, errs[0] = parseStamp(since)
	b.Until, errs[1] = parseStamp(until)
	b.Lifted, errs[2] = parseStamp(lifted)
	return b, errors.Join(errs[:]...)
}

// AddBlock implements hold.BlockStore.
func (s *Store) AddBlock(ctx context.Context, b hold.Block, most int, evidence []byte) error {
	var refused error
	err := s.update(ctx, "block", func(t *tx) error {
		refused = nil
		n, same := 0, 0
		now := stamp(b.Since)
		err := t.query(ctx, func(r *sql.Rows) error { return r.Scan(&n) },
			`SELECT count(*) FROM blocks WHERE lifted = '' AND until > ?`, now)
		if err == nil {
			err = t.query(ctx, func(r *sql.Rows) error { return r.Scan(&same) },
				`SELECT count(*) FROM blocks WHERE id = ? OR lifted = '' AND until > ? AND server = ? AND tool = ? AND text = ?`,
				b.ID, now, b.Server, b.Tool, b.Text[:])
		}
		switch {
		case err != nil:
			return err
		case same > 0:
			refused = hold.ErrExists
			return nil
		case n >= most:
			refused = hold.ErrFull
			return nil
		}
		told := webhook.Notice{Type: webhook.SourceBlocked, At: b.Since, ID: b.ID, Server: b.Server, Tool: b.Tool, Scope: b.Scope(), Until: b.Until}
		if err := errors.Join(t.pend(ctx, evidence), t.post(ctx, told)); err != nil {
			return err
		}
		err = t.exec(ctx, `INSERT INTO blocks (`+blockColumns+`) VALUES (`+marks(10)+`)`,
			b.ID, b.Server, b.Tool, b.Text[:], b.Evidence, b.Severity, now, stamp(b.Until), "", "")
		if err != nil {
			return err
		}
		return t.tell(ctx, BlocksChanged)
	})
	return errors.Join(err, refused)
}

// ListBlocks implements hold.BlockStore.
func (s *Store) ListBlocks(ctx context.Context, now time.Time, all bool) ([]hold.Block, error) {
	out := []hold.Block{}
	scan := func(r *sql.Rows) error {
		b, err := scanBlock(r)
		out = append(out, b)
		return err
	}
	var err error
	if all {
		err = s.query(ctx, scan, `SELECT `+blockColumns+` FROM blocks ORDER BY since DESC, id LIMIT 10000`)
	} else {
		err = s.query(ctx, scan, `SELECT `+blockColumns+` FROM blocks WHERE lifted = '' AND until > ? ORDER BY since DESC, id`, stamp(now))
	}
	return out, s.fail(ctx, "list blocks", err)
}

// GetBlock implements hold.BlockStore.
func (s *Store) GetBlock(ctx context.Context, id string) (b hold.Block, err error) {
	found := false
	err = s.query(ctx, func(r *sql.Rows) (err error) {
		b, err = scanBlock(r)
		found = true
		return err
	}, `SELECT `+blockColumns+` FROM blocks WHERE id = ?`, id)
	if err == nil && !found {
		return b, hold.ErrNotFound
	}
	return b, s.fail(ctx, "get block", err)
}

// LiftBlock implements hold.BlockStore.
func (s *Store) LiftBlock(ctx context.Context, id, by string, now time.Time, evidence []byte) error {
	var refused error
	err := s.update(ctx, "lift block", func(t *tx) error {
		refused = hold.ErrNotFound
		err := t.query(ctx, func(r *sql.Rows) error {
			b, err := scanBlock(r)
			refused = nil
			switch {
			case !b.Lifted.IsZero():
				refused = &hold.DecidedError{What: "block", State: "lifted", At: b.Lifted, By: b.By}
			case !now.Before(b.Until):
				refused = &hold.DecidedError{What: "block", State: string(hold.Expired), At: b.Until}
			}
			return err
		}, `SELECT `+blockColumns+` FROM blocks WHERE id = ?`, id)
		if err != nil || refused != nil {
			return err
		}
		if err := t.pend(ctx, evidence); err != nil {
			return err
		}
		if err := t.exec(ctx, `UPDATE blocks SET lifted = ?, lifter = ? WHERE id = ?`, stamp(now), by, id); err != nil {
			return err
		}
		return t.tell(ctx, BlocksChanged)
	})
	return errors.Join(err, refused)
}

// SweepBlocks implements hold.BlockStore.
func (s *Store) SweepBlocks(ctx context.Context, old time.Time) error {
	return s.update(ctx, "sweep blocks", func(t *tx) error {
		return t.exec(ctx, `DELETE FROM blocks WHERE until < ?`, stamp(old))
	})
}
