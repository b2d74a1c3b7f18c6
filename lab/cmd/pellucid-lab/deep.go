// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/pellucid-mcp/pellucid/lab/training"
)

// deepCmd makes what the trainer of the deep model reads.
type deepCmd struct {
	Root   string   `default:".." placeholder:"DIR" help:"Root of the repository (default ${default})."`
	Pieces string   `required:"" placeholder:"FILE" help:"The whole vocabulary."`
	Keep   int      `default:"24000" placeholder:"N" help:"Pieces that are kept (default ${default})."`
	More   []string `placeholder:"FILE" help:"Collections beside those of the test data."`
	Out    string   `required:"" placeholder:"DIR" help:"Folder that gets pieces.tsv and rows.jsonl.gz."`
}

func (c *deepCmd) Run(e *env) error {
	o := training.DeepOptions{Root: c.Root, Pieces: c.Pieces, Keep: c.Keep, More: c.More, Out: c.Out}
	if err := training.DeepRows(o, e.Stderr); err != nil {
		return fmt.Errorf("deep-rows: %w", err)
	}
	return nil
}
