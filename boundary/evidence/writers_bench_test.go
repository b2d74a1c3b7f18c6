// SPDX-License-Identifier: Apache-2.0

package evidence_test

import (
	"context"
	"crypto/rand"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/boundary/evidence"
	"github.com/pellucid-mcp/pellucid/boundary/gateway"
	"github.com/pellucid-mcp/pellucid/platform/pgtest"
	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/record/sequence"
	"github.com/pellucid-mcp/pellucid/storage"
)

// BenchmarkWriters measures three replicas on one Postgres, in the mode required: each record is durable
// before its caller goes on, and one of the replicas adds the records of all to the log.
func BenchmarkWriters(b *testing.B) {
	var server pgtest.Server
	b.Cleanup(server.Stop)
	where := server.Database(b)
	keys, err := state.OpenAt(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	const writers, callers, each = 3, 128, 100
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	var recorders []*evidence.Recorder
	var stores []*storage.Store
	for range writers {
		s, err := storage.Open(ctx, where, storage.Options{})
		if err != nil {
			b.Fatal(err)
		}
		stores = append(stores, s)
		seq := sequence.New(sequence.Options{Store: s.Ledger(), Origin: "log.example/bench", Keys: &sequence.Keyring{Dir: keys}, Chain: s.Ledger().Chain(), Poll: 300 * time.Millisecond})
		running.Go(func() { seq.Run(ctx) })
		recorders = append(recorders, evidence.New(evidence.Options{Store: s.Ledger(), Direct: seq, Wake: seq.Wake, Log: slog.New(slog.DiscardHandler)}))
	}
	for b.Loop() {
		var mu sync.Mutex
		var took []time.Duration
		start := time.Now()
		var all sync.WaitGroup
		for _, r := range recorders {
			for range callers {
				all.Go(func() {
					for range each {
						at := time.Now()
						if err := r.Record(gateway.Decision{Server: "files", Tool: "read_file", Method: "tools/call", Kind: "result", Verdict: gateway.Passed, ID: id(), Wait: time.Minute}); err != nil {
							b.Error(err)
							return
						}
						mu.Lock()
						took = append(took, time.Since(at))
						mu.Unlock()
					}
				})
			}
		}
		all.Wait()
		durable := time.Since(start)
		for {
			if n, err := stores[0].Ledger().Waiting(ctx, 1); err != nil || n == 0 {
				break
			}
			time.Sleep(5 * time.Millisecond)
		}
		whole := time.Since(start)
		const n = writers * callers * each
		slices.Sort(took)
		b.ReportMetric(n/durable.Seconds(), "durable/s")
		b.ReportMetric(n/whole.Seconds(), "signed/s")
		if len(took) == n {
			b.ReportMetric(float64(took[n/2].Milliseconds()), "ms-p50")
			b.ReportMetric(float64(took[n*99/100].Milliseconds()), "ms-p99")
		}
	}
	for _, r := range recorders {
		r.Close(ctx)
	}
	stop()
	running.Wait()
	for _, s := range stores {
		s.Close()
	}
}

func id() (id gateway.ID) {
	rand.Read(id[:]) // never fails
	return id
}
