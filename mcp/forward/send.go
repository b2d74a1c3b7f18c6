// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/platform/peer"
	"github.com/pellucid-mcp/pellucid/platform/replica"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// Headers between replicas. They mean something on a connection between replicas only.
const (
	headerTo     = "Pellucid-Replica"   // the id of the replica that the request is for
	headerCaller = "Pellucid-Principal" // base64url of Options.Caller
	headerFrom   = "Pellucid-From"      // the id of the replica that has sent it
	headerEnds   = "Pellucid-Ends"      // "1": the replica that it is from answers no more requests
	headerTake   = "Pellucid-Take"      // "1": the session is to be claimed, or the request needs none
)

// passedOn are the headers of a client's request that a replica gets. No other goes there: not the
// client's credentials, and not Idempotency-Key, by which a transport repeats a request.
var passedOn = []string{"Accept", "Content-Type", "Content-Encoding", "Last-Event-Id", "Mcp-Session-Id", "Mcp-Protocol-Version", "Mcp-Method", "Mcp-Name",
	"Traceparent", "Tracestate", "Baggage", "User-Agent"}

// passedBack are the headers of an answer that a client gets.
var passedBack = []string{"Content-Type", "Content-Length", "Cache-Control", "X-Accel-Buffering", "X-Content-Type-Options", "Mcp-Session-Id", "Retry-After", "Allow"}

const paramPrefix = "Mcp-Param-"

// lent is a body that a transport reads. The bytes belong to the caller of Forward again once the
// transport has closed it.
type lent struct {
	*bytes.Reader
	once sync.Once
	back *sync.WaitGroup
}

func (l *lent) Close() error {
	l.once.Do(l.back.Done)
	return nil
}

// send sends the request to a replica, and passes its answer on. take asks the replica to claim the
// session.
func (x *request) send(to replica.Row, take bool) sent {
	ctx, stop := context.WithCancelCause(x.r.Context())
	defer stop(nil)
	s := &sending{owner: to.ID, stream: x.r.Method == http.MethodGet, stop: stop}
	if !x.track(s) {
		return sentAgain
	}
	defer x.untrack(s)
	var back sync.WaitGroup
	defer back.Wait()
	req := x.outgoing(ctx, to, take, &back)
	resp, received, err := peer.Send(x.o.Out, req)
	if err != nil {
		if x.r.Context().Err() != nil {
			return sentAnswered // the client is gone: the answer is not read
		}
		return x.fate(received, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusMisdirectedRequest {
		return sentRefused
	}
	x.o.Counted(CountForwarded)
	x.passBack(resp)
	return sentAnswered
}

// track notes a request under way, so that it ends with the replica that it went to.
func (f *Forwarder) track(s *sending) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ctx.Err() != nil || f.gone[s.owner] {
		return false
	}
	if f.under[s] = true; f.leaving && s.stream {
		time.AfterFunc(lastStream, func() { s.stop(errLeaving) })
	}
	return true
}

func (f *Forwarder) untrack(s *sending) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.under, s)
}

func (x *request) outgoing(ctx context.Context, to replica.Row, take bool, back *sync.WaitGroup) *http.Request {
	u := *x.r.URL
	u.Scheme, u.Host, u.RawQuery, u.User = "https", to.Address, "", nil
	h := make(http.Header, 12)
	for _, name := range passedOn {
		if v := x.r.Header[name]; v != nil {
			h[name] = v
		}
	}
	for name, v := range x.r.Header {
		if strings.HasPrefix(name, paramPrefix) {
			h[name] = v
		}
	}
	h.Set(headerTo, to.ID)
	h.Set(headerFrom, x.o.Member.ID())
	h.Set(headerCaller, base64.RawURLEncoding.EncodeToString([]byte(x.o.Caller(x.r))))
	if take {
		h.Set(headerTake, "1")
	}
	req := &http.Request{Method: x.r.Method, URL: &u, Host: to.Address, Header: h, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}
	if len(x.of.Body) > 0 {
		lend := func() (io.ReadCloser, error) {
			back.Add(1)
			return &lent{Reader: bytes.NewReader(x.of.Body), back: back}, nil
		}
		req.Body, _ = lend()
		req.GetBody, req.ContentLength = lend, int64(len(x.of.Body)) // used while nothing has been sent
	}
	return req.WithContext(ctx)
}

// patience bounds a write to a client.
const patience = 30 * time.Second

var chunks = sync.Pool{New: func() any { b := make([]byte, 32<<10); return &b }}

// passBack passes an answer on as it arrives.
func (x *request) passBack(resp *http.Response) {
	h := x.w.Header()
	for _, name := range passedBack {
		if v := resp.Header[name]; v != nil {
			h[name] = v
		}
	}
	rc := http.NewResponseController(x.w)
	deadline := func() { _ = rc.SetWriteDeadline(time.Now().Add(patience)) }
	deadline()
	defer rc.SetWriteDeadline(time.Time{}) // the server's own rule again
	x.w.WriteHeader(resp.StatusCode)
	stream := strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") && resp.ContentLength < 0
	if stream {
		_ = rc.Flush()
	}
	chunk := chunks.Get().(*[]byte)
	defer chunks.Put(chunk)
	between := true // two events
	for {
		n, err := resp.Body.Read(*chunk)
		if n > 0 {
			deadline()
			if _, bad := x.w.Write((*chunk)[:n]); bad != nil {
				return
			}
			if stream && rc.Flush() != nil {
				return
			}
			between = bytes.HasSuffix((*chunk)[:n], []byte("\n\n"))
		}
		switch {
		case err == nil:
		case errors.Is(err, io.EOF):
			return
		case x.r.Context().Err() != nil:
			return // the client is gone
		case stream && between:
			deadline()
			_, _ = x.w.Write(wire.LostEvents(x.of.Body, x.limits()))
			_ = rc.Flush()
			return
		default:
			panic(http.ErrAbortHandler) // the client must not take a part for the whole
		}
	}
}

// cutHome returns the replica that a sealed state names, and the state without it.
func cutHome(state string) (home, rest string, ok bool) {
	home, rest, ok = strings.Cut(state, ".")
	if !ok || !replica.ValidID(home) {
		return "", state, false
	}
	return home, rest, true
}

// limits bound what is read of a body to find out which requests it holds.
func (f *Forwarder) limits() strictjson.Limits { return strictjson.Limits{Bytes: f.o.MaxBody} }

// sent is what became of a request that was sent to another replica.
type sent uint8

const (
	sentAnswered sent = iota
	sentRefused       // the other replica does not have the session
	sentNot           // nothing listens at its address
	sentAgain         // it was not sent, or may be sent again
	sentLost          // it may have been carried out
)

// fate says what becomes of a request that another replica did not answer.
func (x *request) fate(received bool, err error) sent {
	_, repeatable := wire.Asks(x.of.Body, x.limits())
	switch {
	case !received && errors.Is(err, syscall.ECONNREFUSED):
		return sentNot
	case received && !repeatable && x.r.Method == http.MethodPost:
		return sentLost
	}
	if errors.Is(err, peer.ErrHandshake) {
		x.o.Log.Warn("a process at the address of a replica is not a replica of this installation, or has another key", "error", err)
	}
	return sentAgain
}
