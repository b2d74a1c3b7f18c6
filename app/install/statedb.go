// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/grounding/ground"
	"github.com/pellucid-mcp/pellucid/platform/privacy"
	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/storage"
	"github.com/pellucid-mcp/pellucid/text/finding"
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
	if err := CheckStore(where); err != nil {
		return nil, err
	}
	if !make && !storage.IsPostgres(where) {
		if _, err := os.Stat(where); errors.Is(err, fs.ErrNotExist) {
			return nil, d.noStore(where) // before a key is made: what only reads leaves nothing behind
		}
	}
	key, err := chainKey(dir)
	if err != nil {
		return nil, err
	}
	found, err := IndexKey(dir)
	if err != nil {
		return nil, err
	}
	return OpenStore(ctx, where, storage.Options{Cache: stateCache, Chain: key, Index: found}, func() error {
		if make {
			return MakePrivate(where)
		}
		return d.noStore(where)
	})
}

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

// With calls do with the store, and with the records of what do changes; nil where
// evidence is off.
func (d Database) With(do func(context.Context, *storage.Store, *Records) error) error {
	return d.withStore(func(ctx context.Context, dir *state.Dir, s *storage.Store) error {
		kept, err := RecordsOf(ctx, s, dir)
		if err != nil {
			return OpenError(err)
		}
		defer kept.Close()
		err = do(ctx, s, kept)
		if storeAway(err) {
			return exit.With(exit.Unreachable, err)
		}
		return err
	})
}

// withStore calls do with the store, which must exist, and the state directory.
func (d Database) withStore(do func(context.Context, *state.Dir, *storage.Store) error) error {
	ctx, stop := exit.UntilSignal()
	defer stop()
	dir, err := Open()
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
	case storeAway(err):
		return exit.With(exit.Unreachable, err)
	}
	return exit.With(exit.Config, err)
}

// storeAway reports whether the store cannot be reached, or takes nothing at present.
func storeAway(err error) bool {
	return errors.Is(err, ground.ErrUnavailable) || errors.Is(err, ground.ErrBusy) || errors.Is(err, ground.ErrFull)
}

// Unopened gives the error of opening a store its exit code and, of a file, its name and
// what keeps it from being opened.
func Unopened(where string, err error) error {
	if err == nil || storage.IsPostgres(where) {
		return OpenError(err)
	}
	// Nobody here has it open: to close it once more would drop the locks.
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
