// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/href"
)

// URIs writes of each URI whether it is allowed: as a reader should see it, or why it is
// refused.
type URIs struct {
	w    *bufio.Writer
	json bool

	Total, Refused int
}

// NewURIs writes to w, in JSON lines if json says so. Flush writes the rest.
func NewURIs(w io.Writer, json bool) *URIs { return &URIs{w: bufio.NewWriter(w), json: json} }

// Flush writes what is not written yet.
func (u *URIs) Flush() error { return u.w.Flush() }

// Lines takes each line of r for a URI.
func (u *URIs) Lines(r io.Reader) error {
	in := NewRows(r)
	for {
		line, err := in.Next()
		switch {
		case err == io.EOF:
			return nil
		case errors.Is(err, ErrTooLarge): // then it is refused for its length
		case err != nil:
			return fmt.Errorf("read standard input: %w", err)
		}
		if err := u.One(string(line)); err != nil {
			return err
		}
		if in.Waiting() {
			if err := u.w.Flush(); err != nil {
				return err
			}
		}
	}
}

// A uriRow is a line of JSON. A URI that is refused stands as finding.Quote shows it, so
// that it does no harm where it is read next.
type uriRow struct {
	Allowed bool   `json:"allowed"`
	URI     string `json:"uri"`
	Render  string `json:"render,omitempty"`
	Code    string `json:"code,omitempty"`
	Offset  *int   `json:"offset,omitempty"`
}

// One writes of one URI.
func (u *URIs) One(s string) error {
	u.Total++
	uri, err := href.Parse(s)
	var refusal *href.Refusal
	switch {
	case errors.As(err, &refusal):
		u.Refused++
	case err != nil:
		return err
	}
	if u.json {
		row := uriRow{Allowed: refusal == nil, URI: uri.String(), Render: uri.Rendered()}
		if refusal != nil {
			row.URI, row.Code, row.Offset = finding.Quote(s), string(refusal.Code), &refusal.Offset
		}
		return WriteJSON(u.w, row)
	}
	if refusal != nil {
		_, err = fmt.Fprintf(u.w, "refused: %s at byte %d: %s\n", refusal.Code, refusal.Offset, finding.Quote(s))
		return err
	}
	_, err = fmt.Fprintln(u.w, uri.Rendered())
	return err
}
