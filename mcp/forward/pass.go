// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/platform/peer"
)

// headerCaller holds base64url of Options.Caller. It means something on a connection between replicas only.
const headerCaller = "Pellucid-Principal"

// passedOn are the headers of a client's request that a replica gets. No other goes there: not the client's
// credentials, and not Idempotency-Key, by which a transport repeats a request.
var passedOn = []string{"Accept", "Content-Type", "Content-Encoding", "Last-Event-Id", "Mcp-Session-Id", "Mcp-Protocol-Version", "Mcp-Method", "Mcp-Name",
	"Traceparent", "Tracestate", "Baggage", "User-Agent"}

const paramPrefix = "Mcp-Param-"

var errRefused = errors.New("forward: the other replica does not have the session")

// pass passes the request on to the replica at an address, and its answer back.
func (x *request) pass(addr string) (out routed) {
	ctx, stop := context.WithCancel(x.r.Context())
	defer stop()
	listens := x.r.Method == http.MethodGet
	if listens {
		defer context.AfterFunc(x.streams, stop)()
	} else {
		x.calls.Add(1)
		defer x.calls.Add(-1)
	}
	out = routed{done: true, as: wire.Answered}
	proxy := httputil.ReverseProxy{
		Transport: x.o.Out, FlushInterval: -1, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
		Rewrite: func(p *httputil.ProxyRequest) { x.rewrite(p.Out, addr) },
		ModifyResponse: func(resp *http.Response) error {
			if resp.StatusCode == http.StatusMisdirectedRequest {
				return errRefused
			}
			x.o.Counted(CountForwarded)
			return nil
		},
		ErrorHandler: func(_ http.ResponseWriter, _ *http.Request, err error) { out = x.failed(err) },
	}
	if listens {
		defer func() { // a stream that breaks ends: the client asks for it again
			if e := recover(); e != nil && e != http.ErrAbortHandler {
				panic(e)
			}
		}()
	}
	proxy.ServeHTTP(&patient{ResponseWriter: x.w, rc: http.NewResponseController(x.w)}, x.r.WithContext(ctx))
	return out
}

// rewrite makes the request that the other replica gets.
func (x *request) rewrite(r *http.Request, addr string) {
	r.URL.Scheme, r.URL.Host, r.URL.RawQuery, r.URL.User, r.Host = "https", addr, "", nil, addr
	h := http.Header{headerCaller: {base64.RawURLEncoding.EncodeToString([]byte(x.o.Caller(x.r)))}}
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
	r.Header, r.Body, r.ContentLength = h, http.NoBody, int64(len(x.of.Body))
	if len(x.of.Body) > 0 {
		r.Body = io.NopCloser(bytes.NewReader(bytes.Clone(x.of.Body))) // the transport may read it after the answer
	}
}

// failed says what becomes of a request that another replica did not answer.
func (x *request) failed(err error) routed {
	switch {
	case x.r.Context().Err() != nil:
		return routed{done: true, as: wire.Answered} // the client is gone: the answer is not read
	case errors.Is(err, errRefused):
		return routed{now: true}
	case errors.Is(err, peer.ErrHandshake):
		x.o.Log.Warn("a process at the address of a replica is not a replica of this installation, or has another key", "error", err)
		return routed{}
	case errors.Is(err, peer.ErrNotSent):
		return routed{}
	case x.r.Method == http.MethodGet:
		return routed{done: true, as: wire.Unreachable}
	}
	return routed{done: true, as: wire.Unanswered}
}

// patience bounds a write to a client.
const patience = 30 * time.Second

// patient is a response whose client has a while to take each part of it.
type patient struct {
	http.ResponseWriter
	rc *http.ResponseController
}

func (p *patient) Unwrap() http.ResponseWriter { return p.ResponseWriter }

func (p *patient) Write(b []byte) (int, error) {
	_ = p.rc.SetWriteDeadline(time.Now().Add(patience))
	return p.ResponseWriter.Write(b)
}

func (p *patient) FlushError() error {
	defer p.rc.SetWriteDeadline(time.Time{}) // the server's own rule again
	return p.rc.Flush()
}

type passedOnKey struct{}

// wasPassedOn reports whether another replica has sent the request.
func wasPassedOn(r *http.Request) bool { return r.Context().Value(passedOnKey{}) != nil }

// maxCaller bounds what another replica says of a principal.
const maxCaller = 48 << 10

// Handler takes requests from other replicas. It must be reached by connections of peer.Keys.Listen
// only: it believes what they say of the principal. identify puts the principal into the request, or
// reports that it cannot; next serves the request.
func (f *Forwarder) Handler(identify func(r *http.Request, caller string) (*http.Request, bool), next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		caller, has := r.Header[headerCaller]
		var said []byte
		err := errors.New("no principal")
		if has && len(caller) == 1 {
			said, err = base64.RawURLEncoding.Strict().DecodeString(caller[0])
		}
		if err != nil || len(said) > maxCaller {
			http.Error(w, "not a request of a replica", http.StatusBadRequest)
			return
		}
		r = r.WithContext(context.WithValue(r.Context(), passedOnKey{}, true))
		r.Header = r.Header.Clone()
		r.Header.Del(headerCaller)
		known, ok := identify(r, string(said))
		if !ok {
			http.Error(w, "not a request of a replica", http.StatusBadRequest)
			return
		}
		next.ServeHTTP(w, known)
	})
}
