// SPDX-License-Identifier: Apache-2.0

package privacy

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// TestPrivacy: what is made is for its owner alone, and a file that is there keeps its content, its mode and its
// access list.
func TestPrivacy(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	if err := errors.Join(os.Mkdir(dir, 0o700), Restrict(dir)); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "a")
	f, err := OpenFile(name, os.O_RDWR|os.O_CREATE)
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(f, "one")
	f.Close()
	for _, path := range []string{dir, name} {
		if how, err := Exposure(path); how != "" || err != nil {
			t.Errorf("%s %s, %v", path, how, err)
		}
	}
	expose(t, name)
	how, err := Exposure(name)
	if how == "" || err != nil {
		t.Errorf("a file that everyone may read: %q, %v", how, err)
	}
	if f, err = OpenFile(name, os.O_RDWR|os.O_CREATE); err != nil {
		t.Fatal(err)
	}
	b, _ := io.ReadAll(f)
	f.Close()
	if again, _ := Exposure(name); again != how || string(b) != "one" {
		t.Errorf("opened again: %q, it %s", b, again)
	}
	if _, err := OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL); !errors.Is(err, fs.ErrExist) {
		t.Errorf("made again: %v", err)
	}
	if _, err := OpenFile(filepath.Join(dir, "none"), os.O_RDONLY); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that does not exist: %v", err)
	}
	if err := WriteFile(name, []byte("2")); err != nil {
		t.Fatal(err)
	}
	if b, _ := os.ReadFile(name); string(b) != "2" {
		t.Errorf("written: %q", b)
	}
	expose(t, dir)
	if how, err := Exposure(dir); how == "" || err != nil {
		t.Errorf("a directory that everyone may read: %q, %v", how, err)
	}
	if _, err := Exposure(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
}
