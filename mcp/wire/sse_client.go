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
	"time"
)

// SSE is a Conn to a server of the transport of 2024-11-05, HTTP+SSE, as its client:
// one stream from the server, whose first event names the URL that messages are
// posted to. That URL has to be of the same origin: it gets the credentials.
//
// The stream is opened for the first message. A request that cannot be delivered is
// answered by a Message with Local set; the Conn goes on. This transport cannot resume a stream
// that has ended: requests under way are refused. The next request opens another stream and
// repeats the handshake on it, see [Message.Recheck].
type SSE struct {
	httpConn
	client *http.Client
	opener chan struct{} // a token: the goroutine that has it may open the stream

	// httpConn.mu guards the rest.
	postURL string                     // the endpoint of the open stream; empty while none is open
	posts   map[ID]*context.CancelFunc // of requests whose POST has no end yet
	waiting map[ID]chan *Message       // requests without an answer; the Receiver gets the answer where the channel is nil
	streams int                        // number of streams that were opened
	drop    context.CancelFunc         // ends the last of them
}

var _ Conn = (*SSE)(nil)

const endpointWait = 15 * time.Second

var errStreamEnded = errors.New("wire: the server ended its stream")

// NewSSE returns a Conn to the server whose stream is at rawURL. Nothing is sent
// before the first Write.
func NewSSE(rawURL string, opt HTTPOptions) (*SSE, error) {
	h, err := NewHTTP(rawURL, opt) // the same rules, defaults and transport
	if err != nil {
		return nil, err
	}
	c := &SSE{opener: make(chan struct{}, 1), posts: map[ID]*context.CancelFunc{}, waiting: map[ID]chan *Message{}}
	c.init(h.url, h.opt)
	c.client = &http.Client{
		Transport:     h.trip,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	c.opener <- struct{}{}
	return c, nil
}

// Write posts a message. For a request it returns at once; for anything else it
// waits a little until the upstream has it.
func (c *SSE) Write(ctx context.Context, m *Message) error {
	c.endPost(m.Route.Cancels, 0) // before a token is needed
	c.claimAnswer(m.Route.Cancels)
	done := make(chan struct{})
	if err := c.acquire(ctx); err != nil {
		return err
	}
	p := c.enlist(m) // now: it may be cancelled at once
	if p == nil {
		<-c.room
		return nil
	}
	started := c.begin(func() {
		defer func() { <-c.room; close(done) }()
		used, r := c.send(p.ctx, m, p.stream)
		cancelled := p.ctx.Err() != nil
		p.end()
		if r == nil && c.hasEnded(used) {
			r = refuse(codeCut, errStreamEnded)
		}
		switch {
		case r == nil:
		case m.Kind == Request && c.claimAnswer(m.ID): // else it was answered, or is not missed
			c.to.message(r.local(m.ID))
		case m.Kind != Request && !cancelled:
			c.opt.notice("a message was not delivered: %v", r.cause)
		}
	})
	if !started {
		p.end()
		<-c.room
		return ErrClosed
	}
	if m.Kind == Request {
		return nil
	}
	return acknowledged(ctx, c.live, done, c.opt.ackWait, func() { c.opt.notice("the server takes long to accept a notification") })
}

// outgoing is a message on its way to the server.
type outgoing struct {
	ctx    context.Context // of the POST; a cancellation of the request ends it
	end    func()
	stream int // number of the stream for which the message was written
}

// enlist registers a message. It returns nil for an answer or notification that belongs to the
// session of a stream that has ended.
func (c *SSE) enlist(m *Message) *outgoing {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.noteSent(m) || m.Kind != Request && c.postURL == "" && c.streams > 0 {
		return nil
	}
	ctx, cancel := context.WithCancel(c.live)
	p := &outgoing{ctx, cancel, c.streams}
	if m.Kind != Request {
		return p
	}
	c.posts[m.ID], c.waiting[m.ID] = &cancel, nil
	p.end = func() {
		cancel()
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.posts[m.ID] == &cancel {
			delete(c.posts, m.ID)
		}
	}
	return p
}

// claimAnswer reports whether the request with that id waits for its answer, which the caller has to deliver.
func (c *SSE) claimAnswer(id ID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, waits := c.waiting[id]
	delete(c.waiting, id)
	return waits
}

// endPost ends the POST of a request that is answered or cancelled: a server that never ends a
// POST must not use up all tokens.
func (c *SSE) endPost(id ID, after time.Duration) {
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

// send posts m, which was written for that stream. It opens a stream if none is open, and returns
// the number of the stream on which the server answers.
func (c *SSE) send(ctx context.Context, m *Message, stream int) (int, *refusal) {
	for again := false; ; again = true {
		to, now, r := c.openEndpoint(ctx)
		if r != nil {
			return now, r
		}
		if m.Recheck && stream != 0 && stream != now {
			return now, refuse(codeSessionGone, ErrRenewed)
		}
		status, r := c.post(ctx, to, m)
		forgotten := status == http.StatusNotFound || status == http.StatusBadRequest && m.isRepeatable()
		if !forgotten || again || m.Kind != Request || !c.abandonStream(now) {
			return now, r
		}
	}
}

// post makes the POST for m.
func (c *SSE) post(ctx context.Context, to string, m *Message) (status int, r *refusal) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	resp, r := c.opt.roundTrip(ctx, m.isGreeting(), func() (*http.Response, error) {
		req, err := c.request(ctx, http.MethodPost, to, bytes.NewReader(m.Append(nil)))
		if err != nil {
			return nil, err
		}
		if m.isRepeatable() {
			req.Header["X-Idempotency-Key"] = []string{} // as in HTTP.postHeader
		}
		req.Header.Set("Content-Type", "application/json")
		return c.client.Do(req)
	})
	if r != nil {
		return 0, r
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		return resp.StatusCode, statusRefusal(resp)
	}
	time.AfterFunc(lingerWait, stop) // the body means nothing
	io.CopyN(io.Discard, resp.Body, 4<<10)
	return resp.StatusCode, nil
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

// listen delivers the messages of the stream with that number until it ends.
func (c *SSE) listen(er *eventReader, stream int) {
	for {
		ev, err := er.Next()
		if err != nil {
			c.endStream(stream, refuse(codeCut, fmt.Errorf("%w: %s", errStreamEnded, quoteError(err))))
			return
		}
		m, v := er.message(ev)
		switch {
		case v != nil:
			c.to.violation(v)
		case m != nil:
			c.receive(m)
		}
	}
}

// receive delivers a message of the stream.
func (c *SSE) receive(m *Message) {
	var own chan *Message
	if m.answers() {
		c.endPost(m.ID, lingerWait)
	}
	c.mu.Lock()
	if m.answers() {
		own = c.waiting[m.ID]
		delete(c.waiting, m.ID)
	}
	c.noteReceived(m)
	c.mu.Unlock()
	if own != nil {
		own <- m
	} else if !c.to.message(m) {
		m.Release()
	}
}

// abandonStream ends the stream with that number if the handshake can be repeated on another one, and
// reports whether it can.
func (c *SSE) abandonStream(stream int) bool {
	c.mu.Lock()
	drop, there := c.drop, c.streams == stream && c.postURL != ""
	can := c.past.Version != ""
	c.mu.Unlock()
	if there && can {
		c.endStream(stream, refuse(codeCut, errStreamEnded))
		drop()
	}
	return can
}

// endStream answers the requests of a stream that has ended.
func (c *SSE) endStream(stream int, r *refusal) {
	c.mu.Lock()
	if c.streams != stream || c.postURL == "" || c.closed {
		c.mu.Unlock()
		return
	}
	c.postURL = ""
	voided := c.dropRequests()
	var lost []ID
	for id, own := range c.waiting {
		switch {
		case own != nil:
			close(own)
		case c.posts[id] != nil: // Write answers it when its POST has ended
			continue
		default:
			lost = append(lost, id)
		}
		delete(c.waiting, id)
	}
	c.mu.Unlock()
	c.opt.notice("the server's stream ended: the next request opens another one: %v", r.cause)
	for _, id := range lost {
		c.to.message(r.local(id))
	}
	c.to.announce(c.live, voided, nil)
}

// hasEnded reports whether the stream with that number has ended.
func (c *SSE) hasEnded(stream int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.streams != stream || c.postURL == ""
}

// Close ends the stream.
func (c *SSE) Close() error {
	c.close(func() {})
	return nil
}
