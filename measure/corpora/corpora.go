// SPDX-License-Identifier: Apache-2.0

// Package corpora reads collections of attack and benign text.
//
// They are a folder of NAME.jsonl.gz files; a row has the members id, kind
// ("attack" or "benign"), family and text, and may have licence and notes. The
// collections themselves are not part of this repository.
package corpora

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pellucid-mcp/pellucid/measure/datadir"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// maxRow bounds one row, in bytes.
const maxRow = 16 << 20

// ErrAbsent says that there is no such collection on this machine.
var ErrAbsent = errors.New("corpora: no data: set " + datadir.Env + " to the folder that holds corpora/")

// Dir returns the folder of the test data, which holds corpora; root is that of the
// repository. The error is ErrAbsent.
func Dir(root string) (string, error) {
	path, err := datadir.Find(root, "corpora")
	if err != nil {
		return "", ErrAbsent
	}
	return filepath.Dir(path), nil
}

// A Row is one text of a collection.
type Row struct {
	ID      string
	Attack  bool
	Family  string
	Licence string
	Text    string
	Notes   string // how it was made
}

// Files lists the collections in the corpora folder of dir, in order of name.
func Files(dir string) ([]string, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "corpora", "*.jsonl.gz"))
	if err == nil && len(paths) == 0 {
		err = ErrAbsent
	}
	slices.Sort(paths)
	return paths, err
}

// Name returns what a collection is called: its file without folder and
// extension.
func Name(path string) string { return strings.TrimSuffix(filepath.Base(path), ".jsonl.gz") }

// Read calls yield with every row of the collection at path, until yield
// returns an error.
func Read(path string, yield func(Row) error) error {
	f, err := os.Open(path)
	if err != nil {
		var pe *fs.PathError
		if errors.As(err, &pe) {
			err = pe.Err
		}
		return fmt.Errorf("corpora: open %s: %w", finding.Quote(filepath.Base(path)), err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return fmt.Errorf("corpora: %s: %w", finding.Quote(filepath.Base(path)), err)
	}
	if err := readRows(z, yield); err != nil {
		return fmt.Errorf("corpora: %s: %w", finding.Quote(filepath.Base(path)), err)
	}
	return nil
}

func readRows(r io.Reader, yield func(Row) error) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 64<<10), maxRow)
	var doc strictjson.Doc
	for n := 1; lines.Scan(); n++ {
		// The published rows hold lone surrogates where their authors cut text.
		if err := doc.Reset(lines.Bytes(), strictjson.Limits{MendSurrogates: true}); err != nil {
			return fmt.Errorf("row %d: %w", n, err)
		}
		root := doc.Root()
		text := root.Get("text")
		kind := root.Get("kind").Text()
		if text.Kind() != '"' || kind != "attack" && kind != "benign" {
			return fmt.Errorf("row %d: no text, or a kind that is neither attack nor benign", n)
		}
		row := Row{
			ID:      strings.Clone(root.Get("id").Text()),
			Attack:  kind == "attack",
			Family:  strings.Clone(root.Get("family").Text()),
			Licence: strings.Clone(root.Get("licence").Text()),
			Text:    strings.Clone(text.Text()),
			Notes:   strings.Clone(root.Get("notes").Text()),
		}
		if err := yield(row); err != nil {
			return fmt.Errorf("row %d: %w", n, err)
		}
	}
	return lines.Err()
}
