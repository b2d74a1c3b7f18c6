// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/boundary/pinfile"
	"github.com/pellucid-mcp/pellucid/boundary/surface"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/storage"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// A pinPlace is where pins are. Without --db those of wrap and check are files in the
// state directory, which cost a small process nothing; those of up are in its database.
type pinPlace string

const (
	inFiles    pinPlace = "files"
	inDatabase pinPlace = "database"
)

// openFiles opens the pins and verdicts that are files.
func openFiles() (*pinfile.Store, error) {
	dir, err := openState()
	if err != nil {
		return nil, err
	}
	s, err := pinfile.Open(dir)
	if err != nil {
		return nil, exit.With(exit.Config, err)
	}
	return s, nil
}

// pinDB says where the pins are.
type pinDB struct {
	DB string `name:"db" env:"PELLUCID_DB" placeholder:"URL|PATH" help:"Database of the pins: a postgres:// URL, or the path of an SQLite file (default: $$${env}; else pins of wrap and check are files in the state directory, and those of up are in its pellucid.db)."`
}

// open opens the pins. Without a database, make says to make one; else there are none.
func (c *pinDB) open(ctx context.Context, make bool) (s *storage.Store, err error) {
	dir, err := openState()
	if err != nil {
		return nil, err
	}
	s, err = (&stateDB{DB: c.DB}).open(ctx, dir, make)
	if errors.Is(err, errNoStore) {
		return nil, nil
	}
	return s, err
}

// pinPlaces says whose pins a person means.
type pinPlaces struct {
	pinDB
	Files bool `help:"Only pins in files of the state directory, which are those of wrap and check without --db."`
}

// errNoPins: nothing was ever pinned.
var errNoPins = errors.New("pins: there are none yet: nothing was ever pinned")

// each calls f with the pins of every place that is meant and there.
func (c *pinPlaces) each(f func(context.Context, pinPlace, *surface.Pins) error) error {
	ctx, stop := exit.UntilSignal()
	defer stop()
	none := true
	if c.Files || c.DB == "" {
		files, err := openFiles()
		if err != nil {
			return err
		}
		names, err := files.ListPins(ctx)
		if err != nil {
			return exit.With(exit.Config, err)
		}
		if len(names) > 0 {
			none = false
			if err := f(ctx, inFiles, surface.NewPins(files, nil)); err != nil {
				return err
			}
		}
	}
	if !c.Files {
		there, err := c.database(ctx, f)
		if err != nil {
			return err
		}
		none = none && !there
	}
	if none {
		return errNoPins
	}
	return nil
}

// database calls f with the pins of the database, if there is one. What is decided
// about them goes into its ledger.
func (c *pinPlaces) database(ctx context.Context, f func(context.Context, pinPlace, *surface.Pins) error) (there bool, err error) {
	s, err := c.open(ctx, false)
	if err != nil || s == nil {
		return false, err
	}
	defer s.Close()
	pins := surface.NewPins(s, nil)
	dir, err := openState()
	if err != nil {
		return true, err
	}
	kept, err := recordsOf(ctx, s, dir)
	if err != nil {
		return true, openError(err)
	}
	if kept != nil {
		defer kept.close()
		pins = pins.WithEvidence(kept.Pin)
	}
	err = f(ctx, inDatabase, pins)
	if storeAway(err) {
		return true, exit.With(exit.Unreachable, err)
	}
	return true, err
}

// A pinAt is a pin that a person means.
type pinAt struct {
	in     pinPlace
	server string // its identity, or the name of the pin
}

// find returns the one pin that a person means by a name: its identity, or a name under
// which the server was seen.
func (c *pinPlaces) find(name string) (pinAt, error) {
	var found []pinAt
	err := c.each(func(ctx context.Context, in pinPlace, pins *surface.Pins) error {
		servers, err := pins.Find(ctx, name)
		for _, server := range servers {
			found = append(found, pinAt{in, server})
		}
		return err
	})
	switch {
	case err != nil:
		return pinAt{}, err
	case len(found) == 0:
		return pinAt{}, noPin(name)
	case len(found) == 1:
		return found[0], nil
	}
	var servers []string
	for _, at := range found {
		if !slices.Contains(servers, at.server) {
			servers = append(servers, at.server)
		}
	}
	if len(servers) > 1 {
		return pinAt{}, exit.With(exit.Usage, severalPins("pins", name, servers))
	}
	return pinAt{}, exit.With(exit.Usage, fmt.Errorf("pins: %s is pinned in files and in the database: say which one by --files or --db", terminal.ShellWord(name)))
}

// severalPins says that a name means several servers, and how to name one of them.
func severalPins(verb, name string, servers []string) error {
	shown := make([]string, len(servers))
	for i, s := range servers {
		shown[i] = terminal.ShellWord(s)
	}
	return fmt.Errorf("%s: several servers are called %s: say which by its identity: %s", verb, terminal.ShellWord(name), strings.Join(shown, ", "))
}

// of calls f with the pin that a person means.
func (c *pinPlaces) of(name string, f func(context.Context, *surface.Pins, surface.Pin) error) error {
	at, err := c.find(name)
	if err != nil {
		return err
	}
	return c.each(func(ctx context.Context, in pinPlace, pins *surface.Pins) error {
		if in != at.in {
			return nil
		}
		pin, err := pins.Get(ctx, at.server)
		if err != nil {
			return err
		}
		return f(ctx, pins, pin)
	})
}

func noPin(server string) error {
	return fmt.Errorf("pins: no such pin: %s: pellucid pins list has the names", finding.Quote(server))
}
