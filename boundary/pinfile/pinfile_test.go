// SPDX-License-Identifier: Apache-2.0

package pinfile

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pellucid-mcp/pellucid/boundary/surface"
	"github.com/pellucid-mcp/pellucid/boundary/surface/pintest"
	"github.com/pellucid-mcp/pellucid/platform/state"
)

var ctx = context.Background()

// The test binary plays another process that decides.
const stateVariable = "PINFILE_TEST_STATE"

func TestMain(m *testing.M) {
	if dir := os.Getenv(stateVariable); dir != "" {
		if err := count(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

const counted = 50

// count adds to a number that is kept as a pin, again where somebody was faster.
func count(dir string) error {
	d, err := state.OpenAt(dir)
	if err != nil {
		return err
	}
	s, err := Open(d)
	if err != nil {
		return err
	}
	for n := 0; n < counted; {
		b, version, err := s.LoadPin(ctx, "counter")
		if err != nil {
			return err
		}
		var is int
		_, _ = fmt.Sscan(string(b), &is)
		switch err := s.SavePin(ctx, "counter", fmt.Append(nil, is+1), version, nil); {
		case err == nil:
			n++
		case !errors.Is(err, surface.ErrConflict):
			return err
		}
	}
	return nil
}

func open(t testing.TB, dir string) *Store {
	t.Helper()
	d, err := state.OpenAt(dir)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Open(d)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestRecords(t *testing.T) {
	dir := t.TempDir()
	pintest.Records(t, func() surface.PinStore { return open(t, dir) })
}

func TestRace(t *testing.T) {
	dir := t.TempDir()
	pintest.Race(t, func() surface.PinStore { return open(t, dir) })
}

// TestNames: any name is kept, of whatever characters a file's cannot have, beside a
// record longer than what the version is read from; a ledger is not kept here.
func TestNames(t *testing.T) {
	s := open(t, t.TempDir())
	long := strings.Repeat("c", maxHead+1)
	for _, server := range []string{"files", "Files", "../caf\u00e9 '?\n"} {
		for version, record := range []string{"a", long} {
			if got, err := s.PinVersion(ctx, server); err != nil || got != int64(version) {
				t.Errorf("version of %q: %d, %v; want %d", server, got, err, version)
			}
			if err := s.SavePin(ctx, server, []byte(record), int64(version), nil); err != nil {
				t.Errorf("save %q: %v", server, err)
			}
		}
		if b, v, err := s.LoadPin(ctx, server); err != nil || string(b) != long || v != 2 {
			t.Errorf("load %q: %.10q at %d, %v", server, b, v, err)
		}
	}
	if got, err := s.ListPins(ctx); err != nil || !slices.Equal(got, []string{"../caf\u00e9 '?\n", "Files", "files"}) {
		t.Errorf("list %q, %v", got, err)
	}
	if err := s.DropPin(ctx, "files", nil); err != nil {
		t.Error(err)
	}
	if got, err := s.PinVersion(ctx, "files"); err != nil || got != 0 {
		t.Errorf("version of what was dropped: %d, %v", got, err)
	}
	for _, server := range []string{"", "\xff", strings.Repeat("x", maxName+1)} {
		if err := s.SavePin(ctx, server, nil, 0, nil); !errors.Is(err, errName) {
			t.Errorf("%.10q: %v", server, err)
		}
	}
	if err := s.SavePin(ctx, "x", nil, 0, []byte("{}")); !errors.Is(err, errLedger) {
		t.Errorf("saved without its evidence: %v", err)
	}
	if err := s.DropPin(ctx, "Files", []byte("{}")); !errors.Is(err, errLedger) {
		t.Errorf("dropped without its evidence: %v", err)
	}
	if _, v, err := s.LoadPin(ctx, "Files"); err != nil || v != 2 {
		t.Errorf("at %d, %v", v, err)
	}
}

// TestProcesses: no decision of any process is lost.
func TestProcesses(t *testing.T) {
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const processes = 3
	var all sync.WaitGroup
	for range processes {
		all.Go(func() {
			cmd := exec.Command(self)
			cmd.Env = append(os.Environ(), stateVariable+"="+dir)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	all.Wait()
	b, version, err := open(t, dir).LoadPin(ctx, "counter")
	if err != nil || string(b) != fmt.Sprint(processes*counted) || version != processes*counted {
		t.Errorf("%s at %d, %v", b, version, err)
	}
	left, _ := filepath.Glob(filepath.Join(dir, "pins", ".new-*"))
	if len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// TestDamaged: a file that is no pin, or another server's, is never no pin.
func TestDamaged(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	name, _ := fileOf("files")
	path := filepath.Join(dir, "pins", name)
	if err := s.SavePin(ctx, "other", []byte("{}"), 0, nil); err != nil {
		t.Fatal(err)
	}
	otherName, _ := fileOf("other")
	other, err := os.ReadFile(filepath.Join(dir, "pins", otherName))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.SavePin(ctx, "files", []byte(`{"a":1}`), 0, nil); err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	line, _, _ := strings.Cut(string(good), "\n")
	for what, b := range map[string]string{
		"empty": "", "cut in its first line": string(good[:10]), "cut": string(good[:len(good)-3]), "no record": line + "\n",
		"without its end": string(good[:len(good)-1]), "more": string(good) + "x\n",
		"changed": strings.Replace(string(good), `{"a":1}`, `{"a":2}`, 1), "another server's": string(other),
		"another version": strings.Replace(string(good), `"version":1`, `"version":0`, 1),
		"twice":           strings.Replace(string(good), `"version":1`, `"version":1,"version":2`, 1),
	} {
		t.Run(what, func(t *testing.T) {
			if err := os.WriteFile(path, []byte(b), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, _, err := s.LoadPin(ctx, "files"); !errors.Is(err, errDamaged) || !strings.Contains(err.Error(), name) {
				t.Errorf("load: %v", err)
			}
			if err := s.SavePin(ctx, "files", []byte("{}"), 0, nil); !errors.Is(err, errDamaged) {
				t.Errorf("save: %v", err)
			}
			if err := surface.NewPins(s, nil).Pin(ctx, "files", "t", &surface.Surface{}); !errors.Is(err, errDamaged) {
				t.Errorf("pin: %v", err)
			}
		})
	}
	if runtime.GOOS != "windows" {
		if err := os.WriteFile(path, good, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, _, err := s.LoadPin(ctx, "files"); !errors.Is(err, state.ErrUnsafe) {
			t.Errorf("open to others: %v", err)
		}
	}
}

func TestVerdicts(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	pintest.Verdicts(t, s)
	key := surface.CacheKey(surface.Digest{1}, "model", "stdio")
	// What cannot be a verdict is none.
	path := filepath.Join(dir, "verdicts", verdictName(key))
	if err := os.WriteFile(path, make([]byte, maxVerdict+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := s.GetVerdict(ctx, key); err != nil || got != nil {
		t.Errorf("too long: %d bytes, %v", len(got), err)
	}
}

// FuzzParse: whatever a file holds, nothing is believed of it that was not written.
func FuzzParse(f *testing.F) {
	s := open(f, f.TempDir())
	name, _ := fileOf("files")
	if err := s.SavePin(ctx, "files", []byte(`{"a":1}`), 0, nil); err != nil {
		f.Fatal(err)
	}
	good, err := s.pins.Read(name, maxFile)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add(good[:20])
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := s.pins.Write(name, b); err != nil {
			t.Fatal(err)
		}
		record, version, err := s.LoadPin(ctx, "files")
		if err == nil && record != nil {
			if err := s.SavePin(ctx, "files", record, version, nil); err != nil {
				t.Errorf("cannot be saved again: %v", err)
			}
		}
		if err != nil && record != nil {
			t.Error("both a record and an error")
		}
	})
}

// TestOtherFormat: a pin that a later release has written is left alone, and the error does not
// advise to remove it.
func TestOtherFormat(t *testing.T) {
	dir, err := state.OpenAt(filepath.Join(t.TempDir(), "state"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.SavePin(ctx, "files", []byte("{}"), 0, nil); err != nil {
		t.Fatal(err)
	}
	name, err := fileOf("files")
	if err != nil {
		t.Fatal(err)
	}
	path := s.pins.File(name)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	newer := strings.Replace(string(b), Format, formatName+"2\u202e", 1)
	if err := os.WriteFile(path, []byte(newer), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.LoadPin(ctx, "files"); !errors.Is(err, errOtherFormat) || errors.Is(err, errDamaged) || strings.Contains(err.Error(), "remove") || strings.Contains(err.Error(), "\u202e") {
		t.Error(err)
	}
	if err := s.SavePin(ctx, "files", []byte("[]"), 1, nil); !errors.Is(err, errOtherFormat) {
		t.Error(err)
	}
	if after, err := os.ReadFile(path); err != nil || string(after) != newer {
		t.Errorf("%s, %v", after, err)
	}
}
