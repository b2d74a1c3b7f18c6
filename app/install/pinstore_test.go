// SPDX-License-Identifier: Apache-2.0

package install

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/boundary/surface"
)

// TestPinPlaces: pins of files and of the database are found together, by the names and the
// identities of their servers.
func TestPinPlaces(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PELLUCID_STATE", dir)
	if _, err := (PinPlaces{}).Rows("clock"); err == nil || !strings.Contains(err.Error(), `no such pin: "clock"`) {
		t.Errorf("before any pin: %v", err)
	}
	if rows, err := (PinPlaces{}).Rows(""); err != nil || len(rows) != 0 {
		t.Errorf("before any pin: %v, %v", rows, err)
	}
	s, err := surface.ParseDump([]byte(`{"initialize":{"serverInfo":{"name":"s","version":"1"}}}`), surface.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	files, err := PinFiles()
	if err != nil {
		t.Fatal(err)
	}
	db := Database(filepath.Join(dir, "pellucid.db"))
	kept, err := OpenPins(t.Context(), db, true)
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Close()
	for _, x := range []struct {
		store        surface.PinStore
		server, name string
	}{{files, "stdio:1", "clock"}, {files, "stdio:2", "clock"}, {files, "stdio:3", "files"}, {kept, "stdio:3", "files"}} {
		if err := surface.NewPins(x.store, nil).Named(x.name).Pin(t.Context(), x.server, x.server, s); err != nil {
			t.Fatal(err)
		}
	}
	for _, x := range []struct {
		places     PinPlaces
		name, want string // servers and places of the rows, or a part of the error
	}{
		{PinPlaces{}, "", "stdio:1 files, stdio:2 files, stdio:3 files, stdio:3 database"},
		{PinPlaces{Files: true}, "", "stdio:1 files, stdio:2 files, stdio:3 files"},
		{PinPlaces{Db: db}, "", "stdio:3 database"},
		{PinPlaces{}, "clock", "stdio:1 files, stdio:2 files"},
		{PinPlaces{}, "stdio:3", "stdio:3 files, stdio:3 database"},
		{PinPlaces{}, "other", "no such pin"},
	} {
		rows, err := x.places.Rows(x.name)
		var got []string
		for _, r := range rows {
			got = append(got, r.Server+" "+r.In)
		}
		if is := strings.Join(got, ", "); is != x.want && (err == nil || !strings.Contains(err.Error(), x.want)) {
			t.Errorf("%+v, %q: %s, %v; want %s", x.places, x.name, is, err, x.want)
		}
	}
	for _, x := range []struct {
		places     PinPlaces
		name, want string
		usage      bool
	}{
		{PinPlaces{Files: true}, "", "stdio:1 stdio:2 stdio:3", false},
		{PinPlaces{Db: db}, "files", "stdio:3", false},
		{PinPlaces{Files: true}, "clock", "several servers are called clock: say which by its identity: stdio:1, stdio:2", true},
		{PinPlaces{}, "files", "say which one by --files or --db", true},
		{PinPlaces{}, "other", "no such pin", false},
	} {
		var got []string
		err := x.places.EachPin(x.name, func(pin *surface.Pin) error {
			got = append(got, pin.Server)
			return nil
		})
		slices.Sort(got)
		var coded *exit.Error
		if is := strings.Join(got, " "); is != x.want && (err == nil || !strings.Contains(err.Error(), x.want)) || errors.As(err, &coded) && (coded.Code == exit.Usage) != x.usage || coded == nil && x.usage {
			t.Errorf("%+v, %q: %s, %v; want %s", x.places, x.name, is, err, x.want)
		}
	}
}

// TestPinsAndVerdicts: files unless a database is named, and a database is made only where
// that is asked for.
func TestPinsAndVerdicts(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PELLUCID_STATE", dir)
	db := Database(filepath.Join(dir, "a.db"))
	for _, x := range []struct {
		db          Database
		files, make bool
		want        string
	}{
		{"", true, true, "*pinfile.Store"},
		{db, true, false, "<nil>"},
		{"", false, false, "<nil>"},
		{db, true, true, "*storage.Store"},
		{db, false, false, "*storage.Store"},
	} {
		pins, verdicts, done, err := PinsAndVerdicts(t.Context(), x.db, x.files, x.make)
		if err != nil {
			t.Fatal(err)
		}
		done()
		if a, b := fmt.Sprintf("%T", pins), fmt.Sprintf("%T", verdicts); a != x.want || b != x.want {
			t.Errorf("%+v: %s and %s", x, a, b)
		}
	}
	t.Setenv("PELLUCID_STATE", filepath.Join(dir, "a.db"))
	if pins, verdicts, _, err := PinsAndVerdicts(t.Context(), "", true, true); err == nil || pins != nil || verdicts != nil {
		t.Errorf("no directory: %v, %v, %v", pins, verdicts, err)
	}
}
