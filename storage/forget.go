// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pellucid-mcp/pellucid/mcp/session"
	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/record/sequence"
)

// Forgotten counts what Forget has erased.
type Forgotten struct {
	Held     int // held results that answered calls of the principal, whatever their state
	Names    int // approvals for the principal, and mentions as the reviewer of other results, blocks and approvals
	Openings int // openings of records of the log; the records stay
	Sessions int // records of sessions, which have ended with that
	Captures int // texts of calls of the principal that passed
	SignIns  int // sessions of the console, which have ended with that
}

// Forget erases what the store keeps of a principal or reviewer, by the name that the
// program knows the person by. Records of the log are signed and stay; they hold the name
// only as a salted digest, and the salt is erased with the opening, so that afterwards the
// digest can be matched with no name (docs/spec/evidence.md, 2.2). A record that waits for
// its signature still has its opening: integrate what waits first. What an interrupted call
// has left, the next one erases. evidence returns the record of a held item whose content is
// erased; the record is stored in the transaction that erases it. nil: there are none.
func (s *Store) Forget(ctx context.Context, principal string, evidence func(hold.Item) ([]byte, error)) (f Forgotten, err error) {
	err = s.Update(ctx, "forget", func(t *Tx) error {
		f = Forgotten{}
		if err := t.recordForgotten(ctx, principal, evidence); err != nil {
			return err
		}
		for _, step := range []struct {
			n     *int
			count string
			erase string
		}{
			{&f.Held, `SELECT count(*) FROM held WHERE principal = ?`, `DELETE FROM held WHERE principal = ?`},
			{&f.Names, `SELECT count(*) FROM approvals WHERE principal = ?`, `DELETE FROM approvals WHERE principal = ?`},
			{&f.Names, `SELECT count(*) FROM approvals WHERE approver = ?`, `UPDATE approvals SET approver = '' WHERE approver = ?`},
			{&f.Names, `SELECT count(*) FROM approvals WHERE revoker = ?`, `UPDATE approvals SET revoker = '' WHERE revoker = ?`},
			{&f.Names, `SELECT count(*) FROM held WHERE decider = ?`, `UPDATE held SET decider = '' WHERE decider = ?`},
			{&f.Names, `SELECT count(*) FROM held WHERE proposer = ?`, `UPDATE held SET proposer = '' WHERE proposer = ?`},
			{&f.Names, `SELECT count(*) FROM exceptions WHERE granter = ?`, `UPDATE exceptions SET granter = '' WHERE granter = ?`},
			{&f.Names, `SELECT count(*) FROM exceptions WHERE second = ?`, `UPDATE exceptions SET second = '(erased)' WHERE second = ?`}, // it stays confirmed
			{&f.Names, `SELECT count(*) FROM exceptions WHERE revoker = ?`, `UPDATE exceptions SET revoker = '' WHERE revoker = ?`},
			{&f.Names, `SELECT count(*) FROM blocks WHERE lifter = ?`, `UPDATE blocks SET lifter = '' WHERE lifter = ?`},
		} {
			n := 0
			if err := t.EachRow(ctx, func(r *sql.Rows) error { return r.Scan(&n) }, step.count, principal); err != nil {
				return err
			}
			*step.n += n
			if err := t.Execute(ctx, step.erase, principal); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		f.Sessions, err = s.forgetSessions(ctx, principal)
	}
	if err == nil {
		f.Captures, err = s.forgetCaptures(ctx, principal)
	}
	if err == nil {
		f.SignIns, err = s.forgetSignIns(ctx, principal)
	}
	if err == nil {
		f.Openings, err = s.forgetOpenings(ctx, principal)
	}
	return f, err
}

// recordForgotten stores a record of each item of the principal whose content is still there.
func (t *Tx) recordForgotten(ctx context.Context, principal string, evidence func(hold.Item) ([]byte, error)) error {
	if evidence == nil {
		return nil
	}
	var records [][]byte
	err := t.EachRow(ctx, func(r *sql.Rows) error {
		it, err := scanHeld(r, time.Time{})
		if err != nil {
			return err
		}
		record, err := evidence(it)
		records = append(records, record)
		return err
	}, `SELECT `+heldColumns+` FROM held WHERE principal = ? AND body IS NOT NULL ORDER BY at, id`, principal)
	if err != nil {
		return err
	}
	for part := range slices.Chunk(records, sweepBatch) {
		if err := t.AddRecords(ctx, part...); err != nil {
			return err
		}
	}
	return nil
}

// forgetSessions ends the sessions of the principal that have a record, and erases what it holds and
// the digest of the name. What is left says only that a session with this id has ended.
func (s *Store) forgetSessions(ctx context.Context, principal string) (erased int, err error) {
	digest := session.PrincipalDigest(principal)
	err = s.Update(ctx, "forget", func(t *Tx) error {
		erased = 0
		if err := t.EachRow(ctx, func(r *sql.Rows) error { return r.Scan(&erased) }, `SELECT count(*) FROM sessions WHERE principal = ?`, digest[:]); err != nil {
			return err
		}
		return t.Execute(ctx, `UPDATE sessions SET principal = ?, state = ?, owner = '', ended = 1 WHERE principal = ?`, forgotten[:], []byte{}, digest[:])
	})
	return erased, err
}

// forgetOpenings erases the openings that hold the digest of the name. An opening has the
// digest in lower-case hexadecimal, whatever the role.
func (s *Store) forgetOpenings(ctx context.Context, principal string) (erased int, err error) {
	sum := sha256.Sum256([]byte(principal))
	digest := hex.AppendEncode(nil, sum[:])
	for next := int64(0); ; {
		rows, err := s.Ledger().Rows(ctx, next, Chunk)
		if err != nil || len(rows) == 0 {
			return erased, err
		}
		next = rows[len(rows)-1].Index + 1
		n, err := s.eraseOpenings(ctx, rows, digest)
		if erased += n; err != nil {
			return erased, err
		}
	}
}

func (s *Store) eraseOpenings(ctx context.Context, rows []sequence.Entry, digest []byte) (int, error) {
	var args []any
	var found []sequence.Entry
	for i := range rows {
		if bytes.Contains(rows[i].Opening, digest) {
			args, found = append(args, rows[i].Index), append(found, rows[i])
		}
	}
	if len(args) == 0 {
		return 0, nil
	}
	err := s.Ledger().update(ctx, "forget", func(t *Tx) error {
		if err := t.unindexOpenings(ctx, s.indexKey(), found); err != nil {
			return err
		}
		all := Pad(args, args[0])
		return t.Execute(ctx, `UPDATE ledger_entries SET opening = ? WHERE idx IN (`+Marks(len(all))+`)`, append([]any{[]byte{}}, all...)...)
	})
	return len(args), err
}

// wipe removes the content that a transaction has destroyed from the files too. It changes nothing
// about the decision: where it fails, or a reader is in the way, the next sweep does it.
func (s *Store) wipe(ctx context.Context) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer stop()
	_ = s.engine.wipe(ctx, s.write)
}

// Compact gives the pages of what was deleted back to the file system, so that no file of
// an SQLite store holds it any more. Postgres does so by itself (autovacuum). Another process
// that reads the store at that moment keeps the write-ahead file from being emptied:
// ErrBusy.
func (s *Store) Compact(ctx context.Context) error {
	err := s.engine.compact(ctx, s.write)
	if errors.Is(err, ErrBusy) {
		return fmt.Errorf("store: compact: %w", err)
	}
	return s.Fail(ctx, "compact", err)
}
