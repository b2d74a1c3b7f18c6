// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"database/sql"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/record/sequence"
	"github.com/pellucid-mcp/pellucid/storage"
)

// BenchmarkLedgerSize fills a log on Postgres with PELLUCID_BENCH_RECORDS records (20,000), and says how
// many bytes each table has and how long a reader waits.
func BenchmarkLedgerSize(b *testing.B) {
	n, err := strconv.Atoi(os.Getenv("PELLUCID_BENCH_RECORDS"))
	if err != nil {
		n = 20_000
	}
	where := server.Database(b)
	s, err := storage.Open(ctx, where, storage.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	l := s.Ledger()
	seq := sequence.New(sequence.Options{Store: l, Origin: origin, Keys: keyring(b), Chain: l.Chain(), Window: time.Millisecond})
	for b.Loop() {
		began := time.Now()
		for done := 0; done < n; {
			part := make([][]byte, min(2048, n-done))
			for i := range part {
				part[i] = sealed(b, "files")
			}
			if err := l.Add(ctx, part); err != nil {
				b.Fatal(err)
			}
			if done += len(part); done%(8*2048) == 0 || done == n {
				flush(b, seq)
			}
		}
		b.ReportMetric(float64(n)/time.Since(began).Seconds(), "records/s")
	}
	db, err := sql.Open("pgx", where)
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec("VACUUM ANALYZE"); err != nil {
		b.Fatal(err)
	}
	head, err := l.Head(ctx)
	if err != nil {
		b.Fatal(err)
	}
	for _, table := range []string{"ledger_leaves", "ledger_entries", "ledger_chain", "ledger_tiles", "ledger_pending"} {
		var whole, indexes int64
		if err := db.QueryRow("SELECT pg_total_relation_size($1), pg_indexes_size($1)", table).Scan(&whole, &indexes); err != nil {
			b.Fatal(err)
		}
		b.Logf("%-15s %12d bytes, %d a record, %d of them in indexes", table, whole, whole/head.Size, indexes)
	}
	for _, read := range []struct {
		name string
		do   func(index int64) error
	}{
		{"a tile of hashes", func(i int64) error { _, err := l.Tile(ctx, 0, i/256, 256); return err }},
		{"a bundle of 256 records", func(i int64) error { _, err := l.Entries(ctx, i/256*256, 256); return err }},
		{"a proof", func(i int64) error { _, err := ledger.Prove(ctx, l, i); return err }},
		{"a record by its index", func(i int64) error { _, err := l.At(ctx, i); return err }},
		{"the newest 100 records", func(int64) error { _, err := l.List(ctx, sequence.Filter{}); return err }},
		{"the keys of the log", func(int64) error { _, err := l.Keys(ctx); return err }},
	} {
		const times = 50
		began := time.Now()
		for i := range int64(times) {
			if err := read.do(i * (head.Size - 512) / times); err != nil {
				b.Fatal(read.name, err)
			}
		}
		b.Logf("%-25s %v", read.name, time.Since(began)/times)
	}
}
