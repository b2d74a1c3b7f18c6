// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"errors"
	"time"

	"github.com/pellucid-mcp/pellucid/mcp/wire"
)

// idleSince implements sleeper.
func (l *link) idleSince() (time.Time, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.used, l.idle()
}

// idle reports whether nothing is under way on a connection. l.mu is held.
func (l *link) idle() bool {
	return l.conn != nil && !l.resting && len(l.waiting) == 0 && len(l.asked) == 0 && !l.past.UnderWay()
}

// rest implements sleeper: the connection ends, and the next request makes another one.
func (l *link) rest() bool {
	l.mu.Lock()
	if !l.idle() {
		l.mu.Unlock()
		return false
	}
	conn := l.conn
	l.sleep()
	l.conn, l.absent = nil, isAway // not isFull: the next request has not been refused yet
	l.mu.Unlock()
	conn.Close()
	return true
}

// sleep has requests wait for a connection that the first of them makes. l.mu is held.
func (l *link) sleep() {
	l.resting, l.wanted, l.settled = true, false, make(chan struct{})
}

// rests has the next connection wait for a request, if the one before has ended for another
// session's sake, or if there was no room for it. It reports whether that was so.
func (l *link) rests(err error) bool {
	l.mu.Lock()
	switch {
	case l.resting:
		l.up.log.Info("the process of an idle session was stopped: another session needed its place")
	case errors.Is(err, errFull):
		l.up.log.Warn("no room for another process: requests of a session are refused until a process ends; limits.children is the bound", "processes", l.up.f.Children())
		l.sleep()
	default:
		l.mu.Unlock()
		return false
	}
	l.state = asleep
	gone := l.ctx.Err() != nil // else cease comes later, and finds it asleep
	if l.wanted {
		l.rouse()
	}
	l.mu.Unlock()
	if gone {
		l.cease()
	}
	return true
}

// rouse makes a connection for a request. l.mu is held.
func (l *link) rouse() {
	l.wanted = true
	if l.state == asleep {
		l.state, l.resting = busy, false
		go l.connect()
	}
}

// sleeps reports whether there is no connection that a message could be for. A request
// makes one. settled is what a message that is not asleep waits for: it is read together
// with resting, since a request that does not wake the link must not wait for a connection
// that only such a request makes.
func (l *link) sleeps(out *wire.Message) (asleep bool, settled <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.resting {
		return false, l.settled
	}
	if out.Kind != wire.Request {
		l.past.Note(out)
		return true, nil
	}
	l.rouse()
	return false, l.settled
}
