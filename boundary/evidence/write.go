// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"context"
	"fmt"
	"time"

	"github.com/pellucid-mcp/pellucid/record/ledger"
)

// write takes what waits in groups, each in one transaction, until Close.
func (r *Recorder) write() {
	defer close(r.done)
	for first := range r.queue {
		r.o.Unwritten(true)
		if first.done == nil { // no caller waits for it
			r.gather(first)
		}
		if r.store(r.take(first)); len(r.queue) == 0 {
			r.o.Unwritten(false)
		}
	}
}

// gather lets the queue fill until first has waited long enough, the time of the write before included.
func (r *Recorder) gather(first job) {
	if !r.o.BestEffort {
		return
	}
	for end := first.at.Add(r.o.gather); time.Now().Before(end) && len(r.queue) < r.o.group && !r.ending(); {
		time.Sleep(r.o.gather / 8)
	}
}

func (r *Recorder) ending() bool {
	if !r.mu.TryRLock() {
		return true // Close runs
	}
	defer r.mu.RUnlock()
	return r.closed
}

// take returns the first job and those behind it that are there already.
func (r *Recorder) take(first job) []job {
	group := []job{first}
	for len(group) < r.o.group {
		select {
		case j, open := <-r.queue:
			if !open {
				return group
			}
			group = append(group, j)
			continue
		default:
		}
		break
	}
	return group
}

// store writes a group. Those who wait are told of a failure; what nobody waits for is
// tried again until it is written, or Close gives up: twenty processes that end together
// may keep each other from one SQLite file for longer than an attempt takes.
func (r *Recorder) store(group []job) {
	records, kept := make([]ledger.Sealed, 0, len(group)+1), group[:0]
	for _, j := range group {
		if j.event != nil {
			r.shut(j.event)
			var err error
			if j.record, err = r.seal(j.event); err != nil {
				r.o.Log.Error("an event cannot be recorded", "error", err)
				r.lose(1)
				continue
			}
			j.event = nil
		}
		records, kept = append(records, j.record), append(kept, j)
	}
	told := r.lost.Load()
	if told > 0 {
		lost := &ledger.Event{Kind: ledger.RecordsLost, Reason: "not-written", Numbers: []ledger.Number{{Name: "lost", N: told}}}
		if record, err := r.seal(lost); err == nil {
			records = append(records, record)
		}
	}
	for attempt := 0; len(records) > 0; attempt++ {
		ctx, stop := context.WithTimeout(context.Background(), r.Patience())
		err := r.add(ctx, records)
		stop()
		if err == nil {
			r.away.Store(nil)
			r.written(kept, told)
			return
		}
		r.away.Store(&err)
		if attempt == 0 {
			r.o.Log.Error("records cannot be written to the store: best-effort records are tried again", "records", len(records), "error", err)
		}
		if r.failed.Add(1); attempt == 0 {
			records, kept = refuse(kept, records[len(kept):], err)
		}
		select {
		case <-r.giveUp:
			r.lose(int64(len(kept)))
			return
		case <-time.After(r.o.retry):
		}
	}
}

// add stores records, and has them carried into the ledger where that can be done at
// once and nobody waits.
func (r *Recorder) add(ctx context.Context, records []ledger.Sealed) error {
	if r.o.BestEffort && r.o.Direct != nil && r.o.Direct.Carry(ctx, records) {
		return nil
	}
	stored := make([][]byte, len(records))
	for i := range records {
		stored[i] = records[i].Bytes()
	}
	return r.o.Store.Add(ctx, stored)
}

func (r *Recorder) written(kept []job, told int64) {
	r.lost.Add(-told)
	r.recorded.Add(int64(len(kept)))
	for _, j := range kept {
		if j.done != nil {
			j.done <- nil
		}
	}
	r.o.Wake()
}

// refuse tells those who wait, and returns what nobody waits for.
func refuse(group []job, more []ledger.Sealed, err error) (records []ledger.Sealed, kept []job) {
	for _, j := range group {
		if j.done != nil {
			j.done <- fmt.Errorf("%w: %w", errNotRecorded, err)
			continue
		}
		records, kept = append(records, j.record), append(kept, j)
	}
	return append(records, more...), kept
}
