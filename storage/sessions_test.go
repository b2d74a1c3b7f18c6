// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pellucid-mcp/pellucid/mcp/session"
	"github.com/pellucid-mcp/pellucid/platform/replica"
	"github.com/pellucid-mcp/pellucid/storage"
)

// TestSessions walks records of sessions through all that can become of them, on each engine.
func TestSessions(t *testing.T) {
	engines(t, func(t *testing.T, where string) {
		s := open(t, where, storage.Options{})
		r := session.Record{ID: "a", Server: "files", Principal: session.PrincipalDigest("ann"), State: []byte("one"), Seen: day, Until: day.Add(time.Hour)}
		is := func(want session.Record) {
			t.Helper()
			got, err := s.Session(ctx, want.ID)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		}
		want := func(err, want error) {
			t.Helper()
			if !errors.Is(err, want) {
				t.Errorf("%v, want %v", err, want)
			}
		}
		_, err := s.Session(ctx, "a")
		want(err, session.ErrNotFound)
		if owner, fence, err := s.SessionOwner(ctx, "a"); owner != "" || fence != 0 || err != nil {
			t.Errorf("%q, %d, %v", owner, fence, err)
		}
		want(s.KeepSession(ctx, r), nil)
		is(r)
		r.State, r.Seen = []byte("two"), day.Add(time.Minute)
		want(s.KeepSession(ctx, r), nil)
		is(r)

		// A claim needs the fence that the claimant has seen, and leaves the state alone.
		stale := r
		stale.State = nil
		if ok, err := s.ClaimSession(ctx, stale, "host-1"); !ok || err != nil {
			t.Fatalf("%v, %v", ok, err)
		}
		if ok, err := s.ClaimSession(ctx, stale, "host-2"); ok || err != nil {
			t.Errorf("claimed twice: %v, %v", ok, err)
		}
		want(s.KeepSession(ctx, stale), session.ErrFence)
		r.Owner, r.Fence = "host-1", 1
		is(r)
		if owner, fence, err := s.SessionOwner(ctx, "a"); owner != "host-1" || fence != 1 || err != nil {
			t.Errorf("%q, %d, %v", owner, fence, err)
		}
		r.State = []byte("three")
		want(s.KeepSession(ctx, r), nil)
		is(r)

		// A session without a record is claimed too.
		b := session.Record{ID: "b", Server: "", Principal: session.PrincipalDigest("bob"), Seen: day, Until: day.Add(2 * time.Hour)}
		if ok, err := s.ClaimSession(ctx, b, "host-2"); !ok || err != nil {
			t.Errorf("%v, %v", ok, err)
		}
		b.Owner, b.Fence = "host-2", 1
		is(b)

		// An end is for good, whatever the fence, and also where there was no record.
		want(s.EndSession(ctx, r), nil)
		want(s.EndSession(ctx, session.Record{ID: "c", Principal: r.Principal, Seen: day, Until: day.Add(time.Hour)}), nil)
		ended := r
		ended.Ended, ended.Owner, ended.State = true, "", nil
		is(ended)
		want(s.KeepSession(ctx, r), session.ErrEnded)
		_, err = s.ClaimSession(ctx, r, "host-2")
		want(err, session.ErrEnded)
		_, _, err = s.SessionOwner(ctx, "c")
		want(err, session.ErrEnded)

		// What is kept of a person goes, and the sessions stay ended.
		want(s.KeepSession(ctx, b), nil)
		if f, err := s.Forget(ctx, "bob"); err != nil || f.Sessions != 1 {
			t.Errorf("%+v, %v", f, err)
		}
		is(session.Record{ID: "b", Fence: 1, Ended: true, Seen: day, Until: b.Until})
		if f, err := s.Forget(ctx, "bob"); err != nil || f.Sessions != 0 {
			t.Errorf("%+v, %v", f, err)
		}
		want(s.SweepSessions(ctx, day.Add(time.Hour)), nil)
		_, err = s.Session(ctx, "a")
		want(err, session.ErrNotFound)
		is(session.Record{ID: "b", Fence: 1, Ended: true, Seen: day, Until: b.Until})
	})
}

// TestSessionClaims: of many processes that see one fence, exactly one gets the session.
func TestSessionClaims(t *testing.T) {
	engines(t, func(t *testing.T, where string) {
		s := open(t, where, storage.Options{})
		for fence := range int64(4) {
			var won atomic.Int64
			var all sync.WaitGroup
			for range 8 {
				all.Go(func() {
					ok, err := s.ClaimSession(ctx, session.Record{ID: "a", Fence: fence, Seen: day, Until: day.Add(time.Hour)}, "host")
					if err != nil {
						t.Error(err)
					}
					if ok {
						won.Add(1)
					}
				})
			}
			all.Wait()
			if won.Load() != 1 {
				t.Errorf("fence %d: %d processes have the session", fence, won.Load())
			}
		}
	})
}

// TestSessionsOfGoneOwners: a record that holds nothing but an owner that is gone is swept after a day; one of a
// process that lives, one with state and one of a session that has ended stay until their time is over.
func TestSessionsOfGoneOwners(t *testing.T) {
	engines(t, func(t *testing.T, where string) {
		s := open(t, where, storage.Options{})
		if _, err := s.BeatReplica(ctx, replica.Row{ID: "alive", Address: "a:1", Started: "2026-01-01T00:00:00Z"}, true); err != nil {
			t.Fatal(err)
		}
		for id, owner := range map[string]string{"gone": "gone", "alive": "alive", "state": "gone", "ended": "gone"} {
			r := session.Record{ID: id, Seen: day, Until: day.Add(720 * time.Hour)}
			if ok, err := s.ClaimSession(ctx, r, owner); err != nil || !ok {
				t.Fatal(ok, err)
			}
			r.Fence = 1
			switch id {
			case "state":
				r.State = []byte{1}
				if err := s.KeepSession(ctx, r); err != nil {
					t.Fatal(err)
				}
			case "ended":
				if err := s.EndSession(ctx, r); err != nil {
					t.Fatal(err)
				}
			}
		}
		left := func(at time.Time) (ids []string) {
			if err := s.SweepSessions(ctx, at); err != nil {
				t.Fatal(err)
			}
			for _, id := range []string{"alive", "ended", "gone", "state"} {
				if _, err := s.Session(ctx, id); err == nil {
					ids = append(ids, id)
				}
			}
			return ids
		}
		if got := left(day.Add(23 * time.Hour)); len(got) != 4 {
			t.Errorf("within a day: %q", got)
		}
		if got := left(day.Add(25 * time.Hour)); !slices.Equal(got, []string{"alive", "ended", "state"}) {
			t.Errorf("after a day: %q", got)
		}
	})
}
