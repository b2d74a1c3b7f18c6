// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"
)

// pool bounds the processes of servers and shares them among those who have sessions.
// Where there is no room for one more, the process of an idle session ends: of the
// principal who has the most, if that is more than who asks has, and else of who asks;
// and of that principal's sessions, of the server of which it has the most, the one that
// has been idle longest. So one principal's sessions, however many, keep no process from
// another principal. A session whose process has ended gets a new one with its next
// request.
type pool struct {
	total, perServer, perPrincipal int

	mu    sync.Mutex
	held  map[*place]bool
	freed chan struct{} // closed, and replaced, when a place is given back
}

// A place is one process. sleeper is nil if it may not end for another's sake.
type place struct {
	server, principal string
	sleeper           sleeper
	ending            bool
}

// A sleeper is a session's connection that can do without its process for a while.
type sleeper interface {
	// idleSince says since when nothing has been under way; false: something is.
	idleSince() (time.Time, bool)
	// rest ends the process, and reports false if something is under way after all.
	rest() bool
}

// roomWait bounds how long a session waits for a process that ends for it.
const roomWait = stopWait + 2*time.Second

var errFull = errors.New("fleet: too many processes, and none of them is idle")

func newPool(opt *Options) *pool {
	return &pool{total: opt.Children, perServer: opt.PerServer, perPrincipal: opt.PerPrincipal, held: map[*place]bool{}, freed: make(chan struct{})}
}

func (p *pool) len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.held)
}

// take waits for a place; release gives it back. The error is ctx's or errFull.
func (p *pool) take(ctx context.Context, server, principal string, s sleeper) (release func(), err error) {
	late := time.NewTimer(roomWait)
	defer late.Stop()
	for {
		p.mu.Lock()
		victim, full := p.room(server, principal)
		freed := p.freed
		if !full {
			at := &place{server: server, principal: principal, sleeper: s}
			p.held[at] = true
			p.mu.Unlock()
			return func() { p.release(at) }, nil
		}
		ending := p.ending()
		if victim != nil {
			victim.ending = true
		}
		p.mu.Unlock()
		switch {
		case victim != nil && !victim.sleeper.rest():
			p.mu.Lock()
			victim.ending = false
			p.mu.Unlock()
			continue // it is at work again: another one
		case victim == nil && !ending:
			return nil, errFull
		}
		select {
		case <-freed:
		case <-late.C:
			return nil, errFull
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// ending reports whether a place is about to be free. p.mu is held.
func (p *pool) ending() bool {
	for at := range p.held {
		if at.ending {
			return true
		}
	}
	return false
}

func (p *pool) release(at *place) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.held, at)
	close(p.freed)
	p.freed = make(chan struct{})
}

// room reports whether a bound is reached, and which process should end then; nil: none can.
// p.mu is held.
func (p *pool) room(server, principal string) (victim *place, full bool) {
	ofPrincipal := func(at *place) bool { return at.principal == principal }
	ofServer := func(at *place) bool { return at.server == server }
	anyone := func(*place) bool { return true }
	switch {
	case principal != "" && p.count(ofPrincipal) >= p.perPrincipal:
		return p.choose(principal, ofPrincipal), true
	case p.count(ofServer) >= p.perServer:
		return p.choose(principal, ofServer), true
	case len(p.held) >= p.total:
		return p.choose(principal, anyone), true
	}
	return nil, false
}

func (p *pool) count(of func(*place) bool) (n int) {
	for at := range p.held {
		if of(at) {
			n++
		}
	}
	return n
}

// choose returns the place to give up, of those that may be, for a principal who asks.
func (p *pool) choose(asks string, may func(*place) bool) (best *place) {
	type pair struct{ principal, server string }
	has, ofServer := map[string]int{}, map[pair]int{}
	for at := range p.held {
		if may(at) {
			has[at.principal]++
			ofServer[pair{at.principal, at.server}]++
		}
	}
	var since time.Time
	for at := range p.held {
		if at.sleeper == nil || at.ending || !may(at) || at.principal != asks && has[at.principal] <= has[asks] {
			continue
		}
		idle, ok := at.sleeper.idleSince()
		if !ok {
			continue
		}
		if best != nil {
			order := cmp.Or(cmp.Compare(has[at.principal], has[best.principal]),
				cmp.Compare(ofServer[pair{at.principal, at.server}], ofServer[pair{best.principal, best.server}]), since.Compare(idle))
			if order <= 0 {
				continue
			}
		}
		best, since = at, idle
	}
	return best
}
