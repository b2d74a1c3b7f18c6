// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/backoff"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// StatusError is the HTTP status with which an upstream refused a request.
type StatusError int

func (e StatusError) Error() string { return fmt.Sprintf("wire: HTTP status %d", int(e)) }

// refusal is the reason why a request got no answer: our code and text for the other side, which holds
// only numbers of the upstream, and the cause for the operator.
type refusal struct {
	code  int
	text  string
	cause error
	said  []byte // the error with which the upstream has answered a request of ours
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

func refuse(code int, cause error) *refusal { return &refusal{code: code, text: refusalText[code], cause: cause} }

func (r *refusal) Error() string { return r.cause.Error() }

// Unwrap returns the cause.
func (r *refusal) Unwrap() error { return r.cause }

// local returns the error response for the sender of the request.
func (r *refusal) local(id ID) *Message {
	m := parsed(NewError(id, fmt.Appendf(nil, `{"code":%d,"message":%q}`, r.code, r.text)))
	m.Local, m.Cause = true, r
	return m
}

// AnswerTo returns the error response that tells the sender of a request why the upstream did not
// answer it. It returns nil unless err wraps the Cause of a Local message, or an error of [RefusedWith]:
// then the response has the upstream's words, is not Local, and must be inspected like its other answers.
func AnswerTo(id ID, err error) *Message {
	r, ok := errors.AsType[*refusal](err)
	switch {
	case !ok:
		return nil
	case r.said != nil:
		return parsed(NewError(id, r.said))
	}
	return r.local(id)
}

// RefusedWith wraps cause for a request of ours that the upstream has answered with an error of
// that code and those words, so that [AnswerTo] reports them to clients that wait for the same answer.
func RefusedWith(code int64, words string, cause error) error {
	r := refuse(codeStatus, cause)
	r.said = append(strictjson.AppendQuote(fmt.Appendf(nil, `{"code":%d,"message":`, code), words), '}')
	return r
}

// statusRefusal returns the refusal for a status of failure. Its text has the status and the time after
// which the server asks to retry, since the client can use them.
func statusRefusal(resp *http.Response) *refusal {
	code := resp.StatusCode
	r := refuse(codeStatus, StatusError(code))
	switch wait := retryAfter(resp); {
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		return refuse(codeUnauthorized, r.cause)
	case code/100 == 3:
		r.text += fmt.Sprintf(": HTTP status %d, a redirect that is not followed: the operator's log names the URL", code)
		own := resp.Request.URL
		if to, err := own.Parse(resp.Header.Get("Location")); err == nil && sameOrigin(to, own) && to.Path != own.Path && strings.TrimSuffix(to.Path, "/") == strings.TrimSuffix(own.Path, "/") {
			r.text += ", which has the path " + to.EscapedPath() // the configured path, but for the slash
		}
		r.cause = fmt.Errorf("%w: the server has moved to %s: if that is right, configure this URL", r.cause, redirectTarget(resp))
	case wait > 0:
		r.text += fmt.Sprintf(": HTTP status %d, ask again in %d s", code, int(wait.Seconds()))
		r.cause = fmt.Errorf("%w: the server asks to wait %s", r.cause, wait)
	default:
		r.text += fmt.Sprintf(": HTTP status %d", code)
	}
	return r
}

// Bounds of the time for which a message of the handshake waits because the server asks for it.
const (
	minRetryWait = time.Second
	maxRetryWait = 20 * time.Second
)

// retryAfter returns the time after which the server asks the client to retry, or 0.
func retryAfter(resp *http.Response) time.Duration {
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return backoff.RetryAfter(resp.Header.Get("Retry-After"), time.Now())
	}
	return 0
}

// roundTrip makes a round trip. A message of the handshake is sent again where the server asks
// the client to retry later.
func (o *HTTPOptions) roundTrip(ctx context.Context, greeting bool, trip func() (*http.Response, error)) (*http.Response, *refusal) {
	for waited := time.Duration(0); ; {
		resp, err := trip()
		if err != nil {
			return nil, doRefusal(err)
		}
		wait := retryAfter(resp)
		if waited += max(wait, minRetryWait); wait == 0 || waited > maxRetryWait || !greeting {
			return resp, nil
		}
		resp.Body.Close()
		o.notice("the server asks to wait %s: HTTP status %d", wait, resp.StatusCode)
		if backoff.Sleep(ctx, wait) != nil {
			return nil, refuse(codeCut, context.Cause(ctx))
		}
	}
}

const maxRedirects = 3

// redirecting follows redirects that keep method and body within one origin: elsewhere they
// would take credentials and messages where the operator did not send them. Later requests go
// to the new URL directly.
type redirecting struct {
	next http.RoundTripper

	mu       sync.Mutex
	from, to *url.URL // the last that was followed
}

// RoundTrip implements http.RoundTripper.
func (t *redirecting) RoundTrip(req *http.Request) (*http.Response, error) {
	first := req.URL
	t.mu.Lock()
	known := t.from != nil && *t.from == *first
	if known {
		req = withURL(req, t.to)
	}
	t.mu.Unlock()
	for n := 0; ; n++ {
		resp, err := t.next.RoundTrip(req)
		if known && err == nil && resp.StatusCode == http.StatusNotFound {
			t.mu.Lock()
			t.from = nil // the next request uses the configured URL
			t.mu.Unlock()
		}
		if err != nil || resp.StatusCode != http.StatusTemporaryRedirect && resp.StatusCode != http.StatusPermanentRedirect {
			return resp, err
		}
		to, err := req.URL.Parse(resp.Header.Get("Location"))
		if n == maxRedirects || err != nil || resp.Header.Get("Location") == "" || !sameOrigin(to, first) || to.User != nil || req.Body != nil && req.GetBody == nil {
			return resp, nil
		}
		io.CopyN(io.Discard, resp.Body, 4<<10) // so that the connection serves again
		resp.Body.Close()
		to.Fragment, to.RawFragment = "", ""
		req = withURL(req, to)
		if req.Body != nil {
			if req.Body, err = req.GetBody(); err != nil {
				return nil, err
			}
		}
		t.mu.Lock()
		t.from, t.to = first, to
		t.mu.Unlock()
	}
}

// withURL returns a copy of the request for another URL.
func withURL(req *http.Request, to *url.URL) *http.Request {
	out := *req
	out.URL = to
	return &out
}

func sameOrigin(a, b *url.URL) bool {
	return strings.EqualFold(a.Scheme, b.Scheme) && strings.EqualFold(a.Hostname(), b.Hostname()) && portOf(a) == portOf(b)
}

func portOf(u *url.URL) string {
	return cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[strings.ToLower(u.Scheme)])
}

// redirectTarget returns the target of a redirect for the operator. It leaves out the query, which
// may hold a secret.
func redirectTarget(resp *http.Response) string {
	to, err := resp.Request.URL.Parse(resp.Header.Get("Location"))
	if err != nil || resp.Header.Get("Location") == "" {
		return "a place that it does not name"
	}
	bare := url.URL{Scheme: to.Scheme, Host: to.Host, Path: to.Path, RawPath: to.RawPath}
	return finding.Quote(bare.String())
}
