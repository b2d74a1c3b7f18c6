// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"context"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/pgtest"
	"github.com/pellucid-mcp/pellucid/platform/waittest"
	"github.com/pellucid-mcp/pellucid/storage"
)

// TestReplication: what is said of a primary without a standby, with an asynchronous one, with a
// synchronous one, and of one whose synchronous standby is gone; and that records go on where they may.
func TestReplication(t *testing.T) {
	t.Parallel()
	var primary pgtest.Server
	t.Cleanup(primary.Stop)
	where := primary.Database(t)
	s := open(t, where, storage.Options{})
	says := func(what string, want storage.Replication) {
		t.Helper()
		var got *storage.Replication
		var err error
		defer func() {
			if t.Failed() {
				t.Logf("%s: %+v, %v", what, got, err)
			}
		}()
		waittest.Until(t, what, func() bool {
			got, err = s.Replication(ctx)
			return err == nil && *got == want
		})
	}
	set := func(names string) {
		t.Helper()
		for _, q := range []string{"ALTER SYSTEM SET synchronous_standby_names = '" + names + "'", "SELECT pg_reload_conf()"} {
			if _, err := raw(t, primary.URL(t)).Exec(q); err != nil {
				t.Fatal(err)
			}
		}
	}
	record := func() error {
		ctx, stop := context.WithTimeout(ctx, 2*time.Second)
		defer stop()
		return s.Ledger().Add(ctx, [][]byte{sealed(t, "a")})
	}
	says("alone", storage.Replication{})
	stop := primary.Standby(t)
	says("asynchronous", storage.Replication{Standbys: 1})
	if r, _ := s.Replication(ctx); !r.Asynchronous() || r.Missing() {
		t.Errorf("%+v", r)
	}
	set("*")
	says("synchronous", storage.Replication{Standbys: 1, Synchronous: 1, Waits: true})
	if err := record(); err != nil {
		t.Errorf("with a synchronous standby: %v", err)
	}
	stop()
	says("gone", storage.Replication{Waits: true})
	if r, _ := s.Replication(ctx); r.Asynchronous() || !r.Missing() {
		t.Errorf("%+v", r)
	}
	if err := record(); err == nil {
		t.Error("a record is acknowledged that no standby has")
	}
	waiting := make(chan error, 12) // more than there are connections
	for range cap(waiting) {
		go func() { waiting <- s.Ledger().Add(ctx, [][]byte{sealed(t, "a")}) }()
	}
	time.Sleep(time.Second)
	for done := 0; done < cap(waiting); {
		if err := s.CommitAlone(ctx, true); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-waiting:
			if done++; err != nil {
				t.Errorf("a record that waited for the standby: %v", err)
			}
		case <-time.After(100 * time.Millisecond):
		}
	}
	if err := record(); err != nil {
		t.Errorf("in the primary alone: %v", err)
	}
	if err := s.CommitAlone(ctx, false); err != nil {
		t.Fatal(err)
	}
	if err := record(); err == nil {
		t.Error("a record is acknowledged that no standby has")
	}
	set("")
}
