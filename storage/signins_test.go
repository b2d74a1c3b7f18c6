// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/signin"
	"github.com/pellucid-mcp/pellucid/storage"
)

// TestSignIns: a session lives between its times, a link is spent once, and no store has a secret.
func TestSignIns(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, where string) {
		s := open(t, where, storage.Options{})
		now := day
		book := &signin.Book{Store: s, Now: func() time.Time { return now }}
		none := func(what string, err error) {
			t.Helper()
			if !errors.Is(err, signin.ErrNone) {
				t.Errorf("%s: %v, want ErrNone", what, err)
			}
		}
		secret, began, err := book.Begin(ctx, signin.Session{Person: "ana", Scopes: []string{"console:review", "the mail group"}, How: signin.ByToken, Source: [32]byte{7}})
		if err != nil {
			t.Fatal(err)
		}
		found, err := book.Find(ctx, secret)
		if err != nil || found.Person != "ana" || fmt.Sprint(found.Scopes) != "[console:review the mail group]" || found.How != signin.ByToken || found.Source != [32]byte{7} || found.Name != began.Name || !found.Until.Equal(began.Until) {
			t.Fatalf("found %+v, %v", found, err)
		}
		if sum := sha256.Sum256([]byte(secret)); found.ID == sum {
			t.Error("the id is the digest of the text, not of the bytes")
		}
		_, err = book.Find(ctx, "AAAA")
		none("a wrong secret", err)
		for range 20 { // used every 29 minutes, it goes on
			now = now.Add(29 * time.Minute)
			if _, err = book.Find(ctx, secret); err != nil {
				t.Fatalf("after %v: %v", now.Sub(day), err)
			}
		}
		idle := now
		now = now.Add(30 * time.Minute)
		_, err = book.Find(ctx, secret)
		none("30 minutes without use", err)
		for now = idle; now.Before(day.Add(12 * time.Hour)); now = now.Add(20 * time.Minute) {
			if _, err = book.Find(ctx, secret); err != nil {
				t.Fatalf("after %v: %v", now.Sub(day), err)
			}
		}
		_, err = book.Find(ctx, secret)
		none("at the absolute end", err)

		now = day
		short, s2, err := book.Begin(ctx, signin.Session{Person: "ana", How: signin.ByToken, Until: day.Add(10 * time.Minute)})
		if err != nil || !s2.Until.Equal(day.Add(10*time.Minute)) {
			t.Fatalf("a credential that ends in ten minutes: %v, %v", s2.Until, err)
		}
		now = day.Add(10 * time.Minute)
		_, err = book.Find(ctx, short)
		none("at the end of the credential", err)
		now = day
		kept, _, err := book.Begin(ctx, signin.Session{Person: "ana", How: signin.ByLink, Until: day.Add(24 * time.Hour)})
		if err != nil {
			t.Fatal(err)
		}
		now = day.Add(20 * time.Minute)
		if _, err = book.Find(ctx, kept); err != nil {
			t.Fatal(err)
		}
		book.Life = 20 * time.Minute
		_, err = book.Find(ctx, kept)
		none("after the life of a session was made shorter", err)
		book.Life, now = 0, day
		second, _, err := book.Begin(ctx, signin.Session{Person: "ben", How: signin.ByLink})
		if err != nil {
			t.Fatal(err)
		}
		list, err := book.List(ctx)
		if err != nil || len(list) == 0 {
			t.Fatalf("%d sessions, %v", len(list), err)
		}
		b, err := book.Find(ctx, second)
		if err != nil {
			t.Fatal(err)
		}
		if err := book.End(ctx, b.Name); err != nil {
			t.Fatal(err)
		}
		_, err = book.Find(ctx, second)
		none("ended by an operator", err)
		none("ended twice", book.End(ctx, b.Name))

		forgotten, _, err := book.Begin(ctx, signin.Session{Person: "carol", How: signin.ByLink})
		if err != nil {
			t.Fatal(err)
		}
		if f, err := s.Forget(ctx, "carol", nil); err != nil || f.SignIns != 1 {
			t.Errorf("forget: %+v, %v", f, err)
		}
		_, err = book.Find(ctx, forgotten)
		none("of a person who was forgotten", err)

		link, err := book.NewLink(ctx, "dora d")
		if err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		var wg sync.WaitGroup
		spent := 0
		for range 8 {
			wg.Go(func() {
				person, err := book.Spend(ctx, link)
				mu.Lock()
				defer mu.Unlock()
				if err == nil && person == "dora d" {
					spent++
				} else if !errors.Is(err, signin.ErrNone) {
					t.Errorf("spend: %v", err)
				}
			})
		}
		wg.Wait()
		if spent != 1 {
			t.Errorf("the link was spent %d times", spent)
		}
		late, err := book.NewLink(ctx, "dora d")
		if err != nil {
			t.Fatal(err)
		}
		now = now.Add(signin.LinkLife)
		_, err = book.Spend(ctx, late)
		none("a link after two minutes", err)
		_, err = book.Spend(ctx, "")
		none("a link that never was", err)
	})
}

// TestSignInsAreBounded: a person has a limited number of sessions, and one who signs in often ends own sessions, and
// never those of others.
func TestSignInsAreBounded(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, where string) {
		s := open(t, where, storage.Options{})
		n, refused := 0, 0
		put := func(person string, times, own, most int) {
			t.Helper()
			for range times {
				n++
				x := signin.Session{ID: sha256.Sum256(fmt.Appendf(nil, "%d", n)), Name: fmt.Sprint(person, n), Person: person, Began: day, Seen: day.Add(time.Duration(n) * time.Second), Until: day.Add(time.Hour)}
				if err := s.PutSignIn(ctx, x, own, most); errors.Is(err, signin.ErrFull) {
					refused++
				} else if err != nil {
					t.Fatal(err)
				}
			}
		}
		want := func(names string) {
			t.Helper()
			list, err := s.SignIns(ctx)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, x := range list {
				got = append(got, x.Name)
			}
			if strings.Join(got, " ") != names {
				t.Errorf("sessions %q, want %q", got, names)
			}
		}
		put("ana", 2, 3, 5)
		put("eve", 100, 3, 5) // only her own sessions end
		want("eve102 eve101 eve100 ana2 ana1")
		put("eve", 1, 9, 5) // the limit of all, too, ends her own first
		want("eve103 eve102 eve101 ana2 ana1")
		put("ben", 3, 3, 5) // a person without a session is refused
		want("eve103 eve102 eve101 ana2 ana1")
		if refused != 3 {
			t.Errorf("%d refused, want 3", refused)
		}
		put("ana", 3, 3, 5) // and one with sessions has new ones in their place
		want("ana109 ana108 eve103 eve102 eve101")
		put("eve", 1, 9, 2) // where the limit is smaller than it was, too
		want("ana109 ana108 eve103 eve102 eve101")
		if refused != 4 {
			t.Errorf("%d refused, want 4", refused)
		}
	})
}

// TestSignInsOfAnotherIdle: a process that does not know console.idle lists, finds and sweeps sessions by the idle time
// under which they go on; a session with a short one goes on while it is used.
func TestSignInsOfAnotherIdle(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, where string) {
		s := open(t, where, storage.Options{})
		now := day
		clock := func() time.Time { return now }
		gateway, other := &signin.Book{Store: s, Idle: 8 * time.Hour, Now: clock}, &signin.Book{Store: s, Now: clock}
		secret, _, err := gateway.Begin(ctx, signin.Session{Person: "ana", How: signin.ByToken})
		if err != nil {
			t.Fatal(err)
		}
		now = now.Add(time.Hour)
		if list, err := other.List(ctx); err != nil || len(list) != 1 {
			t.Errorf("a session that goes on is not listed: %+v, %v", list, err)
		}
		if _, _, err := other.Begin(ctx, signin.Session{Person: "ben", How: signin.ByLink}); err != nil {
			t.Fatal(err)
		}
		if _, err := gateway.Find(ctx, secret); err != nil {
			t.Errorf("another process has ended it: %v", err)
		}
		if err := s.SweepSignIns(ctx, now.Add(31*time.Minute)); err != nil {
			t.Fatal(err)
		}
		if all, err := s.SignIns(ctx); err != nil || len(all) != 1 || all[0].Person != "ana" {
			t.Errorf("swept: %+v, %v", all, err)
		}
		brief := &signin.Book{Store: s, Idle: time.Minute, Now: clock}
		if secret, _, err = brief.Begin(ctx, signin.Session{Person: "cyd", How: signin.ByLink}); err != nil {
			t.Fatal(err)
		}
		for range 20 {
			now = now.Add(20 * time.Second)
			if _, err := brief.Find(ctx, secret); err != nil {
				t.Fatalf("a session that is used all the time has ended: %v", err)
			}
		}
		now = now.Add(time.Minute)
		if _, err := brief.Find(ctx, secret); !errors.Is(err, signin.ErrNone) {
			t.Errorf("a minute without use: %v", err)
		}
	})
}
