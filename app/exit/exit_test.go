// SPDX-License-Identifier: Apache-2.0

package exit

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"testing"
)

// TestUnwritten: a reader of standard output that has gone is no news; a full disk is.
func TestUnwritten(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	r.Close()
	_, gone := w.Write([]byte("x"))
	for _, c := range []struct {
		path  string
		cause error
		want  string
	}{
		{os.Stdout.Name(), errors.Unwrap(gone), ""},
		{os.Stdout.Name(), io.ErrShortWrite, "standard output cannot be written: short write"},
		{"other", io.ErrShortWrite, "write other: short write"},
	} {
		got := Unwritten(&fs.PathError{Op: "write", Path: c.path, Err: c.cause})
		if got == nil || !strings.HasPrefix(got.Error(), c.want) || c.want == "" && got.Error() != "" {
			t.Errorf("%s: %v: %q, want %q", c.path, c.cause, got, c.want)
		}
	}
}
