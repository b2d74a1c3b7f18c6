// SPDX-License-Identifier: Apache-2.0

// Package state keeps Pellucid's own files: where they lie, who may read them, keys and journals.
//
// The directory is, in this order: $PELLUCID_STATE; $XDG_STATE_HOME/pellucid;
// %USERPROFILE%\.pellucid on Windows; ~/Library/Application Support/pellucid on
// macOS; ~/.local/state/pellucid elsewhere. It has mode 0700 and its files 0600. On Windows, only
// the user and the system have access to a directory that is made here, and to its files.
//
// Windows gives an app that it has as a package, and what the app starts, an AppData of its own:
// a terminal would not see there what a client's servers are recorded to have done.
package state

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/pellucid-mcp/pellucid/platform/privacy"
)

// ErrUnsafe is wrapped where another user could read or change what must be
// private. The error says what to do.
var ErrUnsafe = errors.New("state: unsafe permissions")

// Dir is an open state directory.
type Dir struct{ path string }

// Open finds the state directory and makes it if need be.
func Open() (*Dir, error) {
	p, err := locate(runtime.GOOS, os.Getenv, os.UserHomeDir)
	if err != nil {
		return nil, err
	}
	return OpenAt(p)
}

// OpenAt is Open for a given directory.
func OpenAt(path string) (*Dir, error) {
	fail := func(what string, err error) (*Dir, error) {
		if pe, ok := errors.AsType[*fs.PathError](err); ok {
			err = pe.Err
		}
		return nil, fmt.Errorf("state: cannot %s directory %+q: %w: PELLUCID_STATE may name another one", what, path, err)
	}
	_, missing := os.Stat(path)
	if err := os.MkdirAll(path, 0o700); err != nil {
		return fail("make", err)
	}
	if errors.Is(missing, fs.ErrNotExist) {
		if err := privacy.Restrict(path); err != nil {
			return fail("make", err)
		}
	}
	d, err := os.Open(path) // another user's is there, but not for us
	if err != nil {
		return fail("open", err)
	}
	defer d.Close()
	fi, err := d.Stat()
	if err != nil {
		return fail("open", err)
	}
	if !fi.IsDir() {
		return nil, fmt.Errorf("state: %q is not a directory", path)
	}
	if writable := fi.Mode().Perm() & 0o022; runtime.GOOS != "windows" && writable != 0 {
		return nil, fmt.Errorf("%w: directory %q can be changed by other users: run chmod 700 on it", ErrUnsafe, path)
	}
	return &Dir{path}, nil
}

func locate(goos string, getenv func(string) string, home func() (string, error)) (string, error) {
	if p := getenv("PELLUCID_STATE"); p != "" {
		return filepath.Abs(p)
	}
	// The XDG specification has relative paths ignored.
	if p := getenv("XDG_STATE_HOME"); filepath.IsAbs(p) {
		return filepath.Join(p, "pellucid"), nil
	}
	h, err := home()
	if err != nil {
		return "", fmt.Errorf("state: no home directory: set PELLUCID_STATE: %w", err)
	}
	switch goos {
	case "windows":
		return filepath.Join(h, ".pellucid"), nil
	case "darwin":
		return filepath.Join(h, "Library", "Application Support", "pellucid"), nil
	}
	return filepath.Join(h, ".local", "state", "pellucid"), nil
}

// Former is the directory of an earlier release, if anything is in it. It is no longer read.
func Former() string { return former(runtime.GOOS, os.Getenv) }

func former(goos string, getenv func(string) string) string {
	local := getenv("LOCALAPPDATA")
	if goos != "windows" || local == "" || getenv("PELLUCID_STATE") != "" {
		return ""
	}
	path := filepath.Join(local, "pellucid")
	if entries, err := os.ReadDir(path); err != nil || len(entries) == 0 {
		return ""
	}
	return path
}

// Path is the directory's path.
func (d *Dir) Path() string { return d.path }

// file is the path of a file of the directory. Names are the program's own.
func (d *Dir) file(name string) (string, error) {
	for i, c := range name {
		ok := c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || i > 0 && (c == '-' || c == '.' || c == '_')
		if !ok {
			return "", fmt.Errorf("state: file name %+q", name)
		}
	}
	if name == "" {
		return "", errors.New("state: no file name")
	}
	return filepath.Join(d.path, name), nil
}

// private checks that an open file is a plain one for its owner alone.
func private(f *os.File) (fs.FileInfo, error) {
	fi, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !fi.Mode().IsRegular() {
		return nil, fmt.Errorf("%q is not a regular file", f.Name())
	}
	if runtime.GOOS != "windows" && fi.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%w: %q is open to other users: run chmod 600 on it, and replace it if it is a key that they may have read", ErrUnsafe, f.Name())
	}
	return fi, nil
}
