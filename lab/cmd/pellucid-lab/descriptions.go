// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/pellucid-mcp/pellucid/lab/training"
)

type descriptionsCmd struct {
	Root string `default:".." placeholder:"DIR" help:"Root of the repository (default ${default})."`
}

func (descriptionsCmd) Help() string {
	return `The table goes to standard output. Exit codes: 0 done; 1 there are no data.`
}

func (c *descriptionsCmd) Run(e *env) error {
	if err := training.Descriptions(c.Root, e.Stdout, e.Stderr); err != nil {
		return fmt.Errorf("descriptions: %w", err)
	}
	return nil
}
