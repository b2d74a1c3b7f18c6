// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"

	"github.com/pellucid-mcp/pellucid/app"
	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/grounding/factcheck"
	"github.com/pellucid-mcp/pellucid/grounding/ingest"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
)

type groundImportCmd struct {
	groundDB
	groundRules
	Format string `enum:"attestation,climate-fever,claimreview" default:"attestation" help:"What the file holds: ${enum}."`
	Domain string `placeholder:"DOMAIN" help:"Consensus domain of what is signed here; scientific-default for climate-fever, journalism-default for claimreview if absent."`
	JSON   bool   `name:"json" help:"Print what became of every entry, as JSON lines, once it is stored."`
	File   string `arg:"" optional:"" completion:"files" help:"The file, which may be gzipped; standard input if absent or -."`
}

func (groundImportCmd) Help() string {
	return `Checks attestations as a server does and stores those that pass: whatever is
acknowledged has been written to disk. Published fact checks of the other formats are
made into attestations, signed with keys of this installation: CLIMATE-FEVER gives
one for every annotator's vote, schema.org ClaimReview one for every review.

The import may be interrupted and run again: what is there already is told to be a
duplicate. Without --json each refusal is one line that begins with its code. Exit
codes: 0 everything is stored, 1 something was refused, 2 wrong usage, 3 bad
configuration, 4 the store cannot be reached or takes nothing.`
}

func (c *groundImportCmd) Run(e *env) error {
	ctx, stop := exit.UntilSignal()
	defer stop()
	context.AfterFunc(ctx, stop) // the second signal does not wait
	dir, err := install.Open()
	if err != nil {
		return err
	}
	in, err := terminal.OpenInput(c.File, e.Stdin)
	if err != nil {
		return fmt.Errorf("ground: %w", err)
	}
	defer in.Close()
	setup := c.setup()
	if err := compiled(setup, e.references()); err != nil {
		return err
	}
	for _, name := range setup.Deviations() {
		fmt.Fprintf(e.Stderr, "%s: what is stored is no longer held to the whole specification, and answers say so.\n", name)
	}
	var unrecorded atomic.Int64
	g, err := app.OpenGroundImport(ctx, dir, app.GroundPlan{Rules: setup, DB: c.DB, Absent: app.MakeStore}, func(error) { unrecorded.Add(1) })
	if err != nil {
		return err
	}
	defer g.Close()
	seed, err := install.FactcheckSeed(dir)
	if err != nil {
		return err
	}
	im := ingest.New(g.Adapter, e.Stdout, c.JSON)
	err = c.feed(ctx, e, im, in, seed)
	im.Summary(e.Stderr, ctx.Err() != nil)
	if n := unrecorded.Load(); n > 0 {
		fmt.Fprintf(e.Stderr, "%s could not be recorded in the state directory.\n", terminal.Plural(int(n), "refusal"))
	}
	if _, ok := errors.AsType[*ingest.StoreError](err); ok {
		return exit.With(exit.Unreachable, err)
	}
	if err == nil && (im.Refused() > 0 || ctx.Err() != nil) {
		return exit.With(exit.Failed, nil)
	}
	return err
}

// feed has im take in what stands in the file, under a bar that says how far it is.
func (c *groundImportCmd) feed(ctx context.Context, e *env, im *ingest.Import, in io.Reader, seed [32]byte) error {
	size := sizeOf(in)
	b := newBar(e, "ground import", size, im.Progress)
	defer b.done()
	progress := func(bytes int64) { b.at(max(0, min(bytes, size-1))) } // the end is not reached before all is stored
	return im.Run(ctx, factcheck.Read(factcheck.Format(c.Format), in, factcheck.Options{Seed: seed, Domain: c.Domain, Progress: progress}))
}

// sizeOf is the length of a file in bytes, 0 where it is not known.
func sizeOf(r io.Reader) int64 {
	if f, ok := r.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
			return info.Size()
		}
	}
	return 0
}
