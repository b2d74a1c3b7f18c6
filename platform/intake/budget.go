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

// Why there is no room, to be compared with errors.Is. ErrGreedy is ErrFull for this caller.
var (
	ErrFull   = errors.New("intake: the room for all callers is used up")
	ErrGreedy = fmt.Errorf("%w: this caller has used up its share", ErrFull)
)

// BodyCost is what a byte of a request's body may cost: the body as it comes in pieces and whole, what is
// parsed of it, and what the collector has not found yet.
const BodyCost = 4

// leastReserved is how large a Budget has to be for its last eighth to be kept for callers that have little: so a
// short message finds memory, however many callers send long ones.
const leastReserved = 16 << 20

// BodyWait is the patience with which a body waits for memory.
const BodyWait = 2 * time.Second

// A Budget divides places or bytes among the callers that ask for them. Each caller may have as much
// as is left for others then: one alone half of it, two a third each. So a new caller finds something,
// however much another one hoards. What a caller has at one time for one purpose, as long as it has
// nothing else, may be all that is left. The zero Budget has nothing.
type Budget struct {
	mu    sync.Mutex
	total int64
	used  int64
	by    map[string]int64 // of callers that have something

	waiting map[string][]*waiter // by caller, in the order in which they began to wait
}

// A waiter is a Room that waits to become larger by n. Those who have to go on are woken, and no other: a crowd
// that looks again whenever a byte is given back would stand before every short call.
type waiter struct {
	*share
	n    int64
	err  error         // why it waits, or gives up; nil: it has got n
	done chan struct{} // closed when it waits no more
}

// NewBudget returns a Budget of so much.
func NewBudget(total int64) *Budget {
	return &Budget{total: total, by: map[string]int64{}, waiting: map[string][]*waiter{}}
}

// Resize changes how much there is. What is taken stays taken.
func (b *Budget) Resize(total int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.total = total
}

// Take gives who n more; the error is ErrFull or ErrGreedy. The caller "" may have all of it.
func (b *Budget) Take(who string, n int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.take(who, n, 0)
}

// take is Take where own of what who has is for the same purpose. b.mu is held.
func (b *Budget) take(who string, n, own int64) error {
	if n <= 0 {
		return nil
	}
	left, has := b.total-b.used-n, b.by[who]
	little := has // what counts of the caller against the reserve
	if who == "" {
		little = own
	}
	switch {
	case left < 0, b.total >= leastReserved && left < b.total/8 && little+n > b.total/256 && b.used > own:
		return ErrFull
	case who != "" && has > own && has+n > left:
		return ErrGreedy
	}
	b.used += n
	b.by[who] = has + n
	return nil
}

// Give takes n back from who.
func (b *Budget) Give(who string, n int64) {
	if n == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used -= n
	if b.by[who] -= n; b.by[who] == 0 {
		delete(b.by, who)
	}
	b.settle()
}

// settle gives those who wait what is there, one of each caller in turn, and has the last of those give up whose
// caller has nothing but what they have. b.mu is held.
func (b *Budget) settle() {
	for more := true; more; {
		more = false
		for _, list := range b.waiting { // in no order: no caller is before the others
			for _, w := range list {
				if w.err = b.grow(w.share, w.n); w.err == nil {
					b.dismiss(w)
					more = true
					break
				}
			}
		}
	}
	for who, list := range b.waiting {
		sum, last := int64(0), (*waiter)(nil)
		for _, w := range list {
			if sum += w.has; w.has > 0 {
				last = w
			}
		}
		if last != nil && sum > last.has && sum == b.by[who] {
			b.dismiss(last)
		}
	}
}

// grow gives s n more, or all that there is. b.mu is held.
func (b *Budget) grow(s *share, n int64) error {
	n = max(min(n, b.total-s.has), 0)
	err := b.take(s.who, n, s.has)
	if err == nil {
		s.has += n
	}
	return err
}

// dismiss ends the wait of w. b.mu is held.
func (b *Budget) dismiss(w *waiter) {
	list := b.waiting[w.who]
	if list = slices.DeleteFunc(list, func(other *waiter) bool { return w == other }); len(list) > 0 {
		b.waiting[w.who] = list
	} else {
		delete(b.waiting, w.who)
	}
	close(w.done)
}

// Used is how much is taken now.
func (b *Budget) Used() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

// Wait takes n for who, or all that there is if that is less, as soon as it is there, and
// returns what gives it back. The error is ErrFull or ErrGreedy, once ctx is done.
func (b *Budget) Wait(ctx context.Context, who string, n int64) (give func(), err error) {
	r := b.Room(who)
	if err := r.Add(ctx, n); err != nil {
		return nil, err
	}
	return r.Leave, nil
}

// A Room is what one purpose, such as a message, has of a Budget. It grows with the message. Where a
// Room is forgotten, the collector gives it back. A nil Room bounds nothing.
type Room struct{ *share }

type share struct {
	of  *Budget
	who string
	has int64 // guarded by of.mu
}

// Room returns an empty Room for who; nil where b is nil.
func (b *Budget) Room(who string) *Room {
	if b == nil {
		return nil
	}
	r := &Room{&share{of: b, who: who}}
	runtime.AddCleanup(r, (*share).leave, r.share)
	return r
}

// Add makes the Room larger by n, or as large as the Budget, as soon as there is so much. The error is
// ErrFull or ErrGreedy, once ctx is done; then the Room is as it was.
func (r *Room) Add(ctx context.Context, n int64) error {
	if r == nil {
		return nil
	}
	b := r.of
	b.mu.Lock()
	defer b.mu.Unlock()
	err := b.grow(r.share, n)
	if err == nil {
		return nil
	}
	w := &waiter{share: r.share, n: n, err: err, done: make(chan struct{})}
	b.waiting[w.who] = append(b.waiting[w.who], w)
	b.settle()
	b.mu.Unlock()
	select {
	case <-w.done:
	case <-ctx.Done():
	}
	b.mu.Lock()
	select {
	case <-w.done:
	default:
		b.dismiss(w)
	}
	return w.err
}

// Growing returns a function that makes the Room large enough for n bytes of a message in all, each of
// which costs so much. It waits for half of the patience to one and a half times as long, so that of
// messages which wait for each other some give up before the rest.
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

// Take makes the Room larger by n at once, of what is left for its caller beside others.
func (r *Room) Take(n int64) error {
	r.of.mu.Lock()
	defer r.of.mu.Unlock()
	err := r.of.take(r.who, n, 0)
	if err == nil {
		r.has += n
	}
	return err
}

// Give makes the Room smaller by n.
func (r *Room) Give(n int64) {
	r.of.mu.Lock()
	r.has -= n
	r.of.mu.Unlock()
	r.of.Give(r.who, n)
}

// Scarce reports whether more than half of the Budget is taken.
func (r *Room) Scarce() bool {
	r.of.mu.Lock()
	defer r.of.mu.Unlock()
	return r.of.used > r.of.total/2
}

// Leave gives back what the Room has.
func (r *Room) Leave() {
	if r != nil {
		r.leave()
	}
}

func (s *share) leave() {
	s.of.mu.Lock()
	has := s.has
	s.has = 0
	s.of.mu.Unlock()
	s.of.Give(s.who, has)
}
