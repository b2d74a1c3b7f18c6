// SPDX-License-Identifier: Apache-2.0

// Package deep judges whether a text is an injection, by six layers of a transformer, in pure Go.
// It is slower than package local and finds more, so that it looks only at what package
// local does not let by.
//
// The weights are a file of their own, which the program does not hold. A file is read only
// if its digest is known. A text is cut into pieces; the model reads windows of them, and
// the score of the text is that of its worst window.
package deep

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/pellucid-mcp/pellucid/text/finding"
)

// A Model scores texts. It does not change and may be used at the same time.
type Model struct {
	shape
	vocabulary  *Vocabulary
	vectors     []byte    // of each piece, 8 bits a number
	scales      []float32 // of each vector
	place       []float32 // is added to the vector at each place of a window
	first       norm
	layers      []layer
	head        []float32
	bias        float32
	ones, zeros []float32
}

// A layer is attention and two matrices with a bend between them, and a norm behind each.
type layer struct {
	qkv, out, up, down matrix
	norm1, norm2       norm
}

type norm struct{ gain, bias []float32 }

// A matrix has a row for each number that it puts out. Its weights are panels of 32 rows.
type matrix struct {
	rows, cols   int
	weights      []byte
	scales, bias []float32
}

// maxFile bounds a file: twelve layers have 32 MB.
const maxFile = 64 << 20

// ErrDigest says that a file is another one than it should be.
var ErrDigest = errors.New("deep: the file is not the one whose digest is known")

// Published are the digests (SHA-256) of the files that were published with the program.
var Published = []string{
	"1f3f34d8b3078569e6dc67e36f0fcd75cf7ebb42bdfb865c335f9731c46a7b8e",
}

// Digest is how a file is named: SHA-256, in lower case.
func Digest(b []byte) string {
	d := sha256.Sum256(b)
	return hex.EncodeToString(d[:])
}

// Open reads the file at path. digest is the one it must have; "" stands for one of
// Published. Nothing of a file with another digest is read into a model.
func Open(path, digest string) (*Model, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("deep: open %s: %w", finding.Quote(path), reason(err))
	}
	defer f.Close()
	b, err := whole(f)
	if err != nil {
		return nil, fmt.Errorf("deep: read %s: %w", finding.Quote(path), reason(err))
	}
	got := Digest(b)
	if err := known(got, digest); err != nil {
		return nil, err
	}
	return parse(b)
}

// whole reads a file into memory of its size, which stays: the weights are used where they lie.
func whole(f *os.File) ([]byte, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxFile {
		return nil, errModel
	}
	b := make([]byte, info.Size())
	_, err = io.ReadFull(f, b)
	return b, err
}

// reason is err without the path, which the caller quotes.
func reason(err error) error {
	if pe, ok := errors.AsType[*os.PathError](err); ok {
		return pe.Err
	}
	return err
}
