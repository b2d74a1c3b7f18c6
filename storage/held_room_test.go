// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/record/webhook"
	"github.com/pellucid-mcp/pellucid/storage"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// fullBox keeps the messages that a queue is full.
type fullBox struct {
	mu  sync.Mutex
	all []string
}

func (b *fullBox) Outbox(e webhook.Notice) []webhook.Message {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e.Type == webhook.QueueFull {
		b.all = append(b.all, fmt.Sprint(e.Scope, " ", e.Server, " ", e.Waiting, " ", e.Bytes))
	}
	return nil
}
func (*fullBox) Wake()                    {}
func (*fullBox) Dropped(*webhook.Message) {}

// TestHeldRoom: neither a server nor a principal fills the queue for others, by places or by bytes; what is delivered,
// denied, over or erased makes room at once.
func TestHeldUsage(t *testing.T) {
	engines(t, func(t *testing.T, where string) {
		ctx, now, n := t.Context(), day, 0
		s := open(t, where, storage.Options{})
		box := &fullBox{}
		s.Tell(box)
		q := hold.New(s, hold.Options{Room: hold.Room{PerServer: 8, Bytes: 1 << 30}, Now: func() time.Time { return now }})
		put := func(server, who string, size int) (string, error) {
			n++
			it := hold.Item{ID: heldID(n), Server: server, Principal: who, Rule: "finding", Code: finding.HiddenTag, Call: hold.Digest{byte(n)}, Body: bytes.Repeat([]byte("x"), size)}
			return it.ID, q.Hold(ctx, it)
		}
		want := func(server, who string, size int, full hold.Share) (id string) {
			t.Helper()
			id, err := put(server, who, size)
			var of hold.Share
			if e, ok := errors.AsType[*hold.FullError](err); ok && errors.Is(err, hold.ErrFull) {
				of = e.Of
			} else if err != nil {
				t.Fatal(err)
			}
			if of != full {
				t.Errorf("%s, %s, %d bytes: %v, want %q", server, who, size, err, full)
			}
			return id
		}
		full := func(want ...string) {
			t.Helper()
			list, err := q.FullShares(ctx)
			var got []string
			for _, x := range list {
				got = append(got, string(x.Of)+" "+x.Name)
			}
			if !slices.Equal(got, want) || err != nil {
				t.Errorf("full: %q, %v, want %q", got, err, want)
			}
		}

		full()
		first, second := want("a", "ann", 1, ""), want("a", "ann", 1, "") // a quarter of eight places
		want("a", "ann", 1, hold.OfPrincipal)
		want("b", "ann", 1, hold.OfPrincipal) // she has no more with another server
		full("principal ann")
		for i := range 6 { // and others have the rest; a client that is not known has no share
			want("a", []string{"bob", "", "eve"}[i%3], 1, "")
		}
		want("a", "cat", 1, hold.OfServer)
		want("b", "cat", 1, "")
		full("server a", "principal ann", "principal bob", "principal eve")
		if got := []string{"principal  2 2", "principal  2 2", "principal  2 2", "server a 8 8"}; !slices.Equal(slices.Sorted(slices.Values(box.all)), got) {
			t.Errorf("messages %q", box.all)
		}

		if err := errors.Join(q.Deny(ctx, first, "zoe"), q.Release(ctx, second, "zoe")); err != nil {
			t.Fatal(err)
		}
		want("a", "ann", 1, "") // in the place of what was denied
		want("a", "ann", 1, hold.OfServer)
		if _, ok := q.Take(ctx, hold.Digest{2}); !ok { // the second one
			t.Fatal("not released")
		}
		want("a", "ann", 1, "")
		if _, err := s.Forget(ctx, "bob", nil); err != nil {
			t.Fatal(err)
		}
		want("a", "dan", 1, "")
		now = now.Add(25 * time.Hour) // all are over, and not swept
		full()
		want("a", "ann", 1, "")

		now = now.Add(25 * time.Hour)
		q = hold.New(s, hold.Options{Room: hold.Room{Bytes: 64 << 10}, Now: func() time.Time { return now }})
		for range 4 { // a sixteenth of the bytes, which is four of the longest item that there may be
			full()
			want("a", "ann", 1<<10, "")
		}
		want("a", "ann", 1, hold.OfPrincipal)
		full("principal ann")
		for i := range 12 {
			want("a", fmt.Sprint("p", i), 1<<10, "")
		}
		want("a", "p12", 1, hold.OfServer)
		full("server a", "principal ann")
		for i := range 47 {
			want(fmt.Sprint("s", i%3), "", 1<<10, "")
		}
		want("t", "", 1000, "")
		want("t", "", 1000, hold.OfAll)
		want("t", "", 24, "") // what is short still fits
		full("queue ", "server a", "server s0", "server s1", "principal ann")
	})
}

// TestHeldRoomOfReplicas: processes on one store together take no more than there is room for.
func TestHeldRoomOfReplicas(t *testing.T) {
	engines(t, func(t *testing.T, where string) {
		o := hold.Options{Room: hold.Room{PerServer: 20, Bytes: 1 << 30}}
		var wg sync.WaitGroup
		for r := range 4 {
			q := hold.New(open(t, where, storage.Options{}), o)
			wg.Go(func() {
				for i := range 15 {
					err := q.Hold(t.Context(), hold.Item{ID: heldID(r*100 + i), Server: "a", Rule: "finding", Code: finding.HiddenTag, Body: []byte("x")})
					if err != nil && !errors.Is(err, hold.ErrFull) {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		s := open(t, where, storage.Options{})
		if list, err := s.HeldUsage(t.Context(), time.Now()); err != nil || len(list) != 2 || list[0] != (hold.Usage{Of: hold.OfAll, Items: 20, Bytes: 20}) || list[1].Items != 20 {
			t.Errorf("%+v, %v", list, err)
		}
	})
}

// BenchmarkHeldRoom adds an item to a queue of 100,000, and where there is no room for it.
func BenchmarkHeldRoom(b *testing.B) {
	where := filepath.Join(b.TempDir(), "a.db")
	s := open(b, where, storage.Options{})
	fillHeld(b, raw(b, where), false, 100_000)
	for name, o := range map[string]hold.Room{"room": {PerServer: 1 << 20}, "full": {PerServer: 1}} {
		q := hold.New(s, hold.Options{Room: o, Now: func() time.Time { return day }})
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				err := q.Hold(b.Context(), hold.Item{ID: hold.NewID(), Server: "s1", Principal: "p1", Rule: "finding", Code: finding.HiddenTag, Body: []byte("x")})
				if err != nil && !errors.Is(err, hold.ErrFull) {
					b.Fatal(err)
				}
			}
		})
	}
}
