// SPDX-License-Identifier: Apache-2.0

package hold

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Decided says what became of a selection.
type Decided struct {
	Done     int // decided now, with a record each
	Proposed int // whose release is proposed now: another person has to confirm it
	Second   int // whose release the same person has proposed already
	Sealed   int // encrypted to reviewers, so that they are released one by one
	Others   int // that another reviewer has decided, or that have expired, since the person was shown the selection
}

func (d *Decided) add(e Decided) {
	d.Done, d.Proposed, d.Second, d.Sealed = d.Done+e.Done, d.Proposed+e.Proposed, d.Second+e.Second, d.Sealed+e.Sealed
}

// A Choice is what is done with the items of a selection.
type Choice struct {
	To  State // Released or Denied
	By  string
	Now time.Time
	// Evidence returns the record of an item as it will be; nil: no record is written.
	Evidence func(Item) ([]byte, error)
	More     bool // the same decision goes on: what is destroyed leaves the files of the store at its end
}

// ErrChanged: the selection has items that the person was not shown, as one that was held before its time and stored
// after it.
var ErrChanged = errors.New("hold: the selection has changed since it was shown: look at it, and decide again")

// ErrMany: a selection has more items than a person decides about at once.
var ErrMany = fmt.Errorf("hold: more than %d items are selected: narrow the filter", maxShown)

// maxShown bounds the items of a selection that is decided about. Each takes 16 bytes of memory.
const maxShown = 1_000_000

// ErrSecond: a release needs a second person, and this one has proposed it.
var ErrSecond = errors.New("hold: a release needs two persons, and this one has proposed it: another has to confirm it")

// Shown says which items a person was shown before a decision about them.
type Shown struct {
	N   int
	At  time.Time // when they were counted
	Sum Digest    // SHA-256 of their ids, in their order
}

// String is the text form, for a form or a command.
func (s Shown) String() string {
	return fmt.Sprintf("%d.%d.%x", s.N, s.At.UnixNano(), s.Sum[:])
}

var errShown = errors.New("hold: want what the page has said of the selection")

// ParseShown reads the text form.
func ParseShown(text string) (s Shown, err error) {
	part := strings.Split(text, ".")
	if len(part) != 3 || len(part[2]) != 2*len(s.Sum) {
		return s, errShown
	}
	n, errN := strconv.ParseInt(part[0], 10, 32)
	at, errAt := strconv.ParseInt(part[1], 10, 64)
	_, errSum := hex.Decode(s.Sum[:], []byte(part[2]))
	if s.N, s.At = int(n), time.Unix(0, at).UTC(); errors.Join(errN, errAt, errSum) != nil || s.String() != text || n < 0 {
		return Shown{}, errShown
	}
	return s, nil
}

// itemIDs are the ids of a selection, sorted.
type itemIDs [][16]byte

func (ids itemIDs) sum() Digest {
	h := sha256.New()
	for i := range ids {
		h.Write(ids[i][:])
	}
	return Digest(h.Sum(nil))
}

// Show counts the held items that any of the filters selects as of its time, and says which they are.
func (q *Queue) Show(ctx context.Context, of ...Filter) (Selection, Shown, error) {
	s := Shown{At: q.o.Now().UTC()}
	sel, ids, err := q.waiting(ctx, of, time.Time{}, s.At)
	s.N, s.Sum = sel.N, ids.sum()
	return sel, s, err
}

// waiting are the items that any of the filters selects and that waited at a time up to now; zero: that wait now.
func (q *Queue) waiting(ctx context.Context, of []Filter, at, now time.Time) (sel Selection, ids itemIDs, err error) {
	people, sources := map[string]bool{}, map[[2]string]bool{}
	for _, f := range of {
		err := f.check()
		if err == nil && f.AsOf.IsZero() {
			err = errFilter
		}
		if err != nil {
			return sel, nil, err
		}
		err = q.store.WaitingHeld(ctx, f, at, now, maxShown+1, func(w Waiting) {
			var id [16]byte
			if n, err := hex.Decode(id[:], []byte(w.ID)); err != nil || n != len(id) {
				return // what no reviewer can name
			}
			ids = append(ids, id)
			if sources[[2]string{w.Server, w.Tool}] = true; w.Principal != "" {
				people[w.Principal] = true
			}
			if sel.Oldest.IsZero() || w.Held.Before(sel.Oldest) {
				sel.Oldest = w.Held
			}
			if w.Held.After(sel.Newest) {
				sel.Newest = w.Held
			}
		})
		if err == nil && len(ids) > maxShown {
			err = ErrMany
		}
		if err != nil {
			return sel, nil, err
		}
	}
	slices.SortFunc(ids, func(a, b [16]byte) int { return bytes.Compare(a[:], b[:]) })
	ids = slices.Compact(ids) // filters may overlap
	sel.N, sel.Principals, sel.Sources = len(ids), len(people), len(sources)
	return sel, ids, nil
}

// decideBatch bounds the items that one transaction of a decision about a selection decides.
const decideBatch = 200

// DecideAll decides the items that the person was shown and that are still held, in transactions of a bounded size. of
// are the filters of Show. Where other items are selected now, nothing is decided: ErrChanged. Where it fails, what was
// decided stays so, and the same call goes on with the rest.
func (q *Queue) DecideAll(ctx context.Context, shown Shown, to State, by string, of ...Filter) (sum Decided, err error) {
	if to != Released && to != Denied {
		return sum, errFilter
	}
	now := q.o.Now()
	_, ids, err := q.waiting(ctx, of, time.Time{}, now)
	if err == nil && ids.sum() != shown.Sum { // what was decided since, or has expired, belongs to what was shown
		var then itemIDs
		if _, then, err = q.waiting(ctx, of, shown.At, now); err == nil && then.sum() != shown.Sum {
			err = ErrChanged
		}
	}
	if err != nil {
		return sum, err
	}
	for len(ids) > 0 {
		n := min(len(ids), decideBatch)
		names := make([]string, n)
		for i := range names {
			names[i] = hex.EncodeToString(ids[i][:])
		}
		ids = ids[n:]
		b, err := q.store.DecideManyHeld(ctx, names, Choice{To: to, By: by, Now: q.o.Now(), Evidence: q.o.Evidence, More: len(ids) > 0})
		if sum.add(b); err != nil {
			return sum, err
		}
	}
	sum.Others = max(0, shown.N-sum.Done-sum.Proposed-sum.Second-sum.Sealed)
	return sum, nil
}
