// SPDX-License-Identifier: Apache-2.0

// Package store keeps attestations, the claims that they are about and the events that withdraw them, as tables of a [storage.Store].
//
// The record of a change is stored in the log of that store, in the transaction of the change.
package store

import (
	"context"
	"crypto/sha256"
	"embed"
	"errors"
	"fmt"

	"github.com/pellucid-mcp/pellucid/grounding/attest"
	"github.com/pellucid-mcp/pellucid/grounding/ground"
	"github.com/pellucid-mcp/pellucid/storage"
)

//go:embed migrations
var migrations embed.FS

// versions is the table that counts the migrations of this package.
const versions = "grounding_db_version"

// A Store is a ground.Store over a database.
type Store struct{ *storage.Store }

var _ ground.Store = (*Store)(nil)

// New returns the attestations of s, whose tables it makes or migrates as needed. The caller closes s.
func New(ctx context.Context, s *storage.Store) (*Store, error) {
	if err := s.AddTables(ctx, migrations, "migrations", versions); err != nil {
		return nil, err
	}
	return &Store{s}, nil
}

// A tx is a transaction that writes.
type tx struct{ *storage.Tx }

// update runs f as [storage.Store.Update] does.
func (s *Store) update(ctx context.Context, what string, f func(*tx) error) error {
	return asGround(s.Store.Update(ctx, what, func(t *storage.Tx) error { return f(&tx{t}) }))
}

// fail turns err into an error of package ground.
func (s *Store) fail(ctx context.Context, what string, err error) error {
	if errors.Is(err, ground.ErrNotFound) {
		return fmt.Errorf("store: %s: %w", what, err)
	}
	return asGround(s.Store.Fail(ctx, what, err))
}

// A failure is an error of package storage that is also one of package ground.
type failure struct {
	error
	sentinel error
}

// Unwrap returns the errors that a caller may compare with.
func (f *failure) Unwrap() []error { return []error{f.error, f.sentinel} }

func asGround(err error) error {
	for _, same := range [...]struct{ of, as error }{
		{storage.ErrBusy, ground.ErrBusy}, {storage.ErrFull, ground.ErrFull}, {storage.ErrUnavailable, ground.ErrUnavailable},
	} {
		if errors.Is(err, same.of) {
			return &failure{err, same.as}
		}
	}
	return err
}

// targetKey is the key of a source or an attestation on which another attestation depends:
// a hash stands for itself.
func targetKey(iri string) []byte {
	if h, ok := attest.ParseHash(iri); ok {
		return h[:]
	}
	sum := sha256.Sum256([]byte("iri\x00" + iri))
	return sum[:]
}

func hashOf(b []byte) (h attest.Hash) {
	copy(h[:], b)
	return h
}
