// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"

	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
)

type storeCmd struct {
	Migrate storeMigrateCmd `cmd:"" help:"Upgrade the store's schema to that of this release."`
	Backup  storeBackupCmd  `cmd:"" help:"Copy an SQLite store into a new file, while other processes use it."`
}

// storeDB says which stores are meant.
type storeDB struct {
	DB install.Database `name:"db" env:"PELLUCID_DB" placeholder:"URL|PATH" help:"Store: a postgres:// URL, or the path of an SQLite file (default: $$${env}, or those of the state directory: pellucid.db of the gateway, ground.db of the adapter)."`
}

type storeMigrateCmd struct {
	storeDB
	JSON bool `name:"json" help:"Print the result as JSON."`
}

func (storeMigrateCmd) Help() string {
	return `Every verb that opens the store does this by itself; here it is a step of its own, for
an upgrade of several replicas. A store that a later release has migrated is left as it is. It is
refused if its schema says that this release cannot work with it.
Exit codes: 0 done, or nothing to do; 3 the schema is newer, or there is no store; 4
the store cannot be reached.`
}

func (c *storeMigrateCmd) Run(e *env) error {
	return c.DB.Migrate(func(m *install.Migration) error { return tellStore(e.Stdout, c.JSON, m) })
}

type storeBackupCmd struct {
	storeDB
	File string `arg:"" optional:"" help:"The new file (default: in this directory, named after the store and the time)."`
	JSON bool   `name:"json" help:"Print the result as JSON."`
}

func (storeBackupCmd) Help() string {
	return `The file is a store itself, for its owner alone, consistent as of one moment. Keys are
not in it: copy the state directory's *.key files as well. A Postgres store is backed
up by its own means, such as pg_dump. Exit codes: 0 done; 1 failed, or the file is
there already; 2 the store is Postgres; 3 there is no store; 4 it cannot be read.`
}

func (c *storeBackupCmd) Run(e *env) error {
	return c.DB.Backup(c.File, func(made *install.Copy) error { return tellStore(e.Stdout, c.JSON, made) })
}

// tellStore prints what was done with a store, as a sentence or as JSON.
func tellStore(w io.Writer, asJSON bool, r fmt.Stringer) error {
	if asJSON {
		return terminal.WriteJSON(w, r)
	}
	_, err := fmt.Fprintln(w, r)
	return err
}
