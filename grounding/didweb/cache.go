// SPDX-License-Identifier: Apache-2.0

package didweb

import (
	"container/list"
	"context"
	"crypto/sha256"
	"sync"
	"time"
)

// A memory is what is remembered of one DID.
type memory struct {
	did string

	body    []byte // of the document; nil: none was seen
	hash    [sha256.Size]byte
	fetched time.Time

	failure *Error // of the latest attempt; nil: it was well
	failed  time.Time
}

// A cache holds the memories that were asked for last.
type cache struct {
	most  int
	order *list.List // of *memory, the latest first
	at    map[string]*list.Element
}

func newCache(most int) cache {
	return cache{most, list.New(), map[string]*list.Element{}}
}

// get returns the memory of a DID, an empty one if not found.
func (c *cache) get(did string) memory {
	if e := c.at[did]; e != nil {
		c.order.MoveToFront(e)
		return *e.Value.(*memory)
	}
	return memory{did: did}
}

func (c *cache) put(m memory) {
	if e := c.at[m.did]; e != nil {
		c.order.MoveToFront(e)
		*e.Value.(*memory) = m
		return
	}
	c.at[m.did] = c.order.PushFront(&m)
	if c.order.Len() > c.most {
		last := c.order.Back()
		delete(c.at, last.Value.(*memory).did)
		c.order.Remove(last)
	}
}

// maxFlights bounds the fetches that are under way or wait for their turn.
const maxFlights = 256

// A flight is a fetch that any number of askers wait for.
type flight struct {
	done chan struct{}
	got  memory // once it is done
	err  *Error
}

// document returns the document at a location, as it was at the given time or
// later, or as far as it is still believed.
func (r *Resolver) document(ctx context.Context, at location, since time.Time) (memory, error) {
	f, m, err := r.join(at, since)
	if err != nil {
		return memory{}, err
	}
	if f == nil {
		return m, nil
	}
	select {
	case <-f.done:
	case <-ctx.Done():
		return memory{}, ctx.Err()
	}
	if f.err != nil {
		return memory{}, f.err
	}
	return f.got, nil
}

// join returns what is remembered, or else the flight that will tell.
func (r *Resolver) join(at location, since time.Time) (*flight, memory, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m, now := r.known.get(at.did), r.o.now()
	if m.body != nil && now.Sub(m.fetched) < r.o.ttl && !m.fetched.Before(since) {
		return nil, m, nil
	}
	if m.failure != nil && now.Sub(m.failed) < r.o.retry {
		return nil, m, m.failure
	}
	f := r.flights[at.did]
	if f == nil {
		if len(r.flights) >= maxFlights {
			return nil, m, &Error{Busy}
		}
		f = &flight{done: make(chan struct{})}
		r.flights[at.did] = f
		go r.fly(f, at)
	}
	return f, m, nil
}

// fly fetches a document. It has its own time limit, not that of whoever was the
// first to ask, since others wait for it too.
func (r *Resolver) fly(f *flight, at location) {
	ctx, cancel := context.WithTimeout(context.Background(), r.o.timeout)
	defer cancel()
	var body []byte
	leave, e := r.slots.enter(ctx, at.host)
	waited := e != nil
	if !waited {
		body, e = r.get.document(ctx, at.url)
		leave()
	}
	r.mu.Lock()
	m := r.known.get(at.did)
	before := m
	if e == nil {
		m.body, m.hash, m.fetched, m.failure = body, sha256.Sum256(body), r.o.now(), nil
	} else {
		m.failure, m.failed = e, r.o.now()
	}
	if !waited { // having had no turn says nothing about the host
		r.known.put(m)
	}
	f.got, f.err = m, e
	delete(r.flights, at.did)
	r.mu.Unlock()
	if e == nil && before.body != nil && before.hash != m.hash && r.o.changed != nil {
		r.o.changed(change{at.did, before.hash, m.hash})
	}
	close(f.done)
}

// The bounds of what is under way at the same time.
const (
	maxTotal   = 16 // connections
	maxPerHost = 2  // connections
	maxInLine  = 32 // fetches from one host, under way or waiting
)

// slots bound the connections, in all and to each host.
type slots struct {
	total chan struct{}
	mu    *sync.Mutex
	hosts map[string]*hostSlots
}

type hostSlots struct {
	free chan struct{}
	line int // how many hold it or wait; it goes with the last
}

func newSlots() slots {
	return slots{make(chan struct{}, maxTotal), new(sync.Mutex), map[string]*hostSlots{}}
}

// enter waits for a turn with the host, and then for one in all: who waits for a
// slow host stands in nobody else's way.
func (s *slots) enter(ctx context.Context, host string) (leave func(), e *Error) {
	s.mu.Lock()
	h := s.hosts[host]
	if h == nil {
		h = &hostSlots{free: make(chan struct{}, maxPerHost)}
		s.hosts[host] = h
	}
	if h.line >= maxInLine {
		s.mu.Unlock()
		return nil, &Error{Busy}
	}
	h.line++
	s.mu.Unlock()

	out := func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if h.line--; h.line == 0 {
			delete(s.hosts, host)
		}
	}
	if !take(ctx, h.free) {
		out()
		return nil, &Error{Busy}
	}
	if !take(ctx, s.total) {
		<-h.free
		out()
		return nil, &Error{Busy}
	}
	return func() {
		<-s.total
		<-h.free
		out()
	}, nil
}

func take(ctx context.Context, c chan struct{}) bool {
	select {
	case c <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}
