// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"syscall"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/backoff"
	"github.com/pellucid-mcp/pellucid/platform/intake"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// HTTPOptions shapes an [HTTP]. The zero value is the strict default.
type HTTPOptions struct {
	// Header is sent with every request: the credentials for the upstream.
	Header http.Header
	// Limits of one message. Limits.Bytes (0 = 32 MiB) also bounds a response
	// body and an event, after decompression.
	Limits strictjson.Limits
	// Notice is called with what the operator should know: one line, constants
	// and escaped excerpts only. It may be called concurrently. nil drops it.
	Notice func(string)
	// noListen leaves out the GET stream on which a legacy server may speak first.
	noListen bool
	// ProxyFromEnvironment honours HTTP_PROXY and its like.
	ProxyFromEnvironment bool
	// Credentials give requests their Authorization header. nil = it is that of Header, if any.
	Credentials Credentials
	// TLS is the client's TLS configuration; nil = the system's roots.
	TLS *tls.Config
	// Room returns memory for an answer, a part of the share of Principal. If it is nil, answers are not counted.
	Room      func(principal string) *intake.Room
	Principal string
	// Pool is shared with other Conns: one that NewPool made of the same options.
	// nil = one of this Conn's own.
	Pool *Pool
	// ackWait is how long Write waits for the answer to a notification or a
	// response, so that a message after it cannot overtake it. 0 = 5 s.
	ackWait time.Duration
	// RetryWait is the first pause before a broken stream is resumed; it
	// doubles up to 30 s. 0 = 1 s.
	RetryWait time.Duration
}

const (
	maxInFlight      = 256
	maxAsked         = 1024
	maxResumes       = 5 // in a row without an event
	maxHeaderBytes   = 64 << 10
	defaultAckWait   = 5 * time.Second
	defaultRetryWait = time.Second
	cancelGrace      = 10 * time.Second // for a legacy answer that may follow a cancellation
	deleteWait       = time.Second
	lingerWait       = time.Second // for the end of a stream after its answer
	listenWait       = time.Second // for the stream to listen to
)

// HTTP is a Conn to a streamable HTTP server as its client, in both eras:
// legacy (2025-03-26 to 2025-11-25, sessions, resumable streams) and modern
// (2026-07-28, stateless). A request whose Route names a modern version is
// sent the modern way. The older HTTP+SSE transport is not spoken.
//
// A request that gets no acceptable answer is answered by a Message with
// Local set; the Conn goes on. If the server has forgotten the session, the Conn makes
// a new one, sends notifications that every list may have changed, and repeats the
// request: see [Message.Recheck].
//
// Each request has a goroutine, which reads its answer and calls the Receiver; so has the stream
// on which a legacy server speaks first. Between messages there is no other.
type HTTP struct {
	httpConn
	trip http.RoundTripper

	// httpConn.mu guards the rest.
	flights  map[ID]*flight
	session  string
	version  string         // negotiated by initialize
	posts    [2]http.Header // of POSTs of a legacy session, the second for repeatable messages; shared, never changed
	renewals renewals
}

// flight is a request on its way to its answer.
type flight struct {
	id        ID
	method    string
	room      *intake.Room // of the request and its answer, until this is decoded
	cancel    context.CancelCauseFunc
	answered  bool
	cancelled bool          // by the other side: its answer is not missed
	own       chan *Message // gets the answer to a request of the Conn itself, instead of the Receiver
}

var _ Conn = (*HTTP)(nil)

// NewHTTP returns a Conn to the server at rawURL. Nothing is sent before the
// first Write.
func NewHTTP(rawURL string, opt HTTPOptions) (*HTTP, error) {
	u, err := url.Parse(rawURL)
	switch {
	case err != nil:
		return nil, errors.New("wire: upstream URL: cannot be parsed")
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, errors.New("wire: upstream URL: want http:// or https:// and a host")
	case u.User != nil:
		return nil, errors.New("wire: upstream URL: holds credentials: give them as a header")
	case u.Fragment != "":
		return nil, errors.New("wire: upstream URL: has a fragment")
	}
	if opt.ackWait == 0 {
		opt.ackWait = defaultAckWait
	}
	if opt.RetryWait == 0 {
		opt.RetryWait = defaultRetryWait
	}
	if opt.Pool == nil {
		opt.Pool = NewPool(opt)
	}
	opt.Pool.users.Add(1)
	c := &HTTP{trip: &redirecting{next: opt.trip()}, flights: map[ID]*flight{}}
	c.init(u, opt)
	c.renewals.number = 1
	c.renewals.pause = backoff.Waits{First: firstRenewWait, Most: maxRetry}
	return c, nil
}

// Write sends a message. For a request it returns at once and the answer comes
// to the Receiver; for anything else it waits a little until the upstream has it.
func (c *HTTP) Write(ctx context.Context, m *Message) error {
	if !m.Route.Cancels.IsZero() {
		if done := c.cancelFlight(m); done {
			return nil
		}
	}
	c.mu.Lock()
	wanted := c.noteSent(m)
	c.mu.Unlock()
	if !wanted {
		m.Release()
		return nil
	}
	if m.Kind == Request {
		return c.launch(ctx, m)
	}
	acked := make(chan struct{})
	if !c.begin(func() { defer close(acked); c.tell(m) }) {
		return ErrClosed
	}
	return acknowledged(ctx, c.live, acked, c.opt.ackWait, func() { c.opt.notice("the server takes long to accept a notification") })
}

// launch sends a request in a goroutine of its own, which reads the answer.
func (c *HTTP) launch(ctx context.Context, m *Message) error {
	if err := c.acquire(ctx); err != nil {
		return err
	}
	fctx, cancel := context.WithCancelCause(c.live)
	f := &flight{id: m.ID, method: m.Method, cancel: cancel}
	if !c.enlist(f) {
		<-c.room
		cancel(nil)
		return errors.New("wire: id already in flight")
	}
	fly := func() {
		defer func() { c.strike(f); cancel(nil); <-c.room }()
		c.fly(fctx, f, m)
	}
	if !c.begin(fly) {
		c.strike(f)
		<-c.room
		cancel(nil)
		return ErrClosed
	}
	return nil
}

func (c *HTTP) enlist(f *flight) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f.id.IsZero() || c.flights[f.id] != nil {
		return false
	}
	c.flights[f.id] = f
	return true
}

func (c *HTTP) strike(f *flight) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.flights[f.id] == f {
		delete(c.flights, f.id)
	}
}

var errCancelled = errors.New("wire: request cancelled")

// cancelFlight reports whether the cancellation is done by closing the
// request's stream, so that no message need be sent.
func (c *HTTP) cancelFlight(m *Message) (done bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.flights[m.Route.Cancels]
	if f != nil {
		f.cancelled = true
	}
	if modern(m.Route.Version) {
		if f != nil {
			f.cancel(errCancelled)
		}
		return true
	}
	if f != nil {
		// spec: a legacy server should not answer any more, and some never end the stream.
		time.AfterFunc(cancelGrace, func() { f.cancel(errCancelled) })
	}
	return false
}

// Close ends every stream, and then asks a legacy server to drop the session. When that is done,
// within about a second, Ended is called.
func (c *HTTP) Close() error {
	c.close(c.drop)
	return nil
}

func (c *HTTP) drop() {
	ctx, cancel := context.WithTimeout(context.Background(), deleteWait)
	defer cancel()
	h := c.header(Route{})
	if h.Get(headerSession) == "" {
		return
	}
	if resp, err := c.do(ctx, http.MethodDelete, h, nil); err == nil {
		resp.Body.Close()
	}
}

// do makes one round trip. Nothing of what an http.Client does is wanted, and it copies
// every header.
func (c *HTTP) do(ctx context.Context, method string, h http.Header, body []byte) (*http.Response, error) {
	req := &http.Request{Method: method, URL: c.url, Host: c.url.Host, Header: h,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}
	if body != nil {
		req.ContentLength = int64(len(body))
		req.Body = io.NopCloser(bytes.NewReader(body))
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	}
	return c.trip.RoundTrip(req.WithContext(ctx))
}

// header is that of a request, with everything but what mirrors a message.
func (c *HTTP) header(r Route) http.Header {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.headerLocked(r)
}

func (c *HTTP) headerLocked(r Route) http.Header {
	h := make(http.Header, len(c.opt.Header)+8)
	maps.Copy(h, c.opt.Header)
	version := c.version
	if validVersion(r.Version) {
		version = r.Version
	}
	if version != "" {
		h.Set(headerVersion, version)
	}
	if c.session != "" && !modern(version) {
		h.Set(headerSession, c.session)
	}
	if h.Get("User-Agent") == "" {
		h.Set("User-Agent", "pellucid")
	}
	h.Set("Accept-Encoding", "gzip")
	return h
}

// postHeader is that of a message. A legacy session's is one of two.
func (c *HTTP) postHeader(m *Message) http.Header {
	c.mu.Lock()
	defer c.mu.Unlock()
	twice := 0
	if m.isRepeatable() {
		twice = 1
	}
	same := m.Method != methodInitialize && !validVersion(m.Route.Version) && !modern(c.version)
	if same && c.posts[twice] != nil {
		return c.posts[twice]
	}
	h := c.headerLocked(m.Route)
	if m.Method == methodInitialize {
		// spec: transports/version-header: sent after initialization only.
		h.Del(headerSession)
	}
	if twice == 1 {
		h["X-Idempotency-Key"] = []string{} // not sent: net/http repeats the request if a connection that rested ends
	}
	h.Set("Content-Type", "application/json")
	h.Set("Accept", "application/json, text/event-stream")
	if modern(h.Get(headerVersion)) {
		setRoute(h, m)
	}
	if same {
		c.posts[twice] = h
	}
	return h
}

// quoteError is an error of net/http for the operator: it may hold what the
// upstream said.
func quoteError(err error) string {
	var ue *url.Error
	if errors.As(err, &ue) {
		err = ue.Err // without the URL, which may hold a secret
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok && dns.IsNotFound {
		return "there is no such host"
	}
	if reason, ok := errors.AsType[syscall.Errno](err); ok {
		return reason.Error() // without addresses: "connection refused"
	}
	return finding.Quote(err.Error())
}
