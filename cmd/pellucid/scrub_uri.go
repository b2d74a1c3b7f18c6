// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"

	"github.com/pellucid-mcp/pellucid/platform/terminal"
)

// uris prints whether each URI is allowed, and what it leads to, or why not.
func (c *scrubCmd) uris(e *env) error {
	out := terminal.NewURIs(e.Stdout, c.JSON)
	for _, uri := range c.URI {
		var err error
		if uri == "-" {
			err = out.Lines(e.Stdin)
		} else {
			err = out.One(uri)
		}
		if err != nil {
			return errors.Join(fmt.Errorf("scrub: --uri: %w", err), out.Flush())
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("scrub: --uri: write: %w", err)
	}
	if out.Refused > 0 {
		return fmt.Errorf("scrub: --uri: %d of %s refused", out.Refused, terminal.Plural(out.Total, "URI"))
	}
	return nil
}
