// SPDX-License-Identifier: Apache-2.0

package main

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
	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/grounding/ground"
	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/storage"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

type storeCmd struct {
	Migrate storeMigrateCmd `cmd:"" help:"Bring the store's schema up to that of this release."`
	Backup  storeBackupCmd  `cmd:"" help:"Write what an SQLite store holds into a new file, while others use it."`
}

// storeDB says which stores are meant.
type storeDB struct {
	DB string `name:"db" env:"PELLUCID_DB" placeholder:"URL|PATH" help:"Store: a postgres:// URL, or the path of an SQLite file (default: $$${env}, or those that there are in the state directory: pellucid.db of the gateway, ground.db of the adapter)."`
}

// all are the stores that the flag names; without it, the files that there are.
func (c *storeDB) all() ([]string, error) {
	if c.DB != "" {
		return []string{c.DB}, install.CheckStore(c.DB)
	}
	dir, err := install.Open()
	if err != nil {
		return nil, err
	}
	return storesIn(dir), nil
}

func storesIn(dir *state.Dir) []string {
	var out []string
	for _, name := range []string{"pellucid.db", "ground.db"} {
		path := filepath.Join(dir.Path(), name)
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) { // what cannot be looked at is there
			out = append(out, path)
		}
	}
	return out
}

// storeName is what a store is called in a message: of a URL, which may hold a
// password, nothing but that it is one.
func storeName(where string) string {
	if storage.IsPostgres(where) {
		return "postgres"
	}
	return filepath.Base(where)
}

type storeMigrateCmd struct {
	storeDB
	JSON bool `name:"json" help:"Print the result as JSON."`
}

func (storeMigrateCmd) Help() string {
	return `Every verb that opens the store does this by itself; here it is a step of its own, for
an upgrade of several replicas. A store that a later release has migrated is refused.
Exit codes: 0 done, or nothing to do; 3 the schema is newer, or there is no store; 4
the store cannot be reached.`
}

// A migrateReport is what --json prints, one for each store.
type migrateReport struct {
	Store string `json:"store"`
	From  int64  `json:"from"`
	To    int64  `json:"to"`
}

func (c *storeMigrateCmd) Run(e *env) error {
	ctx, stop := exit.UntilSignal()
	defer stop()
	stores, err := c.all()
	if err != nil {
		return err
	}
	if len(stores) == 0 {
		return exit.With(exit.Config, errNoneYet)
	}
	for _, where := range stores {
		if err := c.migrate(ctx, e, where); err != nil {
			return err
		}
	}
	return nil
}

func (c *storeMigrateCmd) migrate(ctx context.Context, e *env, where string) error {
	before, err := storage.Inspect(ctx, where)
	if err != nil {
		return inspected(where, err)
	}
	s, err := storage.Open(ctx, where, storage.Options{})
	if err != nil {
		return install.Unopened(where, err)
	}
	if err := s.Close(); err != nil {
		return err
	}
	name := storeName(where)
	switch {
	case c.JSON:
		err = terminal.WriteJSON(e.Stdout, migrateReport{name, before.Current, before.Known})
	case before.Current == before.Known:
		_, err = fmt.Fprintf(e.Stdout, "%s: the schema is at version %d, which is this release's.\n", terminal.Printable(name), before.Known)
	default:
		_, err = fmt.Fprintf(e.Stdout, "%s: the schema went from version %d to %d.\n", terminal.Printable(name), before.Current, before.Known)
	}
	return err
}

var errNoneYet = errors.New("store: there is none yet: the first verb that keeps something makes it")

// inspected gives the error of store.Inspect its words and its exit code.
func inspected(where string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return exit.With(exit.Config, errNoneYet)
	}
	return install.Unopened(where, err)
}

type storeBackupCmd struct {
	storeDB
	File string `arg:"" optional:"" completion:"files" help:"The new file (default: here, under the store's name and the time)."`
	JSON bool   `name:"json" help:"Print the result as JSON."`
}

func (storeBackupCmd) Help() string {
	return `The file is a store itself, for its owner alone, consistent as of one moment. Keys are
not in it: copy the state directory's *.key files as well. A Postgres store is backed
up by its own means, such as pg_dump. Exit codes: 0 done; 1 failed, or the file is
there already; 2 the store is Postgres; 3 there is no store; 4 it cannot be read.`
}

// A backupReport is what --json prints.
type backupReport struct {
	File string `json:"file"`
	Size int64  `json:"size"` // octets
}

func (c *storeBackupCmd) Run(e *env) error {
	ctx, stop := exit.UntilSignal()
	defer stop()
	stores, err := c.all()
	switch {
	case err != nil:
		return err
	case len(stores) == 0:
		return exit.With(exit.Config, errNoneYet)
	case len(stores) > 1 && c.File != "":
		return exit.With(exit.Usage, errors.New("store: there are two: say with --db which one goes into the file"))
	}
	now := time.Now().UTC().Format("-20060102T150405Z.db")
	for _, where := range stores {
		into := c.File
		if into == "" {
			into = strings.TrimSuffix(filepath.Base(where), ".db") + now
		}
		if err := c.backup(ctx, e, where, into); err != nil {
			return err
		}
	}
	return nil
}

func (c *storeBackupCmd) backup(ctx context.Context, e *env, where, into string) error {
	switch err := storage.Backup(ctx, where, into); {
	case errors.Is(err, storage.ErrPostgres):
		return exit.With(exit.Usage, err)
	case errors.Is(err, fs.ErrNotExist):
		return inspected(where, err)
	case errors.Is(err, ground.ErrUnavailable):
		return install.Unopened(where, err)
	case err != nil:
		return err
	}
	info, err := os.Stat(into)
	if err != nil {
		return fmt.Errorf("store: back up: %w", err)
	}
	if c.JSON {
		return terminal.WriteJSON(e.Stdout, backupReport{into, info.Size()})
	}
	_, err = fmt.Fprintf(e.Stdout, "%s: %s octets\n", finding.Quote(into), terminal.Thousands(int(info.Size())))
	return err
}
