// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
	"iter"
	"strconv"

	"github.com/pellucid-mcp/pellucid/grounding/attest"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// An EntryError says why one entry was not taken, and where it stands. It holds
// nothing that a third party wrote.
type EntryError struct {
	Line int // of the input, from 1, in which the entry's document begins
	// Pointer says where in that document, as a JSON pointer of names that the
	// format defines, and indexes.
	Pointer string
	Code    finding.Code
	err     error // *strictjson.SyntaxError, which says more, or nil
}

func (e *EntryError) Error() string {
	s := "ground: line " + strconv.Itoa(e.Line)
	if e.Pointer != "" {
		s += " at " + e.Pointer
	}
	if e.err != nil {
		return s + ": " + e.err.Error()
	}
	return s + ": " + string(e.Code)
}

func (e *EntryError) Unwrap() error { return e.err }

// Read yields one attestation after the other, each a JSON object, of a JSON document or of JSON lines, which may be
// compressed with gzip. An error that is an *EntryError is about one entry, and the next may be read; any other is
// the last. progress is told, before each entry and at the end, how many bytes have been read so far, compressed ones
// where the input is.
func Read(r io.Reader, progress func(size int64)) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		counted := &counter{r: r}
		defer func() { progress(counted.n) }()
		for b, err := range attestations(documents(counted, strictjson.Limits{Bytes: attest.MaxBytes, Depth: 64})) {
			progress(counted.n)
			if !yield(b, err) {
				return
			}
		}
	}
}

// attestations yields documents as they are: who takes them checks them.
func attestations(docs iter.Seq[document]) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for d := range docs {
			err := d.err
			if err == nil && d.json.Root().Kind() != '{' {
				err = &EntryError{Line: d.line, Code: finding.Misshapen}
			}
			var body []byte
			if err == nil {
				body = d.json.Root().Raw()
			}
			if !yield(body, err) {
				return
			}
		}
	}
}

// A counter counts the bytes that are read through it.
type counter struct {
	r io.Reader
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// plain returns a buffered reader of r, unpacked if r is compressed.
func plain(r io.Reader) (*bufio.Reader, error) {
	b := bufio.NewReaderSize(r, 64<<10)
	if magic, _ := b.Peek(2); string(magic) != "\x1f\x8b" {
		return b, nil
	}
	z, err := gzip.NewReader(b)
	if err != nil {
		return nil, fmt.Errorf("ground: read: %w", err)
	}
	return bufio.NewReaderSize(z, 64<<10), nil
}
