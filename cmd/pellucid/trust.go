// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/record/standing"
	"github.com/pellucid-mcp/pellucid/record/trust"
	"github.com/pellucid-mcp/pellucid/storage"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// trustCmd is what a person asks about scores.
type trustCmd struct {
	ledgerDB
	trustFlags
	Replay bool   `help:"Compute the scores again from the first record of the log, and compare them with those that gateways start with."`
	Size   int64  `placeholder:"N" help:"With --replay: use only the first N records (default: all)."`
	Dir    string `arg:"" optional:"" help:"Directory of an exported log: compute the scores from that, offline."`
}

func (trustCmd) Help() string {
	return `A score says how far something is trusted, from 0 to 1; docs/spec/trust.md says how it is
computed. An origin that no record names has the resting score, and is not listed. The scores are
those of the gateways on the store, up to the latest record of the log. They are computed from the records of the log and
from nothing else, so that a reader of the log can compute them too; ledger verify checks its
signatures. Exit codes: 0 done; 1 the log has not begun, the export or a record cannot be read, or the
stored scores differ; 2 wrong usage; 4 the store cannot be reached.`
}

func (c *trustCmd) Run(e *env) error {
	switch {
	case c.Dir != "":
		return c.exported(e)
	case c.Replay:
		return c.DB.WithIntegratedLog(func(ctx context.Context, l *storage.Ledger, _ *state.Dir) error { return c.stored(ctx, e, l) })
	}
	return c.DB.WithIntegratedLog(func(ctx context.Context, l *storage.Ledger, _ *state.Dir) error {
		state, size, err := standing.Current(ctx, l)
		if err != nil {
			return err
		}
		return c.print(e, state, size)
	})
}

type trustFlags struct {
	At   string `placeholder:"TIME" help:"Time for which the scores are computed, since they change with time: RFC 3339, or an age (default: now)."`
	JSON bool   `name:"json" help:"Print one JSON object for each score, as JSON lines. pellucid-ground serve --scores reads them."`
}

func (c *trustFlags) print(e *env, s *trust.State, size int64) error {
	at, err := terminal.Moment("--at", c.At, time.Now())
	if err != nil {
		return exit.With(exit.Usage, err)
	}
	if at.IsZero() {
		at = time.Now()
	}
	var n int
	if c.JSON {
		n, err = standing.WriteRows(e.Stdout, s, size, at)
	} else {
		n, err = standing.WriteTable(e.Stdout, s, at)
	}
	fmt.Fprintf(e.Stderr, "%s, by the first %s of the log.\n", terminal.Plural(n, "score"), terminal.Plural(int(size), "record"))
	return err
}

// exported computes the scores from an exported log.
func (c *trustCmd) exported(e *env) error {
	export, err := terminal.OpenDir(c.Dir)
	if err != nil {
		return fmt.Errorf("trust: %w", err)
	}
	d := ledger.Dir(export)
	size, err := d.Size()
	if errors.Is(err, ledger.ErrNotFound) {
		return fmt.Errorf("trust: %s holds no exported log: there is no checkpoint", finding.Quote(c.Dir))
	}
	if err != nil {
		return err
	}
	return c.replay(context.Background(), e, d, size)
}

func (c *trustCmd) upTo(size int64) int64 {
	if c.Size > 0 {
		return min(c.Size, size)
	}
	return size
}

func (c *trustCmd) replay(ctx context.Context, e *env, src standing.Reader, size int64) error {
	size = c.upTo(size)
	state, err := standing.Replay(ctx, src, size, nil)
	if err != nil {
		return err
	}
	return c.print(e, state, size)
}

// errScores says that the snapshot was changed, or the log.
var errScores = errors.New("trust: the snapshot in the store is not what the log gives")

func (c *trustCmd) stored(ctx context.Context, e *env, l *storage.Ledger) error {
	head, err := l.Head(ctx)
	if err != nil {
		return err
	}
	if err := c.replay(ctx, e, l, head.Size); err != nil {
		return err
	}
	at, found, err := standing.CheckSnapshot(ctx, l, head.Size)
	if errors.Is(err, standing.ErrSnapshot) {
		return errScores
	} else if err != nil || !found {
		return err
	}
	_, err = fmt.Fprintf(e.Stderr, "The snapshot in the store, of %s, is what the log gives.\n", terminal.Plural(int(at), "record"))
	return err
}
