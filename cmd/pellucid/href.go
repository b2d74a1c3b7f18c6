// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"

	"github.com/pellucid-mcp/pellucid/platform/terminal"
)

type hrefCmd struct {
	JSON bool     `name:"json" help:"Print a JSON line for each URI."`
	URIs []string `arg:"" name:"uri" help:"The URIs; - reads them from standard input, one per line."`
}

func (hrefCmd) Help() string {
	return `An allowed URI is printed as a reader should see it, with what it leads to in
front; of a refused one, the reason and the byte offset. Exit codes: 0 all are
allowed, 1 at least one is refused or the input cannot be read, 2 wrong usage.`
}

func (c *hrefCmd) Run(e *env) error {
	out := terminal.NewURIs(e.Stdout, c.JSON)
	for _, uri := range c.URIs {
		var err error
		if uri == "-" {
			err = out.Lines(e.Stdin)
		} else {
			err = out.One(uri)
		}
		if err != nil {
			return errors.Join(fmt.Errorf("href: %w", err), out.Flush())
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("href: write: %w", err)
	}
	if out.Refused > 0 {
		return fmt.Errorf("href: %d of %s refused", out.Refused, terminal.Plural(out.Total, "URI"))
	}
	return nil
}
