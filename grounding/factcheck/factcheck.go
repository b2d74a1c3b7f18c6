// SPDX-License-Identifier: Apache-2.0

// Package factcheck reads published fact checks, and signs them as attestations.
//
// The publisher of a fact check holds no key of ours, so whoever imports it signs
// in its place: with a key that is made of the importer's seed and the publisher's
// name, always the same for the same two. Such an attestation says that the
// importer has read this there, not that the publisher has signed it.
package factcheck

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"iter"
	"strconv"

	"github.com/pellucid-mcp/pellucid/grounding/attest"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// A Format is a form in which fact checks are published.
type Format string

// The formats. Each may be compressed with gzip.
const (
	Attestation  Format = "attestation"   // signed attestations, one JSON document or JSON lines
	ClimateFever Format = "climate-fever" // CLIMATE-FEVER, JSON lines
	ClaimReview  Format = "claimreview"   // schema.org ClaimReview: one, a list, or JSON lines
)

// Options of Read.
type Options struct {
	// Seed makes the signing keys of validators that have none of their own. It must
	// not be zero for a format that has such.
	Seed [32]byte
	// Domain is the consensus domain that is written into the attestations; "":
	// scientific-default for CLIMATE-FEVER, journalism-default for ClaimReview.
	Domain string
	// Progress is told, before each entry and at the end, how many bytes have been
	// read so far, compressed ones where the input is; nil: nobody is.
	Progress func(size int64)
}

// The errors that end a Read at once.
var (
	errFormat = errors.New("factcheck: no such format")
	errNoSeed = errors.New("factcheck: a seed is needed to sign")
)

// An EntryError says why one entry was not taken, and where it stands. It holds
// nothing that a third party wrote.
type EntryError struct {
	Line int // of the input, from 1, in which the entry's document begins
	// Pointer says where in that document, as a JSON pointer of names that the
	// format defines, and indexes.
	Pointer string
	Code    finding.Code
	err     error // *attest.Refusal or *strictjson.SyntaxError, which say more, or nil
}

func (e *EntryError) Error() string {
	s := "factcheck: line " + strconv.Itoa(e.Line)
	if e.Pointer != "" {
		s += " at " + e.Pointer
	}
	if e.err != nil {
		return s + ": " + e.err.Error()
	}
	return s + ": " + string(e.Code)
}

func (e *EntryError) Unwrap() error { return e.err }

// Read yields one signed attestation after the other, in the order of the input.
// An error that is an *EntryError is about one entry, and the next may be read;
// any other is the last. What is yielded passes attest.Parse and Verify, but for
// the format Attestation, of which it is one JSON object.
func Read(f Format, r io.Reader, o Options) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		counted := &counter{r: r}
		progress := func() {
			if o.Progress != nil {
				o.Progress(counted.n)
			}
		}
		defer progress()
		if f != Attestation && o.Seed == [32]byte{} && (f == ClimateFever || f == ClaimReview) {
			yield(nil, errNoSeed)
			return
		}
		for b, err := range read(f, counted, o) {
			progress()
			if !yield(b, err) {
				return
			}
		}
	}
}

func read(f Format, r io.Reader, o Options) iter.Seq2[[]byte, error] {
	if o.Domain == "" {
		o.Domain = map[Format]string{ClimateFever: "scientific-default", ClaimReview: "journalism-default"}[f]
	}
	switch f {
	case Attestation:
		return attestations(documents(r, strictjson.Limits{Bytes: attest.MaxBytes, Depth: 64}))
	case ClimateFever:
		return signAll(climateFever(documents(r, climateLimits), o))
	case ClaimReview:
		return signAll(claimReviews(documents(r, reviewLimits), o))
	}
	return func(yield func([]byte, error) bool) { yield(nil, errFormat) }
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
		return nil, fmt.Errorf("factcheck: read: %w", err)
	}
	return bufio.NewReaderSize(z, 64<<10), nil
}
