// SPDX-License-Identifier: Apache-2.0

package install

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/app/local"
	"github.com/pellucid-mcp/pellucid/boundary/pinfile"
	"github.com/pellucid-mcp/pellucid/boundary/pinview"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/boundary/surface"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/storage"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// A pinPlace is where pins are. Without --db those of wrap and check are files in the
// state directory, which cost a small process nothing; those of up are in its database.
type PinPlace string

const (
	inFiles    PinPlace = "files"
	inDatabase PinPlace = "database"
)

// PinFiles opens the pins and verdicts that are files.
func PinFiles() (*pinfile.Store, error) {
	dir, err := local.OpenState()
	if err != nil {
		return nil, err
	}
	s, err := pinfile.Open(dir)
	if err != nil {
		return nil, exit.With(exit.Config, err)
	}
	return s, nil
}

// OpenPins opens the pins of a database. Without one, make says to make it; else there are none.
func OpenPins(ctx context.Context, d Database, make bool) (*storage.Store, error) {
	dir, err := local.OpenState()
	if err != nil {
		return nil, err
	}
	s, err := d.Open(ctx, dir, make)
	if errors.Is(err, ErrNoStore) {
		return nil, nil
	}
	return s, err
}

// PinsAndVerdicts opens what keeps pins and verdicts: the database d, and files where d is
// empty and files are allowed. Without a database, make says to make it; else both are nil.
// done closes them.
func PinsAndVerdicts(ctx context.Context, d Database, files, make bool) (pins surface.PinStore, verdicts surface.Cache, done func(), err error) {
	if d == "" && files {
		f, err := PinFiles()
		if err != nil {
			return nil, nil, nil, err
		}
		return f, f, func() {}, nil
	}
	s, err := OpenPins(ctx, d, make)
	if err != nil || s == nil {
		return nil, nil, func() {}, err
	}
	return s, s, func() { s.Close() }, nil
}

// PinPlaces says whose pins a person means.
type PinPlaces struct {
	Db    Database
	Files bool // only those in files of the state directory
}

// IdentityOf is the identity of a configured server.
func IdentityOf(s *rules.Server) string {
	if s.Command != nil {
		return surface.LocalIdentity(s.Command, s.Cwd)
	}
	return surface.URLIdentity(s.URL.Reveal())
}

// PinnedAs is the name of the pin of a configured server.
func PinnedAs(s *rules.Server) string { return cmp.Or(s.Pin, IdentityOf(s)) }

// errNoPins: nothing was ever pinned.
var ErrNoPins = errors.New("pins: there are none yet: nothing was ever pinned")

// Each calls f with the pins of every place that is meant and there.
func (c PinPlaces) Each(f func(context.Context, PinPlace, *surface.Pins) error) error {
	ctx, stop := exit.UntilSignal()
	defer stop()
	none := true
	if c.Files || c.Db == "" {
		files, err := PinFiles()
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
		there, err := c.inDatabase(ctx, f)
		if err != nil {
			return err
		}
		none = none && !there
	}
	if none {
		return ErrNoPins
	}
	return nil
}

// inDatabase calls f with the pins of the database, if there is one. What is decided
// about them goes into its ledger.
func (c PinPlaces) inDatabase(ctx context.Context, f func(context.Context, PinPlace, *surface.Pins) error) (there bool, err error) {
	s, err := OpenPins(ctx, c.Db, false)
	if err != nil || s == nil {
		return false, err
	}
	defer s.Close()
	pins := surface.NewPins(s, nil)
	dir, err := local.OpenState()
	if err != nil {
		return true, err
	}
	kept, err := RecordsOf(ctx, s, dir)
	if err != nil {
		return true, local.OpenError(err)
	}
	if kept != nil {
		defer kept.Close()
		pins = pins.WithEvidence(kept.Pin)
	}
	err = f(ctx, inDatabase, pins)
	if local.StoreAway(err) {
		return true, exit.With(exit.Unreachable, err)
	}
	return true, err
}

// A pinAt is a pin that a person means.
type pinAt struct {
	In     PinPlace
	Server string // its identity, or the name of the pin
}

// Find returns the one pin that a person means by a name: its identity, or a name under
// which the server was seen.
func (c PinPlaces) Find(name string) (pinAt, error) {
	var found []pinAt
	err := c.Each(func(ctx context.Context, in PinPlace, pins *surface.Pins) error {
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
		return pinAt{}, NoPin(name)
	case len(found) == 1:
		return found[0], nil
	}
	var servers []string
	for _, at := range found {
		if !slices.Contains(servers, at.Server) {
			servers = append(servers, at.Server)
		}
	}
	if len(servers) > 1 {
		return pinAt{}, exit.With(exit.Usage, pinview.Several("pins", name, servers))
	}
	return pinAt{}, exit.With(exit.Usage, fmt.Errorf("pins: %s is pinned in files and in the database: say which one by --files or --db", terminal.ShellWord(name)))
}

// Of calls f with the pin that a person means.
func (c PinPlaces) Of(name string, f func(context.Context, *surface.Pins, surface.Pin) error) error {
	at, err := c.Find(name)
	if err != nil {
		return err
	}
	return c.Each(func(ctx context.Context, in PinPlace, pins *surface.Pins) error {
		if in != at.In {
			return nil
		}
		pin, err := pins.Get(ctx, at.Server)
		if err != nil {
			return err
		}
		return f(ctx, pins, pin)
	})
}

// Rows returns a row for each pin of every place; with a name only for the server that has
// it as identity or was seen under it, and NoPin if no server has.
func (c PinPlaces) Rows(name string) (rows []pinview.Row, err error) {
	err = c.pins(func(in PinPlace, pin *surface.Pin) error {
		if name == "" || name == pin.Server || slices.Contains(pin.Names, name) {
			rows = append(rows, pinview.NewRow(string(in), pin))
		}
		return nil
	})
	switch {
	case err != nil && !errors.Is(err, ErrNoPins):
		return nil, err
	case name != "" && len(rows) == 0:
		return nil, NoPin(name)
	}
	return rows, nil
}

// EachPin calls f with the one pin that a person means by a name, and with every pin if the
// name is empty.
func (c PinPlaces) EachPin(name string, f func(*surface.Pin) error) error {
	if name != "" {
		return c.Of(name, func(_ context.Context, _ *surface.Pins, pin surface.Pin) error { return f(&pin) })
	}
	return c.pins(func(_ PinPlace, pin *surface.Pin) error { return f(pin) })
}

// pins calls f with every pin of every place.
func (c PinPlaces) pins(f func(PinPlace, *surface.Pin) error) error {
	return c.Each(func(ctx context.Context, in PinPlace, pins *surface.Pins) error {
		servers, err := pins.List(ctx)
		if err != nil {
			return err
		}
		for _, server := range servers {
			pin, err := pins.Get(ctx, server)
			if err == nil {
				err = f(in, &pin)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// NoPin is the error where no server has the name.
func NoPin(server string) error {
	return fmt.Errorf("pins: no such pin: %s: pellucid pins list has the names", finding.Quote(server))
}
