// SPDX-License-Identifier: Apache-2.0

package pgtest

import (
	"database/sql"
	"errors"
	"testing"

	"github.com/pellucid-mcp/pellucid/platform/programtest"
)

// TestPair: what was committed before a failover is there after it, under the same URL, and a
// new standby takes the place of the old primary.
func TestPair(t *testing.T) {
	t.Parallel()
	programtest.Need(t)
	p, err := StartPair()
	if errors.Is(err, ErrMissing) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer p.Stop()
	url, err := p.Database("rows")
	if err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(`CREATE TABLE t (n integer)`); err != nil {
		t.Fatal(err)
	}
	for round := range 2 {
		if _, err := db.Exec(`INSERT INTO t VALUES ($1)`, round); err != nil {
			t.Fatal(err)
		}
		if err := p.Failover(); err != nil {
			t.Fatal(err)
		}
		var n int
		for try := 0; ; try++ { // connections of the pool still lead to the server that has gone
			if err = db.QueryRow(`SELECT count(*) FROM t`).Scan(&n); err == nil {
				break
			}
			if try == 20 {
				t.Fatal(err)
			}
		}
		if n != round+1 {
			t.Errorf("round %d: %d rows after the failover, want %d", round, n, round+1)
		}
		if err := p.Rejoin(); err != nil {
			t.Fatal(err)
		}
	}
}
