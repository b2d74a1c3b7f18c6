// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"database/sql"
	"errors"

	"github.com/pellucid-mcp/pellucid/boundary/surface"
)

var (
	_ surface.PinStore = (*Store)(nil)
	_ surface.Cache    = (*Store)(nil)
)

// A pin that was dropped keeps its row, without a record: were its version to begin
// again, a process that had loaded the old pin could overwrite the new one.

// LoadPin implements surface.PinStore.
func (s *Store) LoadPin(ctx context.Context, server string) (record []byte, version int64, err error) {
	err = s.EachRow(ctx, func(r *sql.Rows) error { return r.Scan(&record, &version) },
		`SELECT record, version FROM pins WHERE server = ? AND record IS NOT NULL`, server)
	if err != nil {
		return nil, 0, s.Fail(ctx, "load pin", err)
	}
	return record, version, nil
}

// SavePin implements surface.PinStore.
func (s *Store) SavePin(ctx context.Context, server string, record []byte, version int64, evidence []byte) error {
	var refused error
	err := s.Update(ctx, "save pin", func(t *Tx) error {
		refused = nil
		var is int64
		var before []byte
		found, dropped := false, false
		err := t.EachRow(ctx, func(r *sql.Rows) error {
			found = true
			err := r.Scan(&is, &before)
			dropped = before == nil
			return err
		}, `SELECT version, record FROM pins WHERE server = ?`, server)
		switch {
		case err != nil:
			return err
		case !found && version == 0:
			if err := errors.Join(t.AddRecords(ctx, evidence), t.tellPin(ctx, server, nil, record)); err != nil {
				return err
			}
			if err := t.Execute(ctx, `INSERT INTO pins (server, version, record) VALUES (?, 1, ?)`, server, record); err != nil {
				return err
			}
			return t.tell(ctx, PinsChanged)
		case found && (dropped && version == 0 || !dropped && version == is):
			if err := errors.Join(t.AddRecords(ctx, evidence), t.tellPin(ctx, server, before, record)); err != nil {
				return err
			}
			if err := t.Execute(ctx, `UPDATE pins SET version = ?, record = ? WHERE server = ?`, is+1, record, server); err != nil {
				return err
			}
			return t.tell(ctx, PinsChanged)
		}
		refused = surface.ErrConflict
		return nil
	})
	return errors.Join(err, refused)
}

// ListPins implements surface.PinStore.
func (s *Store) ListPins(ctx context.Context) ([]string, error) {
	servers := []string{}
	err := s.EachRow(ctx, func(r *sql.Rows) error {
		var server string
		err := r.Scan(&server)
		servers = append(servers, server)
		return err
	}, `SELECT server FROM pins WHERE record IS NOT NULL ORDER BY server`)
	return servers, s.Fail(ctx, "list pins", err)
}

// DropPin implements surface.PinStore.
func (s *Store) DropPin(ctx context.Context, server string, evidence []byte) error {
	return s.Update(ctx, "drop pin", func(t *Tx) error {
		if err := t.AddRecords(ctx, evidence); err != nil {
			return err
		}
		if err := t.Execute(ctx, `UPDATE pins SET version = version + 1, record = NULL WHERE server = ? AND record IS NOT NULL`, server); err != nil {
			return err
		}
		return t.tell(ctx, PinsChanged)
	})
}

// GetVerdict implements surface.Cache.
func (s *Store) GetVerdict(ctx context.Context, key surface.Digest) (entry []byte, err error) {
	err = s.EachRow(ctx, func(r *sql.Rows) error { return r.Scan(&entry) }, `SELECT entry FROM verdicts WHERE digest = ?`, key[:])
	if err != nil {
		return nil, s.Fail(ctx, "get verdict", err)
	}
	return entry, nil
}

// PutVerdict implements surface.Cache.
func (s *Store) PutVerdict(ctx context.Context, key surface.Digest, entry []byte) error {
	return s.Update(ctx, "put verdict", func(t *Tx) error {
		return t.Execute(ctx, `INSERT INTO verdicts (digest, entry) VALUES (?, ?) ON CONFLICT (digest) DO UPDATE SET entry = excluded.entry`, key[:], entry)
	})
}
