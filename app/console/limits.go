// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/auth"
	"github.com/pellucid-mcp/pellucid/platform/intake"
)

// pageLimits are the limits of one person who has signed in. Tests raise them.
var pageLimits = auth.Limits{Rate: 10, Burst: 100, Concurrent: 8}

// What pages cost, in bytes of memory.
const (
	pageCost = 2 << 20  // a page, with what its form may send
	textCost = 96       // a byte of a text that a page marks: the page of a text of hidden characters is longest
	longText = 64 << 10 // bytes of a text from which on its page needs a place for work
)

// textTime is the longest turn of a page. Its store may be slow, and long messages wait.
const textTime = time.Second

// placeWait is how long a page waits for memory, or for a place. Tests set it.
var placeWait = 5 * time.Second

// answerPerson answers a person who may ask for the route, within the limits of one person and of the process.
func (c *Console) answerPerson(w http.ResponseWriter, q *request, r route) {
	leave, wait := c.people(q.who.ID)
	if leave == nil {
		auth.SetRetryAfter(w, wait)
		tooQuick().write(c, w, q)
		return
	}
	defer leave()
	q.room = c.opt.Memory.Room(q.who.ID)
	defer q.room.Leave()
	defer q.endWork()
	if err := c.waitForMemory(q, pageCost); err != nil {
		overloadedState(err).write(c, w, q)
		return
	}
	said := r.handle(c, q)
	if q.Method == http.MethodPost && r.least > Viewer { // a viewer changes nothing
		c.header.forget()
	}
	said.write(c, w, q)
}

// answerVisitor answers a request without a session, within the limits of its address.
func (c *Console) answerVisitor(w http.ResponseWriter, q *request, say func() answer) {
	c.visitors(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { say().write(c, w, q) })).ServeHTTP(w, q.Request)
}

// waitForMemory waits for n bytes of memory for the page.
func (c *Console) waitForMemory(q *request, n int64) error {
	ctx, stop := context.WithTimeout(q.Context(), placeWait)
	defer stop()
	return q.room.Add(ctx, n)
}

// waitForText is called before a page looks at a text of n bytes. It waits for the memory that this costs, and,
// for a long text, for the place and for its turn among long messages. One page at a time has the place, which then
// stays empty for as long again, so that calls keep their share of the processor. It returns an answer if the page
// has to come later.
func (c *Console) waitForText(q *request, n int) answer {
	ctx, stop := context.WithTimeout(q.Context(), placeWait)
	defer stop()
	wait := q.room.Add
	if n >= longText {
		if q.freePlace == nil {
			free, err := c.work.Wait(ctx, q.who.ID, 1)
			if err != nil {
				return overloadedState(err)
			}
			began := time.Now()
			q.freePlace = func() { time.AfterFunc(time.Since(began), free) }
		}
		wait = q.room.Work
	}
	err := wait(ctx, textCost*int64(n))
	if err == nil && n >= longText {
		err = q.room.WaitTurn(ctx, textTime)
	}
	if err != nil {
		return overloadedState(err)
	}
	return nil
}

// endWork ends the turn of the page, and frees the place for a long text if it has that.
func (q *request) endWork() {
	q.room.EndTurn()
	if q.freePlace != nil {
		q.freePlace()
		q.freePlace = nil
	}
}

// tooQuick is the state of a person, or of an address, that asks too often.
func tooQuick() state {
	return state{status: http.StatusTooManyRequests, title: "Too many requests", says: "You have asked for too many pages at once. This request was not looked at.", why: "Wait a few seconds, and load the page again.", kind: "held"}
}

// overloadedState is the state of a request for which there is no memory or no place.
func overloadedState(why error) state {
	s := state{status: http.StatusServiceUnavailable, title: "Too much is under way", says: "Too much is under way to make this page now. Nothing was changed.", why: "Wait a few seconds, and try again.", kind: "held"}
	if errors.Is(why, intake.ErrGreedy) {
		s.status, s.says = http.StatusTooManyRequests, "Too many pages of yours are under way to make this one now. Nothing was changed."
	}
	return s
}
