// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/pellucid-mcp/pellucid/platform/build"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
)

type versionCmd struct {
	JSON bool `name:"json" help:"Print it as JSON."`
}

func (c *versionCmd) Run(e *env) error {
	v := build.Read()
	if c.JSON {
		return terminal.WriteJSON(e.Stdout, v)
	}
	_, err := fmt.Fprintf(e.Stdout, "pellucid %s\nsanitation %s\nUnicode %s\n%s %s\n", v.Version, v.Sanitation, v.Unicode, v.Go, v.Platform)
	return err
}
