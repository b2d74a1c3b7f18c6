// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"errors"
	"net/http"
	"strconv"
	"time"
)

// pump writes a stream's events into one HTTP response. It is the only writer
// of the response, so that a client which does not read delays no other client.
type pump struct {
	*exchange
	st    *stream
	turn  int
	asked ID   // the client's own id of its request
	first bool // the request is initialize

	stream  bool // it has to be a stream, whatever comes
	started bool // the response's header has been written
	retried bool // the client has been told when to come again
}

// retryWait is what a legacy client is asked to wait before it comes again.
const retryWait = "retry: 1000\n"

// run writes events until the stream has ended, the client is gone, or another request takes the stream
// over.
func (p *pump) run() {
	defer p.rc.SetWriteDeadline(time.Time{}) // the server's own rule again
	defer p.st.release(p.turn)
	alive := time.NewTimer(p.f.opt.keepAlive)
	defer alive.Stop()
	wake := p.st.waker(p.turn)
	for {
		switch v := p.writeReady(); v {
		case finished:
			p.finish()
			return
		case taken:
			return
		case broken:
			p.leave()
			return
		}
		select {
		case <-wake:
		case <-p.r.Context().Done():
			p.leave()
			return
		case <-alive.C:
			if p.keepAlive() != nil {
				p.leave()
				return
			}
			alive.Reset(p.f.opt.keepAlive)
		}
	}
}

// broken is beside the verdicts of take: the client cannot be written to.
const broken readiness = 100

// writeReady writes what is there to be written.
func (p *pump) writeReady() readiness {
	wrote := false
	for {
		e, last, v := p.st.take(p.turn)
		if v != ready {
			if wrote && v == nothing && p.flush() != nil {
				return broken
			}
			return v
		}
		if !wrote {
			p.deadline()
			wrote = true
		}
		if last && !p.started && !p.stream && p.asBody(&e) {
			return finished
		}
		if p.event(&e, last) != nil {
			return broken
		}
		if !e.kept {
			e.m.Release()
		}
		if last {
			p.flush()
			return finished
		}
	}
}

// asBody answers with one JSON body where the answer came as one, or where the
// revision wants its error to show in the status.
func (p *pump) asBody(e *queued) bool {
	status := http.StatusOK
	if p.st.s.Era == Modern && e.m.Kind == ErrorResponse {
		status = statusOf(e.m)
	}
	if status == http.StatusOK && !e.m.Whole {
		return false
	}
	if p.sessionHeader(false) {
		p.whole(status, e.m)
		p.started = true
	}
	e.m.Release()
	return true
}

// statusOf is the HTTP status that goes with an error of the modern era.
func statusOf(m *Message) int {
	if m.Parse() != nil {
		return http.StatusOK
	}
	code, _ := m.Error.Get("code").Int64()
	switch code {
	case CodeNoMethod:
		return http.StatusNotFound
	case CodeParams, CodeMissingCapability, CodeHeaderMismatch, CodeUnsupportedVersion:
		return http.StatusBadRequest
	}
	return http.StatusOK
}

// begin writes the header of a stream of known length, or of an open one if it
// is negative. The error is errNoName.
func (p *pump) begin(length int) error {
	if !p.sessionHeader(length < 0) {
		return errNoName
	}
	h := p.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache, no-transform")
	h.Set("X-Accel-Buffering", "no")
	if length >= 0 {
		h.Set("Content-Length", strconv.Itoa(length))
	}
	p.started = true
	if length >= 0 {
		return nil
	}
	p.deadline()
	p.w.WriteHeader(http.StatusOK)
	if p.st.no == 0 {
		// Some proxies hold a header back until something follows.
		p.prime()
		p.flush()
	}
	return nil
}

// errNoName is that of a response that was ended because its session has no id that other processes know.
var errNoName = errors.New("wire: the session has no name")

// sessionHeader names the session in the answer to initialize: once the server has agreed to a
// version, or early, where something goes out before that: later there is no header. It reports false
// where the session cannot be named: the client has been told to try again, and the session has ended.
func (p *pump) sessionHeader(early bool) bool {
	if !p.first || !early && p.st.s.negotiated() == "" {
		return true
	}
	id, ok := p.st.s.name(p.r.Context())
	if !ok {
		p.started = true
		p.turnAway(p.asked, errNotBegun)
		p.f.forget(p.st.s)
		p.st.s.end()
		return false
	}
	p.w.Header().Set(headerSession, id)
	return true
}

// prime gives a silent stream something to be asked for again by.
func (p *pump) prime() error {
	b := p.retry(nil)
	if p.st.primed {
		b = append(p.st.appendEventID(append(b, "id: "...), 0, true), "\ndata:\n"...)
	} else if no, ok := p.st.prime(); ok {
		b = append(p.st.appendEventID(append(b, "id: "...), no, true), "\ndata:\n"...)
	} else {
		b = append(b, ':', '\n')
	}
	_, err := p.w.Write(append(b, '\n'))
	return err
}

func (p *pump) retry(b []byte) []byte {
	if p.retried || p.st.s.Era == Modern {
		return b
	}
	p.retried = true
	return append(b, retryWait...)
}

// event writes one event. alone means that nothing else will ever be in the stream.
func (p *pump) event(e *queued, last bool) error {
	body := e.m.Body()
	if hasLineEnd(body) { // between tokens: nothing else may hold them raw
		if e.kept || e.m.buf == nil { // another response may write the same bytes
			body = bytes.Clone(body)
		}
		fold(body)
	}
	head := p.retry(append(make([]byte, 0, 160), "event: message\n"...))
	if e.kept || p.st.primed {
		head = append(p.st.appendEventID(append(head, "id: "...), e.no, !last), '\n')
	}
	head = e.m.appendHead(append(head, "data: "...))
	if !p.started {
		length := -1
		if last {
			length = len(head) + len(body) + len(eventEnd)
		}
		if err := p.begin(length); err != nil {
			return err
		}
	}
	for _, b := range [...][]byte{head, body, eventEnd} {
		if _, err := p.w.Write(b); err != nil {
			return err
		}
	}
	return nil
}

var eventEnd = []byte("}\n\n")

// keepAlive shows client and proxies that a silent stream is alive. An answer
// that is long in coming becomes a stream.
func (p *pump) keepAlive() error {
	p.deadline()
	if !p.started {
		if err := p.begin(-1); err != nil {
			return err
		}
		if err := p.prime(); err != nil {
			return err
		}
		return p.flush()
	}
	if _, err := p.w.Write([]byte(":\n\n")); err != nil {
		return err
	}
	return p.flush()
}

// finish ends a response that has been told everything.
func (p *pump) finish() {
	switch {
	case p.started:
	case p.st.owes():
		p.turnAway(p.asked, p.cutShort())
	default: // the client has cancelled its request
		_ = p.begin(0)
	}
}

func (p *pump) cutShort() rejection {
	if p.st.s.Era == Legacy && !p.first {
		if p.st.s.survives() {
			return errLost
		}
		return errNoSession
	}
	return errNoServer
}

// leave is what becomes of a stream whose client is gone. The rules are opposite:
// in the modern era that cancels, in the legacy era it does not.
func (p *pump) leave() {
	if p.st.s.Era == Modern {
		p.st.s.cancel(p.st, true)
		return
	}
	p.st.left()
}

func (p *pump) deadline() { _ = p.rc.SetWriteDeadline(time.Now().Add(p.f.opt.patience)) }

func (p *pump) flush() error {
	err := p.rc.Flush()
	if err != nil && errors.Is(err, http.ErrNotSupported) {
		return nil
	}
	return err
}

// whole writes one JSON body.
func (x *exchange) whole(status int, m *Message) {
	var room [160]byte
	head, body := m.appendHead(room[:0]), m.Body()
	h := x.w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(head)+len(body)+1))
	_ = x.rc.SetWriteDeadline(time.Now().Add(x.f.opt.patience))
	x.w.WriteHeader(status)
	for _, b := range [...][]byte{head, body, {'}'}} {
		if _, err := x.w.Write(b); err != nil {
			break
		}
	}
	_ = x.rc.Flush() // with the deadline
	_ = x.rc.SetWriteDeadline(time.Time{})
}

func appendInt(dst []byte, n int) []byte { return strconv.AppendInt(dst, int64(n), 10) }
