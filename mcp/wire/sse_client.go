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
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/pellucid-mcp/pellucid/text/finding"
)

// SSE is a Conn to a server of the transport of 2024-11-05, HTTP+SSE, as its client:
// one stream from the server, whose first event names the URL that messages are
// posted to. That URL has to be of the same origin: it gets the credentials.
//
// The stream is opened for the first message. A request that cannot be delivered is
// answered by a Message with Local set; the Conn goes on. So it does when the stream ends,
// which this transport cannot resume: what was under way gets no answer, and the next request
// opens another stream, in whose session the handshake is repeated, see [Message.Recheck].
type SSE struct {
	to     delivery
	url    *url.URL
	opt    HTTPOptions
	client *http.Client
	room   chan struct{}

	live   context.Context // of all work: ended by Close (ErrClosed)
	kill   context.CancelCauseFunc
	work   sync.WaitGroup
	opener chan struct{} // a token: the goroutine that has it may open the stream

	mu      sync.Mutex
	closed  bool
	post    string                     // where messages go; "": the stream is not open
	posts   map[ID]*context.CancelFunc // of requests whose POST has no end yet
	waiting map[ID]chan *Message       // requests without an answer, which goes to the Receiver unless there is a channel
	asked   map[ID]bool                // by the server, on this stream
	past    Handshake
	streams int                // that were opened
	drop    context.CancelFunc // ends the last of them
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
	c := &SSE{url: h.url, opt: h.opt, to: newDelivery(), room: make(chan struct{}, maxInFlight),
		opener: make(chan struct{}, 1), posts: map[ID]*context.CancelFunc{}, waiting: map[ID]chan *Message{}, asked: map[ID]bool{}}
	c.client = &http.Client{
		Transport:     h.trip,
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
	c.take(m.Route.Cancels)
	done := make(chan struct{})
	select {
	case c.room <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	case <-c.live.Done():
		return ErrClosed
	}
	under, stream, end := c.enlist(m) // now: it may be cancelled at once
	started := under != nil && c.begin(func() {
		defer func() { <-c.room; close(done) }()
		used, r := c.tell(under, m, stream)
		cancelled := under.Err() != nil
		end()
		if r == nil && c.isLost(used) {
			r = refuse(codeCut, errStreamEnded)
		}
		switch {
		case r == nil:
		case m.Kind == Request && c.take(m.ID): // else it was answered, or is not missed
			c.to.message(r.local(m.ID))
		case m.Kind != Request && !cancelled:
			c.notice("a message was not delivered: %v", r.cause)
		}
	})
	switch {
	case under == nil: // what it is about is no more
		<-c.room
		return nil
	case !started:
		end()
		<-c.room
		return ErrClosed
	}
	if m.Kind == Request {
		return nil
	}
	return acknowledged(ctx, c.live, done, c.opt.ackWait, func() { c.notice("the server takes long to accept a notification") })
}

func (c *SSE) begin(f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.work.Go(f)
	}
	return !c.closed
}

// enlist returns the context of m's POST, which ends with what m asks for, and the number of
// the stream that m was written for. The context is nil for a message that only the session
// of a stream that has ended knows the meaning of.
func (c *SSE) enlist(m *Message) (ctx context.Context, stream int, end func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m.answers() {
		asked := c.asked[m.ID]
		if delete(c.asked, m.ID); !asked {
			return nil, 0, nil
		}
	}
	c.past.Note(m)
	if m.Kind != Request && c.post == "" && c.streams > 0 {
		return nil, 0, nil
	}
	ctx, cancel := context.WithCancel(c.live)
	if m.Kind != Request {
		return ctx, c.streams, cancel
	}
	c.posts[m.ID], c.waiting[m.ID] = &cancel, nil
	return ctx, c.streams, func() {
		cancel()
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.posts[m.ID] == &cancel {
			delete(c.posts, m.ID)
		}
	}
}

// take reports whether the request of that id had no answer yet, and now has one.
func (c *SSE) take(id ID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, waits := c.waiting[id]
	delete(c.waiting, id)
	return waits
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

// tell posts m, which was written for that stream, and opens one if none is open. It returns
// which stream has m's answer.
func (c *SSE) tell(ctx context.Context, m *Message, stream int) (int, *refusal) {
	for again := false; ; again = true {
		to, now, r := c.endpoint(ctx)
		if r != nil {
			return now, r
		}
		if m.Recheck && stream != 0 && stream != now {
			return now, refuse(codeSessionGone, ErrRenewed)
		}
		status, r := c.deliver(ctx, to, m)
		forgotten := status == http.StatusNotFound || status == http.StatusBadRequest && m.repeatable()
		if !forgotten || again || m.Kind != Request || !c.leave(now) {
			return now, r
		}
	}
}

// deliver posts m.
func (c *SSE) deliver(ctx context.Context, to string, m *Message) (status int, r *refusal) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	resp, r := c.opt.patient(ctx, m.greets(), func() (*http.Response, error) {
		req, err := c.request(ctx, http.MethodPost, to, bytes.NewReader(m.Append(nil)))
		if err != nil {
			return nil, err
		}
		if m.repeatable() {
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
	time.AfterFunc(lingerWait, stop) // what stands there means nothing
	io.CopyN(io.Discard, resp.Body, 4<<10)
	return resp.StatusCode, nil
}

// endpoint is where messages go, and the number of the stream.
func (c *SSE) endpoint(ctx context.Context) (string, int, *refusal) {
	select {
	case <-c.opener:
	case <-ctx.Done():
		return "", 0, refuse(codeUnreachable, ErrClosed)
	}
	defer func() { c.opener <- struct{}{} }()
	c.mu.Lock()
	to, stream := c.post, c.streams
	past := c.past.Clone()
	c.mu.Unlock()
	if to != "" {
		return to, stream, nil
	}
	to, r := c.open()
	if r == nil && past.Version != "" {
		r = c.greetAgain(to, past)
	}
	return to, stream + 1, r
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
	c.post, c.drop = to, cancel
	c.streams++
	n := c.streams
	c.mu.Unlock()
	if !c.begin(func() { defer cancel(); defer body.Close(); c.listen(er, n) }) {
		cancel()
		body.Close()
		return "", refuse(codeUnreachable, ErrClosed)
	}
	return to, nil
}

// greetAgain brings the server behind a new stream to where it was.
func (c *SSE) greetAgain(to string, past *Handshake) *refusal {
	ctx, stop := context.WithTimeout(c.live, renewWait)
	defer stop()
	changed, err := past.Replay(ctx, &greeting{c: c, to: to, version: past.Version})
	if err != nil {
		c.mu.Lock()
		stream := c.streams
		c.mu.Unlock()
		c.leave(stream)
		if r, ok := errors.AsType[*refusal](err); ok {
			return r
		}
		return refuse(codeSessionGone, fmt.Errorf("%w: %w", ErrSessionGone, err))
	}
	c.notice("the stream of the server had ended: there is a new one, with a new session")
	c.to.announce(c.live, nil, changed)
	return nil
}

// greeting is the server that a handshake is repeated with.
type greeting struct {
	c       *SSE
	to      string
	version string // of the session before
	asked   int
}

var _ Greeted = (*greeting)(nil)

// Ask implements Greeted.
func (g *greeting) Ask(ctx context.Context, method string, params []byte) (*Message, error) {
	g.asked++
	m := NewRequest(StringID("pellucid-"+strconv.Itoa(g.asked)), method, params)
	answer := make(chan *Message, 1)
	g.c.mu.Lock()
	g.c.waiting[m.ID] = answer
	g.c.mu.Unlock()
	defer g.c.take(m.ID)
	if _, r := g.c.deliver(ctx, g.to, m); r != nil {
		return nil, r
	}
	select {
	case a := <-answer:
		if a != nil {
			return a, nil
		}
		return nil, errStreamEnded
	case <-ctx.Done():
		return nil, errNotInitialized
	}
}

// Initialized implements Greeted.
func (g *greeting) Initialized(ctx context.Context, version string, ready bool) error {
	if version != g.version && !IsLegacy(version) {
		return errNotInitialized
	}
	if !ready {
		return nil
	}
	if _, r := g.c.deliver(ctx, g.to, NewRequest(ID{}, methodInitialized, nil)); r != nil {
		return r
	}
	return nil
}

func (c *SSE) stream(ctx context.Context) (*eventReader, io.Closer, *refusal) {
	resp, r := c.opt.patient(ctx, true, func() (*http.Response, error) {
		req, err := c.request(ctx, http.MethodGet, c.url.String(), nil)
		if err != nil {
			return nil, err
		}
		req.Header.Set("Accept", "text/event-stream")
		return c.client.Do(req)
	})
	if r != nil {
		return nil, nil, r
	}
	switch {
	case resp.StatusCode != http.StatusOK:
		r = statusRefusal(resp)
	case mediaType(resp) != "text/event-stream":
		r = refuse(codeBadAnswer, fmt.Errorf("wire: a stream with content type %s", finding.Quote(mediaType(resp))))
	}
	er := newEvents(nil, c.opt.Limits, c.opt.newRoom)
	if r == nil {
		var body io.Reader
		var err error
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

// listen delivers the messages of the stream with that number until it ends.
func (c *SSE) listen(er *eventReader, stream int) {
	for {
		ev, err := er.Next()
		if err != nil {
			c.lose(stream, refuse(codeCut, fmt.Errorf("%w: %s", errStreamEnded, quoteError(err))))
			return
		}
		m, v := er.message(ev)
		switch {
		case v != nil:
			c.to.violation(v)
		case m != nil:
			c.arrive(m)
		}
	}
}

func (c *SSE) arrive(m *Message) {
	var own chan *Message
	if m.answers() {
		c.over(m.ID, lingerWait)
	}
	c.mu.Lock()
	switch {
	case m.answers():
		own = c.waiting[m.ID]
		delete(c.waiting, m.ID)
		c.past.Answered(m)
	case m.Kind == Request && len(c.asked) < maxAsked: // what is beyond gets no answer
		c.asked[m.ID] = true
	}
	c.mu.Unlock()
	if own != nil {
		own <- m
	} else if !c.to.message(m) {
		m.Release()
	}
}

// leave ends the stream with that number, if the handshake was done in it: false if not.
func (c *SSE) leave(stream int) bool {
	c.mu.Lock()
	drop, there := c.drop, c.streams == stream && c.post != ""
	can := c.past.Version != ""
	c.mu.Unlock()
	if there && can {
		c.lose(stream, refuse(codeCut, errStreamEnded))
		drop()
	}
	return can
}

// lose answers everything that the server behind a stream that has ended never will.
func (c *SSE) lose(stream int, r *refusal) {
	c.mu.Lock()
	if c.streams != stream || c.post == "" || c.closed {
		c.mu.Unlock()
		return
	}
	c.post = ""
	voided := slices.Collect(maps.Keys(c.asked))
	clear(c.asked)
	var lost []ID
	for id, own := range c.waiting {
		switch {
		case own != nil:
			close(own)
		case c.posts[id] != nil: // Write tells, when its POST has ended
			continue
		default:
			lost = append(lost, id)
		}
		delete(c.waiting, id)
	}
	c.mu.Unlock()
	c.notice("the server's stream ended: the next request opens another one: %v", r.cause)
	for _, id := range lost {
		c.to.message(r.local(id))
	}
	c.to.announce(c.live, voided, nil)
}

// isLost reports whether the stream with that number has ended.
func (c *SSE) isLost(stream int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.streams != stream || c.post == ""
}

// Close ends the stream.
func (c *SSE) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil
	}
	c.closed = true
	c.kill(ErrClosed)
	c.to.stop()
	go func() {
		c.work.Wait()
		c.opt.Pool.leave()
		c.to.end(ErrClosed)
	}()
	return nil
}

func (c *SSE) notice(format string, args ...any) {
	if c.opt.Notice != nil {
		c.opt.Notice(fmt.Sprintf(format, args...))
	}
}
