// SPDX-License-Identifier: Apache-2.0

package state

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/pellucid-mcp/pellucid/platform/privacy"
)

// Sub returns the directory of that name in this one, making it on first use.
func (d *Dir) Sub(name string) (*Dir, error) {
	path, err := d.file(name)
	if err != nil {
		return nil, err
	}
	return OpenAt(path)
}

// Has reports whether there is a file or directory of that name.
func (d *Dir) Has(name string) bool {
	path, err := d.file(name)
	if err != nil {
		return false
	}
	_, err = os.Lstat(path)
	return err == nil
}

// ErrTooLong: a file is longer than whoever reads it expects.
var ErrTooLong = errors.New("state: file too long")

// Read returns at most limit bytes of a file: all of it, or an error that wraps
// ErrTooLong and the beginning. It wraps fs.ErrNotExist where the file does not exist, and
// ErrUnsafe where another user may read or write it.
func (d *Dir) Read(name string, limit int64) ([]byte, error) {
	path, err := d.file(name)
	if err != nil {
		return nil, err
	}
	f, err := openShared(path, os.O_RDONLY)
	if err != nil {
		return nil, fmt.Errorf("state: read: %w", err)
	}
	defer f.Close()
	if _, err := private(f); err != nil {
		return nil, fmt.Errorf("state: read: %w", err)
	}
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("state: read: %w", err)
	case int64(len(b)) > limit:
		return b[:limit], fmt.Errorf("%w: %q has more than %d bytes", ErrTooLong, path, limit)
	}
	return b, nil
}

// Write puts a file into place, whole and durable: whoever reads it meanwhile, and
// whatever happens, finds the old one or the new.
func (d *Dir) Write(name string, b []byte) error {
	path, err := d.file(name)
	if err != nil {
		return err
	}
	if err := Replace(path, b, nil); err != nil {
		return fmt.Errorf("state: write: %w", d.remedy(err))
	}
	return nil
}

// remedy adds to an error what an operator can do about a directory of another user, or one that is read-only.
func (d *Dir) remedy(err error) error {
	if !errors.Is(err, fs.ErrPermission) && !errors.Is(err, syscall.EROFS) {
		return err
	}
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		err = pe.Err // the name of a temporary file says nothing
	}
	return fmt.Errorf("this user cannot use directory %+q: %w: run pellucid as the user that owns it, or name another one in PELLUCID_STATE", d.path, err)
}

// Writable returns an error, with its remedy, where no file can be made in the directory.
func (d *Dir) Writable() error {
	f, err := os.CreateTemp(d.path, ".new-*")
	if err != nil {
		return fmt.Errorf("state: %w", d.remedy(err))
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// Replace writes a file for its owner alone, in the place of the file at path if there is
// one. At every moment, a crash included, path is the old file or the whole new one. last,
// if not nil, gets the new file when it is written: it may change its mode and owner, and an
// error of it leaves the old file. Errors of last are returned as they are.
func Replace(path string, content []byte, last func(*os.File) error) error {
	return put(path, content, last, replace)
}

// put writes a file beside path, and has into give it that name.
func put(path string, content []byte, last func(*os.File) error, into func(tmp, path string) error) error {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, ".new-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // where it was not renamed
	err = privacy.Restrict(f.Name())
	if err == nil {
		_, err = f.Write(content)
	}
	if err = errors.Join(err, f.Sync()); err == nil && last != nil {
		err = last(f)
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = into(f.Name(), path)
	}
	if err == nil {
		err = syncDir(dir)
	}
	return err
}

// Remove removes a file, if there is one.
func (d *Dir) Remove(name string) error {
	path, err := d.file(name)
	if err != nil {
		return err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("state: remove: %w", err)
	}
	return nil
}

// Names are those of the directory's files, in order, without what is no file of this
// package's making.
func (d *Dir) Names() ([]string, error) {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return nil, fmt.Errorf("state: list: %w", err)
	}
	var names []string
	for _, e := range entries {
		if _, err := d.file(e.Name()); err == nil && e.Type().IsRegular() {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// Lock waits until no other process, nor another Lock of this one, holds the name. It
// is free again when it is closed, and when the process ends.
func (d *Dir) Lock(name string) (io.Closer, error) { return d.lock(name, true) }

// TryLock is Lock without waiting. It returns the file with that name.
func (d *Dir) TryLock(name string) (*os.File, error) { return d.lock(name, false) }

func (d *Dir) lock(name string, wait bool) (*os.File, error) {
	path, err := d.file(name)
	if err != nil {
		return nil, err
	}
	held, err := lock(path, wait)
	if err != nil {
		return nil, fmt.Errorf("state: lock: %w", err)
	}
	return held, nil
}

// File is the path of a file, for messages to a person.
func (d *Dir) File(name string) string { return filepath.Join(d.path, name) }
