// SPDX-License-Identifier: Apache-2.0

package deep

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/pellucid-mcp/pellucid/text/finding"
)

// A File is a model that lies in a file until the first text is judged. There is one of a digest in
// a process, however many configurations name it.
type File struct {
	path, digest string
	size         int64

	mu    sync.Mutex
	model *Model
}

// Loaded is a model that has been read.
func Loaded(m *Model) *File { return &File{digest: strings.Repeat("0", 64), model: m} }

var files struct {
	sync.Mutex
	known map[string]*File
}

// Find looks for the file at path. digest is the one it must have; "" stands for one of
// Published. A file that was not published is read once, to know that it can be.
func Find(path, digest string) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("deep: open %s: %w", finding.Quote(path), reason(err))
	}
	defer f.Close()
	h := sha256.New()
	n, err := io.Copy(h, io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("deep: read %s: %w", finding.Quote(path), reason(err))
	}
	got := hex.EncodeToString(h.Sum(nil))
	if err := known(got, digest); err != nil {
		return nil, err
	}
	if !slices.Contains(Published, got) {
		if _, err := Open(path, got); err != nil {
			return nil, err
		}
	}
	files.Lock()
	defer files.Unlock()
	if one := files.known[got]; one != nil {
		return one, nil
	}
	if files.known == nil {
		files.known = map[string]*File{}
	}
	one := &File{path: path, digest: got, size: n}
	files.known[got] = one
	return one, nil
}

// known reports whether a file that has the digest got may be read where want is configured.
func known(got, want string) error {
	switch {
	case want == "" && !slices.Contains(Published, got):
		return fmt.Errorf("%w: it has sha256:%s, which is no published file's; name the digest to use it", ErrDigest, got)
	case want != "" && want != got:
		return fmt.Errorf("%w: it has sha256:%s", ErrDigest, got)
	}
	return nil
}

// Model reads the file, the first time.
func (f *File) Model() (*Model, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.model == nil {
		m, err := Open(f.path, f.digest)
		if err != nil {
			return nil, err
		}
		f.model = m
	}
	return f.model, nil
}

// Digest is that of the file.
func (f *File) Digest() string { return f.digest }

// Size is that of the file, in bytes.
func (f *File) Size() int64 { return f.size }
