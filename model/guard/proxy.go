// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pellucid-mcp/pellucid/model/format"
	"github.com/pellucid-mcp/pellucid/platform/auth"
	"github.com/pellucid-mcp/pellucid/platform/intake"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// pass hands a request on, and its answer back.
func (g *Guard) pass(found *route, t target, w http.ResponseWriter, r *http.Request) {
	if r.ContentLength != 0 && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
		g.counters.exchanged("refused-request")
		g.fault(w, usualFormat, http.StatusBadRequest, "this method has no body")
		return
	}
	done, ok := g.admit(w, r, usualFormat)
	if !ok {
		return
	}
	defer done()
	g.counters.exchanged("passed-through")
	ctx, alive, cancel := g.patience(r.Context())
	defer cancel()
	resp, err := g.send(ctx, r, found, t.path, http.MaxBytesReader(w, r.Body, maxUpload), r.ContentLength)
	if err != nil {
		g.unreachable(w, r, usualFormat, ctx)
		return
	}
	defer resp.Body.Close()
	copyHeader(w.Header(), resp.Header, true)
	w.WriteHeader(resp.StatusCode)
	copyFlushed(w, resp.Body, alive)
}

// maxUpload is how long a body may be that only passes through: a file.
const maxUpload = 512 << 20

// admit takes a place among the requests under way. done gives it back, once.
func (g *Guard) admit(w http.ResponseWriter, r *http.Request, f format.Format) (done func(), ok bool) {
	who := principal(r)
	if err := g.active.Take(who, 1); err != nil {
		g.busy(w, r, f, err)
		return nil, false
	}
	return sync.OnceFunc(func() { g.active.Give(who, 1) }), true
}

// principal is who asks, as far as anybody looks; "" if nobody does.
func principal(r *http.Request) string {
	p, _ := auth.FromContext(r.Context())
	return p.ID
}

// busy refuses what there is no room for now.
func (g *Guard) busy(w http.ResponseWriter, r *http.Request, f format.Format, why error) {
	g.counters.exchanged("busy")
	w.Header().Set("Retry-After", "1")
	status, text := http.StatusServiceUnavailable, "too much is under way"
	if errors.Is(why, intake.ErrGreedy) {
		status, text = http.StatusTooManyRequests, "too much of yours is under way"
	}
	intake.Refuse(w, r, g.o.MaxRequest, func() { g.fault(w, f, status, text) })
}

var errIdle = errors.New("guard: the upstream is silent")

// patience is a context that ends where the upstream is silent for too long; alive
// says that it was not.
func (g *Guard) patience(parent context.Context) (ctx context.Context, alive func(), cancel func()) {
	ctx, end := context.WithCancelCause(parent)
	t := time.AfterFunc(g.o.idle, func() { end(errIdle) })
	return ctx, func() { t.Reset(g.o.idle) }, func() { t.Stop(); end(nil) }
}

// send asks the upstream for the path that a route has made, with the method and the headers
// of a client's request.
func (g *Guard) send(ctx context.Context, r *http.Request, found *route, path string, body io.Reader, length int64) (*http.Response, error) {
	if length == 0 {
		body = http.NoBody
	}
	req, err := http.NewRequestWithContext(ctx, r.Method, g.upstream.url(found, path), body)
	if err != nil {
		return nil, err
	}
	req.ContentLength = length
	copyHeader(req.Header, r.Header, false)
	g.sign(req.Header, g.upstream.keyIn(found, req.Header))
	return g.carrier.RoundTrip(req)
}

// dropped are headers that end here, in both directions: of the connection, of the
// way a body is packed, of proxies on the way, and those by which a request says that it
// is another one than its first line says.
var dropped = []string{"Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection", "Te", "Trailer",
	"Transfer-Encoding", "Upgrade", "Accept-Encoding", "Cookie", "Set-Cookie", "Forwarded", "X-Forwarded-For", "X-Forwarded-Host",
	"X-Forwarded-Proto", "X-Real-Ip", "Alt-Svc", "X-Http-Method", "X-Http-Method-Override", "X-Method-Override", "X-Original-Url", "X-Original-Uri", "X-Rewrite-Url", "Strict-Transport-Security", "Host", "Content-Length", "Origin", "Referer", taskHeader}

func copyHeader(to, from http.Header, answer bool) {
	var named []string
	for _, v := range from.Values("Connection") {
		for name := range strings.SplitSeq(v, ",") {
			named = append(named, http.CanonicalHeaderKey(strings.TrimSpace(name)))
		}
	}
	for name, values := range from {
		if slices.Contains(dropped, name) || slices.Contains(named, name) || answer && strings.HasPrefix(name, "Pellucid-") {
			continue
		}
		to[name] = slices.Clone(values)
	}
}

// copyFlushed copies a body as it comes.
func copyFlushed(w http.ResponseWriter, from io.Reader, alive func()) {
	out := http.NewResponseController(w)
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		alive()
		if n > 0 {
			if _, bad := w.Write(buf[:n]); bad != nil {
				return
			}
			_ = out.Flush() // what cannot be flushed is written at the end
		}
		if err == io.EOF {
			return
		}
		if err != nil {
			panic(http.ErrAbortHandler) // the client must not take it for whole
		}
	}
}

// fault answers with an error in the words of a format.
func (g *Guard) fault(w http.ResponseWriter, f format.Format, status int, text string) {
	kind := map[int]string{
		http.StatusBadRequest: "invalid_request_error", http.StatusForbidden: "permission_error", http.StatusRequestEntityTooLarge: "request_too_large",
		http.StatusUnsupportedMediaType: "invalid_request_error", http.StatusServiceUnavailable: "overloaded_error",
		http.StatusNotFound: "not_found_error", http.StatusMethodNotAllowed: "invalid_request_error", http.StatusGatewayTimeout: "timeout_error", http.StatusTooManyRequests: "rate_limit_error",
	}[status]
	if kind == "" {
		kind = "api_error"
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(f.AppendError(nil, kind, "Pellucid: "+text)) // the client has gone
}

func (g *Guard) unreachable(w http.ResponseWriter, r *http.Request, f format.Format, ctx context.Context) {
	switch {
	case r.Context().Err() != nil:
		g.counters.exchanged("client-gone")
		panic(http.ErrAbortHandler)
	case errors.Is(context.Cause(ctx), errIdle):
		g.counters.exchanged("upstream-silent")
		g.fault(w, f, http.StatusGatewayTimeout, "the provider did not answer in time")
	default:
		g.counters.exchanged("unreachable")
		g.fault(w, f, http.StatusBadGateway, "the provider cannot be reached")
	}
}

// checked reads what a request of the route asks for. Wrong says what keeps it from being
// inspected; "" is nothing.
func checked(found *route, t target, body []byte) format.Asked {
	var doc strictjson.Doc
	if doc.Reset(body, strictjson.Limits{}) != nil || doc.Root().Kind() != '{' {
		return format.Asked{Wrong: "the body is no strict JSON object"}
	}
	a := found.format.Asks(doc.Root())
	if a.InPath {
		a.Model, a.Stream = t.model, found.stream
	}
	if t.model != "" { // that of a deployment goes first
		a.Model = t.model
	}
	if a.Wrong == "" && a.Model == "" {
		a.Wrong = "no model is named"
	}
	return a
}

// isEvents reports whether an answer is a stream of events of a format.
func isEvents(f format.Format, h http.Header) bool {
	t, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	return err == nil && t == f.ContentType()
}
