// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"errors"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/intake"
	"github.com/pellucid-mcp/pellucid/platform/reuse"
)

func isBatch(body []byte) bool {
	body = bytes.TrimLeft(body, " \t\r\n")
	return len(body) > 0 && body[0] == '['
}

// bodyRate is how fast a body has to come beyond the first patience, bytes a second.
const bodyRate = 64 << 10

// body reads the request's body whole: nothing of it goes on before it is all there.
func (x *exchange) body() (*reuse.Buffer, *rejection) {
	if x.r.ContentLength > int64(x.f.opt.MaxBody) {
		return nil, &errTooLong
	}
	x.room = x.f.opt.Room(x.principal)
	in := &pacedReader{x: x, start: time.Now()}
	b, err := readWhole(in, x.r.ContentLength, x.f.opt.MaxBody, x.room.Growing(intake.BodyCost, intake.BodyWait))
	switch {
	case errors.Is(err, intake.ErrGreedy):
		return nil, &errGreedy
	case errors.Is(err, intake.ErrFull):
		return nil, &errFull
	case errors.Is(err, errBodyTooLong):
		return nil, &errTooLong
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, &errTooSlow
	case err != nil:
		return nil, &errTooSlow // the client broke off: the answer is not read
	}
	x.rc.SetReadDeadline(time.Time{}) // the server's own rule again
	return b, nil
}

// pacedReader allows a body the time that an honest one of its size needs.
type pacedReader struct {
	x     *exchange
	start time.Time
	came  int
}

func (p *pacedReader) Read(b []byte) (int, error) {
	// A writer without deadlines (a test's) has no slow client either.
	_ = p.x.rc.SetReadDeadline(p.start.Add(p.x.f.opt.patience + time.Duration(p.came/bodyRate)*time.Second))
	n, err := p.x.r.Body.Read(b)
	p.came += n
	return n, err
}

// letGo ends the account for the body: it is gone, or its message's.
func (x *exchange) letGo() { x.room.Leave() }

// single returns a header that may be there once. An absent one is empty.
func single(h http.Header, name string) (value string, once bool) {
	switch v := h[name]; len(v) {
	case 0:
		return "", true
	case 1:
		return v[0], true
	default:
		return "", false
	}
}

// mediaTypeOf is a media type without its parameters, in lower case.
func mediaTypeOf(s string) string {
	s, _, _ = strings.Cut(s, ";")
	return strings.ToLower(strings.TrimSpace(s))
}

func identity(codings []string) bool {
	return len(codings) == 0 || len(codings) == 1 && strings.EqualFold(codings[0], "identity")
}

// accepts reports which of the two forms of an answer a client takes.
func accepts(values []string) (jsonOK, streamOK bool) {
	for _, value := range values {
		for item := range strings.SplitSeq(value, ",") {
			switch mediaTypeOf(item) {
			case "application/json", "application/*":
				jsonOK = true
			case "text/event-stream", "text/*":
				streamOK = true
			case "*/*":
				return true, true
			}
		}
	}
	return jsonOK, streamOK
}
