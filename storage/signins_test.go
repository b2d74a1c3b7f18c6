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
		secret, began, err := book.Begin(ctx, "ana", []string{"console:review", "the mail group"}, signin.ByToken)
		if err != nil {
			t.Fatal(err)
		}
		found, err := book.Find(ctx, secret)
		if err != nil || found.Person != "ana" || fmt.Sprint(found.Scopes) != "[console:review the mail group]" || found.How != signin.ByToken || found.Name != began.Name || !found.Until.Equal(began.Until) {
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
		second, _, err := book.Begin(ctx, "ben", nil, signin.ByLink)
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

		forgotten, _, err := book.Begin(ctx, "carol", nil, signin.ByLink)
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
// those of others only when there is no other way.
func TestSignInsAreBounded(t *testing.T) {
	engines(t, func(t *testing.T, where string) {
		s := open(t, where, storage.Options{})
		n := 0
		put := func(person string, times, own, most int) {
			t.Helper()
			for range times {
				n++
				x := signin.Session{ID: sha256.Sum256(fmt.Appendf(nil, "%d", n)), Name: fmt.Sprint(person, n), Person: person, Began: day, Seen: day.Add(time.Duration(n) * time.Second), Until: day.Add(time.Hour)}
				if err := s.PutSignIn(ctx, x, own, most); err != nil {
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
		put("ben", 1, 3, 5) // then those of the person with the most
		want("ben104 eve103 eve102 ana2 ana1")
		put("ben", 3, 3, 5) // and a person alone cannot end the sessions of others
		want("ben107 eve103 eve102 ana2 ana1")
	})
}
