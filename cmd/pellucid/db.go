// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/app/install"
)

// stateDB says where the database of the gateway is: with its queue, pins and log.
type stateDB struct {
	DB install.Database `name:"db" env:"PELLUCID_DB" placeholder:"URL|PATH" help:"Database of the queue: a postgres:// URL, or the path of an SQLite file (default: $$${env}, or pellucid.db in the state directory)."`
}

// listed is what an error means to a verb that lists: where nothing was kept yet in the database of the state directory, the list is
// empty; a database that was named and is not there is a mistake.
func (d *stateDB) listed(err error) error {
	switch {
	case !errors.Is(err, install.ErrNoStore):
		return err
	case d.DB != "":
		return exit.With(exit.Config, err)
	}
	return nil
}

// pinDB says where the pins are.
type pinDB struct {
	DB install.Database `name:"db" env:"PELLUCID_DB" placeholder:"URL|PATH" help:"Database of the pins: a postgres:// URL, or the path of an SQLite file (default: $$${env}; else files in the state directory for wrap and check, and its pellucid.db for up)."`
}

// pinFlags say whose pins a person means.
type pinFlags struct {
	pinDB
	Files bool `help:"Use only the pins in files of the state directory: those that wrap and check write without --db."`
}

func (f *pinFlags) places() install.PinPlaces { return install.PinPlaces{Db: f.DB, Files: f.Files} }
