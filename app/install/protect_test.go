// SPDX-License-Identifier: Apache-2.0

package install

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/pellucid-mcp/pellucid/app/local"
	"github.com/pellucid-mcp/pellucid/boundary/protect"
	"github.com/pellucid-mcp/pellucid/platform/login"
)

// TestStable: the path that clients are told stays good after an upgrade.
func TestStable(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("links are those of unix")
	}
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	program := func(parts ...string) string {
		path := filepath.Join(append([]string{top}, parts...)...)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte("#!"), 0o700)); err != nil {
			t.Fatal(err)
		}
		return path
	}
	cellar := program("Cellar", "pellucid", "1.2.3", "bin", "pellucid")
	link := filepath.Join(top, "brew", "bin", "pellucid")
	if err := errors.Join(os.MkdirAll(filepath.Dir(link), 0o700), os.Symlink(cellar, link)); err != nil {
		t.Fatal(err)
	}
	plain := program("opt", "my tools", "pellucid")
	npx := program(".npm", "_npx", "0123", "node_modules", "@pellucid", "linux-x64", "bin", "pellucid")
	uvx := program(".cache", "uv", "archive-v0", "abc", "bin", "pellucid")
	state := filepath.Join(top, "state")
	t.Setenv("PATH", filepath.Dir(npx)+string(os.PathListSeparator)+filepath.Dir(link))
	for self, want := range map[string]string{
		cellar:                                 link,  // the link moves with an upgrade, the directory goes
		plain:                                  plain, // what the path has is another program
		npx:                                    filepath.Join(state, "bin", "pellucid"),
		uvx:                                    filepath.Join(state, "bin", "pellucid"),
		filepath.Join(top, "gone", "pellucid"): filepath.Join(top, "gone", "pellucid"),
	} {
		if got := stable(self, state); self != cellar && got != want {
			t.Errorf("%s: %s, want %s", self, got, want)
		}
	}
	t.Setenv("PATH", filepath.Dir(link))
	if got := stable(cellar, state); got != link {
		t.Errorf("%s: %s, want %s", cellar, got, link)
	}
}

// TestKeepCopy: the program is copied where clients start a copy, and only there; a copy of
// another version is replaced.
func TestKeepCopy(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	o := protect.Options{Binary: copyOf(dir), Records: filepath.Join(dir, "protect")}
	for range 2 {
		if err := KeepCopy(o); err != nil {
			t.Fatal(err)
		}
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		want, errWant := os.Stat(self)
		got, errGot := os.Stat(o.Binary)
		if errWant != nil || errGot != nil || got.Size() != want.Size() || runtime.GOOS != "windows" && got.Mode().Perm() != 0o700 {
			t.Fatalf("%v, %v, %v", got, errWant, errGot)
		}
		if err := os.WriteFile(o.Binary, []byte("an older version"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	elsewhere := filepath.Join(t.TempDir(), "pellucid")
	if err := KeepCopy(protect.Options{Binary: elsewhere, Records: o.Records}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(elsewhere); err == nil {
		t.Error("a program was copied to where clients do not start a copy")
	}
}

// TestKeepCopyRunning: a copy that a client runs is replaced, and goes on. What is left of it goes with the next one.
func TestKeepCopyRunning(t *testing.T) {
	const runs = "PELLUCID_TEST_RUNS"
	if os.Getenv(runs) != "" {
		_, _ = io.Copy(io.Discard, os.Stdin)
		return
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "state")
	o := protect.Options{Binary: copyOf(dir), Records: filepath.Join(dir, "protect")}
	older := append(program, "of another version"...)
	replaceOlder := func(run bool) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Dir(o.Binary), 0o700), os.WriteFile(o.Binary, older, 0o700)); err != nil {
			t.Fatal(err)
		}
		if run {
			client := exec.Command(o.Binary, "-test.run=^"+t.Name()+"$")
			client.Env = append(os.Environ(), runs+"=1")
			stdin, err := client.StdinPipe()
			if err == nil {
				err = client.Start()
			}
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := errors.Join(stdin.Close(), client.Wait()); err != nil {
					t.Errorf("the client's program: %v", err)
				}
			}()
		}
		if err := KeepCopy(o); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(o.Binary); err != nil || info.Size() != int64(len(program)) {
			t.Errorf("%v, %v", info, err)
		}
	}
	replaceOlder(true)
	replaceOlder(false)
	if entries, err := os.ReadDir(filepath.Dir(o.Binary)); err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

// TestProtectLoggedIn: a remote server is put behind Pellucid once the operator has logged in to
// it, and not while the login is over, or is that of a principal.
func TestProtectLoggedIn(t *testing.T) {
	t.Setenv("PELLUCID_STATE", filepath.Join(t.TempDir(), "state"))
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	path := filepath.Join(t.TempDir(), "mcp.json")
	const file = `{"mcpServers": {"my docs": {"url": "https://docs.example/mcp"}}}`
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	dir, err := local.OpenState()
	if err != nil {
		t.Fatal(err)
	}
	store := login.OpenStore(dir)
	for _, x := range []struct {
		name  string
		login *login.Login
		want  protect.Effect
	}{
		{"no login", nil, protect.Skipped},
		{"of a principal", &login.Login{Server: "https://docs.example/mcp", Principal: "p", Access: "t"}, protect.Skipped},
		{"of another server", &login.Login{Server: "https://docs.example/other", Access: "t"}, protect.Skipped},
		{"over", &login.Login{Server: "https://docs.example/mcp", Access: "t", Over: true}, protect.Skipped},
		{"usable", &login.Login{Server: "https://docs.example/mcp", Access: "t"}, protect.Wrapped},
	} {
		if x.login != nil {
			if err := errors.Join(store.Prepare(login.File), store.Put(x.login, login.File)); err != nil {
				t.Fatal(err)
			}
		}
		o, err := ProtectOptions(nil, false)
		if err != nil {
			t.Fatal(err)
		}
		c, err := o.Protect(path, protect.Generic)
		if err != nil {
			t.Fatal(err)
		}
		if s := c.Servers[0]; s.Action != x.want {
			t.Errorf("%s: %s: %s", x.name, s.Action, s.Why)
		}
	}
}
