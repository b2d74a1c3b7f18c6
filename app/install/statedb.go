// SPDX-License-Identifier: Apache-2.0

// Package install is what one machine, or one team of replicas, keeps of the boundary: the store, the records and the pins.
package install

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/app/local"
	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/storage"
)

// stateCache is enough for a store that mostly grows: a gateway stays resident.
const stateCache = 8 << 20

// A database is a postgres:// URL or the path of an SQLite file; "" stands for the one in
// the state directory.
type Database string

// ErrNoStore says that nothing was ever put into a database.
var ErrNoStore = errors.New("store: there is no database yet")

// noStore says where no database is: that of the gateway may be another one.
func (d Database) noStore(where string) error {
	how := "--db names another one"
	if d != "" {
		how = "--db or PELLUCID_DB names this file"
	}
	return fmt.Errorf("%w at %s; %s", ErrNoStore, terminal.Printable(where), how)
}

// Exists refuses the name of a file that is not there. A name may be misspelt: a verb that would make the database in the
// state directory makes none elsewhere.
func (d Database) Exists() error {
	if d == "" || storage.IsPostgres(string(d)) {
		return nil
	}
	if _, err := os.Stat(string(d)); errors.Is(err, fs.ErrNotExist) {
		return d.noStore(string(d))
	}
	return nil
}

// Flag is what a printed command needs to find the database: " --db X", or "" where it finds it
// without. known is what PELLUCID_DB says where the command will run, as far as that is known. A URL
// may hold a password, and is not printed.
func (d Database) Flag(known string) string {
	switch {
	case d == "" || string(d) == known:
		return ""
	case storage.IsPostgres(string(d)):
		return " --db URL"
	}
	path, err := filepath.Abs(string(d)) // the command may run in another folder
	if err != nil {
		path = string(d)
	}
	return " --db " + terminal.ShellWord(path)
}

// Open opens the database; make says to make it if it does not exist.
func (d Database) Open(ctx context.Context, dir *state.Dir, make bool) (*storage.Store, error) {
	where := string(d)
	if where == "" {
		where = filepath.Join(dir.Path(), "pellucid.db")
	}
	if err := local.CheckStore(where); err != nil {
		return nil, err
	}
	if !make && !storage.IsPostgres(where) {
		if _, err := os.Stat(where); errors.Is(err, fs.ErrNotExist) {
			return nil, d.noStore(where) // before a key is made: what only reads leaves nothing behind
		}
	}
	key, err := local.ChainKey(dir)
	if err != nil {
		return nil, err
	}
	found, err := local.IndexKey(dir)
	if err != nil {
		return nil, err
	}
	return local.OpenStore(ctx, where, storage.Options{Cache: stateCache, Chain: key, Index: found}, func() error {
		if make {
			return local.MakePrivate(where)
		}
		return d.noStore(where)
	})
}

// With calls do with the store, and with the records of what do changes; nil where
// evidence is off.
func (d Database) With(do func(context.Context, *storage.Store, *Records) error) error {
	return d.withStore(func(ctx context.Context, dir *state.Dir, s *storage.Store) error {
		kept, err := RecordsOf(ctx, s, dir)
		if err != nil {
			return local.OpenError(err)
		}
		defer kept.Close()
		err = do(ctx, s, kept)
		if local.StoreAway(err) {
			return exit.With(exit.Unreachable, err)
		}
		return err
	})
}

// withStore calls do with the store, which must exist, and the state directory.
func (d Database) withStore(do func(context.Context, *state.Dir, *storage.Store) error) error {
	ctx, stop := exit.UntilSignal()
	defer stop()
	dir, err := local.OpenState()
	if err != nil {
		return err
	}
	s, err := d.Open(ctx, dir, false)
	if err != nil {
		return err
	}
	defer s.Close()
	return do(ctx, dir, s)
}
