// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/backoff"
)

// renewals describes the sessions that an HTTP has made in the place of forgotten ones. The
// HTTP's lock guards it.
type renewals struct {
	running  *renewal
	number   int           // of the session; the first is 1
	last     time.Time     // when the session was made
	pause    backoff.Waits // between sessions that are forgotten soon
	listened int           // number of the last session whose stream was opened
	unproven bool          // the session has answered nothing yet but its handshake
	final400 bool          // status 400 does not mean that a session is forgotten: a new one got it too
}

// renewal makes a new session. All requests that need the session wait for it.
type renewal struct {
	done    chan struct{}
	refused *refusal // set before done is closed
}

const (
	firstRenewWait = 100 * time.Millisecond
	steadySession  = time.Minute // a session that lived so long is replaced without a pause
	renewWait      = 30 * time.Second
)

func sessionOf(resp *http.Response) string { return resp.Request.Header.Get(headerSession) }

// isGone reports whether the server answers that it does not know the session.
//
// spec: MCP 2025-03-26, transports/session-management
func isGone(resp *http.Response) bool {
	return resp.StatusCode == http.StatusNotFound && sessionOf(resp) != ""
}

// hasForgottenSession reports whether the server has refused a request because it does not know the
// session, so that the request was not carried out. Many servers answer 400 instead of 404, and
// some answer 404 for the object of the request. named means that the error bears the request's id.
func (c *HTTP) hasForgottenSession(ctx context.Context, m *Message, resp *http.Response, named bool) bool {
	session, status := sessionOf(resp), resp.StatusCode
	if session == "" || status != http.StatusNotFound && status != http.StatusBadRequest {
		return false
	}
	c.mu.Lock()
	r := &c.renewals
	r.final400 = r.final400 || status == http.StatusBadRequest && r.unproven && c.session == session
	final, other := status == http.StatusBadRequest && r.final400, c.session != session
	sure := status == http.StatusNotFound && (r.number == 1 || time.Since(r.last) > steadySession)
	c.mu.Unlock()
	switch {
	case final || other:
		return !final
	case !named && (sure || status == http.StatusBadRequest && m.isRepeatable()):
		return true
	}
	return !c.knowsSession(ctx)
}

// knowsSession reports whether the server knows the session.
func (c *HTTP) knowsSession(ctx context.Context) bool {
	ping, refused := c.send(ctx, NewRequest(StringID("pellucid-ping"), methodPing, nil))
	if refused != nil {
		return true
	}
	ping.Body.Close()
	return ping.StatusCode != http.StatusNotFound && ping.StatusCode != http.StatusBadRequest
}

// isRepeatable reports whether the server may get the message twice without a further effect.
func (m *Message) isRepeatable() bool {
	switch m.Method {
	case methodInitialize, methodInitialized, methodPing, methodSetLevel, methodSubscribe, methodUnsubscribe,
		"server/discover", "resources/read", "prompts/get", "completion/complete", "tasks/get":
		return true
	}
	return strings.HasSuffix(m.Method, "/list")
}

// isGreeting reports whether the message belongs to the handshake or to the listing that follows it.
func (m *Message) isGreeting() bool {
	return m.Method == methodInitialize || m.Method == methodInitialized || m.Method == "server/discover" || strings.HasSuffix(m.Method, "/list")
}

// awaitSession waits while a new session is being made.
func (c *HTTP) awaitSession(ctx context.Context) *refusal {
	c.mu.Lock()
	n := c.renewals.running
	c.mu.Unlock()
	if n == nil {
		return nil
	}
	return n.wait(ctx)
}

func (n *renewal) wait(ctx context.Context) *refusal {
	select {
	case <-n.done:
		return n.refused
	case <-ctx.Done():
		return refuse(codeSessionGone, context.Cause(ctx))
	}
}

// renewSession makes a new session in the place of old. Requests that find old forgotten at the same
// time share the new session.
func (c *HTTP) renewSession(ctx context.Context, old string) *refusal {
	c.mu.Lock()
	n := c.renewals.running
	switch {
	case n != nil:
	case c.closed:
		c.mu.Unlock()
		return refuse(codeSessionGone, ErrClosed)
	case c.session != old:
		c.mu.Unlock()
		return nil
	default:
		n = &renewal{done: make(chan struct{})}
		c.renewals.running = n
		c.work.Go(func() { c.makeSession(n, old) })
	}
	c.mu.Unlock()
	return n.wait(ctx)
}

// makeSession runs n: it opens a session in the place of old and repeats the handshake in it.
func (c *HTTP) makeSession(n *renewal, old string) {
	ctx, stop := context.WithTimeout(c.live, renewWait)
	defer stop()
	r := &c.renewals
	c.mu.Lock()
	past := c.past.Clone()
	voided := c.dropRequests()
	c.session, c.posts = "", [2]http.Header{}
	wait := time.Duration(0)
	if time.Since(r.last) > steadySession {
		r.pause.Reset()
	} else {
		wait = r.pause.Next()
	}
	c.mu.Unlock()
	err := backoff.Sleep(ctx, wait)
	var changed []string
	if err == nil {
		changed, err = past.Replay(ctx, renewing{c}, false)
	}
	c.mu.Lock()
	r.last = time.Now()
	if err == nil {
		r.number++
		r.unproven = true
	} else {
		c.session, c.version = old, past.Version // so that the next request finds it forgotten
	}
	c.posts = [2]http.Header{}
	c.mu.Unlock()
	if err == nil {
		c.opt.notice("the server had forgotten the session: it has a new one")
		c.listen()
		c.to.announce(c.live, voided, changed)
	} else {
		n.refused = sessionRefusal(err)
	}
	c.mu.Lock()
	r.running = nil
	c.mu.Unlock()
	close(n.done)
}

// renewing is the server with which HTTP makes a new session.
type renewing struct{ *HTTP }

// Ask implements Greeted.
func (c renewing) Ask(ctx context.Context, m *Message) (*Message, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	f := &flight{id: m.ID, method: m.Method, cancel: cancel, own: make(chan *Message, 1)}
	if !c.enlist(f) {
		return nil, errNotInitialized
	}
	defer c.strike(f)
	r := c.exchangeOnce(ctx, f, m)
	select {
	case a := <-f.own:
		return a, nil
	default:
	}
	if r == nil {
		r = refuse(codeCut, errNoAnswer)
	}
	return nil, r
}

// Notify implements Greeted.
func (c renewing) Notify(ctx context.Context, m *Message) error {
	resp, r := c.send(ctx, m)
	if r != nil {
		return r
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		return statusRefusal(resp)
	}
	return nil
}

// sessionRefusal returns the refusal for a session that could not be made anew.
func sessionRefusal(err error) *refusal {
	if r, ok := errors.AsType[*refusal](err); ok {
		return r
	}
	return refuse(codeSessionGone, fmt.Errorf("%w: %w", ErrSessionGone, err))
}
