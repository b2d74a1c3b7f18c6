// SPDX-License-Identifier: Apache-2.0

package grounding

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/grounding/ground"
	"github.com/pellucid-mcp/pellucid/grounding/ingest"
	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
)

// A Import says what is imported, and how that is shown.
type Import struct {
	In   io.Reader
	Out  io.Writer // is told what becomes of the entries
	JSON bool      // of every entry, in JSON lines; else of those that are refused
	// Bar begins to show how far the import is, of a number of bytes or, where that is 0,
	// of an unknown number. say may be called at any time.
	Bar func(bytes int64, say func() string) (at func(int64), done func())
}

// RunImport checks the entries of a file and stores those that pass, until ctx ends; the
// plan's Notice is told how it went. Without another error, one without words says that
// entries were refused or that the import was interrupted.
func RunImport(ctx context.Context, dir *state.Dir, p Plan, i Import) error {
	var unrecorded atomic.Int64
	g, err := openImport(ctx, dir, p, func(error) { unrecorded.Add(1) })
	if err != nil {
		return err
	}
	defer g.Close()
	im := ingest.New(g.Adapter, i.Out, i.JSON)
	err = i.run(ctx, im)
	im.Summary(p.Notice, ctx.Err() != nil)
	if n := unrecorded.Load(); n > 0 {
		fmt.Fprintf(p.Notice, "%s could not be recorded in the state directory.\n", terminal.Plural(int(n), "refusal"))
	}
	if _, ok := errors.AsType[*ingest.StoreError](err); ok {
		return exit.With(exit.Unreachable, err)
	}
	if err == nil && (im.Refused() > 0 || ctx.Err() != nil) {
		return exit.With(exit.Failed, nil)
	}
	return err
}

// run has im take in the entries, under a bar.
func (i *Import) run(ctx context.Context, im *ingest.Import) error {
	size := sizeOf(i.In)
	at, done := i.Bar(size, im.Progress)
	defer done()
	progress := func(bytes int64) { at(max(0, min(bytes, size-1))) } // the end is not reached before all is stored
	return im.Run(ctx, ingest.Read(i.In, progress))
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

// openImport makes an adapter that attestations are imported into. unrecorded is told
// of every refusal that could not be recorded.
func openImport(ctx context.Context, dir *state.Dir, p Plan, unrecorded func(error)) (_ *Adapter, err error) {
	g := &Adapter{}
	defer g.closeOn(&err)
	o, err := p.options() // before a store is made
	if err != nil {
		return nil, err
	}
	if g.store, err = openGroundStore(ctx, dir, p.DB, MakeStore); err != nil {
		return nil, err
	}
	if err = g.keepRefusals(dir, unrecorded); err != nil {
		return nil, err
	}
	o.Store = g.store.attestations
	o.Refused = func(r ground.Refused) { // the same import may run twice, and a store may be busy
		if r.Receipt.Code != ground.CodeDuplicate && !r.Receipt.Retry {
			g.refusals.Record(r)
		}
	}
	if g.records, err = g.store.record(ctx, dir, &o, p.Setup.Deviations(), false, nil); err != nil {
		return nil, err
	}
	if err = g.make(o); err != nil {
		return nil, err
	}
	return g, nil
}
