// SPDX-License-Identifier: Apache-2.0

package datatest

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// maxRow bounds one row, in bytes.
const maxRow = 16 << 20

// ErrAbsent says that there is no such collection on this machine.
var ErrAbsent = errors.New("corpora: no data: set " + Env + " to the folder that holds corpora/")

// CorporaDir returns the folder of the test data that holds corpora; root is the root of
// the repository. The error is ErrAbsent.
func CorporaDir(root string) (string, error) {
	path, err := Find(root, "corpora")
	if err != nil {
		return "", ErrAbsent
	}
	return filepath.Dir(path), nil
}

// A Row is one attack or benign text of a collection. A collection is a file
// corpora/NAME.jsonl.gz of the test data; a line is an object with the members id, kind
// ("attack" or "benign"), family and text, and may have licence and notes.
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

// Name returns the name of a collection: its file without folder and extension.
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
		return fmt.Errorf("corpora: open %q: %w", filepath.Base(path), err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return fmt.Errorf("corpora: %q: %w", filepath.Base(path), err)
	}
	if err := readRows(z, yield); err != nil {
		return fmt.Errorf("corpora: %q: %w", filepath.Base(path), err)
	}
	return nil
}

func readRows(r io.Reader, yield func(Row) error) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 64<<10), maxRow)
	for n := 1; lines.Scan(); n++ {
		var row struct {
			ID, Kind, Family, Licence, Notes string
			Text                             *string
		}
		// Published rows hold lone surrogates where their authors cut text; encoding/json reads them as U+FFFD.
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			return fmt.Errorf("row %d: %w", n, err)
		}
		if row.Text == nil || row.Kind != "attack" && row.Kind != "benign" {
			return fmt.Errorf("row %d: no text, or a kind that is neither attack nor benign", n)
		}
		if err := yield(Row{row.ID, row.Kind == "attack", row.Family, row.Licence, *row.Text, row.Notes}); err != nil {
			return fmt.Errorf("row %d: %w", n, err)
		}
	}
	return lines.Err()
}
