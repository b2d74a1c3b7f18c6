// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/storage"
)

// TestApprovals walks approvals through all that can become of them, on each engine.
func TestApprovals(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, where string) {
		now := day
		s := open(t, where, storage.Options{})
		recorded, fail := []hold.Approval(nil), error(nil)
		as := hold.NewApprovals(s.Approvals(), hold.ApprovalOptions{Most: 3, Now: func() time.Time { return now },
			Evidence: func(a hold.Approval) ([]byte, error) { recorded = append(recorded, a); return nil, fail }})
		other := hold.NewApprovals(s.Approvals(), hold.ApprovalOptions{Now: func() time.Time { return now }}) // another process
		item := func(calls ...byte) (*hold.Item, []byte) {
			body := "["
			for i, c := range calls {
				if i > 0 {
					body += ","
				}
				body += fmt.Sprintf(`{"tool":"send","approval":%q}`, hold.Digest{c}.String())
			}
			b := []byte(body + "]")
			return &hold.Item{ID: heldID(9), Principal: "ann", Rule: hold.GuardCall, Digest: sha256.Sum256(b)}, b
		}
		remember := func(keep time.Duration, calls ...byte) ([]hold.Approval, error) {
			it, body := item(calls...)
			return as.Remember(ctx, it, body, "bob", keep)
		}
		first, err := remember(time.Hour, 1, 2)
		if err != nil || len(first) != 2 || len(recorded) != 2 || recorded[0].By != "bob" || recorded[0].Principal != "ann" {
			t.Fatalf("%v, %+v", err, recorded)
		}
		used := func(call byte, want bool) {
			t.Helper()
			if a, ok := other.Use(ctx, hold.Digest{call}); ok != want || ok && (a.Item != heldID(9) || a.Tool != "send") {
				t.Errorf("call %d: %v, %+v", call, ok, a)
			}
		}
		used(1, true)
		used(1, true)
		used(3, false)
		if a, err := other.Get(ctx, first[0].ID); err != nil || a.Uses != 2 || !a.Used.Equal(now) || !a.Until.Equal(now.Add(time.Hour)) {
			t.Errorf("%v, %+v", err, a)
		}
		it, body := item(4)
		for name, change := range map[string]func(){
			"not the guard's":   func() { it.Rule = "finding" },
			"another body":      func() { body = append(body, ' ') },
			"no calls":          func() { body = []byte("[]"); it.Digest = sha256.Sum256(body) },
			"not approvable":    func() { body = []byte(`[{"tool":"send"}]`); it.Digest = sha256.Sum256(body) },
			"one of two is not": func() { it.Digest = sha256.Sum256([]byte(`x`)) },
		} {
			it, body = item(4)
			change()
			if list, err := as.Remember(ctx, it, body, "bob", time.Hour); err == nil || len(list) > 0 {
				t.Errorf("%s: %+v", name, list)
			}
		}
		for _, keep := range []time.Duration{0, time.Second, hold.MaxApproval + 1} {
			if _, err := remember(keep, 4); err == nil {
				t.Errorf("approved for %v", keep)
			}
		}
		fail = errors.New("no ledger")
		if _, err := remember(time.Hour, 4); err == nil {
			t.Error("approved without a record")
		}
		if err := as.Revoke(ctx, first[0].ID, "eve"); err == nil {
			t.Error("revoked without a record")
		}
		fail = nil
		if _, err := remember(2*time.Hour, 5); err != nil {
			t.Fatal(err)
		}
		if _, err := remember(time.Hour, 6); !errors.Is(err, hold.ErrFull) {
			t.Errorf("one too many: %v", err)
		}
		if err := as.Revoke(ctx, first[0].ID, "eve"); err != nil || recorded[len(recorded)-1].Revoker != "eve" {
			t.Errorf("%v, %+v", err, recorded[len(recorded)-1])
		}
		used(1, false)
		if err := as.Revoke(ctx, first[0].ID, "eve"); !errors.Is(err, hold.ErrDecided) {
			t.Errorf("revoked again: %v", err)
		}
		if err := as.Revoke(ctx, heldID(8), "eve"); !errors.Is(err, hold.ErrNotFound) {
			t.Errorf("revoked another: %v", err)
		}
		now = now.Add(time.Hour)
		used(2, false)
		used(5, true)
		if err := as.Revoke(ctx, first[1].ID, "eve"); !errors.Is(err, hold.ErrDecided) {
			t.Errorf("revoked after its end: %v", err)
		}
		if list, err := other.List(ctx, false); err != nil || len(list) != 1 || list[0].Call != (hold.Digest{5}) {
			t.Errorf("%v, %+v", err, list)
		}
		if list, err := other.List(ctx, true); err != nil || len(list) != 3 {
			t.Errorf("%v, %+v", err, list)
		}
		if f, err := s.Forget(ctx, "eve", nil); err != nil || f.Names != 1 {
			t.Errorf("%v, %+v", err, f)
		}
		if f, err := s.Forget(ctx, "bob", nil); err != nil || f.Names != 3 {
			t.Errorf("%v, %+v", err, f)
		}
		if f, err := s.Forget(ctx, "ann", nil); err != nil || f.Names != 3 {
			t.Errorf("%v, %+v", err, f)
		}
		used(5, false)
	})
}

// TestReleaseAndRemember: calls are approved with the release, and by no one who has not released the item: not by the
// first of two persons, and not by one person twice.
func TestReleaseAndRemember(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, where string) {
		s := open(t, where, storage.Options{})
		two := true
		q := hold.New(s, hold.Options{TwoPersons: func() bool { return two }})
		as := hold.NewApprovals(s.Approvals(), hold.ApprovalOptions{})
		body := []byte(`[{"tool":"send","approval":"` + hold.Digest{7}.String() + `"}]`)
		put := func(n int, rule string) {
			t.Helper()
			if err := q.Hold(ctx, hold.Item{ID: heldID(n), Server: "m", Rule: rule, Principal: "ann", Body: body}); err != nil {
				t.Fatal(err)
			}
		}
		remember := func(n int, by string, want hold.State, approved int) error {
			t.Helper()
			it, err := q.Get(ctx, heldID(n))
			if err != nil {
				t.Fatal(err)
			}
			list, err := as.ReleaseAndRemember(ctx, q, &it, nil, by, time.Hour)
			if len(list) != approved || (err == nil) != (approved > 0) {
				t.Errorf("item %d, %s: %d approved, %v", n, by, len(list), err)
			}
			if it, got := q.Get(ctx, heldID(n)); got != nil || it.State != want {
				t.Errorf("item %d, %s: it is %s, want %s, %v", n, by, it.State, want, got)
			}
			return err
		}
		put(1, hold.GuardCall)
		if err := remember(1, "bob", hold.Held, 0); err == nil || !strings.Contains(err.Error(), "needs two persons") {
			t.Errorf("the first of two: %v", err)
		}
		if err := q.Release(ctx, heldID(1), "bob"); err != nil {
			t.Fatal(err)
		}
		if err := remember(1, "bob", hold.Held, 0); !errors.Is(err, hold.ErrSecond) {
			t.Errorf("the same person: %v", err)
		}
		if list, err := as.List(ctx, true); err != nil || len(list) != 0 {
			t.Errorf("approved by one person: %+v, %v", list, err)
		}
		if err := remember(1, "cyd", hold.Released, 1); err != nil {
			t.Error(err)
		}
		if err := remember(1, "cyd", hold.Released, 0); !errors.Is(err, hold.ErrDecided) {
			t.Errorf("again: %v", err)
		}
		two = false
		put(2, "finding")
		if err := remember(2, "bob", hold.Held, 0); err == nil {
			t.Error("a result is remembered")
		}
		put(3, hold.GuardCall)
		if err := remember(3, "bob", hold.Released, 1); err != nil {
			t.Error(err)
		}
	})
}
