// SPDX-License-Identifier: Apache-2.0

package llm

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/pellucid-mcp/pellucid/model/format"
	"github.com/pellucid-mcp/pellucid/platform/backoff"
	"github.com/pellucid-mcp/pellucid/text/eventstream"
)

// Bytes are what went over the wire. They are shared and must not be changed.
type Bytes []byte

// Digest is their SHA-256.
func (o Bytes) Digest() [sha256.Size]byte { return sha256.Sum256(o) }

// An Attempt is one exchange with the endpoint, or what came in its place. Model
// and Fingerprint are third-party text, and so is the Answer.
type Attempt struct {
	Number   int // of this request, from 1
	start    time.Time
	duration time.Duration
	Sent     bool // it went to the endpoint; else Code says why not
	Status   int  // of HTTP; 0 without an answer
	Code     Code // "" if there is a Response

	usage format.Usage

	model, Fingerprint string
	Request, Answer    Bytes // Answer: as far as it came
}

// An exchange is one attempt under way.
type exchange struct {
	e    *Endpoint
	req  *Request
	body []byte
	emit func(Delta) error

	status int
	answer []byte
	unsent bool // no connection was made
}

var (
	errIdle    = errors.New("llm: the answer has stopped coming in")
	errTooLong = errors.New("llm: the answer is too long")
)

// do makes the attempt.
func (x *exchange) do(ctx context.Context, key string) (Response, *Error) {
	within, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := time.AfterFunc(x.e.o.Timeout, func() { cancel(context.DeadlineExceeded) })
	defer timer.Stop()
	r, err := x.exchange(within, cancel, key)
	if err != nil && ctx.Err() != nil {
		err = &Error{Code: CodeCanceled, Status: x.status, err: ctx.Err()}
	}
	if err != nil {
		err.Status = x.status
	}
	return r, err
}

func (x *exchange) exchange(ctx context.Context, cancel context.CancelCauseFunc, key string) (Response, *Error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, x.e.base+cmp.Or(x.req.Path, x.e.format.Path(x.e.o.Model, x.emit != nil)), bytes.NewReader(x.body))
	if err != nil {
		return Response{}, failure(CodeRequest)
	}
	accept := "application/json"
	if x.emit != nil {
		accept = x.e.format.ContentType()
	}
	req.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {accept}, "User-Agent": {"pellucid"}}
	x.e.format.Sign(key, req.Header.Set)
	for name, values := range x.req.Header {
		req.Header[http.CanonicalHeaderKey(name)] = values
	}
	resp, err := x.e.carrier.RoundTrip(req)
	if err != nil {
		var dial *net.OpError
		x.unsent = errors.As(err, &dial) && dial.Op == "dial"
		return Response{}, classify(ctx, err)
	}
	defer resp.Body.Close()
	x.status = resp.StatusCode
	in := &intake{r: resp.Body, to: &x.answer, most: x.e.o.MaxAnswer, patience: x.e.o.Idle}
	in.idle = time.AfterFunc(in.patience, func() { cancel(errIdle) })
	defer in.idle.Stop()
	if resp.StatusCode != http.StatusOK {
		return Response{}, x.refused(resp, in)
	}
	if len(resp.Header.Values("Content-Encoding")) > 0 || !isType(resp.Header, accept) {
		return Response{}, failure(CodeContentType)
	}
	if resp.ContentLength > int64(x.e.o.MaxAnswer) {
		return Response{}, failure(CodeTooLarge)
	}
	if x.emit != nil {
		return x.stream(ctx, in)
	}
	if _, err := io.Copy(io.Discard, in); err != nil {
		return Response{}, classifyBody(ctx, err)
	}
	v := format.Parse(x.answer)
	if !v.Exists() {
		return Response{}, failure(CodeMalformed)
	}
	return read(x.e.format.Read(v))
}

// maxRefusal is how much of the answer of an error is read, in bytes.
const maxRefusal = 64 << 10

// refused is what an answer that is none means. Its text is read for the words of
// the protocol, never passed on.
func (x *exchange) refused(resp *http.Response, in *intake) *Error {
	in.most = min(in.most, maxRefusal)
	_, _ = io.Copy(io.Discard, in) // cut off or too long: the status says enough
	e := ofStatus(resp.StatusCode, x.answer)
	e.RetryAfter = retryAfter(resp.Header)
	return e
}

func (x *exchange) stream(ctx context.Context, in *intake) (Response, *Error) {
	split := x.e.format.Split(x.e.o.MaxAnswer, false)
	s := pieces{stream: x.e.format.NewStream(), emit: x.emit}
	for buf := make([]byte, 32<<10); ; {
		n, err := in.Read(buf)
		split.Feed(buf[:n])
		e, ok, bad := split.Next()
		for ; ok; e, ok, bad = split.Next() {
			done, bad := s.event(e)
			if bad != nil {
				return Response{}, bad
			}
			if done {
				return read(s.stream.Answer())
			}
		}
		switch {
		case errors.Is(bad, eventstream.ErrTooLong):
			return Response{}, failure(CodeTooLarge)
		case bad != nil:
			return Response{}, failure(CodeMalformed)
		case err == io.EOF && s.stream.Whole():
			return read(s.stream.Answer())
		case err == io.EOF:
			return Response{}, failure(CodeCut)
		case err != nil:
			return Response{}, classifyBody(ctx, err)
		}
	}
}

// An intake reads an answer within its bounds and keeps what it reads.
type intake struct {
	r        io.Reader
	to       *[]byte
	most     int
	idle     *time.Timer
	patience time.Duration
}

func (in *intake) Read(p []byte) (int, error) {
	left := in.most - len(*in.to)
	if left < 0 {
		return 0, errTooLong
	}
	in.idle.Reset(in.patience) // runs only here: a slow reader is not a slow endpoint
	n, err := in.r.Read(p[:min(len(p), left+1)])
	in.idle.Stop()
	*in.to = append(*in.to, p[:n]...)
	if len(*in.to) > in.most {
		return 0, errTooLong
	}
	return n, err
}

func isType(h http.Header, want string) bool {
	types := h.Values("Content-Type")
	if len(types) != 1 {
		return false
	}
	t, _, err := mime.ParseMediaType(types[0])
	return err == nil && t == want
}

// classify says why there was no answer at all. The error itself may hold what the
// endpoint has sent, and is let go.
func classify(ctx context.Context, err error) *Error {
	var ours *Error
	var timeout net.Error
	var cert *tls.CertificateVerificationError
	switch {
	case errors.As(err, &ours):
		return ours
	case ctx.Err() != nil, errors.As(err, &timeout) && timeout.Timeout():
		return failure(CodeTimeout)
	case errors.As(err, &cert):
		return failure(CodeCertificate)
	}
	return failure(CodeUnreachable)
}

// classifyBody says why an answer has no end.
func classifyBody(ctx context.Context, err error) *Error {
	var ours *Error
	switch {
	case errors.As(err, &ours):
		return ours
	case errors.Is(err, errTooLong):
		return failure(CodeTooLarge)
	case ctx.Err() != nil:
		return failure(CodeTimeout)
	}
	return failure(CodeCut)
}

// retryAfter is how long the provider wants to be left alone; 0 if it does not say.
func retryAfter(h http.Header) time.Duration {
	if ms, err := strconv.ParseUint(h.Get("Retry-After-Ms"), 10, 32); err == nil {
		return time.Duration(ms) * time.Millisecond
	}
	return backoff.RetryAfter(h.Get("Retry-After"), time.Now())
}
