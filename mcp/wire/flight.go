// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/text/finding"
)

var errNoAnswer = errors.New("wire: no answer in the stream")

// fly takes a request to its answer, whatever that be.
func (c *HTTP) fly(ctx context.Context, f *flight, m *Message) {
	f.room = m.room
	m.room = nil
	defer func() { m.Release(); f.room.Leave() }()
	r := c.post(ctx, f, m)
	c.mu.Lock()
	answered, cancelled := f.answered, f.cancelled
	c.mu.Unlock()
	if answered || cancelled {
		return
	}
	if context.Cause(ctx) != nil {
		return // Close: no answer is wanted any more
	}
	if r == nil {
		r = refuse(codeCut, errNoAnswer)
	}
	if r.cause != ErrRenewed { // the notice of the new session has reported it
		c.opt.notice("a request got no answer: %v", r.cause)
	}
	c.to.message(r.local(f.id))
}

// tell posts a notification or a response.
func (c *HTTP) tell(m *Message) {
	defer m.Release()
	_ = c.awaitSession(c.live)
	resp, r := c.send(c.live, m)
	if r == nil {
		defer resp.Body.Close()
		if resp.StatusCode/100 != 2 {
			r = statusRefusal(resp)
		}
		if m.Method == methodInitialized && isGone(resp) { // else the next request finds it out
			r = c.renewSession(c.live, sessionOf(resp))
		}
	}
	if r != nil {
		if !errors.Is(context.Cause(c.live), ErrClosed) {
			c.opt.notice("a notification or response was not accepted: %v", r.cause)
		}
		return
	}
	// A server has nothing to say here; a small body is read so that the connection serves again.
	io.CopyN(io.Discard, resp.Body, 4<<10)
	if m.Method == methodInitialized && !modern(m.Route.Version) {
		c.listen()
	}
}

func (c *HTTP) send(ctx context.Context, m *Message) (*http.Response, *refusal) {
	body := m.Append(make([]byte, 0, m.Len()))
	return c.opt.roundTrip(ctx, m.isGreeting(), func() (*http.Response, error) {
		return c.do(ctx, http.MethodPost, c.postHeader(m), body)
	})
}

// doRefusal tells apart an upstream that was never reached from one that broke off.
func doRefusal(err error) *refusal {
	if neverConnected(err) {
		return refuse(codeUnreachable, fmt.Errorf("%w: %s", ErrUnreachable, quoteError(err)))
	}
	return refuse(codeCut, errors.New("wire: no response: "+quoteError(err)))
}

// post takes a request to its answer, in a new session where the server has forgotten ours.
func (c *HTTP) post(ctx context.Context, f *flight, m *Message) *refusal {
	if r := c.awaitSession(ctx); r != nil {
		return r
	}
	resp, r := c.send(ctx, m)
	if r != nil {
		return r
	}
	failure, named := c.decodeFailure(ctx, f, resp)
	if !c.hasForgottenSession(ctx, m, resp, failure != nil && named) {
		return c.handleResponse(ctx, f, m, resp, failure, false)
	}
	failure.Release()
	resp.Body.Close()
	if r := c.renewSession(ctx, sessionOf(resp)); r != nil {
		return r
	}
	if m.Recheck {
		return refuse(codeSessionGone, ErrRenewed)
	}
	if c.isCancelled(f) {
		return nil
	}
	return c.exchangeOnce(ctx, f, m)
}

// exchangeOnce sends a request and handles the response. It makes no new session.
func (c *HTTP) exchangeOnce(ctx context.Context, f *flight, m *Message) *refusal {
	resp, r := c.send(ctx, m)
	if r != nil {
		return r
	}
	failure, _ := c.decodeFailure(ctx, f, resp)
	return c.handleResponse(ctx, f, m, resp, failure, isGone(resp) && !c.knowsSession(ctx))
}

// handleResponse delivers the answer that a response holds. failure is the JSON-RPC error of a status
// of failure; gone means that the server does not know the session.
func (c *HTTP) handleResponse(ctx context.Context, f *flight, m *Message, resp *http.Response, failure *Message, gone bool) *refusal {
	defer resp.Body.Close()
	switch {
	case gone:
		failure.Release()
		return refuse(codeSessionGone, fmt.Errorf("%w: %w", ErrSessionGone, StatusError(resp.StatusCode)))
	case failure != nil:
		c.answer(failure)
		return nil
	case resp.StatusCode/100 != 2:
		return statusRefusal(resp)
	}
	if r := c.welcome(f, resp); r != nil {
		return r
	}
	switch t := mediaType(resp); t {
	case "application/json":
		return c.whole(ctx, f, resp)
	case "text/event-stream":
		r := c.stream(ctx, f, m, resp)
		if r == nil {
			linger(resp, f)
		}
		return r
	default:
		return refuse(codeBadAnswer, fmt.Errorf("wire: status %d with content type %s", resp.StatusCode, finding.Quote(t)))
	}
}

// linger reads a stream to its end, which should be near once the answer has
// come, so that the connection serves again.
func linger(resp *http.Response, f *flight) {
	stop := time.AfterFunc(lingerWait, func() { f.cancel(errCancelled) })
	defer stop.Stop()
	io.CopyN(io.Discard, resp.Body, 64<<10)
}

func mediaType(resp *http.Response) string {
	ct := resp.Header.Get("Content-Type")
	if ct == "application/json" || ct == "text/event-stream" { // nearly always
		return ct
	}
	t, _, err := mime.ParseMediaType(ct)
	if err != nil && t == "" {
		return ct
	}
	return t
}

// welcome takes the session id that a legacy server gives with initialize.
func (c *HTTP) welcome(f *flight, resp *http.Response) *refusal {
	s := resp.Header.Get(headerSession)
	if f.method != methodInitialize || s == "" {
		return nil
	}
	if len(s) > maxEventID || !validHeaderValue(s) {
		return refuse(codeBadAnswer, errors.New("wire: session id is not visible ASCII"))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.session, c.posts = s, [2]http.Header{}
	return nil
}

// decodeFailure returns the JSON-RPC error that came with a status of failure, as the answer to the
// request. named means that it bears the request's id.
func (c *HTTP) decodeFailure(ctx context.Context, f *flight, resp *http.Response) (failure *Message, named bool) {
	if resp.StatusCode/100 == 2 || mediaType(resp) != "application/json" {
		return nil, false
	}
	b, err := c.body(ctx, f, resp)
	if err != nil {
		return nil, false
	}
	m, err := Decode(b.Bytes(), c.opt.Limits)
	if err != nil || m.Kind != ErrorResponse || !m.ID.IsZero() && m.ID != f.id {
		b.Release()
		return nil, false
	}
	named = !m.ID.IsZero()
	m.ID, m.buf, m.room, m.Whole, m.Cause = f.id, b, f.room, true, StatusError(resp.StatusCode)
	f.room = nil
	return m, named
}

// whole handles an answer that is one JSON body.
func (c *HTTP) whole(ctx context.Context, f *flight, resp *http.Response) *refusal {
	b, err := c.body(ctx, f, resp)
	if err != nil {
		return bodyRefusal(err)
	}
	m, err := Decode(b.Bytes(), c.opt.Limits)
	if err != nil {
		b.Release()
		return violationRefusal(err)
	}
	m.buf, m.room, m.Whole = b, f.room, true
	f.room = nil
	if (m.Kind != Response && m.Kind != ErrorResponse) || m.ID != f.id {
		m.Release()
		return refuse(codeBadAnswer, errors.New("wire: the body answers another request"))
	}
	c.answer(m)
	return nil
}

func violationRefusal(err error) *refusal {
	var v *Violation
	if errors.As(err, &v) && v.Excerpt != "" {
		err = fmt.Errorf("%w: %s", err, v.Excerpt)
	}
	return refuse(codeBadAnswer, err)
}

// answer delivers a message; a response settles the flight that it belongs to.
func (c *HTTP) answer(m *Message) {
	c.mu.Lock()
	var f *flight
	if m.answers() {
		f = c.flights[m.ID]
	}
	if f != nil {
		f.answered = true
		delete(c.flights, m.ID) // the id is free, though the stream may still end
		if f.method == methodInitialize && m.Kind == Response {
			if v := m.Result.Get("protocolVersion").Text(); validVersion(v) {
				c.version, c.posts = strings.Clone(v), [2]http.Header{}
			}
		}
		c.renewals.unproven = c.renewals.unproven && f.own != nil
	}
	c.noteReceived(m)
	c.mu.Unlock()
	if f != nil && f.own != nil {
		f.own <- m
		return
	}
	if !c.to.message(m) {
		m.Release()
	}
}

func (c *HTTP) isCancelled(f *flight) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return f.cancelled
}

func (c *HTTP) settled(f *flight) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return f.answered
}
