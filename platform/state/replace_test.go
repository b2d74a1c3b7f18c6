// SPDX-License-Identifier: Apache-2.0

package state

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

func TestReplace(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "settings")
	errLast := errors.New("no")
	for _, c := range []struct {
		name, content string
		last          func(*os.File) error
		fails         error
		want          string
		mode          fs.FileMode
	}{
		{"refused where there is none", "one", func(*os.File) error { return errLast }, errLast, "", 0},
		{"new", "two", nil, nil, "two", 0o600},
		{"refused", "three", func(*os.File) error { return errLast }, errLast, "two", 0o600},
		{"another mode", "four", func(f *os.File) error { return f.Chmod(0o640) }, nil, "four", 0o640},
		{"its own mode again", "five", nil, nil, "five", 0o600},
	} {
		if err := Replace(path, []byte(c.content), c.last); err != c.fails {
			t.Errorf("%s: %v", c.name, err)
		}
		if got, _ := os.ReadFile(path); string(got) != c.want {
			t.Errorf("%s: the file has %q", c.name, got)
		}
		if info, err := os.Stat(path); err == nil && runtime.GOOS != "windows" && info.Mode() != c.mode {
			t.Errorf("%s: mode %v", c.name, info.Mode())
		}
		if left, _ := filepath.Glob(filepath.Join(dir, ".*")); len(left) > 0 {
			t.Errorf("%s: left behind: %v", c.name, left)
		}
	}
	if err := Replace(filepath.Join(dir, "none", "settings"), nil, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("in a directory that does not exist: %v", err)
	}
}
