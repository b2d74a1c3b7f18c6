// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/platform/privacy"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/storage"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// OpenStore opens a database; absent is asked what becomes of a file that is not there. The
// name does not stand in the error: it may hold a password.
func OpenStore(ctx context.Context, where string, o storage.Options, absent func() error) (*storage.Store, error) {
	if err := CheckStore(where); err != nil {
		return nil, err
	}
	if !storage.IsPostgres(where) {
		if _, err := os.Stat(where); errors.Is(err, fs.ErrNotExist) {
			if err := absent(); err != nil {
				return nil, err
			}
		}
	}
	s, err := storage.Open(ctx, where, o)
	if err != nil {
		return nil, Unopened(where, err)
	}
	return s, nil
}

// CheckStore refuses a URL of another kind of database: it would be taken for a file.
func CheckStore(where string) error {
	if storage.IsPostgres(where) || !strings.Contains(where, "://") {
		return nil
	}
	return exit.With(exit.Usage, errors.New("store: --db: want a postgres:// URL, or the path of an SQLite file"))
}

// MakePrivate makes the file that a store is to be, for its owner alone: it holds
// what has not been retracted yet. SQLite gives its other files the same mode.
func MakePrivate(path string) error {
	f, err := privacy.OpenFile(path, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return exit.With(exit.Unreachable, fmt.Errorf("store: create %s: %w", finding.Quote(path), terminal.WithoutPath(err)))
	}
	return f.Close()
}

// OpenError gives the error of store.Open its exit code.
func OpenError(err error) error {
	switch {
	case err == nil:
		return nil
	case StoreAway(err):
		return exit.With(exit.Unreachable, err)
	}
	return exit.With(exit.Config, err)
}

// StoreAway reports whether the store cannot be reached, or takes nothing at present.
func StoreAway(err error) bool {
	return errors.Is(err, storage.ErrUnavailable) || errors.Is(err, storage.ErrBusy) || errors.Is(err, storage.ErrFull)
}

// Unopened gives the error of opening a store its exit code and, of a file, its name and
// what keeps it from being opened.
func Unopened(where string, err error) error {
	if err == nil || storage.IsPostgres(where) {
		return OpenError(err)
	}
	// This process does not have it open: closing it once more would drop the locks.
	f, plain := os.OpenFile(where, os.O_RDWR, 0)
	if info, err := os.Stat(where); err == nil && info.IsDir() {
		plain = terminal.ErrDirectory
	}
	if plain != nil {
		return exit.With(exit.Unreachable, fmt.Errorf("store: open %s: %w", finding.Quote(where), terminal.WithoutPath(plain)))
	}
	f.Close()
	return OpenError(fmt.Errorf("%w: %s", err, finding.Quote(where)))
}
