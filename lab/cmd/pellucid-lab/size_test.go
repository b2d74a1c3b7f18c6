// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"testing"
)

func TestModuleOf(t *testing.T) {
	modules := []string{"example.com/m", "example.com/a", "example.com/a/v2", "gopkg.in/b.v1"}
	for symbol, want := range map[string]string{
		"main.main": "example.com/m", "example.com/m/x.F": "example.com/m", "example.com/a.F": "example.com/a",
		"example.com/a/v2/x.(*T).M": "example.com/a/v2", "example.com/ab.F": "standard library", "gopkg.in/b%2ev1.F": "gopkg.in/b.v1",
		"slices.SortFunc[go.shape.struct { example.com/a.X int }]": "standard library", "type:.eq.example.com/a.T": "example.com/a", "runtime.main": "standard library",
	} {
		if got := moduleOf(symbol, modules); got != want {
			t.Errorf("%s: %s, want %s", symbol, got, want)
		}
	}
}

// TestSizes: the archive is what tar and gzip make of the file, and a limit is a limit.
func TestSizes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(path, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	size, archived, err := sizes(path)
	if err != nil || size != 1<<20 || archived < 500 || archived > 10_000 {
		t.Errorf("%d, %d, %v", size, archived, err)
	}
	if over("x", size, 1) == nil || over("x", size, 1.1) != nil || over("x", size, 0) != nil {
		t.Error("the limit does not hold")
	}
	var n counter
	z := gzip.NewWriter(io.MultiWriter(&n, &bytes.Buffer{}))
	if _, err := z.Write([]byte("x")); err != nil || z.Close() != nil || n == 0 {
		t.Errorf("%d, %v", n, err)
	}
}
