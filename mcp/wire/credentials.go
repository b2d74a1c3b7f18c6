// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"io"
	"net/http"
)

// Credentials give the requests to one upstream their Authorization header, and hear where the
// upstream refuses it. They are safe for concurrent use, and may take their time.
type Credentials interface {
	// Authorize returns the value of the header; "" sends none.
	Authorize(ctx context.Context) string
	// Refused is told of an answer with status 401 or 403 to a request with value, and its
	// WWW-Authenticate headers. It returns the value with which to send the request once more;
	// "" leaves the answer as it is.
	Refused(ctx context.Context, value string, status int, challenges []string) string
}

// trip is what makes the round trips of a Conn.
func (o *HTTPOptions) trip() http.RoundTripper {
	if o.Credentials == nil || o.Header.Get("Authorization") != "" {
		return o.Pool
	}
	return &authorized{o.Pool, o.Credentials}
}

// authorized makes round trips with credentials. As no redirect is followed, they go to the
// upstream's own URL, and in HTTP+SSE to one of its origin.
type authorized struct {
	next http.RoundTripper
	with Credentials
}

// RoundTrip implements http.RoundTripper.
func (a *authorized) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	value := a.with.Authorize(ctx)
	resp, err := a.next.RoundTrip(bearing(req, value))
	if err != nil || resp.StatusCode != http.StatusUnauthorized && resp.StatusCode != http.StatusForbidden {
		return resp, err
	}
	again := a.with.Refused(ctx, value, resp.StatusCode, resp.Header.Values("WWW-Authenticate"))
	if again == "" || again == value || req.Body != nil && req.GetBody == nil {
		return resp, nil
	}
	second := bearing(req, again)
	if req.Body != nil {
		if second.Body, err = req.GetBody(); err != nil {
			return resp, nil
		}
	}
	io.CopyN(io.Discard, resp.Body, 4<<10) // so that the connection serves again
	resp.Body.Close()
	return a.next.RoundTrip(second)
}

// bearing is the request with that header. The headers of a request may be those of others too.
func bearing(req *http.Request, value string) *http.Request {
	if value == "" {
		return req
	}
	out := *req
	out.Header = req.Header.Clone()
	out.Header.Set("Authorization", value)
	return &out
}
