// SPDX-License-Identifier: Apache-2.0

// Package intake bounds the memory of all request bodies and messages under way, and shares it among the callers.
package intake

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"time"
)

// Errors of a Budget, to be compared with errors.Is. ErrGreedy wraps ErrFull.
var (
	ErrFull   = errors.New("intake: the budget of all callers is used up")
	ErrGreedy = fmt.Errorf("%w: this caller has used up its share", ErrFull)
)

// BodyCost is the memory that is counted for a byte of a request's body: its pieces, the whole body, its parsed
// values, and garbage that was not collected yet.
const BodyCost = 4

// leastReserved is the size from which on a Budget keeps its last eighth for callers that have little: a
// short message finds memory, however many callers send long ones.
const leastReserved = 16 << 20

// BodyWait is the time for which a body waits for memory.
const BodyWait = 2 * time.Second

// A Budget divides places or bytes among callers. A caller may have as much as it leaves for the others: one
// caller alone gets half, two callers get a third each. So a new caller always finds something. A caller that
// has only one Room may have all that is left. The zero Budget has nothing.
type Budget struct {
	mu    sync.Mutex
	total int64
	used  int64
	taken map[string]int64 // by caller

	waiting map[string][]*waiter // by caller, the oldest Room first
	rooms   int64                // number of Rooms that were made
	turns   *Budget              // of the Rooms
	// first is a long message that may have more than is left until it has nothing: of messages that wait for
	// each other one goes on. What it has more is not counted.
	first *share
}

// A waiter is a Room that waits to become larger by n. Only waiters that can go on are woken: many
// waiters that tried again after each Give would delay every short call.
type waiter struct {
	*share
	n    int64
	err  error         // why n was not given
	done chan struct{} // closed when the wait has ended
}

// NewBudget returns a Budget of that size.
func NewBudget(total int64) *Budget {
	return &Budget{total: total, taken: map[string]int64{}, waiting: map[string][]*waiter{}}
}

// Resize changes the size. It takes nothing back.
func (b *Budget) Resize(total int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.total = total
}

// Take gives who n more; the error is ErrFull or ErrGreedy. The caller "" may have all of it.
func (b *Budget) Take(who string, n int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.takeLocked(who, n, 0)
}

// takeLocked is Take for a Room that has own already. b.mu is held.
func (b *Budget) takeLocked(who string, n, own int64) error {
	if n <= 0 {
		return nil
	}
	left, has := b.total-b.used-n, b.taken[who]
	counted := has // against the limit for short messages
	if who == "" {
		counted = own
	}
	switch {
	case left < 0, b.total >= leastReserved && left < b.total/8 && counted+n > b.total/256 && b.used > own:
		return ErrFull
	case who != "" && has > own && has+n > left:
		return ErrGreedy
	}
	b.used += n
	b.taken[who] = has + n
	return nil
}

// Give takes n back from who.
func (b *Budget) Give(who string, n int64) {
	if n == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.giveLocked(who, n)
}

// giveLocked is Give, and wakes waiters in any case. b.mu is held.
func (b *Budget) giveLocked(who string, n int64) {
	b.used -= n
	if b.taken[who] -= n; b.taken[who] == 0 {
		delete(b.taken, who)
	}
	b.wakeWaiters()
}

// wakeWaiters gives waiters what is left, one of each caller in turn. Where all Rooms of a caller wait for
// each other, and no long message goes on, the last one gives up. b.mu is held.
func (b *Budget) wakeWaiters() {
	for more := true; more; {
		more = false
		for _, list := range b.waiting { // in no order: no caller is before the others
			for _, w := range list {
				if w.err = b.growShare(w.share, w.n); w.err == nil {
					b.endWait(w)
					more = true
					break
				}
			}
		}
	}
	if b.first != nil {
		return
	}
	for who, list := range b.waiting {
		sum, last := int64(0), (*waiter)(nil)
		for _, w := range list {
			if sum += w.has; w.has > 0 {
				last = w
			}
		}
		if last != nil && sum > last.has && sum == b.taken[who] {
			b.endWait(last)
		}
	}
}

// growShare gives s n more, or as much as makes it as large as the Budget. b.mu is held.
func (b *Budget) growShare(s *share, n int64) error {
	n = max(min(n, b.total-s.has), 0)
	err := b.takeLocked(s.who, n, s.has)
	if err != nil && s.long && (b.first == nil || b.first == s) {
		b.first, err = s, nil
		s.more += n
	}
	if err == nil {
		s.has += n
	}
	return err
}

// endWait ends the wait of w. b.mu is held.
func (b *Budget) endWait(w *waiter) {
	list := b.waiting[w.who]
	if list = slices.DeleteFunc(list, func(other *waiter) bool { return w == other }); len(list) > 0 {
		b.waiting[w.who] = list
	} else {
		delete(b.waiting, w.who)
	}
	close(w.done)
}

// Used returns how much is taken.
func (b *Budget) Used() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

// Wait waits until it can take n for who, or the whole Budget if that is less. give returns what was
// taken. The error is ErrFull or ErrGreedy, once ctx is done.
func (b *Budget) Wait(ctx context.Context, who string, n int64) (give func(), err error) {
	r := b.Room(who)
	if err := r.Add(ctx, n); err != nil {
		return nil, err
	}
	return r.Leave, nil
}

// A Room is the part of a Budget that one purpose has, such as a message. It grows with the message. The
// garbage collector gives back a Room that was forgotten. A nil Room bounds nothing.
type Room struct {
	*share
	turn    *share      // of budget.turns; has is 1 while the Room has its turn
	turnEnd *time.Timer // nil if the turn has no end
}

type share struct {
	budget *Budget
	who    string
	age    int64 // number of Rooms that were made before
	// budget.mu guards the rest.
	has  int64
	more int64 // part of has that is not counted
	long bool  // it has had a turn
}

// Room returns an empty Room for who. A nil Budget has nil Rooms.
func (b *Budget) Room(who string) *Room {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.turns == nil {
		b.turns = NewBudget(max(1, int64(runtime.GOMAXPROCS(0))/2))
	}
	b.rooms++
	r := &Room{share: &share{budget: b, who: who, age: b.rooms}, turn: &share{budget: b.turns, who: who, age: b.rooms}}
	runtime.AddCleanup(r, (*share).giveAll, r.share)
	runtime.AddCleanup(r, (*share).giveAll, r.turn)
	return r
}

// Add waits until it can make the Room larger by n, or as large as the Budget. The error is ErrFull or
// ErrGreedy, once ctx is done; then the Room has not changed.
func (r *Room) Add(ctx context.Context, n int64) error {
	if r == nil {
		return nil
	}
	return r.share.add(ctx, n)
}

func (s *share) add(ctx context.Context, n int64) error {
	b := s.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	err := b.growShare(s, n)
	if err == nil {
		return nil
	}
	w := &waiter{share: s, n: n, err: err, done: make(chan struct{})}
	list := b.waiting[w.who]
	younger := slices.IndexFunc(list, func(other *waiter) bool { return other.age > w.age })
	if younger < 0 {
		younger = len(list)
	}
	b.waiting[w.who] = slices.Insert(list, younger, w)
	b.wakeWaiters()
	b.mu.Unlock()
	select {
	case <-w.done:
	case <-ctx.Done():
	}
	b.mu.Lock()
	select {
	case <-w.done:
	default:
		b.endWait(w)
	}
	return w.err
}

// Growing returns a function that makes the Room large enough for the first n bytes of a message, where each
// byte costs so much. It waits between half of the patience and one and a half times as long, so that of
// messages that wait for each other some give up early.
func (r *Room) Growing(cost int, patience time.Duration) func(n int) error {
	had := 0
	return func(n int) error {
		if n <= had {
			return nil
		}
		ctx, stop := context.WithTimeout(context.Background(), patience/2+rand.N(patience))
		defer stop()
		err := r.Add(ctx, int64(cost)*int64(n-had))
		if err == nil {
			had = n
		}
		return err
	}
}

// Take makes the Room larger by n without waiting. It counts like a further Room of its caller.
func (r *Room) Take(n int64) error {
	r.budget.mu.Lock()
	defer r.budget.mu.Unlock()
	err := r.budget.takeLocked(r.who, n, 0)
	if err == nil {
		r.has += n
	}
	return err
}

// Give makes the Room smaller by n.
func (r *Room) Give(n int64) {
	r.budget.mu.Lock()
	defer r.budget.mu.Unlock()
	r.shrink(n)
}

// shrink makes s smaller by n. budget.mu is held.
func (s *share) shrink(n int64) {
	if n <= 0 {
		return
	}
	counted := max(n-s.more, 0)
	s.has, s.more = s.has-n, s.more-(n-counted)
	if s.budget.first == s && s.more == 0 {
		s.budget.first = nil
	}
	s.budget.giveLocked(s.who, counted)
}

// Shrink makes the Room no larger than n, and ends its turn.
func (r *Room) Shrink(n int64) {
	if r == nil {
		return
	}
	r.EndTurn()
	r.budget.mu.Lock()
	defer r.budget.mu.Unlock()
	r.shrink(r.has - n)
}

// Scarce reports whether more than half of the Budget is taken.
func (r *Room) Scarce() bool {
	r.budget.mu.Lock()
	defer r.budget.mu.Unlock()
	return r.budget.used > r.budget.total/2
}

// Leave empties the Room and ends its turn.
func (r *Room) Leave() {
	if r != nil {
		r.EndTurn()
		r.giveAll()
	}
}

func (s *share) giveAll() {
	s.budget.mu.Lock()
	defer s.budget.mu.Unlock()
	s.shrink(s.has)
}
