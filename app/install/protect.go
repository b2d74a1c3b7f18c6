// SPDX-License-Identifier: Apache-2.0

package install

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/app/local"
	"github.com/pellucid-mcp/pellucid/boundary/protect"
	"github.com/pellucid-mcp/pellucid/platform/login"
	"github.com/pellucid-mcp/pellucid/platform/state"
)

// ProtectOptions has clients start this program, and keeps the records of what their files
// were in the state directory.
func ProtectOptions(skip []string, dangerouslyForce bool) (protect.Options, error) {
	self, err := os.Executable()
	if err != nil {
		return protect.Options{}, fmt.Errorf("protect: find this program: %w", err)
	}
	dir, err := local.OpenState()
	if err != nil {
		return protect.Options{}, err
	}
	binary := stable(self, dir.Path())
	beside := binary
	if binary == copyOf(dir.Path()) { // KeepCopy makes both
		beside = self
	}
	client := ""
	if _, err := os.Stat(clientBeside(beside)); err == nil {
		client = clientBeside(binary)
	}
	return protect.Options{Binary: binary, Client: client, Records: filepath.Join(dir.Path(), "protect"), Skip: skip, DangerouslyForce: dangerouslyForce,
		Ask: loggedIn(login.OpenStore(dir)), Login: "pellucid login NAME"}, nil
}

// loggedIn says to which servers the operator has logged in: wrap sends the tokens of these.
func loggedIn(store *login.Store) func(url string) protect.Login {
	return func(url string) protect.Login {
		if _, err := login.ParseServer(url); err != nil {
			return protect.Unknown
		}
		if l, err := store.Get(url, ""); err != nil || !l.Usable(time.Now()) {
			return protect.Unknown
		}
		return protect.LoggedIn
	}
}

// stable is the path of this program that an upgrade leaves in place. A package manager keeps
// each version in a directory of its own, and a link to the current one in the path; npx and
// uvx keep it in a cache, which they empty: there it is the copy that KeepCopy makes.
func stable(self, dir string) string {
	real, err := filepath.EvalSymlinks(self)
	if err != nil {
		return self
	}
	if inCache(real) {
		return copyOf(dir)
	}
	for _, name := range []string{os.Args[0], filepath.Base(self)} {
		found, err := exec.LookPath(name)
		if err != nil || !filepath.IsAbs(found) || inCache(found) {
			continue
		}
		if target, err := filepath.EvalSymlinks(found); err == nil && target == real {
			return found
		}
	}
	return self
}

// copyOf is where the copy of this program is.
func copyOf(dir string) string {
	name := "pellucid"
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	return filepath.Join(dir, "bin", name)
}

// inCache reports whether a path lies in a cache of npx, uvx or pipx.
func inCache(path string) bool {
	path = filepath.ToSlash(path)
	for _, part := range []string{"/_npx/", "/archive-v", "/uv/builds-v", "/pipx/.cache/"} {
		if strings.Contains(path, part) {
			return true
		}
	}
	return false
}

// clientBeside is the path of pellucid-hook in the folder of the program.
func clientBeside(program string) string {
	return strings.TrimSuffix(program, ".exe") + "-hook" + filepath.Ext(program)
}

// KeepCopy copies this program, and pellucid-hook, into the state directory where clients are to start it from
// there. A copy of another version is replaced: clients start the new one next time.
func KeepCopy(o protect.Options) error {
	self, err := os.Executable()
	if err != nil || o.Binary != copyOf(filepath.Dir(o.Records)) || o.Binary == self {
		return err
	}
	if err := keepCopy(self, o.Binary); err != nil || o.Client == "" {
		return err
	}
	return keepCopy(clientBeside(self), o.Client)
}

func keepCopy(from, to string) error {
	f, err := os.Open(from)
	if err != nil {
		return fmt.Errorf("protect: copy this program: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	if old, errOld := os.ReadFile(to); err == nil && errOld == nil && bytes.Equal(old, b) {
		return nil // a client may be running it
	}
	if err == nil {
		err = os.MkdirAll(filepath.Dir(to), 0o700)
	}
	if err == nil {
		err = state.Replace(to, b, func(tmp *os.File) error { return errors.Join(tmp.Chmod(0o700), tmp.Sync(), state.Vacate(to)) })
	}
	if err != nil {
		return fmt.Errorf("protect: copy this program, which lies in a cache that is emptied: %w", err)
	}
	return nil
}
