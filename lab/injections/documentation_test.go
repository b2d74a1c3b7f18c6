// SPDX-License-Identifier: Apache-2.0

package injections

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestDocuments(t *testing.T) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for _, f := range [][2]string{
		{"package/docs/de/a/b.md", "---\ntitle: x\n---\n\nEin Absatz mit genug Text.\r\n\r\nkurz\n\nNoch ein Absatz mit Text.\n"},
		{"package/docs/en-GB/a.md", "A variant of a language that is there already."},
		{"package/docs/fr/a.md", "court"},
		{"package/src/index.md", "A page that is no documentation."},
	} {
		if err := w.WriteHeader(&tar.Header{Name: f[0], Mode: 0o644, Size: int64(len(f[1]))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(f[1])); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(t.TempDir(), "intlayer-docs-1.tgz")
	if err := errors.Join(w.Close(), z.Close(), os.WriteFile(path, b.Bytes(), 0o600)); err != nil {
		t.Fatal(err)
	}
	got, err := documents(path)
	if err != nil || len(got) != 1 || len(got["de"]) != 1 || !slices.Equal(got["de"][0], []string{"Ein Absatz mit genug Text.", "Noch ein Absatz mit Text."}) {
		t.Errorf("%q, %v", got, err)
	}
	if err := os.WriteFile(path, b.Bytes()[:b.Len()/2], 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := documents(path); err == nil {
		t.Error("a damaged package is taken")
	}
}
