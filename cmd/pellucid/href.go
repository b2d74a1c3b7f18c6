// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/href"
)

type hrefCmd struct {
	JSON bool     `name:"json" help:"Print a JSON line for each URI."`
	URIs []string `arg:"" name:"uri" help:"The URIs; - reads them from standard input, one a line."`
}

func (hrefCmd) Help() string {
	return `An allowed URI is printed as a reader should see it, with what it leads to in
front; of a refused one, the reason and the octet. Exit codes: 0 all are
allowed, 1 at least one is refused or the input cannot be read, 2 wrong usage.`
}

func (c *hrefCmd) Run(e *env) error {
	w := bufio.NewWriter(e.Stdout)
	h := hrefWriter{w: w, json: c.JSON}
	for _, uri := range c.URIs {
		var err error
		if uri == "-" {
			err = h.lines(e.Stdin)
		} else {
			err = h.one(uri)
		}
		if err != nil {
			return errors.Join(fmt.Errorf("href: %w", err), w.Flush())
		}
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("href: write: %w", err)
	}
	if h.refused > 0 {
		return fmt.Errorf("href: %d of %s refused", h.refused, terminal.Plural(h.total, "URI"))
	}
	return nil
}

type hrefWriter struct {
	w              *bufio.Writer
	json           bool
	total, refused int
}

func (h *hrefWriter) lines(r io.Reader) error {
	in := terminal.NewRows(r)
	for {
		line, err := in.Next()
		switch {
		case err == io.EOF:
			return nil
		case errors.Is(err, terminal.ErrTooLarge): // then it is refused for its length
		case err != nil:
			return fmt.Errorf("read standard input: %w", err)
		}
		if err := h.one(string(line)); err != nil {
			return err
		}
		if in.Waiting() {
			if err := h.w.Flush(); err != nil {
				return err
			}
		}
	}
}

// An hrefReport is a line of --json. The URI of a refused one stands as
// finding.Quote shows it, so that it can harm nobody who reads on.
type hrefReport struct {
	Allowed bool   `json:"allowed"`
	URI     string `json:"uri"`
	Render  string `json:"render,omitempty"`
	Code    string `json:"code,omitempty"`
	Offset  *int   `json:"offset,omitempty"`
}

func (h *hrefWriter) one(s string) error {
	h.total++
	u, err := href.Parse(s)
	var refusal *href.Refusal
	switch {
	case errors.As(err, &refusal):
		h.refused++
	case err != nil:
		return err
	}
	if h.json {
		rep := hrefReport{Allowed: refusal == nil, URI: u.String(), Render: u.Rendered()}
		if refusal != nil {
			rep.URI, rep.Code, rep.Offset = finding.Quote(s), string(refusal.Code), &refusal.Offset
		}
		return terminal.WriteJSON(h.w, rep)
	}
	if refusal != nil {
		_, err = fmt.Fprintf(h.w, "refused: %s at octet %d: %s\n", refusal.Code, refusal.Offset, finding.Quote(s))
		return err
	}
	_, err = fmt.Fprintln(h.w, u.Rendered())
	return err
}
