// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"bufio"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/grounding/ground"
	"github.com/pellucid-mcp/pellucid/storage"
)

const perBatch = 25

// importForever is the child: it acknowledges each batch that Put has returned.
func importForever(where string) {
	s, err := openStore(where, storage.Options{})
	for n := 0; err == nil; n++ {
		var batch []ground.Record
		for i := range perBatch {
			batch = append(batch, numbered(n*perBatch+i))
		}
		if _, err = s.Put(ctx, batch, nil); err == nil {
			fmt.Println(n)
		}
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func numbered(i int) ground.Record { return record("v", fmt.Sprint("claim number ", i)) }

func TestKill(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, where string) {
		exe, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(exe)
		cmd.Env = append(os.Environ(), "PELLUCID_STORE_CHILD="+where)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		acknowledged := -1
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if acknowledged, err = strconv.Atoi(lines.Text()); err != nil {
				t.Fatal(err)
			}
			if acknowledged == 12 {
				cmd.Process.Kill()
			}
		}
		cmd.Wait()
		if acknowledged < 12 {
			t.Fatalf("child ended after batch %d", acknowledged)
		}
		s := open(t, where, storage.Options{})
		for i := range (acknowledged + 1) * perBatch {
			if _, err := s.ByHash(ctx, numbered(i).Hash); err != nil {
				t.Fatalf("acknowledged record %d is lost: %v", i, err)
			}
		}
		// What was under way is there whole or not at all.
		_, first := s.ByHash(ctx, numbered((acknowledged+1)*perBatch).Hash)
		_, last := s.ByHash(ctx, numbered((acknowledged+2)*perBatch-1).Hash)
		if errors.Is(first, ground.ErrNotFound) != errors.Is(last, ground.ErrNotFound) {
			t.Errorf("half a batch: %v, %v", first, last)
		}
		put(t, s, record("v", "The store still takes records."))
	})
}

// raw opens the database without the store.
func raw(t testing.TB, where string) *sql.DB {
	driver := "sqlite"
	if strings.HasPrefix(where, "postgres") {
		driver = "pgx"
	} else {
		where = "file:" + strings.NewReplacer("%", "%25", "?", "%3f", "#", "%23", " ", "%20").Replace(where) + "?_txlock=immediate"
	}
	db, err := sql.Open(driver, where)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func TestLocked(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, where string) {
		s := open(t, where, storage.Options{Wait: 300 * time.Millisecond})
		patient := open(t, where, storage.Options{Wait: time.Minute})
		tx, err := raw(t, where).Begin()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(`UPDATE schema_steps SET oldest = oldest`); err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(where, "postgres") {
			if _, err := tx.Exec(`LOCK TABLE schema_steps IN EXCLUSIVE MODE`); err != nil {
				t.Fatal(err)
			}
		}
		r, began := record("a", "Locked."), time.Now()
		if _, err := s.Put(ctx, []ground.Record{r}, nil); !errors.Is(err, ground.ErrBusy) || !errors.Is(err, storage.ErrBusy) {
			t.Errorf("Put while locked: %v", err)
		}
		if d := time.Since(began); d > 20*time.Second {
			t.Errorf("Put waited for %v", d)
		}
		if _, err := s.Search(ctx, ground.Query{Text: "locked"}); err != nil {
			t.Errorf("Search while locked: %v", err)
		}
		time.AfterFunc(50*time.Millisecond, func() { tx.Rollback() })
		if out := put(t, patient, r); out[0].Disposition != ground.Added {
			t.Errorf("after the lock: %+v", out)
		}
	})
}

func TestGone(t *testing.T) {
	t.Parallel()
	where := server.Database(t)
	s := open(t, where, storage.Options{})
	put(t, s, record("a", "Here."))
	// Drops every connection, and lets nobody in again.
	admin := raw(t, server.URL(t))
	name := strings.TrimSuffix(where[strings.LastIndexByte(where, 0x2f)+1:], "?sslmode=disable")
	if _, err := admin.Exec(`ALTER DATABASE ` + name + ` ALLOW_CONNECTIONS false`); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.Exec(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1`, name); err != nil {
		t.Fatal(err)
	}
	_, put := s.Put(ctx, []ground.Record{record("a", "Gone.")}, nil)
	_, find := s.Search(ctx, ground.Query{Text: "here"})
	for what, err := range map[string]error{"Put": put, "Search": find} {
		if !errors.Is(err, ground.ErrUnavailable) || strings.Contains(err.Error(), name) {
			t.Errorf("%s with the database gone: %v", what, err)
		}
	}
}
