// SPDX-License-Identifier: Apache-2.0

package protect

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/pellucid-mcp/pellucid/platform/state"
)

// A file is a client's file as it was read.
type file struct {
	real string // absolute, links followed
	info fs.FileInfo
	src  []byte
}

// readFile reads the file at path, or the one that it is a link to: that one is
// replaced, and the link stays.
func readFile(path string) (*file, error) {
	abs, err := filepath.Abs(path)
	if err == nil {
		abs, err = filepath.EvalSymlinks(abs)
	}
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return nil, fmt.Errorf("protect: open %q: %w", path, pe.Err)
	} else if err != nil {
		return nil, fmt.Errorf("protect: %w", err)
	}
	before, err := os.Stat(abs)
	if err != nil {
		return nil, fmt.Errorf("protect: %w", err)
	}
	if !before.Mode().IsRegular() { // nor opened: a pipe would wait
		return nil, fmt.Errorf("protect: %q is not a regular file", abs)
	}
	if err := ours(before); err != nil {
		return nil, fmt.Errorf("protect: %q: %w", abs, err)
	}
	f, err := os.Open(abs)
	if err != nil {
		return nil, fmt.Errorf("protect: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("protect: %w", err)
	}
	if !os.SameFile(before, info) {
		return nil, fmt.Errorf("protect: %q: %w", abs, errChanged)
	}
	src, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("protect: %w", err)
	case len(src) > maxFile:
		return nil, fmt.Errorf("protect: %q is larger than %d bytes", abs, maxFile)
	}
	return &file{abs, info, src}, nil
}

// replace puts content in the place of the file, of the same mode and owner,
// unless the file is not any more what was read.
func (f *file) replace(content []byte) error {
	return state.Replace(f.real, content, func(tmp *os.File) error {
		if err := errors.Join(f.keepOwner(tmp), tmp.Chmod(f.info.Mode().Perm()), tmp.Sync()); err != nil {
			return err
		}
		// As late as can be: between this and the rename lies one system call.
		now, err := os.Lstat(f.real)
		if err != nil || !os.SameFile(now, f.info) || !now.ModTime().Equal(f.info.ModTime()) {
			return errChanged
		}
		src, err := os.ReadFile(f.real)
		if err != nil || !bytes.Equal(src, f.src) {
			return errChanged
		}
		return nil
	})
}
