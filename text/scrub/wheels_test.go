// SPDX-License-Identifier: Apache-2.0

package scrub

import (
	"archive/zip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestWheels: every text file of the packages in the folder PELLUCID_WHEELS comes back byte for
// byte once it has been defused and restored. A file of which something else was removed,
// as a hidden character, is counted apart.
func TestWheels(t *testing.T) {
	dir := os.Getenv("PELLUCID_WHEELS")
	if dir == "" {
		t.Skip("PELLUCID_WHEELS names no folder of wheels")
	}
	wheels, err := filepath.Glob(filepath.Join(dir, "*.whl"))
	if err != nil || len(wheels) == 0 {
		t.Fatalf("no wheels: %v", err)
	}
	s := compile(t, Policy{Profile: Faithful, MaxChars: maxSize})
	var files, defused, tokens, removed, left int
	var r Result
	for _, wheel := range wheels {
		z, err := zip.OpenReader(wheel)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range z.File {
			if f.UncompressedSize64 > 16<<20 {
				continue
			}
			in, err := f.Open()
			if err != nil {
				t.Fatal(err)
			}
			b, err := io.ReadAll(in)
			in.Close()
			if err != nil {
				t.Fatal(err)
			}
			text := string(b)
			if !utf8.ValidString(text) || strings.IndexByte(text, 0) >= 0 {
				continue
			}
			files++
			s.Scrub(text, &r)
			if r.Tokens > 0 {
				defused++
				tokens += r.Tokens
			}
			left += r.TokensLeft
			back, _ := Builtin().Restore(r.Clean.String())
			if back == text {
				continue
			}
			removed++
			for _, e := range r.Edits {
				if (e.Class == ControlToken || e.Class == RoleMarker) && e.Out == e.OutEnd {
					t.Logf("%s: %s: removed: %+q", filepath.Base(wheel), f.Name, text[e.Start:e.End])
				}
			}
			if !removesMore(r.Edits) {
				t.Errorf("%s: %s differs", filepath.Base(wheel), f.Name)
			}
		}
		z.Close()
	}
	t.Logf("%d files of %d wheels: %d hold %d tokens that are defused, and %d that are left; of %d something is removed", files, len(wheels), defused, tokens, left, removed)
}

// removesMore reports whether an edit is more than the defusing of a token.
func removesMore(events []Edit) bool {
	for _, e := range events {
		if e.Class != ControlToken && e.Class != RoleMarker || e.Out == e.OutEnd {
			return true
		}
	}
	return false
}
