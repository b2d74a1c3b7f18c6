// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/backoff"
	"github.com/pellucid-mcp/pellucid/platform/intake"
	"github.com/pellucid-mcp/pellucid/text/eventstream"
)

// stream handles an answer that is a stream of events, resuming it where a
// legacy server allows that.
func (c *HTTP) stream(ctx context.Context, f *flight, m *Message, resp *http.Response) *refusal {
	er, r := c.events(ctx, resp, f.id, func() bool { return c.settled(f) })
	last := er.LastID()
	for tries := 0; r != nil && r.code == codeCut && last != "" && !modern(m.Route.Version); tries++ {
		if tries == maxResumes || !c.pause(ctx, tries, er.Retry()) {
			break
		}
		next, status := c.resume(ctx, last, m.Route)
		if next == nil {
			if status != 0 {
				break // the server is there and does not resume
			}
			continue
		}
		er, r = c.events(ctx, next, f.id, func() bool { return c.settled(f) })
		next.Body.Close()
		if id := er.LastID(); id != "" && id != last {
			last, tries = id, -1
		}
	}
	return r
}

// events delivers the messages of a stream until enough returns true (the refusal is nil then)
// or the stream ends. The stream belongs to the request of that id; a zero id means the stream
// for the server's own messages.
func (c *HTTP) events(ctx context.Context, resp *http.Response, request ID, enough func() bool) (*eventReader, *refusal) {
	er := newEvents(ctx, nil, c.opt.Limits, c.opt.newRoom)
	body, err := decompress(resp)
	if err != nil {
		return er, bodyRefusal(err)
	}
	er.R = heldReader{body, er}
	for ctx.Err() == nil {
		ev, err := er.Next()
		if errors.Is(err, eventstream.ErrTooLong) || errors.Is(err, intake.ErrFull) {
			return er, bodyRefusal(err)
		}
		if err != nil {
			return er, refuse(codeCut, errors.New("wire: stream ended: "+quoteError(err)))
		}
		m, v := er.message(ev)
		switch {
		case v != nil:
			c.to.violation(v)
			continue
		case m == nil:
			continue
		}
		m.Related = request
		c.answer(m)
		if enough() {
			return er, nil
		}
	}
	return er, refuse(codeCut, context.Cause(ctx))
}

// pause waits before the try-th attempt; false if ctx ended.
func (c *HTTP) pause(ctx context.Context, try int, asked time.Duration) bool {
	d := backoff.Spread(min(c.opt.RetryWait<<try, maxRetry))
	return backoff.Sleep(ctx, max(d, asked)) == nil
}

// resume asks for the events after lastID. It returns no response and status 0
// if the server could not be asked.
func (c *HTTP) resume(ctx context.Context, lastID string, route Route) (*http.Response, int) {
	h := c.header(route)
	h.Set("Accept", "text/event-stream")
	if lastID != "" {
		h.Set(headerEvent, lastID)
	}
	resp, err := c.do(ctx, http.MethodGet, h, nil)
	if err != nil {
		return nil, 0
	}
	if resp.StatusCode == http.StatusOK && mediaType(resp) == "text/event-stream" {
		return resp, resp.StatusCode
	}
	resp.Body.Close()
	return nil, resp.StatusCode
}

// listen opens, once for a session, the stream on which a legacy server may speak first.
func (c *HTTP) listen() {
	c.mu.Lock()
	session, number := c.session, c.renewals.number
	first := c.renewals.listened != number && !c.opt.noListen && !modern(c.version)
	c.renewals.listened = number
	c.mu.Unlock()
	if !first {
		return
	}
	there := make(chan struct{})
	if !c.begin(func() { c.listenLoop(session, number, there) }) {
		return
	}
	// What a server says before it is listened to is lost in many a server: the
	// next message must not make it speak too soon.
	t := time.NewTimer(listenWait)
	defer t.Stop()
	select {
	case <-there:
	case <-t.C:
	case <-c.live.Done():
	}
}

// listenLoop listens until the session ends. It closes there once the server has answered.
func (c *HTTP) listenLoop(session string, number int, there chan<- struct{}) {
	answered := sync.OnceFunc(func() { close(there) })
	defer answered()
	lastID, asked, opened := "", time.Duration(0), false
	for tries := 0; tries <= maxResumes; tries++ {
		if tries > 0 && !c.pause(c.live, tries-1, asked) || c.isReplaced(number) {
			return
		}
		resp, status := c.resume(c.live, lastID, Route{})
		answered()
		switch {
		case resp != nil:
			opened = true
		case opened && status == http.StatusNotFound && session != "":
			if c.hasSubscriptions() { // else the next request finds it out
				_ = c.renewSession(c.live, session)
			}
			return
		case status == 0 || status >= http.StatusInternalServerError:
			continue
		default:
			// spec: 405 says that the server has no such stream; many servers say 404 or 400.
			if status != http.StatusMethodNotAllowed {
				c.opt.notice("the server offers no stream for its own messages: HTTP status %d", status)
			}
			return
		}
		heard, began := false, time.Now()
		er, _ := c.events(c.live, resp, ID{}, func() bool { heard = true; return false })
		resp.Body.Close()
		lastID = cmp.Or(er.LastID(), lastID)
		if asked = er.Retry(); heard || time.Since(began) > maxRetry { // idle streams are cut by many a proxy
			tries = 0
		}
	}
	if c.live.Err() == nil && !c.isReplaced(number) {
		c.opt.notice("the stream for the server's own messages broke too often: it is not opened again")
	}
}

// isReplaced reports whether another session has taken the place of the one with that number.
func (c *HTTP) isReplaced(number int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.renewals.number != number
}

// hasSubscriptions reports whether the client has subscribed to resources.
func (c *HTTP) hasSubscriptions() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.past.watched) > 0
}
