// SPDX-License-Identifier: Apache-2.0

package hold

import (
	"context"
	"errors"
	"time"
)

// Decided says what became of a selection.
type Decided struct {
	Done     int // decided now, with a record each
	Proposed int // whose release is proposed now: another person has to confirm it
	Second   int // whose release the same person has proposed already
	Sealed   int // encrypted to reviewers, so that they are released one by one
	Others   int // that another reviewer has decided, or that have expired, since the time of the selection
}

// A Batch is what one transaction of a decision about a selection has done.
type Batch struct {
	Decided
	Next string // where the next one begins; "" where nothing is left
}

// A Choice is what is done with the items of a selection.
type Choice struct {
	To  State // Released or Denied
	By  string
	Now time.Time
	// Evidence returns the record of an item as it will be; nil: there are none.
	Evidence func(Item) ([]byte, error)
	// Most is how many items the person was told of that are not decided yet: where more fit, nothing is done (ErrMore).
	Most int
}

// ErrMore: items fit a selection that the person was not told of, as one that was held before its time and stored after it.
var ErrMore = errors.New("hold: more items fit the selection than were counted for you: look at them, and decide again")

// ErrSecond: a release needs a second person, and this one has proposed it.
var ErrSecond = errors.New("hold: a release needs two persons, and this one has proposed it: another has to confirm it")

// DecideAll decides every item that is held and that f selects as of its time, in transactions of a bounded
// size. n is how many the person was told that there are: no more are decided (ErrMore). Where it fails, what was decided stays so, and the same
// call goes on with the rest. told, if not nil, is told after each transaction.
func (q *Queue) DecideAll(ctx context.Context, f Filter, n int, to State, by string, told func(Decided)) (sum Decided, err error) {
	if to != Released && to != Denied || f.AsOf.IsZero() || f.check() != nil {
		return sum, errFilter
	}
	f.State, f.Oldest, f.After = Held, true, ""
	for more := true; more; more = f.After != "" {
		b, err := q.store.DecideManyHeld(ctx, f, Choice{To: to, By: by, Now: q.o.Now(), Evidence: q.o.Evidence, Most: n - sum.Done - sum.Proposed - sum.Second - sum.Sealed})
		sum.Done, sum.Proposed, sum.Second, sum.Sealed = sum.Done+b.Done, sum.Proposed+b.Proposed, sum.Second+b.Second, sum.Sealed+b.Sealed
		if err != nil {
			return sum, err
		}
		if told != nil {
			told(sum)
		}
		f.After = b.Next
	}
	sum.Others = max(0, n-sum.Done-sum.Proposed-sum.Second-sum.Sealed)
	return sum, nil
}
