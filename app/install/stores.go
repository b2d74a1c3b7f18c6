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
	"time"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/app/local"
	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/storage"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// Stores are the files of stores that the state directory has: of the gateway and of the
// grounding adapter.
func Stores(dir *state.Dir) []string {
	var out []string
	for _, name := range []string{"pellucid.db", "ground.db"} {
		path := filepath.Join(dir.Path(), name)
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) { // what cannot be looked at is there
			out = append(out, path)
		}
	}
	return out
}

// Stores are the stores that a person means: the one that is named, else those of the state
// directory.
func (d Database) Stores() ([]string, error) {
	if d != "" {
		return []string{string(d)}, local.CheckStore(string(d))
	}
	dir, err := local.OpenState()
	if err != nil {
		return nil, err
	}
	return Stores(dir), nil
}

// StoreName is what a store is called in a message: of a URL, which may hold a
// password, nothing but that it is one.
func StoreName(where string) string {
	if storage.IsPostgres(where) {
		return "postgres"
	}
	return filepath.Base(where)
}

// ErrNoStores says that there is no store to migrate or back up.
var ErrNoStores = errors.New("store: there is none yet: the first verb that keeps something makes it")

// A Migration is what became of the schema of a store.
type Migration struct {
	Store string `json:"store"`
	From  int64  `json:"from"`
	To    int64  `json:"to"`
}

func (m *Migration) String() string {
	switch {
	case m.From > m.To:
		return fmt.Sprintf("%s: the schema is at version %d, of a later release; this release knows %d and can work with it.", terminal.Printable(m.Store), m.From, m.To)
	case m.From == m.To:
		return fmt.Sprintf("%s: the schema is at version %d, which is this release's.", terminal.Printable(m.Store), m.To)
	}
	return fmt.Sprintf("%s: the schema went from version %d to %d.", terminal.Printable(m.Store), m.From, m.To)
}

// Migrate brings the schemas of the stores that a person means up to that of this release.
// tell is called after each.
func (d Database) Migrate(tell func(*Migration) error) error {
	ctx, stop := exit.UntilSignal()
	defer stop()
	stores, err := d.Stores()
	if err == nil && len(stores) == 0 {
		err = exit.With(exit.Config, ErrNoStores)
	}
	if err != nil {
		return err
	}
	for _, where := range stores {
		m, err := migrate(ctx, where)
		if err == nil {
			err = tell(m)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func migrate(ctx context.Context, where string) (*Migration, error) {
	before, err := storage.Inspect(ctx, where)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, exit.With(exit.Config, ErrNoStores)
	} else if err != nil {
		return nil, local.Unopened(where, err)
	}
	s, err := local.OpenStore(ctx, where, storage.Options{}, func() error { return exit.With(exit.Config, ErrNoStores) })
	if err != nil {
		return nil, err
	}
	if err := s.Close(); err != nil {
		return nil, err
	}
	return &Migration{StoreName(where), before.Current, before.Known}, nil
}

// A Copy is the file that a backup has made.
type Copy struct {
	File string `json:"file"`
	Size int64  `json:"size"` // bytes
}

func (c *Copy) String() string {
	return fmt.Sprintf("%s: %s bytes", finding.Quote(c.File), terminal.Thousands(int(c.Size)))
}

// Backup writes what each SQLite store holds that a person means into a new file: here, under
// the name of the store and the time, unless file names it. tell is called after each.
func (d Database) Backup(file string, tell func(*Copy) error) error {
	ctx, stop := exit.UntilSignal()
	defer stop()
	stores, err := d.Stores()
	switch {
	case err != nil:
		return err
	case len(stores) == 0:
		return exit.With(exit.Config, ErrNoStores)
	case len(stores) > 1 && file != "":
		return exit.With(exit.Usage, errors.New("store: there are two: say with --db which one goes into the file"))
	}
	now := time.Now()
	for _, where := range stores {
		into := file
		if into == "" {
			into = backupName(where, now)
		}
		made, err := backup(ctx, where, into)
		if err == nil {
			err = tell(made)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func backup(ctx context.Context, where, into string) (*Copy, error) {
	switch err := storage.Backup(ctx, where, into); {
	case errors.Is(err, storage.ErrPostgres):
		return nil, exit.With(exit.Usage, err)
	case errors.Is(err, fs.ErrNotExist):
		return nil, exit.With(exit.Config, ErrNoStores)
	case errors.Is(err, storage.ErrUnavailable):
		return nil, local.Unopened(where, err)
	case err != nil:
		return nil, err
	}
	info, err := os.Stat(into)
	if err != nil {
		return nil, fmt.Errorf("store: back up: %w", err)
	}
	return &Copy{into, info.Size()}, nil
}

// backupName is what the backup of a store is called where no name is given.
func backupName(where string, at time.Time) string {
	return strings.TrimSuffix(filepath.Base(where), ".db") + at.UTC().Format("-20060102T150405Z.db")
}
