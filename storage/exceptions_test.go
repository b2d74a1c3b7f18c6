// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/storage"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// TestExceptions: an exception is in force at every process of the store within a second, for what it names and
// nothing else, until it ends or is revoked, with a record of each.
func TestExceptions(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, where string) {
		now := day
		var records []string
		o := hold.ExceptionOptions{Most: 3, Now: func() time.Time { return now }, Evidence: func(e hold.Exception) ([]byte, error) {
			records = append(records, e.By+e.Revoker)
			return nil, nil
		}}
		mine, theirs := hold.NewExceptions(open(t, where, storage.Options{}).Exceptions(), o), hold.NewExceptions(open(t, where, storage.Options{}).Exceptions(), o)
		digest := hold.Digest{1}
		asked := 0
		of := func() hold.Digest { asked++; return digest }
		covers := func(tool string, code finding.Code) bool { return theirs.Covers(ctx, "mail", tool, code, of) }
		if covers("read", finding.HiddenTag) {
			t.Error("covered by nothing")
		}
		e, err := mine.Grant(ctx, hold.Exception{Server: "mail", Tool: "read", Code: finding.HiddenTag, By: "ann", Why: "emoji"}, time.Hour, false)
		if err != nil || !hold.ValidID(e.ID) || !e.Until.Equal(now.Add(time.Hour)) {
			t.Fatalf("%+v, %v", e, err)
		}
		now = now.Add(time.Second)
		if !covers("read", finding.HiddenTag) || covers("write", finding.HiddenTag) || covers("read", finding.HiddenBidi) || theirs.Covers(ctx, "files", "read", finding.HiddenTag, of) || asked != 0 {
			t.Error("covers the wrong results")
		}
		if err := mine.Revoke(ctx, e.ID, "bob"); err != nil {
			t.Error(err)
		}
		if err := mine.Revoke(ctx, e.ID, "eve"); !errors.Is(err, hold.ErrDecided) {
			t.Errorf("revoked twice: %v", err)
		}
		if err := mine.Revoke(ctx, heldID(1), "eve"); !errors.Is(err, hold.ErrNotFound) {
			t.Errorf("none: %v", err)
		}
		now = now.Add(time.Second)
		if covers("read", finding.HiddenTag) {
			t.Error("in force after it was revoked")
		}
		if _, err := mine.Grant(ctx, hold.Exception{Server: "mail", Code: finding.HiddenTag, Digest: hold.Digest{2}, By: "ann"}, 2*time.Hour, false); err != nil {
			t.Error(err)
		}
		now = now.Add(time.Second)
		if covers("x", finding.HiddenTag) || asked != 1 {
			t.Error("of another result")
		}
		digest = hold.Digest{2}
		if !covers("x", finding.HiddenTag) {
			t.Error("of this result, whatever the tool")
		}
		now = now.Add(2 * time.Hour)
		if covers("x", finding.HiddenTag) {
			t.Error("in force after its end")
		}
		for i := range 4 {
			if _, err := mine.Grant(ctx, hold.Exception{Server: "mail", Code: finding.HiddenTag}, time.Hour, false); (err == nil) != (i < 3) || err != nil && !errors.Is(err, hold.ErrFull) {
				t.Errorf("%d: %v", i, err)
			}
		}
		if list, err := mine.List(ctx, false); err != nil || len(list) != 3 {
			t.Errorf("%d in force, %v", len(list), err)
		}
		if list, err := theirs.List(ctx, true); err != nil || len(list) != 5 || list[4].Revoker != "bob" || list[4].Why != "emoji" {
			t.Errorf("%+v, %v", list, err)
		}
		for name, bad := range map[string]hold.Exception{"no server": {Code: finding.HiddenTag}, "no code": {Server: "s"}, "the policy": {Server: "s", Code: finding.Denied},
			"the form": {Server: "s", Code: finding.ShapeInvalid}, "a long reason": {Server: "s", Code: finding.HiddenTag, Why: string(make([]byte, 201))}} {
			if _, err := mine.Grant(ctx, bad, time.Hour, false); err == nil || errors.Is(err, hold.ErrFull) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if _, err := mine.Grant(ctx, hold.Exception{Server: "s", Code: finding.HiddenTag}, 366*24*time.Hour, false); err == nil {
			t.Error("longer than a year")
		}
		if len(records) < 4 || records[0] != "ann" || records[1] != "annbob" {
			t.Errorf("records %q", records)
		}
	})
}

// TestExceptionsOfCancelledReader: a reader that is cancelled takes no exception away from the others.
func TestExceptionsOfCancelledReader(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, where string) {
		s := open(t, where, storage.Options{})
		es := hold.NewExceptions(s.Exceptions(), hold.ExceptionOptions{Now: func() time.Time { return day }})
		if _, err := es.Grant(ctx, hold.Exception{Server: "a", Code: finding.HiddenTag, By: "ann"}, time.Hour, false); err != nil {
			t.Fatal(err)
		}
		covered := func(ctx context.Context) bool {
			return es.Covers(ctx, "a", "t", finding.HiddenTag, func() hold.Digest { return hold.Digest{} })
		}
		gone, stop := context.WithCancel(ctx)
		stop()
		if covered(gone); !covered(ctx) {
			t.Error("the first reader was cancelled, and the exception does not count for the next")
		}
		if es.Forget(); !covered(gone) {
			t.Error("what was known does not count for a reader that is cancelled")
		}
		if !covered(ctx) {
			t.Error("the exception does not count after a reader that was cancelled")
		}
	})
}

// TestExceptionsSwept: an exception is deleted 30 days after its end, also where a reviewer has ended it.
func TestExceptionsSwept(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, where string) {
		s := open(t, where, storage.Options{})
		now := day
		es := hold.NewExceptions(s.Exceptions(), hold.ExceptionOptions{Now: func() time.Time { return now }})
		left := func() int {
			t.Helper()
			if err := es.Sweep(ctx); err != nil {
				t.Fatal(err)
			}
			list, err := es.List(ctx, true)
			if err != nil {
				t.Fatal(err)
			}
			return len(list)
		}
		for range 2 {
			if _, err := es.Grant(ctx, hold.Exception{Server: "a", Code: finding.HiddenTag, By: "ann"}, 365*24*time.Hour, false); err != nil {
				t.Fatal(err)
			}
		}
		list, err := es.List(ctx, true)
		if err != nil {
			t.Fatal(err)
		}
		if err := es.Revoke(ctx, list[0].ID, "bob"); err != nil {
			t.Fatal(err)
		}
		if now = day.Add(30 * 24 * time.Hour); left() != 2 {
			t.Error("deleted before 30 days have passed")
		}
		if now = now.Add(time.Second); left() != 1 {
			t.Error("a revoked exception is kept for as long as it would have been in force")
		}
		if now = now.Add(365 * 24 * time.Hour); left() != 0 {
			t.Error("an exception is kept for more than 30 days after its end")
		}
	})
}

// TestExceptionTwoPersons: where two persons are needed, an exception of one counts nowhere: it is proposed, another person
// confirms it, and its time begins then. One that was granted before two were needed does not count until then either.
func TestExceptionTwoPersons(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, where string) {
		s := open(t, where, storage.Options{})
		now, two := day, false
		var records []string
		es := hold.NewExceptions(s.Exceptions(), hold.ExceptionOptions{Most: 3, Now: func() time.Time { return now }, TwoPersons: func() bool { return two }, Evidence: func(e hold.Exception) ([]byte, error) {
			records = append(records, e.By+" "+e.Second+" "+e.Until.Format("15:04"))
			return nil, nil
		}})
		covers := func() bool {
			now = now.Add(2 * time.Second)
			return es.Covers(ctx, "a", "t", finding.HiddenTag, func() hold.Digest { return hold.Digest{} })
		}
		grant := func(proposed bool) hold.Exception {
			t.Helper()
			e, err := es.Grant(ctx, hold.Exception{Server: "a", Code: finding.HiddenTag, By: "ann"}, time.Hour, proposed)
			if err != nil {
				t.Fatal(err)
			}
			return e
		}
		confirm := func(id, by string, want error) {
			t.Helper()
			if _, err := es.Confirm(ctx, id, by); !errors.Is(err, want) {
				t.Errorf("%s: %v, want %v", by, err, want)
			}
		}

		old := grant(false)
		if !covers() {
			t.Error("of one person, where one is enough")
		}
		if two = true; covers() || es.Counts(&old, now) {
			t.Error("of one person, where two are needed")
		}
		confirm(old.ID, "ann", hold.ErrSecond)
		confirm(old.ID, "Ann", hold.ErrSecond)
		confirm(heldID(7), "bob", hold.ErrNotFound)
		if confirm(old.ID, "bob", nil); !covers() {
			t.Error("confirmed, and does not count")
		}
		confirm(old.ID, "eve", hold.ErrDecided)
		if err := es.Revoke(ctx, old.ID, "ann"); err != nil || covers() {
			t.Error(err)
		}

		e := grant(false)
		if !e.Proposed() || covers() {
			t.Errorf("%+v", e)
		}
		if list, err := es.List(ctx, false); err != nil || len(list) != 1 || !list[0].Proposed() || list[0].Keep != time.Hour {
			t.Errorf("%+v, %v", list, err)
		}
		two = false // it stays proposed
		if covers() {
			t.Error("proposed, and counts")
		}
		confirm(e.ID, "ann", hold.ErrSecond)
		now = now.Add(10 * time.Hour)
		if confirm(e.ID, "bob", nil); !covers() {
			t.Error("its time does not begin with the confirmation")
		}
		if now = now.Add(time.Hour); covers() {
			t.Error("it does not end")
		}
		confirm(e.ID, "eve", hold.ErrDecided)

		taken := grant(true)
		if err := es.Revoke(ctx, taken.ID, "ann"); err != nil {
			t.Error(err)
		}
		confirm(taken.ID, "bob", hold.ErrDecided)
		forgotten := grant(true)
		if _, err := s.Forget(ctx, "ann", nil); err != nil {
			t.Fatal(err)
		}
		confirm(forgotten.ID, "ann", hold.ErrSecond)
		now = now.Add(31 * 24 * time.Hour)
		if err := es.Sweep(ctx); err != nil {
			t.Error(err)
		}
		if list, err := es.List(ctx, true); err != nil || len(list) != 0 {
			t.Errorf("not swept: %+v, %v", list, err)
		}
		for i := range 4 { // proposals have a bound as well
			if _, err := es.Grant(ctx, hold.Exception{Server: "a", Code: finding.HiddenTag, By: "ann"}, time.Hour, true); (err == nil) != (i < 3) {
				t.Errorf("%d: %v", i, err)
			}
		}
		if len(records) < 5 || records[0] != "ann  13:00" && records[0][:5] != "ann  " || records[3][:8] != "ann bob " {
			t.Errorf("%q", records)
		}
	})
}
