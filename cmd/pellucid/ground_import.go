// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/pellucid-mcp/pellucid/app"
	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/grounding/factcheck"
	"github.com/pellucid-mcp/pellucid/grounding/ground"
	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/text/finding"
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
	seed, err := importSeed(dir)
	if err != nil {
		return err
	}
	im := newImporter(g.Adapter, e.Stdout, c.JSON)
	err = c.feed(ctx, e, im, in, seed)
	im.summary(e.Stderr, ctx.Err() != nil)
	if n := unrecorded.Load(); n > 0 {
		fmt.Fprintf(e.Stderr, "%s could not be recorded in the state directory.\n", terminal.Plural(int(n), "refusal"))
	}
	if err == nil && (im.refused > 0 || ctx.Err() != nil) {
		return exit.With(exit.Failed, nil)
	}
	return err
}

// feed has im take in what stands in the file, under a bar that says how far it is.
func (c *groundImportCmd) feed(ctx context.Context, e *env, im *importer, in io.Reader, seed [32]byte) error {
	size := sizeOf(in)
	b := newBar(e, "ground import", size, im.say)
	defer b.done()
	progress := func(octets int64) { b.at(max(0, min(octets, size-1))) } // the end is not reached before all is stored
	return im.run(ctx, factcheck.Read(factcheck.Format(c.Format), in, factcheck.Options{Seed: seed, Domain: c.Domain, Progress: progress}))
}

// importSeed makes the keys of validators that have none of their own.
func importSeed(dir *state.Dir) (seed [32]byte, err error) {
	b, err := dir.Key("factcheck.key")
	if err != nil {
		return seed, exit.With(exit.Config, err)
	}
	copy(seed[:], b)
	return seed, nil
}

// sizeOf is the length of a file in octets, 0 where it is not known.
func sizeOf(r io.Reader) int64 {
	if f, ok := r.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
			return info.Size()
		}
	}
	return 0
}

// A batch is handed in as one, when it has one of these.
const (
	batchEntries = 1024
	batchOctets  = 8 << 20
	inFlight     = 2 // one is checked while another is written
)

// An importer hands in attestations by the batch and tells what became of them, in
// their order.
type importer struct {
	a     *ground.Adapter
	out   *bufio.Writer
	json  bool
	began time.Time

	done    atomic.Int64 // entries, for the bar
	stored  int
	again   int // duplicates
	refused int
	codes   map[string]int
}

func newImporter(a *ground.Adapter, out io.Writer, json bool) *importer {
	return &importer{a: a, out: bufio.NewWriter(out), json: json, began: time.Now(), codes: map[string]int{}}
}

// say is what stands beside the bar.
func (im *importer) say() string {
	n := im.done.Load()
	return fmt.Sprintf("%s stored or refused, %s/s", terminal.Thousands(int(n)), terminal.Thousands(int(float64(n)/time.Since(im.began).Seconds())))
}

type importBatch struct {
	first    int // number of its first entry, from 1
	bodies   [][]byte
	errs     []error // why there is no body
	octets   int
	receipts []ground.Receipt
	err      error
	done     chan struct{}
}

func newBatch(first int) *importBatch { return &importBatch{first: first, done: make(chan struct{})} }

// run hands in what entries yields, until ctx ends. What has been handed in by then
// is waited for.
func (im *importer) run(ctx context.Context, entries iter.Seq2[[]byte, error]) error {
	halt := make(chan struct{})
	defer close(halt)
	batches := make(chan *importBatch)
	go readBatches(entries, batches, halt)
	var flight []*importBatch // the earliest first
	for stopped := ctx.Done(); batches != nil || len(flight) > 0; {
		next, ready := batches, (<-chan struct{})(nil)
		if len(flight) == inFlight {
			next = nil
		}
		if len(flight) > 0 {
			ready = flight[0].done
		}
		select {
		case <-stopped:
			batches, stopped = nil, nil
		case b, more := <-next:
			if !more {
				batches = nil
				continue
			}
			flight = append(flight, b)
			go im.ingest(b)
		case <-ready:
			err := im.tell(flight[0])
			if flight = flight[1:]; err != nil {
				for _, b := range flight {
					<-b.done
				}
				return err
			}
		}
	}
	return nil
}

// readBatches makes batches of entries until halt is closed. It may wait for input longer
// than anybody waits for it.
func readBatches(entries iter.Seq2[[]byte, error], batches chan<- *importBatch, halt <-chan struct{}) {
	defer close(batches)
	b := newBatch(1)
	send := func() bool {
		select {
		case batches <- b:
			b = newBatch(b.first + len(b.bodies))
			return true
		case <-halt:
			return false
		}
	}
	for body, err := range entries {
		b.bodies, b.errs, b.octets = append(b.bodies, body), append(b.errs, err), b.octets+len(body)
		if (len(b.bodies) == batchEntries || b.octets >= batchOctets) && !send() {
			return
		}
	}
	if len(b.bodies) > 0 {
		send()
	}
}

// How often and how long the store is waited for, beyond what it waits itself.
const (
	importTries = 6
	importPause = 100 * time.Millisecond // before the second try; then twice as long each time
)

// ingest hands in b, again while the store is busy or away for a moment.
func (im *importer) ingest(b *importBatch) {
	defer close(b.done)
	b.receipts = make([]ground.Receipt, len(b.bodies))
	var at []int
	for i, err := range b.errs {
		if err == nil {
			at = append(at, i)
		}
	}
	for try, pause := 0, importPause; len(at) > 0; try++ {
		bodies := make([][]byte, len(at))
		for k, i := range at {
			bodies[k] = b.bodies[i]
		}
		receipts, err := im.a.Ingest(context.Background(), "operator", bodies)
		if err != nil {
			b.err = err
			return
		}
		var again []int
		for k, i := range at {
			b.receipts[i] = receipts[k]
			if receipts[k].StoreFailed() {
				again = append(again, i)
			}
		}
		if at = again; len(at) == 0 {
			return
		}
		if code := b.receipts[at[0]].Code; try+1 == importTries || code == ground.CodeFull {
			b.err = exit.With(exit.Unreachable, fmt.Errorf("ground: import: %s", code))
			return
		}
		time.Sleep(pause)
		pause *= 2
	}
}

// tell writes what became of b.
func (im *importer) tell(b *importBatch) error {
	if b.err != nil {
		return b.err
	}
	for i := range b.receipts {
		r, why := b.receipts[i], ""
		if err := b.errs[i]; err != nil {
			if r, why = unread(err); why == "" {
				im.out.Flush()
				return fmt.Errorf("ground: import: %w", err)
			}
		}
		im.count(r)
		if err := im.line(b.first+i, r, why); err != nil {
			return err
		}
	}
	im.done.Add(int64(len(b.receipts)))
	if err := im.out.Flush(); err != nil {
		return fmt.Errorf("ground: write: %w", err)
	}
	return nil
}

// unread is the receipt of an entry that is no attestation and cannot be made one.
// There is none for an input that cannot be read on.
func unread(err error) (r ground.Receipt, why string) {
	var e *factcheck.EntryError
	if !errors.As(err, &e) {
		return r, ""
	}
	return ground.Receipt{Code: string(e.Code), Pointer: e.Pointer}, plain(strings.TrimPrefix(e.Error(), "factcheck: "))
}

func (im *importer) count(r ground.Receipt) {
	switch {
	case r.Accepted:
		im.stored++
		return
	case r.Code == ground.CodeDuplicate:
		im.again++
	default:
		im.refused++
	}
	im.codes[r.Code]++
}

// line writes one receipt. For people only refusals are worth a line, and the code
// is its first word.
func (im *importer) line(n int, r ground.Receipt, why string) error {
	if im.json {
		line, err := json.Marshal(struct {
			Entry int `json:"entry"`
			ground.Receipt
			Why string `json:"why,omitempty"`
		}{n, r, why})
		if err != nil {
			return err
		}
		_, err = im.out.Write(append(terminal.EscapeJSON(line), '\n'))
		return err
	}
	if r.Accepted || r.Code == ground.CodeDuplicate {
		return nil
	}
	where := ""
	switch {
	case why != "":
		where = ": " + terminal.Printable(why)
	case r.Text:
		where = fmt.Sprintf(" at %s, octet %d of the text", finding.Quote(r.Pointer), r.Offset)
	default:
		where = fmt.Sprintf(" at %s, octet %d", finding.Quote(r.Pointer), r.Offset)
	}
	_, err := fmt.Fprintf(im.out, "%s entry %d%s\n", r.Code, n, where)
	return err
}

// summary tells a person how it went.
func (im *importer) summary(w io.Writer, stopped bool) {
	n, took := im.stored+im.again+im.refused, time.Since(im.began)
	if stopped {
		fmt.Fprintln(w, "Interrupted: what is counted here is stored; run the same again for the rest.")
	}
	fmt.Fprintf(w, "%s in %.1f s (%s/s): %s stored, %s there already, %s refused.\n", entriesOf(n), took.Seconds(),
		terminal.Thousands(int(float64(n)/max(took.Seconds(), 0.001))), terminal.Thousands(im.stored), terminal.Thousands(im.again), terminal.Thousands(im.refused))
	for _, code := range slices.Sorted(maps.Keys(im.codes)) {
		if code != ground.CodeDuplicate {
			fmt.Fprintf(w, "    %-24s %s\n", code, terminal.Thousands(im.codes[code]))
		}
	}
}

func entriesOf(n int) string {
	if n == 1 {
		return "1 entry"
	}
	return terminal.Thousands(n) + " entries"
}
