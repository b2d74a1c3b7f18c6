// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/storage"
)

const (
	heldServers = 50
)

// fillHeld stores n items, the newest at day: one of ten waits, one of a thousand has expired and was not swept.
func fillHeld(t testing.TB, db *sql.DB, postgres bool, n int) {
	t.Helper()
	bytes := func(n int) string {
		if postgres {
			return fmt.Sprintf(`'\x%064x'`, n)
		}
		return fmt.Sprintf("x'%064x'", n)
	}
	const format = "2006-01-02T15:04:05.999999999"
	db.SetMaxOpenConns(1)
	if !postgres {
		if _, err := db.Exec("PRAGMA cache_size = -500000; PRAGMA synchronous = OFF"); err != nil {
			t.Fatal(err)
		}
	}
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	insert := func(rows []string) {
		if _, err := tx.Exec(`INSERT INTO held (id, server, tool, principal, rule, code, call, digest, octets, body, at, until, state, decided, decider) VALUES ` + strings.Join(rows, ",")); err != nil {
			t.Fatal(err)
		}
	}
	var rows []string
	for i := range n {
		at := day.Add(-time.Duration(i) * 2 * time.Second)
		state, until, decided := []string{"taken", "denied", "expired"}[i%3], at.Add(24*time.Hour), at.Add(time.Hour).Format(format)
		switch {
		case i%10 == 0:
			state, until, decided = "held", day.Add(24*time.Hour), ""
		case i%1000 == 5:
			state, until, decided = "held", day.Add(-time.Minute), ""
		}
		rows = append(rows, fmt.Sprintf("('%s','s%d','t%d','p%d','%s','%s',%s,%s,200,NULL,'%s','%s','%s','%s','')",
			heldID(i*7919%n), i%heldServers, i%500, i%1009, []string{"finding", "policy:a", "classifier:b"}[i%3], []string{"hidden-tag", "role-marker", "hidden-bidi", "nfkc"}[i%4],
			bytes(i), bytes(i%20011), at.Format(format), until.Format(format), state, decided))
		if len(rows) == 2000 {
			insert(rows)
			rows = rows[:0]
		}
	}
	if len(rows) > 0 {
		insert(rows)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec("ANALYZE"); err != nil {
		t.Fatal(err)
	}
}

// BenchmarkHeld lists pages of PELLUCID_BENCH_HELD items (default 1,000,000), and sweeps what is old.
func BenchmarkHeld(b *testing.B) {
	n := 1_000_000
	if s, err := strconv.Atoi(os.Getenv("PELLUCID_BENCH_HELD")); err == nil {
		n = s
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "engine\tlist of 100\tp50\tp99")
	for _, engine := range []string{"sqlite", "postgres"} {
		b.Run(engine, func(b *testing.B) {
			where := filepath.Join(b.TempDir(), "held.db")
			if engine == "postgres" {
				where = server.Database(b)
			}
			s := open(b, where, storage.Options{Wait: time.Minute})
			fillHeld(b, raw(b, where), engine == "postgres", n)
			now := func() time.Time { return day }
			q := hold.New(s, hold.Options{Now: now})
			for _, page := range heldPages(n) {
				var took []time.Duration
				for range 200 {
					began := time.Now()
					p, err := q.Page(ctx, page.f)
					took = append(took, time.Since(began))
					if err != nil || len(p.Items) != page.want && page.want >= 0 && (p.Next == "" || page.want > 0) {
						b.Fatalf("%s: %d items, %v", page.name, len(p.Items), err)
					}
				}
				slices.Sort(took)
				fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", engine, page.name, took[len(took)/2].Round(10*time.Microsecond), took[len(took)*99/100].Round(10*time.Microsecond))
			}
			for _, by := range hold.Groups {
				var took []time.Duration
				for range 20 {
					began := time.Now()
					if _, err := q.Groups(ctx, hold.Filter{State: hold.Held}, by, hold.MostFirst, 0); err != nil {
						b.Fatal(err)
					}
					took = append(took, time.Since(began))
				}
				slices.Sort(took)
				fmt.Fprintf(table, "%s\theld, by %s\t%s\t%s\n", engine, by, took[10].Round(10*time.Microsecond), took[19].Round(10*time.Microsecond))
			}
			var took []time.Duration
			for i := range 200 {
				began := time.Now()
				if err := q.Hold(ctx, hold.Item{ID: heldID(5*n + i), Server: "new", Rule: "finding"}); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(began))
			}
			slices.Sort(took)
			fmt.Fprintf(table, "%s\tone item is held\t%s\t%s\n", engine, took[100].Round(10*time.Microsecond), took[198].Round(10*time.Microsecond))
			took = nil
			for i := range 200 {
				began := time.Now()
				if err := q.Deny(ctx, heldID(5*n+i), "ann"); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(began))
			}
			slices.Sort(took)
			fmt.Fprintf(table, "%s\tone item is denied\t%s\t%s\n", engine, took[100].Round(10*time.Microsecond), took[198].Round(10*time.Microsecond))
			table.Flush()
		})
	}
}

type heldPage struct {
	name string
	f    hold.Filter
	want int
}

func heldPages(n int) []heldPage {
	return []heldPage{
		{"all", hold.Filter{}, 100}, {"held", hold.Filter{State: hold.Held}, 100}, {"expired", hold.Filter{State: hold.Expired}, 100},
		{"denied", hold.Filter{State: hold.Denied}, 100}, {"released: none", hold.Filter{State: hold.Released}, 0},
		{"of a server", hold.Filter{Server: "s7"}, 100}, {"held, of a server", hold.Filter{State: hold.Held, Server: "s10"}, 100},
		{"held, of a server: none", hold.Filter{State: hold.Held, Server: "s7"}, 0}, {"of a tool", hold.Filter{Tool: "t123"}, 100},
		{"held, of a tool: none", hold.Filter{State: hold.Held, Tool: "t123"}, 0},
		{"held, of a code", hold.Filter{State: hold.Held, Code: "hidden-bidi"}, 100}, {"of a code", hold.Filter{Code: "nfkc"}, 100},
		{"held, of a rule", hold.Filter{State: hold.Held, Rule: "policy:a"}, 100}, {"held, of a principal", hold.Filter{State: hold.Held, Principal: "p10"}, -1},
		{"of a principal", hold.Filter{Principal: "p10"}, -1}, {"of a digest", hold.Filter{Digest: hold.Digest{30: 1, 31: 4}}, -1},
		{"held, of a server and a code", hold.Filter{State: hold.Held, Server: "s10", Code: "hidden-bidi"}, 100},
		{"held, of a server and a code: none", hold.Filter{State: hold.Held, Server: "s10", Code: "nfkc"}, 0},
		{"of a code and a rule: few", hold.Filter{Code: "nfkc", Rule: "policy:a", Principal: "p10"}, -1},
		{"held, with a text: none", hold.Filter{State: hold.Held, Text: "obey"}, 0}, {"with a finding: none", hold.Filter{Found: "hidden-tag"}, 0},
		{"held, of an hour", hold.Filter{State: hold.Held, Since: day.Add(-5 * time.Hour), AsOf: day.Add(-4 * time.Hour)}, 100},
		{"held, the oldest first", hold.Filter{State: hold.Held, Oldest: true}, 100},
		{"of no server", hold.Filter{Server: "none"}, 0}, {"of no tool", hold.Filter{Tool: "none"}, 0},
	}
}
