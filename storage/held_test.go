// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/storage"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

func heldID(n int) string { return fmt.Sprintf("%032x", n) }

func held(n int, more ...func(*hold.Item)) hold.Item {
	it := hold.Item{
		ID: heldID(n), Server: "files", Tool: "read", Principal: "lab", Rule: "finding", Code: finding.RoleMarker,
		Call: hold.CallOf("lab", "files", "read", fmt.Append(nil, n)), Body: fmt.Appendf(nil, `{"content":[],"n":%d}`, n),
	}
	for _, f := range more {
		f(&it)
	}
	return it
}

// TestHold walks items through everything that can become of them.
func TestHold(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, where string) {
		now := day
		unknown := func(it *hold.Item) { it.Principal = "" }
		q := hold.New(open(t, where, storage.Options{}), hold.Options{Room: hold.Room{PerServer: 3}, Now: func() time.Time { return now }})
		for n := range 3 {
			now = now.Add(time.Minute)
			if err := q.Hold(ctx, held(n, unknown)); err != nil {
				t.Fatal(err)
			}
		}
		if err := q.Hold(ctx, held(3, unknown)); !errors.Is(err, hold.ErrFull) {
			t.Errorf("a fourth: %v", err)
		}
		if err := q.Hold(ctx, held(0, func(it *hold.Item) { it.Server, it.Principal = "other", "" })); !errors.Is(err, hold.ErrExists) {
			t.Errorf("an id twice: %v", err)
		}
		now = now.Add(time.Minute)
		if err := q.Hold(ctx, held(4, func(it *hold.Item) { it.Server, it.Principal = "other", "" })); err != nil {
			t.Errorf("another server: %v", err)
		}
		ids := func(f hold.Filter) (out []string) {
			t.Helper()
			items, err := q.List(ctx, f)
			if err != nil {
				t.Fatal(err)
			}
			for _, it := range items {
				if it.Body != nil {
					t.Error("a list holds bodies")
				}
				out = append(out, fmt.Sprint(it.ID[31:], " ", it.State))
			}
			return out
		}
		want := func(f hold.Filter, want ...string) {
			t.Helper()
			if diff := cmp.Diff(want, ids(f)); diff != "" {
				t.Error(diff)
			}
		}
		want(hold.Filter{Server: "files"}, "2 held", "1 held", "0 held")

		it, err := q.Get(ctx, heldID(1))
		if err != nil || !bytes.Equal(it.Body, held(1).Body) || it.Bytes != len(it.Body) || it.Code != finding.RoleMarker || it.Until.Sub(it.Held) != 24*time.Hour {
			t.Errorf("%+v, %v", it, err)
		}
		if _, ok := q.Take(ctx, held(1).Call); ok {
			t.Error("taken before it was released")
		}
		if err := q.Release(ctx, heldID(1), "ann"); err != nil {
			t.Error(err)
		}
		if err := q.Deny(ctx, heldID(1), "bob"); !errors.Is(err, hold.ErrDecided) {
			t.Errorf("decided twice: %v", err)
		}
		if err := q.Deny(ctx, heldID(2), "bob"); err != nil {
			t.Error(err)
		}
		if it, _ := q.Get(ctx, heldID(2)); it.Body != nil || it.By != "bob" || !it.Decided.Equal(now) {
			t.Errorf("denied: %+v", it)
		}
		want(hold.Filter{Server: "files"}, "2 denied", "1 released", "0 held")
		want(hold.Filter{State: hold.Released}, "1 released")
		if _, ok := q.Take(ctx, held(0).Call); ok {
			t.Error("another call's item was taken")
		}
		if it, ok := q.Take(ctx, held(1).Call); !ok || !bytes.Equal(it.Body, held(1).Body) || it.State != hold.Taken {
			t.Errorf("released: %+v, %t", it, ok)
		}
		if _, ok := q.Take(ctx, held(1).Call); ok {
			t.Error("taken twice")
		}
		if err := q.Release(ctx, heldID(77), "ann"); !errors.Is(err, hold.ErrNotFound) {
			t.Errorf("no item: %v", err)
		}

		now = now.Add(25 * time.Hour)
		want(hold.Filter{State: hold.Expired}, "4 expired", "0 expired")
		if it, err := q.Get(ctx, heldID(0)); err != nil || it.Body != nil || it.State != hold.Expired {
			t.Errorf("expired: %+v, %v", it, err)
		}
		if err := q.Release(ctx, heldID(0), "ann"); !errors.Is(err, hold.ErrDecided) {
			t.Errorf("released when expired: %v", err)
		}
		if n, err := q.Sweep(ctx); n != 0 || err != nil {
			t.Errorf("swept %d, %v", n, err)
		}
		want(hold.Filter{}, "4 expired", "2 denied", "1 taken", "0 expired")
		now = now.Add(31 * 24 * time.Hour)
		if n, err := q.Sweep(ctx); n != 4 || err != nil {
			t.Errorf("swept %d, %v", n, err)
		}
		want(hold.Filter{})
	})
}

// TestHoldSealed: what is sealed is released by whoever opens it, and by nobody else.
func TestHoldSealed(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, where string) {
		const head = "age-encryption.org/v1\n"
		fails := errors.New("no")
		var refuse error
		q := hold.New(open(t, where, storage.Options{}), hold.Options{Now: func() time.Time { return day }, Seal: func(body []byte) ([]byte, error) {
			return append([]byte(head), bytes.Repeat([]byte{'x'}, len(body))...), refuse
		}})
		for n := range 2 {
			if err := q.Hold(ctx, held(n)); err != nil {
				t.Fatal(err)
			}
		}
		it, err := q.Get(ctx, heldID(0))
		if err != nil || !it.Sealed() || bytes.Contains(it.Body, held(0).Body) || !it.Opened(held(0).Body) || it.Bytes != len(held(0).Body) {
			t.Errorf("%+v, %v", it, err)
		}
		if err := q.Release(ctx, heldID(0), "ann"); !errors.Is(err, hold.ErrSealed) {
			t.Errorf("released sealed: %v", err)
		}
		if err := q.ReleaseOpened(ctx, heldID(0), "ann", []byte("another")); !errors.Is(err, hold.ErrOpened) {
			t.Errorf("released as something else: %v", err)
		}
		if _, ok := q.Take(ctx, held(0).Call); ok {
			t.Error("taken before it was released")
		}
		if err := q.ReleaseOpened(ctx, heldID(0), "ann", held(0).Body); err != nil {
			t.Error(err)
		}
		if it, ok := q.Take(ctx, held(0).Call); !ok || !bytes.Equal(it.Body, held(0).Body) {
			t.Errorf("%+v, %t", it, ok)
		}
		if err := q.Deny(ctx, heldID(1), "ann"); err != nil {
			t.Errorf("denying needs no key: %v", err)
		}
		if it, err := q.Get(ctx, heldID(1)); err != nil || it.Body != nil {
			t.Errorf("denied: %+v, %v", it, err)
		}
		refuse = fails
		if err := q.Hold(ctx, held(2)); !errors.Is(err, fails) {
			t.Errorf("what cannot be sealed: %v", err)
		}
	})
}

// TestTakeOnce: however many ask, from however many processes, one gets it.
func TestTakeOnce(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, where string) {
		var queues []*hold.Queue
		for range 4 {
			queues = append(queues, hold.New(open(t, where, storage.Options{}), hold.Options{}))
		}
		if err := queues[0].Hold(ctx, held(1)); err != nil {
			t.Fatal(err)
		}
		if err := queues[1].Release(ctx, heldID(1), "ann"); err != nil {
			t.Fatal(err)
		}
		var got atomic.Int32
		var wg sync.WaitGroup
		for _, q := range queues {
			for range 8 {
				wg.Go(func() {
					if _, ok := q.Take(ctx, held(1).Call); ok {
						got.Add(1)
					}
				})
			}
		}
		wg.Wait()
		if got.Load() != 1 {
			t.Errorf("taken %d times", got.Load())
		}
	})
}
