// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/pellucid-mcp/pellucid/platform/state"
)

// Dir is a Target that is a directory.
type Dir string

var _ Target = Dir("")

func (d Dir) file(path string) string { return filepath.Join(string(d), filepath.FromSlash(path)) }

// Get implements Target.
func (d Dir) Get(_ context.Context, path string, limit int64) ([]byte, string, error) {
	f, err := os.Open(d.file(path))
	if err != nil {
		return nil, "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(b)) > limit {
		err = fmt.Errorf("mirror: the file has more than %d bytes", limit)
	}
	return b, "", err
}

// Has implements Target.
func (d Dir) Has(_ context.Context, path string) (bool, error) {
	info, err := os.Stat(d.file(path))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && info.Mode().IsRegular(), err
}

// Put implements Target. A reader sees the old file or the new one, whole.
func (d Dir) Put(_ context.Context, path string, data []byte, _, _ string) error {
	name := d.file(path)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return state.Replace(name, data, func(f *os.File) error { return f.Chmod(0o644) })
}

// Replace implements Target.
func (d Dir) Replace(ctx context.Context, path string, data []byte, contentType, cacheControl, _ string) error {
	return d.Put(ctx, path, data, contentType, cacheControl)
}

// Delete implements Target.
func (d Dir) Delete(_ context.Context, path string) error {
	if err := os.Remove(d.file(path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	// An empty folder NNN.p is of no use.
	_ = os.Remove(filepath.Dir(d.file(path)))
	return nil
}
