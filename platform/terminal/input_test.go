// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestOpenDir: a directory is opened; what is none is named, quoted, and refused.
func TestOpenDir(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "a\u202efile")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if list, err := fs.ReadDir(d, "."); err != nil || len(list) != 1 {
		t.Errorf("%v, %v", list, err)
	}
	none := filepath.Join(dir, "none")
	_, missing := os.Stat(none)
	for name, want := range map[string]string{file: "not a directory", none: WithoutPath(missing).Error()} {
		if _, err := OpenDir(name); err == nil || !strings.HasSuffix(err.Error(), ": "+want) || !strings.HasPrefix(err.Error(), `open "`) || strings.Contains(err.Error(), "\u202e") {
			t.Errorf("%+q: %v", name, err)
		}
	}
}

// TestMoment: a time, or how long before now it is.
func TestMoment(t *testing.T) {
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	for s, want := range map[string]time.Time{"": {}, "90m": now.Add(-90 * time.Minute), "7d": now.AddDate(0, 0, -7), "99999d": now.Add(-maxDays * 24 * time.Hour), "2026-03-04T05:06:07Z": now} {
		if got, err := Moment("--since", s, now); err != nil || !got.Equal(want) {
			t.Errorf("%q: %v, %v", s, got, err)
		}
	}
	for _, s := range []string{"yesterday", "2026-03-04", "\x1b", "d", "-1d", "1.5d", "99999999999d"} {
		if _, err := Moment("--since", s, now); err == nil || err.Error() != "--since: want a time as RFC 3339 writes it, or how long ago it is, as in 90m or 7d" {
			t.Errorf("%q: %v", s, err)
		}
	}
}

// TestWriteJSONLines: a line for each element, and hidden characters as escapes.
func TestWriteJSONLines(t *testing.T) {
	var b strings.Builder
	if err := WriteJSONLines(&b, []string{"a", "b\u202e"}, func(s *string) []string { return []string{*s} }); err != nil || b.String() != "[\"a\"]\n[\"b\\u202e\"]\n" {
		t.Errorf("%+q, %v", b.String(), err)
	}
	if err := WriteJSONLines(&b, []chan int{nil}, func(c *chan int) chan int { return *c }); err == nil {
		t.Error("what is no JSON was written")
	}
}
