// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"errors"
	"fmt"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/app/grounding"
	"github.com/pellucid-mcp/pellucid/app/local"
	"github.com/pellucid-mcp/pellucid/grounding/ground"
)

type exportCmd struct {
	storeFlags
	After uint64 `placeholder:"CURSOR" help:"Print only what was stored after this cursor, which a line of an earlier export contains."`
	Limit int    `placeholder:"N" help:"Maximum number of lines (default: all)."`
}

func (exportCmd) Help() string {
	return `Prints attestations and cascade events in the order in which they were stored, one
line each: cursor, kind, hash, and the original bytes as a
string. They are what third parties wrote, neither cleaned nor framed: for archives and
other adapters, not for a model. Exit codes: 0 done, 1 failed, 2 wrong usage, 3 bad
configuration, 4 the store cannot be reached.`
}

func (c *exportCmd) Validate() error {
	if c.Limit < 0 {
		return errors.New("--limit must not be negative")
	}
	return nil
}

func (c *exportCmd) Run(e *env) error {
	ctx, stop := exit.UntilSignal()
	defer stop()
	dir, err := local.OpenState()
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(e.Stdout, 64<<10)
	if err := grounding.Export(ctx, dir, c.DB, ground.Cursor(c.After), c.Limit, w); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("ground: write: %w", err)
	}
	return nil
}
