// SPDX-License-Identifier: Apache-2.0

package sources

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/text/scrub"
)

// TestLookUp: what is found, what is missing, and what the table may lack, of packages
// that hold what this test says.
func TestLookUp(t *testing.T) {
	table := []scrub.Token{
		{Text: "<|im_start|>", Family: "f", Package: "pypi one 1.0 one/chat.py"},
		{Text: "[INST]", Family: "f", Package: "pypi one 1.0 one/chat.py"}, // the file holds its name
		{Text: "<|absent|>", Family: "f", Package: "pypi one 1.0 one/chat.py"},
		{Text: "<|other_file|>", Family: "f", Package: "pypi one 1.0 one/chat.py"},
		{Text: "<|im_end|>", Family: "g", Package: "pypi two 2.0 two.py"}, // cannot be downloaded
		{Text: "<s>", Family: "h", Package: "read in public texts"},
	}
	var out strings.Builder
	missing, err := lookUpAll(table, t.TempDir(), &out, func(_ string, p pkg) (map[string][]byte, error) {
		if p == (pkg{name: "sglang"}) {
			return map[string][]byte{
				"sglang/srt/function_call/new.py": []byte(`x = "<new_tool_begin>" + '<tool_call>' + "<ns|think>"`),
				"sglang/srt/other.py":             []byte(`"<other_thing>"`),
			}, nil
		}
		if p != (pkg{"one", "1.0"}) {
			return nil, errors.New("no such package")
		}
		return map[string][]byte{
			"one/chat.py":           []byte(`"<|im_start|>" + "INST"`),
			"one/other.py":          []byte("<|other_file|>"),
			"one/templates/a.jinja": []byte("<start_of_thing> <|im_start|> <start_of_thing>"),
			"one/b.jinja":           []byte("<end_of_thing>"), // not among templates
		}, nil
	})
	if err != nil || missing != 3 {
		t.Errorf("%d missing, %v", missing, err)
	}
	want := `no package: h: <s>
not found: f: <|absent|> in one/chat.py
not found: f: <|other_file|> in one/chat.py
one 1.0: 2 of 4 spellings found
not in the table: "<start_of_thing>" in a.jinja of one
not read: two 2.0: no such package
not read: mlx-lm: no such package
not in the table: "<new_tool_begin>" in new.py of sglang
not read: vllm: no such package
not read: xgrammar: no such package
`
	if out.String() != want {
		t.Errorf("%s\nwant\n%s", out.String(), want)
	}
}

// TestTable: every token of the table that names a package names it so that LookUp can
// find it.
func TestTable(t *testing.T) {
	var out strings.Builder
	n := 0
	if _, err := lookUpAll(scrub.Tokens(), t.TempDir(), &out, func(string, pkg) (map[string][]byte, error) {
		n++
		return nil, nil
	}); err != nil {
		t.Fatal(err)
	}
	if n == 0 {
		t.Error("the table names no package")
	}
	for _, token := range scrub.Tokens() {
		if _, _, _, ok := place(token); !ok && strings.HasPrefix(token.Package, "pypi") {
			t.Errorf("%q: the package cannot be read: %q", token.Text, token.Package)
		}
	}
}

func TestUnpack(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, make func(io.Writer) error) string {
		t.Helper()
		var b bytes.Buffer
		if err := make(&b); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	wheel := write("a.whl", func(w io.Writer) error {
		z := zip.NewWriter(w)
		f, err := z.Create("a/b.py")
		if err == nil {
			_, err = io.WriteString(f, "text")
		}
		return errors.Join(err, z.Close())
	})
	source := write("a.tar.gz", func(w io.Writer) error {
		z := gzip.NewWriter(w)
		a := tar.NewWriter(z)
		err := a.WriteHeader(&tar.Header{Name: "a/b.py", Size: 4, Mode: 0o600})
		if err == nil {
			_, err = io.WriteString(a, "text")
		}
		return errors.Join(err, a.Close(), z.Close())
	})
	for _, path := range []string{wheel, source} {
		if files, err := Unpack(path); err != nil || len(files) != 1 || string(files["a/b.py"]) != "text" {
			t.Errorf("%s: %q, %v", filepath.Base(path), files, err)
		}
	}
	for _, name := range []string{"broken.whl", "broken.tar.gz"} {
		path := write(name, func(w io.Writer) error { _, err := io.WriteString(w, "neither"); return err })
		if _, err := Unpack(path); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}
