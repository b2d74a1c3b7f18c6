// SPDX-License-Identifier: Apache-2.0

// Package ingest takes attestations into an adapter by the batch, and keeps what became of each.
package ingest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"iter"
	"sync/atomic"
	"time"

	"github.com/pellucid-mcp/pellucid/grounding/ground"
	"github.com/pellucid-mcp/pellucid/platform/backoff"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
)

// A batch is handed in as one, when it has one of these.
const (
	batchEntries = 1024
	batchBytes   = 8 << 20
	inFlight     = 2 // one is checked while another is written
)

// An Import hands in attestations by the batch and tells what became of them, in their
// order.
type Import struct {
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

// New is an import into an adapter that tells out what becomes of each entry: in JSON
// lines, or a line for each refusal.
func New(a *ground.Adapter, out io.Writer, json bool) *Import {
	return &Import{a: a, out: bufio.NewWriter(out), json: json, began: time.Now(), codes: map[string]int{}}
}

// Progress says how many entries are done, and how fast. It may be called while Run runs.
func (im *Import) Progress() string {
	n := im.done.Load()
	return fmt.Sprintf("%s stored or refused, %s/s", terminal.Thousands(int(n)), terminal.Thousands(int(float64(n)/time.Since(im.began).Seconds())))
}

// A batch is what is handed in at once.
type batch struct {
	first    int // number of its first entry, from 1
	bodies   [][]byte
	errs     []error // why there is no body
	bytes    int
	receipts []ground.Receipt
	err      error
	done     chan struct{}
}

func newBatch(first int) *batch { return &batch{first: first, done: make(chan struct{})} }

// Run hands in what entries yields, until ctx ends, and waits for what has been handed in by
// then. Its error is a *StoreError, that of the input, or that of writing to out.
func (im *Import) Run(ctx context.Context, entries iter.Seq2[[]byte, error]) error {
	halt := make(chan struct{})
	defer close(halt)
	batches := make(chan *batch)
	go readBatches(entries, batches, halt)
	var flight []*batch // the earliest first
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

// readBatches makes batches of entries until halt is closed. It may wait for input for longer
// than Run does.
func readBatches(entries iter.Seq2[[]byte, error], batches chan<- *batch, halt <-chan struct{}) {
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
		b.bodies, b.errs, b.bytes = append(b.bodies, body), append(b.errs, err), b.bytes+len(body)
		if (len(b.bodies) == batchEntries || b.bytes >= batchBytes) && !send() {
			return
		}
	}
	if len(b.bodies) > 0 {
		send()
	}
}

// How often and how long the store is waited for, beyond what it waits itself.
const (
	tries      = 6
	firstPause = 100 * time.Millisecond // before the second try; then twice as long each time
	mostPause  = 2 * time.Second
)

// A StoreError says that the store took nothing, however often it was tried.
type StoreError struct{ Code string }

func (e *StoreError) Error() string { return "ground: import: " + e.Code }

// ingest hands in b, again while the store is busy or away for a moment.
func (im *Import) ingest(b *batch) {
	defer close(b.done)
	b.receipts = make([]ground.Receipt, len(b.bodies))
	var at []int
	for i, err := range b.errs {
		if err == nil {
			at = append(at, i)
		}
	}
	pause := backoff.Waits{First: firstPause, Most: mostPause}
	for try := 1; len(at) > 0; try++ {
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
		if code := b.receipts[at[0]].Code; try == tries || code == ground.CodeFull {
			b.err = &StoreError{code}
			return
		}
		_ = backoff.Sleep(context.Background(), pause.Next())
	}
}
