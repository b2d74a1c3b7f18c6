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

// refusal is why a request got no answer: our code and constant text for the
// other side, the cause for the operator.
type refusal struct {
	code  int
	text  string
	cause error
}

var refusalText = map[int]string{
	codeUnreachable:  "pellucid: the server could not be reached",
	codeStatus:       "pellucid: the server refused the request",
	codeBadAnswer:    "pellucid: the server's answer was not acceptable",
	codeCut:          "pellucid: the server's answer ended early",
	codeSessionGone:  "pellucid: the server ended the session",
	codeUnauthorized: "pellucid: the server asked for credentials",
	CodeNoRoom:       "pellucid: too much is under way to read the server's answer: ask again",
}

func refuse(code int, cause error) *refusal { return &refusal{code, refusalText[code], cause} }

// local is the error response that tells the sender of the request of the refusal.
func (r *refusal) local(id ID) *Message {
	m := parsed(NewError(id, fmt.Appendf(nil, `{"code":%d,"message":%q}`, r.code, r.text)))
	m.Local, m.Cause = true, r.cause
	return m
}

// fly takes a request to its answer, whatever that be.
func (c *HTTP) fly(ctx context.Context, f *flight, m *Message) {
	defer m.Release()
	r := c.post(ctx, f, m)
	c.mu.Lock()
	answered, cancelled := f.answered, f.cancelled
	c.mu.Unlock()
	if answered || cancelled {
		return
	}
	if cause := context.Cause(ctx); errors.Is(cause, ErrSessionGone) {
		r = refuse(codeSessionGone, ErrSessionGone)
	} else if cause != nil {
		return // Close: no answer is wanted any more
	}
	if r == nil {
		r = refuse(codeCut, errors.New("wire: no answer in the stream"))
	}
	c.notice("a request got no answer: %v", r.cause)
	c.to.message(r.local(f.id))
}

// tell posts a notification or a response.
func (c *HTTP) tell(m *Message) {
	defer m.Release()
	resp, r := c.send(c.live, m)
	if r == nil {
		defer resp.Body.Close()
		if resp.StatusCode/100 != 2 {
			r = c.statusRefusal(resp)
		}
	}
	if r != nil {
		if !errors.Is(context.Cause(c.live), ErrClosed) {
			c.notice("a notification or response was not accepted: %v", r.cause)
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
	resp, err := c.do(ctx, http.MethodPost, c.postHeader(m), m.Append(make([]byte, 0, m.Len())))
	if err != nil {
		return nil, doRefusal(err)
	}
	return resp, nil
}

// doRefusal tells apart an upstream that was never reached from one that broke off.
func doRefusal(err error) *refusal {
	if neverConnected(err) {
		return refuse(codeUnreachable, fmt.Errorf("%w: %s", ErrUnreachable, quoteError(err)))
	}
	return refuse(codeCut, errors.New("wire: no response: "+quoteError(err)))
}

func (c *HTTP) post(ctx context.Context, f *flight, m *Message) *refusal {
	resp, r := c.send(ctx, m)
	if r != nil {
		return r
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		return c.failed(f, resp)
	}
	if r := c.welcome(f, resp); r != nil {
		return r
	}
	switch t := mediaType(resp); t {
	case "application/json":
		return c.whole(f, resp)
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
	c.session, c.posts = s, nil
	return nil
}

// failed handles a status of failure. A modern server says what is wrong in a
// JSON-RPC error; a legacy one whose session is lost says 404.
func (c *HTTP) failed(f *flight, resp *http.Response) *refusal {
	if resp.StatusCode == http.StatusNotFound && resp.Request.Header.Get(headerSession) != "" {
		c.lose()
		return refuse(codeSessionGone, ErrSessionGone)
	}
	if mediaType(resp) == "application/json" {
		if b, err := c.body(f, resp); err == nil {
			m, err := Decode(b.Bytes(), c.opt.Limits)
			if err == nil && m.Kind == ErrorResponse && (m.ID.IsZero() || m.ID == f.id) {
				m.ID, m.buf, m.room, m.Whole, m.Cause = f.id, b, f.room, true, StatusError(resp.StatusCode)
				c.answer(m)
				return nil
			}
			b.Release()
		}
	}
	return c.statusRefusal(resp)
}

func (c *HTTP) statusRefusal(resp *http.Response) *refusal {
	switch code := resp.StatusCode; {
	case code == http.StatusNotFound && resp.Request.Header.Get(headerSession) != "":
		c.lose()
		return refuse(codeSessionGone, ErrSessionGone)
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		return refuse(codeUnauthorized, StatusError(code))
	case code/100 == 3:
		return refuse(codeStatus, fmt.Errorf("wire: HTTP status %d: redirects are not followed", code))
	default:
		return refuse(codeStatus, StatusError(code))
	}
}

// whole handles an answer that is one JSON body.
func (c *HTTP) whole(f *flight, resp *http.Response) *refusal {
	b, err := c.body(f, resp)
	if err != nil {
		return bodyRefusal(err)
	}
	m, err := Decode(b.Bytes(), c.opt.Limits)
	if err != nil {
		b.Release()
		return violationRefusal(err)
	}
	m.buf, m.room, m.Whole = b, f.room, true
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
	if m.Kind == Response || m.Kind == ErrorResponse {
		c.mu.Lock()
		f := c.flights[m.ID]
		if f != nil {
			f.answered = true
			delete(c.flights, m.ID) // the id is free, though the stream may still end
		}
		if f != nil && f.method == methodInitialize && m.Kind == Response {
			if v := m.Result.Get("protocolVersion").Text(); validVersion(v) {
				c.version, c.posts = strings.Clone(v), nil
			}
		}
		c.mu.Unlock()
	}
	if !c.to.message(m) {
		m.Release()
	}
}

func (c *HTTP) settled(f *flight) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return f.answered
}
