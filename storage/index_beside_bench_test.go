// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/pellucid-mcp/pellucid/record/index"
	"github.com/pellucid-mcp/pellucid/record/sequence"
	"github.com/pellucid-mcp/pellucid/storage"
)

// BenchmarkIndexBeside records 20,000 events in a log, by 64, each batch durable and added before the next, with
// a follower that indexes them beside it and without one, in turns.
func BenchmarkIndexBeside(b *testing.B) {
	const records, batch, rounds = 20_000, 64, 3
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "engine\tindexed\trecords/s\tbatch p50\tp99")
	for _, engine := range []string{"sqlite", "postgres"} {
		b.Run(engine, func(b *testing.B) {
			for range rounds {
				for _, indexed := range []bool{false, true} {
					where := filepath.Join(b.TempDir(), "beside.db")
					if engine == "postgres" {
						where = server.Database(b)
					}
					s := open(b, where, storage.Options{Wait: time.Minute, Cache: 8 << 20})
					l, d := s.Ledger(), deed{rand.New(rand.NewPCG(1, 1))}
					f := index.NewFollower(l, quiet)
					o := sequence.Options{Store: l, Origin: origin, Keys: keyring(b), Chain: l.Chain(), Window: time.Millisecond, Integrated: f.Integrated}
					run, stop := context.WithCancel(ctx)
					done := make(chan struct{})
					if indexed {
						go func() { f.Follow(run); close(done) }()
					} else {
						o.Integrated = nil
						close(done)
					}
					seq := sequence.New(o)
					var took []time.Duration
					began := time.Now()
					for i := 0; i < records; i += batch {
						part := make([][]byte, batch)
						for j := range part {
							part[j] = seal(b, d.event(time.Now()))
						}
						at := time.Now()
						add(b, l, part...)
						flush(b, seq)
						took = append(took, time.Since(at))
					}
					rate := records / time.Since(began).Seconds()
					stop()
					<-done
					slices.Sort(took)
					fmt.Fprintf(table, "%s\t%v\t%.0f\t%.1f ms\t%.1f ms\n", engine, indexed, rate, milliseconds(took[len(took)/2]), milliseconds(took[len(took)*99/100]))
				}
			}
			table.Flush()
		})
	}
}
