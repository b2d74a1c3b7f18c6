// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/pellucid-mcp/pellucid/app/install"
)

// stateDB says where the database of the gateway is: with its queue, pins and log.
type stateDB struct {
	DB install.Database `name:"db" env:"PELLUCID_DB" placeholder:"URL|PATH" help:"Database of the queue: a postgres:// URL, or the path of an SQLite file (default: $$${env}, or pellucid.db in the state directory)."`
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
