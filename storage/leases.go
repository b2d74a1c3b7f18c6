// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"database/sql"
	"errors"

	"github.com/pellucid-mcp/pellucid/platform/lease"
)

var _ lease.Store = (*Store)(nil)

// Names of leases.
const (
	logLease = "log"
	// ReplicaLease begins the names of the leases of replicas; the name of the replica follows.
	ReplicaLease = "replica/"
)

// maxLeases bounds the rows that are read.
const maxLeases = 1000

// Leases implements lease.Store.
func (s *Store) Leases(ctx context.Context, prefix string) (rows []lease.Row, err error) {
	err = s.EachRow(ctx, func(r *sql.Rows) error {
		var x lease.Row
		err := r.Scan(&x.Name, &x.Holder, &x.Fence, &x.Beat, &x.Address)
		rows = append(rows, x)
		return err
	}, `SELECT name, holder, fence, beat, address FROM leases WHERE substr(name, 1, ?) = ? ORDER BY name LIMIT ?`, len(prefix), prefix, maxLeases)
	return rows, s.Fail(ctx, "read leases", err)
}

// ClaimLease implements lease.Store.
func (s *Store) ClaimLease(ctx context.Context, seen lease.Row, holder, address string) (held lease.Row, err error) {
	err = s.holding(ctx, "claim a lease", func(t *Tx) (err error) {
		held, err = t.claimLease(ctx, seen, holder, address)
		return err
	})
	return held, err
}

// BeatLease implements lease.Store.
func (s *Store) BeatLease(ctx context.Context, held lease.Row) error {
	return s.holding(ctx, "raise the beat of a lease", func(t *Tx) error { return t.beatLease(ctx, held) })
}

// FreeLease implements lease.Store.
func (s *Store) FreeLease(ctx context.Context, seen lease.Row, still bool) error {
	return s.holding(ctx, "free a lease", func(t *Tx) error { return t.freeLease(ctx, seen, still) })
}

func (t *Tx) claimLease(ctx context.Context, seen lease.Row, holder, address string) (lease.Row, error) {
	next := lease.Row{Name: seen.Name, Holder: holder, Fence: seen.Fence + 1, Beat: seen.Beat + 1, Address: address}
	return next, t.ifHeld(ctx, `INSERT INTO leases (name, holder, fence, beat, address) VALUES (?, ?, ?, ?, ?) ON CONFLICT (name)
		DO UPDATE SET holder = excluded.holder, fence = excluded.fence, beat = excluded.beat, address = excluded.address
		WHERE leases.holder = ? AND leases.fence = ? AND leases.beat = ?`,
		next.Name, next.Holder, next.Fence, next.Beat, next.Address, seen.Holder, seen.Fence, seen.Beat)
}

func (t *Tx) beatLease(ctx context.Context, held lease.Row) error {
	return t.ifHeld(ctx, `UPDATE leases SET beat = beat + 1 WHERE name = ? AND holder = ? AND fence = ?`, held.Name, held.Holder, held.Fence)
}

func (t *Tx) freeLease(ctx context.Context, seen lease.Row, still bool) error {
	change, where, args := `UPDATE leases SET holder = '', beat = beat + 1`, ` WHERE name = ? AND holder = ? AND fence = ?`, []any{seen.Name, seen.Holder, seen.Fence}
	if seen.Address != "" {
		change = `DELETE FROM leases`
	}
	if still {
		where, args = where+` AND beat = ?`, append(args, seen.Beat)
	}
	return t.ifHeld(ctx, change+where, args...)
}

// ifHeld changes a lease, or returns ErrLost where the statement changes none.
func (t *Tx) ifHeld(ctx context.Context, statement string, args ...any) error {
	n, err := t.change(ctx, statement, args...)
	if err == nil && n == 0 {
		err = lease.ErrLost
	}
	return err
}

// holding makes a change that only the holder of a lease may make: its error is ErrLost where this process is not
// the holder, and then nothing has changed.
func (s *Store) holding(ctx context.Context, what string, f func(*Tx) error) error {
	lost := false
	err := s.updating(ctx, what, func(t *Tx) error {
		err := f(t)
		lost = errors.Is(err, lease.ErrLost)
		return err
	}, func(*sql.Tx) error { return nil })
	if err != nil && lost {
		return lease.ErrLost
	}
	return err
}

// takeLease frees a lease, whichever process holds it.
func (t *Tx) takeLease(ctx context.Context, name string) error {
	return t.Execute(ctx, `UPDATE leases SET holder = '', fence = fence + 1, beat = beat + 1 WHERE name = ?`, name)
}
