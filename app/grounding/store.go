// SPDX-License-Identifier: Apache-2.0

package grounding

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/pellucid-mcp/pellucid/app/local"
	"github.com/pellucid-mcp/pellucid/grounding/demonstration"
	"github.com/pellucid-mcp/pellucid/grounding/ground"
	"github.com/pellucid-mcp/pellucid/grounding/store"
	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/storage"
)

// Absent says what is done where there is no store of attestations yet.
type Absent uint8

const (
	refuseAbsent Absent = iota
	MakeStore           // an empty store is made
	ShowDemo            // the demonstration set is shown, unless a store was named
)

// A groundStore is an open store of attestations. That of the demonstration is removed
// when it is closed.
type groundStore struct {
	*storage.Store
	attestations *store.Store
	demo         string // directory of a store that holds the demonstration set
	shared       bool   // other replicas may use it
}

// Close closes the store.
func (s *groundStore) Close() error {
	err := s.Store.Close()
	if s.demo != "" {
		err = errors.Join(err, os.RemoveAll(s.demo))
	}
	return err
}

var errShowDemo = errors.New("ground: there is no store yet")

// openGroundStore opens a store of attestations: a postgres:// URL, the path of an SQLite
// file, or "" for ground.db of the state directory.
func openGroundStore(ctx context.Context, dir *state.Dir, db string, absent Absent) (*groundStore, error) {
	where := db
	if where == "" {
		where = filepath.Join(dir.Path(), "ground.db")
	}
	chain, err := local.ChainKey(dir)
	if err != nil {
		return nil, err
	}
	key, err := local.IndexKey(dir)
	if err != nil {
		return nil, err
	}
	s, err := local.OpenStore(ctx, where, storage.Options{Chain: chain, Index: key}, func() error {
		switch {
		case absent == ShowDemo && db == "":
			return errShowDemo
		case absent == MakeStore:
			return local.MakePrivate(where)
		}
		return errors.New("ground: there is no store yet: pellucid-ground import makes one")
	})
	switch {
	case errors.Is(err, errShowDemo):
		return openDemo(ctx)
	case err != nil:
		return nil, err
	}
	return withAttestations(ctx, where, &groundStore{Store: s, shared: storage.IsPostgres(where)})
}

// withAttestations opens the tables of attestations, or closes the store.
func withAttestations(ctx context.Context, where string, s *groundStore) (_ *groundStore, err error) {
	if s.attestations, err = store.New(ctx, s.Store); err != nil {
		s.Close()
		return nil, local.Unopened(where, err)
	}
	return s, nil
}

// openDemo opens a store that is removed when it is closed; loadDemo fills it.
func openDemo(ctx context.Context) (*groundStore, error) {
	dir, err := os.MkdirTemp("", "pellucid-ground-")
	if err != nil {
		return nil, fmt.Errorf("ground: make a temporary store: %w", err)
	}
	s, err := local.OpenStore(ctx, filepath.Join(dir, "ground.db"), storage.Options{}, func() error { return nil })
	if err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	return withAttestations(ctx, dir, &groundStore{Store: s, demo: dir})
}

// loadDemo fills the store of the demonstration, and does nothing to another one.
func (s *groundStore) loadDemo(ctx context.Context, a *ground.Adapter, notice io.Writer) error {
	if s.demo == "" {
		return nil
	}
	receipts, err := a.Ingest(ctx, "", demonstration.Attestations())
	if err != nil {
		return err
	}
	for _, r := range receipts {
		if !r.Accepted {
			return fmt.Errorf("ground: the demonstration set was refused: %s", r.Code)
		}
	}
	fmt.Fprintf(notice, "There is no store yet: this is a demonstration set of %s. Nothing is kept;\n"+
		"`pellucid-ground import` or --db makes a store.\n", terminal.Plural(len(receipts), "attestation"))
	return nil
}
