// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/pellucid-mcp/pellucid/text/finding"
)

// StatusError is the HTTP status with which an upstream refused a request.
type StatusError int

func (e StatusError) Error() string { return fmt.Sprintf("wire: HTTP status %d", int(e)) }

// SSE is a Conn to a server of the transport of 2024-11-05, HTTP+SSE, as its client:
// one stream from the server, whose first event names the URL that messages are
// posted to. That URL has to be of the same origin: it gets the credentials.
//
// The stream is opened for the first message. A request that cannot be delivered is
// answered by a Message with Local set; the Conn goes on. It ends with the stream,
// which this transport cannot resume.
type SSE struct {
	to     delivery
	url    *url.URL
	opt    HTTPOptions
	client *http.Client
	room   chan struct{}

	live   context.Context // of all work: ended by Close (ErrClosed), or with the stream
	kill   context.CancelCauseFunc
	work   sync.WaitGroup
	opener chan struct{} // a token: the goroutine that has it may open the stream

	mu    sync.Mutex
	ended error                      // why no more is begun; nil: it goes on
	post  string                     // where messages go; "": the stream is not open
	posts map[ID]*context.CancelFunc // of requests whose POST has no end yet
}

var _ Conn = (*SSE)(nil)

const endpointWait = 15 * time.Second

// errStreamEnded is why an SSE ends.
var errStreamEnded = errors.New("wire: the server ended its stream")

// NewSSE returns a Conn to the server whose stream is at rawURL. Nothing is sent
// before the first Write.
func NewSSE(rawURL string, opt HTTPOptions) (*SSE, error) {
	h, err := NewHTTP(rawURL, opt) // the same rules, defaults and transport
	if err != nil {
		return nil, err
	}
	c := &SSE{url: h.url, opt: h.opt, to: newDelivery(), room: make(chan struct{}, maxInFlight),
		opener: make(chan struct{}, 1), posts: map[ID]*context.CancelFunc{}}
	c.client = &http.Client{
		Transport: h.trip,
		// A redirect would take credentials and messages where the operator did not send them.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	c.live, c.kill = context.WithCancelCause(context.Background())
	c.opener <- struct{}{}
	return c, nil
}

// Start implements Conn.
func (c *SSE) Start(r Receiver) { c.to.start(r) }

// Write posts a message. For a request it returns at once; for anything else it
// waits a little until the upstream has it.
func (c *SSE) Write(ctx context.Context, m *Message) error {
	c.over(m.Route.Cancels, 0) // before there has to be room
	done := make(chan struct{})
	select {
	case c.room <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	case <-c.live.Done():
		return c.endError()
	}
	under, end := c.enlist(m) // now: it may be cancelled at once
	started := c.begin(func() {
		defer func() { end(); <-c.room; close(done) }()
		if r := c.tell(under, m); r != nil && under.Err() == nil {
			if m.Kind == Request { // which is told to who asked
				c.to.message(r.local(m.ID))
			} else {
				c.notice("a message was not delivered: %v", r.cause)
			}
		}
	})
	if !started {
		end()
		<-c.room
		return c.endError()
	}
	if m.Kind == Request {
		return nil
	}
	return acknowledged(ctx, c.live, done, c.opt.ackWait, func() { c.notice("the server takes long to accept a notification") })
}

func (c *SSE) begin(f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended == nil {
		c.work.Go(f)
	}
	return c.ended == nil
}

func (c *SSE) endError() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended
}

// enlist returns the context of m's POST, which ends with what m asks for.
func (c *SSE) enlist(m *Message) (ctx context.Context, end func()) {
	ctx, cancel := context.WithCancel(c.live)
	if m.Kind != Request {
		return ctx, cancel
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.posts[m.ID] = &cancel
	return ctx, func() {
		cancel()
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.posts[m.ID] == &cancel {
			delete(c.posts, m.ID)
		}
	}
}

// over ends the POST of a request that is answered or cancelled, after a while: else
// a server that never ends one would have all room in the end.
func (c *SSE) over(id ID, after time.Duration) {
	c.mu.Lock()
	cancel := c.posts[id]
	c.mu.Unlock()
	switch {
	case cancel == nil:
	case after == 0:
		(*cancel)()
	default:
		time.AfterFunc(after, *cancel)
	}
}

func (c *SSE) request(ctx context.Context, method, to string, body io.Reader) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, to, body)
	if err != nil {
		return nil, err
	}
	maps.Copy(req.Header, c.opt.Header)
	if req.Header.Get("User-Agent") == "" {
		req.Header.Set("User-Agent", "pellucid")
	}
	req.Header.Set("Accept-Encoding", "gzip")
	return req, nil
}

// tell posts m, and opens the stream if it is not open.
func (c *SSE) tell(ctx context.Context, m *Message) *refusal {
	to, r := c.endpoint(ctx)
	if r != nil {
		return r
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	req, err := c.request(ctx, http.MethodPost, to, bytes.NewReader(m.Append(nil)))
	if err != nil {
		return refuse(codeUnreachable, fmt.Errorf("%w: %s", ErrUnreachable, quoteError(err)))
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.client.Do(req)
	if err != nil {
		return doRefusal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		return refuse(codeStatus, StatusError(resp.StatusCode))
	}
	time.AfterFunc(lingerWait, stop) // what stands there means nothing
	io.CopyN(io.Discard, resp.Body, 4<<10)
	return nil
}

// endpoint is where messages go.
func (c *SSE) endpoint(ctx context.Context) (string, *refusal) {
	select {
	case <-c.opener:
	case <-ctx.Done():
		return "", refuse(codeUnreachable, ErrClosed)
	}
	defer func() { c.opener <- struct{}{} }()
	c.mu.Lock()
	to := c.post
	c.mu.Unlock()
	if to != "" {
		return to, nil
	}
	return c.open()
}

// open opens the stream and waits for its first event.
func (c *SSE) open() (string, *refusal) {
	ctx, cancel := context.WithCancel(c.live)
	late := time.AfterFunc(endpointWait, cancel)
	er, body, r := c.stream(ctx)
	to := ""
	if r == nil {
		if to, r = c.first(er); r != nil {
			body.Close()
		}
	}
	if !late.Stop() && r == nil {
		body.Close()
		r = refuse(codeCut, errors.New("wire: no endpoint in time"))
	}
	if r != nil {
		cancel()
		return "", r
	}
	c.mu.Lock()
	c.post = to
	c.mu.Unlock()
	if !c.begin(func() { defer cancel(); defer body.Close(); c.listen(er) }) {
		cancel()
		body.Close()
		return "", refuse(codeUnreachable, ErrClosed)
	}
	return to, nil
}

func (c *SSE) stream(ctx context.Context) (*eventReader, io.Closer, *refusal) {
	req, err := c.request(ctx, http.MethodGet, c.url.String(), nil)
	if err != nil {
		return nil, nil, refuse(codeUnreachable, fmt.Errorf("%w: %s", ErrUnreachable, quoteError(err)))
	}
	req.Header.Set("Accept", "text/event-stream")
	resp, err := c.client.Do(req)
	if err != nil {
		return nil, nil, doRefusal(err)
	}
	var r *refusal
	switch code := resp.StatusCode; {
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		r = refuse(codeUnauthorized, StatusError(code))
	case code != http.StatusOK:
		r = refuse(codeStatus, StatusError(code))
	case mediaType(resp) != "text/event-stream":
		r = refuse(codeBadAnswer, fmt.Errorf("wire: a stream with content type %s", finding.Quote(mediaType(resp))))
	}
	er := newEvents(nil, c.opt.Limits, c.opt.newRoom)
	if r == nil {
		var body io.Reader
		if body, err = decompress(resp); err == nil {
			er.R = heldReader{body, er}
			return er, resp.Body, nil
		}
		r = bodyRefusal(err)
	}
	resp.Body.Close()
	return nil, nil, r
}

// first reads the event that names the endpoint.
func (c *SSE) first(er *eventReader) (string, *refusal) {
	ev, err := er.Next()
	if err != nil {
		return "", refuse(codeCut, errors.New("wire: no endpoint: "+quoteError(err)))
	}
	defer er.own(ev).Release()
	if ev.Name != "endpoint" {
		return "", refuse(codeBadAnswer, errors.New("wire: the first event names no endpoint"))
	}
	to, err := c.url.Parse(string(ev.Data))
	if err != nil || to.Scheme != c.url.Scheme || to.Host != c.url.Host || to.User != nil {
		return "", refuse(codeBadAnswer, errors.New("wire: the endpoint is not of the server's own origin"))
	}
	return to.String(), nil
}

// listen delivers the messages of the stream until it ends, and with it the Conn.
func (c *SSE) listen(er *eventReader) {
	for {
		ev, err := er.Next()
		if err != nil {
			c.finish(fmt.Errorf("%w: %s", errStreamEnded, quoteError(err)))
			return
		}
		m, v := er.message(ev)
		switch {
		case v != nil:
			c.to.violation(v)
		case m != nil:
			if m.answers() {
				c.over(m.ID, lingerWait)
			}
			if !c.to.message(m) {
				m.Release()
			}
		}
	}
}

// finish ends everything, and then the Receiver is told why. The first reason counts.
func (c *SSE) finish(why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended != nil {
		return
	}
	c.ended = why
	c.kill(why)
	if why == ErrClosed {
		c.to.stop()
	}
	go func() {
		c.work.Wait()
		c.opt.Pool.leave()
		c.to.end(why)
	}()
}

// Close ends the stream.
func (c *SSE) Close() error {
	c.finish(ErrClosed)
	return nil
}

func (c *SSE) notice(format string, args ...any) {
	if c.opt.Notice != nil {
		c.opt.Notice(fmt.Sprintf(format, args...))
	}
}
