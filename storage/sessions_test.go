// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pellucid-mcp/pellucid/mcp/session"
	"github.com/pellucid-mcp/pellucid/platform/lease"
	"github.com/pellucid-mcp/pellucid/storage"
)

// TestSessions walks records of sessions through all that can become of them, on each engine.
func TestSessions(t *testing.T) {
	t.Parallel()
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
		if own, err := s.SessionOwner(ctx, "a"); own != (session.Owner{}) || err != nil {
			t.Errorf("%+v, %v", own, err)
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
		if own, err := s.SessionOwner(ctx, "a"); own != (session.Owner{Holder: "host-1", Fence: 1}) || err != nil {
			t.Errorf("%+v, %v", own, err)
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
		_, err = s.SessionOwner(ctx, "c")
		want(err, session.ErrEnded)

		// What is kept of a person goes, and the sessions stay ended.
		want(s.KeepSession(ctx, b), nil)
		if f, err := s.Forget(ctx, "bob", nil); err != nil || f.Sessions != 1 {
			t.Errorf("%+v, %v", f, err)
		}
		is(session.Record{ID: "b", Fence: 1, Ended: true, Seen: day, Until: b.Until})
		if f, err := s.Forget(ctx, "bob", nil); err != nil || f.Sessions != 0 {
			t.Errorf("%+v, %v", f, err)
		}
		want(s.SweepSessions(ctx, day.Add(time.Hour), 10), nil)
		_, err = s.Session(ctx, "a")
		want(err, session.ErrNotFound)
		is(session.Record{ID: "b", Fence: 1, Ended: true, Seen: day, Until: b.Until})
	})
}

// TestSessionClaims: of many processes that see one fence, exactly one gets the session.
func TestSessionClaims(t *testing.T) {
	t.Parallel()
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

// freeLogLease leaves a lease that no process holds.
func freeLogLease(t *testing.T, s *storage.Store) {
	t.Helper()
	row, err := s.ClaimLease(ctx, lease.Row{Name: "log"}, "x", "")
	if err == nil {
		err = s.FreeLease(ctx, row, false)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestSessionsOfLivingOwners: no process gets a session whose owner has its lease, whatever fence it has seen. The owner
// itself may claim it again, and once its lease has ended others may.
func TestSessionsOfLivingOwners(t *testing.T) {
	engines(t, func(t *testing.T, where string) {
		s := open(t, where, storage.Options{})
		freeLogLease(t, s)
		row, err := s.ClaimLease(ctx, lease.Row{Name: storage.ReplicaLease + "r1"}, "first", "a:1")
		if err != nil {
			t.Fatal(err)
		}
		claim := func(owner string, fence int64, want bool) {
			t.Helper()
			ok, err := s.ClaimSession(ctx, session.Record{ID: "a", Fence: fence, Seen: day, Until: day.Add(time.Hour)}, owner)
			if ok != want || err != nil {
				t.Fatalf("%s: %v, %v", owner, ok, err)
			}
		}
		claim("first", 0, true)
		claim("second", 1, false)
		claim("first", 1, true)
		if own, err := s.SessionOwner(ctx, "a"); own != (session.Owner{Holder: "first", Fence: 2, Address: "a:1"}) || err != nil {
			t.Errorf("%+v, %v", own, err)
		}
		if err := s.FreeLease(ctx, row, false); err != nil {
			t.Fatal(err)
		}
		if own, err := s.SessionOwner(ctx, "a"); own != (session.Owner{Holder: "first", Fence: 2}) || err != nil {
			t.Errorf("%+v, %v", own, err)
		}
		claim("second", 1, false)
		claim("second", 2, true)
		if err := s.ReleaseSession(ctx, "a", "second", day); err != nil {
			t.Fatal(err)
		}
		claim("third", 3, true)
	})
}

// TestSessionsOfGoneOwners: a record that holds nothing but an owner that is gone is swept after a day; one of a
// process that lives, one with state and one of a session that has ended stay until their time is over.
func TestSessionsOfGoneOwners(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, where string) {
		s := open(t, where, storage.Options{})
		if _, err := s.ClaimLease(ctx, lease.Row{Name: storage.ReplicaLease + "r1"}, "alive", "a:1"); err != nil {
			t.Fatal(err)
		}
		freeLogLease(t, s)
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
			if err := s.SweepSessions(ctx, at, 10); err != nil {
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

// TestSessionsReleased: a process lets go of sessions that it does not use; what holds nothing else than that is
// swept soon, and the next claim of it begins anew.
func TestSessionsReleased(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, where string) {
		s := open(t, where, storage.Options{})
		later := day.Add(time.Hour)
		claim := func(id, owner string, fence int64, seen time.Time) {
			t.Helper()
			r := session.Record{ID: id, Fence: fence, Principal: session.PrincipalDigest("ann"), Seen: seen, Until: day.Add(720 * time.Hour)}
			if ok, err := s.ClaimSession(ctx, r, owner); err != nil || !ok {
				t.Fatal(ok, err)
			}
		}
		for _, id := range []string{"bare", "state", "used", "recent"} {
			claim(id, "self", 0, map[bool]time.Time{true: later, false: day}[id == "recent"])
		}
		claim("other", "other", 0, day)
		if err := s.KeepSession(ctx, session.Record{ID: "state", Fence: 1, State: []byte{1}, Seen: day, Until: day.Add(720 * time.Hour)}); err != nil {
			t.Fatal(err)
		}
		if err := s.ReleaseSessions(ctx, "self", later, later.Add(-time.Minute), func(id string) bool { return id == "used" }); err != nil {
			t.Fatal(err)
		}
		if err := s.ReleaseSession(ctx, "other", "self", later); err != nil { // of another owner
			t.Fatal(err)
		}
		for id, want := range map[string]string{"bare": "", "state": "", "used": "self", "recent": "self", "other": "other"} {
			if own, err := s.SessionOwner(ctx, id); own != (session.Owner{Holder: want, Fence: 1}) || err != nil {
				t.Errorf("%s: %+v, %v", id, own, err)
			}
		}
		for _, at := range []time.Duration{9 * time.Minute, 11 * time.Minute} {
			if err := s.SweepSessions(ctx, later.Add(at), 10); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Session(ctx, "bare"); (err == nil) != (at < 10*time.Minute) {
				t.Errorf("after %v: %v", at, err)
			}
		}
		if r, err := s.Session(ctx, "state"); err != nil || !slices.Equal(r.State, []byte{1}) {
			t.Errorf("the state of a released session: %+v, %v", r, err)
		}
		claim("bare", "other", 0, later)
		claim("state", "other", 1, later)
	})
}

// TestSessionsOfOnePrincipal: the records of one principal are bounded. Those go first that hold nothing, then
// those of sessions that have ended, then those with a state, of each the oldest; none of a session that a
// process has which lives, of another principal, or of a person whose data was erased.
func TestSessionsOfOnePrincipal(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, where string) {
		s := open(t, where, storage.Options{})
		if _, err := s.ClaimLease(ctx, lease.Row{Name: storage.ReplicaLease + "r1"}, "alive", "a:1"); err != nil {
			t.Fatal(err)
		}
		freeLogLease(t, s)
		put := func(who, id string, minute int) {
			t.Helper()
			kind, _, _ := strings.Cut(id, "-")
			r := session.Record{ID: who + " " + id, Principal: session.PrincipalDigest(who), Seen: day.Add(time.Duration(minute) * time.Minute), Until: day.Add(720 * time.Hour)}
			var err error
			switch kind {
			case "alive", "gone":
				_, err = s.ClaimSession(ctx, r, kind)
			case "state":
				r.State = []byte{1}
				err = s.KeepSession(ctx, r)
			case "ended":
				err = s.EndSession(ctx, r)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		for _, who := range []string{"ann", ""} {
			for i, id := range []string{"alive-1", "alive-2", "gone-1", "ended-1", "ended-2", "state-1", "state-2", "state-3"} {
				put(who, id, i)
			}
		}
		put("bob", "gone-1", 0)
		for i := range 20 {
			put("eve", "ended-"+strconv.Itoa(i), i)
		}
		if _, err := s.Forget(ctx, "eve", nil); err != nil {
			t.Fatal(err)
		}
		left(t, s, 8, []string{"alive-1", "alive-2", "ended-1", "ended-2", "gone-1", "state-1", "state-2", "state-3"})
		left(t, s, 7, []string{"alive-1", "alive-2", "ended-1", "ended-2", "state-1", "state-2", "state-3"})
		left(t, s, 6, []string{"alive-1", "alive-2", "ended-2", "state-1", "state-2", "state-3"})
		left(t, s, 4, []string{"alive-1", "alive-2", "state-2", "state-3"})
		left(t, s, 1, []string{"alive-1", "alive-2"})
		if _, err := s.Session(ctx, "bob gone-1"); err != nil {
			t.Errorf("of another principal: %v", err)
		}
		for i := range 20 {
			if r, err := s.Session(ctx, "eve ended-"+strconv.Itoa(i)); err != nil || !r.Ended {
				t.Errorf("of a person whose data was erased: %+v, %v", r, err)
			}
		}
	})
}

// left sweeps, and compares the sessions that are left of ann and of callers without a name.
func left(t *testing.T, s *storage.Store, most int, want []string) {
	t.Helper()
	if err := s.SweepSessions(ctx, day, most); err != nil {
		t.Fatal(err)
	}
	for _, who := range []string{"ann", ""} {
		var got []string
		for _, id := range []string{"alive-1", "alive-2", "ended-1", "ended-2", "gone-1", "state-1", "state-2", "state-3"} {
			if _, err := s.Session(ctx, who+" "+id); err == nil {
				got = append(got, id)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("at most %d of %q: %q, want %q", most, who, got, want)
		}
	}
}

// TestReleaseUsedMeanwhile: a session that is used while the others are let go of stays.
func TestReleaseUsedMeanwhile(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, where string) {
		s := open(t, where, storage.Options{})
		for _, id := range []string{"idle", "used"} {
			r := session.Record{ID: id, Principal: session.PrincipalDigest("ann"), Seen: day, Until: day.Add(time.Hour)}
			if _, err := s.ClaimSession(ctx, r, "self"); err != nil {
				t.Fatal(err)
			}
		}
		later := day.Add(10 * time.Minute)
		err := s.ReleaseSessions(ctx, "self", later, later.Add(-time.Minute), func(id string) bool {
			if id == "used" {
				r, err := s.Session(ctx, id)
				if err != nil {
					t.Fatal(err)
				}
				r.Seen = later
				if err := s.KeepSession(ctx, r); err != nil {
					t.Fatal(err)
				}
			}
			return false
		})
		if err != nil {
			t.Fatal(err)
		}
		for id, want := range map[string]string{"idle": "", "used": "self"} {
			if own, err := s.SessionOwner(ctx, id); own.Holder != want || err != nil {
				t.Errorf("%s: %+v, %v", id, own, err)
			}
		}
	})
}
