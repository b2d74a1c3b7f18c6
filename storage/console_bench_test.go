// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/pellucid-mcp/pellucid/record/index"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/storage"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

const (
	benchServers    = 20
	benchTools      = 25 // of each server
	benchPrincipals = 200
)

// benchRows makes n rows, the last of which is at day: of servers, tools, principals and contents by Zipf's law,
// more by day than by night.
func benchRows(n int, span time.Duration, do func([]index.Row)) {
	d := rand.New(rand.NewPCG(7, 8))
	servers, tools := rand.NewZipf(d, 1.3, 2, benchServers-1), rand.NewZipf(d, 1.2, 2, benchTools-1)
	people, contents := rand.NewZipf(d, 1.2, 2, benchPrincipals-1), rand.NewZipf(d, 1.05, 1, uint64(n))
	codes := []finding.Code{finding.HiddenTag, finding.RoleMarker, finding.Unapproved, finding.SchemaInvalid, finding.Violation}
	at := day.Add(-span)
	step := span / time.Duration(n)
	var rows []index.Row
	for i := range n {
		pace := step / 2
		if h := at.Hour(); h < 7 || h > 19 {
			pace = step * 3 / 2
		}
		at = at.Add(time.Duration(d.Int64N(int64(2*pace) + 1)))
		r := index.Row{Index: int64(i), Time: at, Kind: ledger.Message, Server: fmt.Sprint("server", servers.Uint64()), Verdict: "passed"}
		r.Tool = fmt.Sprint(r.Server, "-tool", tools.Uint64())
		for j := range r.ID {
			r.ID[j] = byte(d.Uint32())
		}
		switch x := d.IntN(1000); {
		case x < 60:
			r.Verdict, r.Codes = "changed", []ledger.Count{{Code: codes[d.IntN(len(codes))], N: 1}}
		case x < 66:
			r.Verdict, r.Codes = "withheld", []ledger.Count{{Code: codes[d.IntN(len(codes))], N: 2}}
		case x < 67:
			r.Verdict, r.Codes = "dropped", []ledger.Count{{Code: finding.Violation, N: 1}}
		case x < 73:
			r.Kind, r.Verdict = ledger.ResultHeld, ""
			r.Of[0], r.Of[1] = byte(d.Uint32()), 1
		}
		who := sha256.Sum256(fmt.Append(nil, "person", people.Uint64()))
		r.Subjects = []ledger.Subject{{Role: ledger.Delivered, Digest: deedDigest(int(contents.Uint64()))}, {Role: ledger.Principal, Digest: who}}
		if rows = append(rows, r); len(rows) == 4096 || i == n-1 {
			do(rows)
			rows = rows[:0]
		}
	}
}

// benchQueries are the queries of the pages that read the index.
func benchQueries(now time.Time) []struct {
	name string
	do   func(*storage.View) error
} {
	type query = struct {
		name string
		do   func(*storage.View) error
	}
	var out []query
	add := func(name string, do func(*storage.View) error) { out = append(out, query{name, do}) }
	search := func(name, text string, after bool) {
		f, err := index.Parse(text, now)
		if err != nil {
			panic(err)
		}
		first := storage.Page{Limit: 50}
		add("records: "+name, func(v *storage.View) error { _, err := v.List(&f, first); return err })
		next := first
		if after {
			add("records: "+name+", next page", func(v *storage.View) error {
				if next.After == (storage.Cursor{}) { // once
					list, err := v.List(&f, first)
					if err != nil {
						return err
					}
					next.After = list.Next
				}
				_, err := v.List(&f, next)
				return err
			})
		}
	}
	search("all", "", true)
	search("odd span", "since:2026-04-01T03:17:00Z until:2026-04-20T11:11:11Z", true)
	search("verdict", "verdict:dropped", true)
	search("common verdict", "verdict:passed", true)
	search("server", "server:server0", true)
	search("rare server, rare verdict", "server:server19 verdict:dropped", false)
	search("tool", "tool:server3-tool7", true)
	search("tool, verdict, code", "tool:server0-tool0 verdict:withheld code:hidden-tag", true)
	search("code", "code:role-marker", true)
	search("code, server, 7 d", "code:hidden-tag server:server2 since:7d", true)
	search("common principal", "principal:person0", true)
	search("common principal, rare verdict", "principal:person0 verdict:dropped", false)
	search("principal, code", "principal:person7 code:hidden-tag", false)
	search("common content", "digest:"+fmt.Sprintf("%x", deedDigest(0)), true)
	search("rare content", "digest:"+fmt.Sprintf("%x", deedDigest(54321)), false)
	search("about", "of:00010000000000000000000000000000", false)
	search("nothing", "server:absent", false)
	return out
}

// BenchmarkConsoleIndex fills an index with PELLUCID_BENCH_RECORDS rows (1,000,000) of 30 days, or of the days that
// PELLUCID_BENCH_DAYS says, and times the queries of the console, each in a view of its own, and what adding rows takes.
func BenchmarkConsoleIndex(b *testing.B) {
	n, days := 1_000_000, 30
	if s, err := strconv.Atoi(os.Getenv("PELLUCID_BENCH_RECORDS")); err == nil {
		n = s
	}
	if s, err := strconv.Atoi(os.Getenv("PELLUCID_BENCH_DAYS")); err == nil {
		days = s
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	for _, engine := range []string{"sqlite", "postgres"} {
		b.Run(engine, func(b *testing.B) {
			where := filepath.Join(b.TempDir(), "index.db")
			if engine == "postgres" {
				where = server.Database(b)
			}
			l := open(b, where, storage.Options{Wait: time.Minute, Cache: 8 << 20}).Ledger()
			began := time.Now()
			benchRows(n, time.Duration(days)*24*time.Hour, func(rows []index.Row) {
				if err := l.Index(ctx, rows[0].Index, rows); err != nil {
					b.Fatal(err)
				}
			})
			took := time.Since(began)
			fmt.Fprintf(table, "%s\tindexing\t%.0f rows/s\t%s\n", engine, float64(n)/took.Seconds(), megabytes(onDisk(b, where)))
			if engine == "postgres" { // as autovacuum does
				if _, err := raw(b, where).Exec("VACUUM ANALYZE"); err != nil {
					b.Fatal(err)
				}
			}
			fmt.Fprintln(table, "engine\tquery\tp50\tp99")
			for _, q := range benchQueries(day) {
				var took []time.Duration
				for range 100 {
					began := time.Now()
					if err := l.View(ctx, q.do); err != nil {
						b.Fatal(q.name, err)
					}
					took = append(took, time.Since(began))
				}
				slices.Sort(took)
				fmt.Fprintf(table, "%s\t%s\t%.1f ms\t%.1f ms\n", engine, q.name, milliseconds(took[50]), milliseconds(took[98]))
			}
			table.Flush()
		})
	}
}

func milliseconds(d time.Duration) float64 { return float64(d) / 1e6 }
func megabytes(n int64) string             { return fmt.Sprintf("%d MB", n>>20) }

// onDisk is the size of the store.
func onDisk(b *testing.B, where string) (size int64) {
	if strings.HasPrefix(where, "postgres") {
		err := raw(b, where).QueryRow(`SELECT pg_database_size(current_database())`).Scan(&size)
		if err != nil {
			b.Fatal(err)
		}
		return size
	}
	err := filepath.WalkDir(filepath.Dir(where), func(_ string, d fs.DirEntry, err error) error {
		if info, ierr := d.Info(); err == nil && ierr == nil && !d.IsDir() {
			size += info.Size()
		}
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	return size
}
