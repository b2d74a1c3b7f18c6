// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"fmt"
	"io"
	"time"

	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

var errEventTooLong = fmt.Errorf("%w: server-sent event", ErrTooLong)

// event is one server-sent event. data is in a buffer of the pool and the receiver's own.
type event struct {
	name string
	data []byte
}

// message is what an event of MCP carries, or why it is none; nil and no error for an
// event that is about something else. It owns the event's data.
func (e event) message(l strictjson.Limits) (*Message, *Violation) {
	if e.name != "" && e.name != "message" || len(e.data) == 0 {
		PutBuffer(e.data)
		return nil, nil
	}
	m, err := Decode(e.data, l)
	if err != nil {
		PutBuffer(e.data)
		return nil, violationOf(err)
	}
	m.buf = e.data
	return m, nil
}

// eventReader reads text/event-stream as WHATWG defines it: UTF-8 with an
// optional BOM, lines ended by CR, LF or CRLF, an event ended by an empty line
// and dropped if the stream ends before that. It holds one event and no more.
type eventReader struct {
	r   io.Reader
	max int

	buf     []byte // read and not yet looked at
	store   []byte
	full    bool // the last read filled the first store: the next one is larger
	started bool
	wasCR   bool // the last line ended in CR: an LF now belongs to it
	err     error

	line []byte // the line so far
	skip bool   // the line is a comment: do not keep it
	ev   event
	any  bool // ev has a data field

	lastID string        // of the last event that was dispatched or primed
	id     string        // of the event so far
	retry  time.Duration // asked for by the server; 0 = not
}

const (
	maxEventID = 1024
	maxName    = 64
	maxRetry   = 30 * time.Second
)

// next returns the next event that has data, io.EOF at the end of the stream,
// errEventTooLong or the stream's error. All but the first are final.
func (r *eventReader) next() (event, error) {
	for {
		ended, err := r.readLine()
		if err != nil {
			return event{}, err
		}
		if !ended {
			continue
		}
		if len(r.line) > 0 || r.skip {
			if !r.skip {
				r.field()
			}
			r.line, r.skip = r.line[:0], false
			continue
		}
		r.lastID = r.id
		ev, complete := r.ev, r.any
		r.ev, r.any = event{}, false
		if complete {
			return ev, nil
		}
	}
}

// readLine takes bytes up to the end of a line or of what is buffered.
func (r *eventReader) readLine() (ended bool, err error) {
	if len(r.buf) == 0 {
		if err := r.fill(); err != nil {
			return false, err
		}
	}
	if r.wasCR {
		r.wasCR = false
		if r.buf[0] == '\n' {
			r.buf = r.buf[1:]
			return false, nil
		}
	}
	n := bytes.IndexByte(r.buf, '\n')
	if n < 0 {
		n = len(r.buf)
	}
	if cr := bytes.IndexByte(r.buf[:n], '\r'); cr >= 0 {
		n = cr
	}
	piece := r.buf[:n]
	if ended = n < len(r.buf); ended {
		r.wasCR = r.buf[n] == '\r'
		n++
	}
	r.buf = r.buf[n:]
	if len(r.line) == 0 && len(piece) > 0 && piece[0] == ':' {
		r.skip = true
	}
	if r.skip {
		return ended, nil
	}
	if len(r.line)+len(piece)+len(r.ev.data) > r.max+maxEventID {
		return false, errEventTooLong
	}
	r.line = appendPooled(r.line, piece)
	return ended, nil
}

func appendPooled(b, more []byte) []byte {
	if need := len(b) + len(more); need > cap(b) {
		grown := append(GetBuffer(max(need, 2*len(b))), b...)
		PutBuffer(b)
		b = grown
	}
	return append(b, more...)
}

// firstRead is the size of the first read of a stream, and of all that follow until one
// fills it.
const firstRead = 512

func (r *eventReader) fill() error {
	if r.err != nil {
		return r.err
	}
	switch {
	case r.store == nil: // many a stream is silent for hours
		r.store = make([]byte, firstRead)
	case r.full:
		r.store = make([]byte, readSize)
	}
	for tries := 0; len(r.buf) == 0; tries++ {
		if r.err != nil {
			return r.err
		}
		if tries > maxIdle {
			return io.ErrNoProgress
		}
		var n int
		n, r.err = r.r.Read(r.store)
		r.buf, r.full = r.store[:n], n == firstRead && len(r.store) == firstRead
	}
	if r.started {
		return nil
	}
	r.started = true
	bom := []byte{0xef, 0xbb, 0xbf}
	for tries := 0; len(r.buf) < len(bom) && bytes.HasPrefix(bom, r.buf) && r.err == nil; tries++ {
		if tries > maxIdle {
			return io.ErrNoProgress
		}
		var n int
		n, r.err = r.r.Read(r.store[len(r.buf):])
		r.buf = r.store[:len(r.buf)+n]
	}
	if r.buf = bytes.TrimPrefix(r.buf, bom); len(r.buf) == 0 {
		return r.fill()
	}
	return nil
}

// field takes in one line that is neither empty nor a comment.
func (r *eventReader) field() {
	name, value, _ := bytes.Cut(r.line, []byte{':'})
	value = bytes.TrimPrefix(value, []byte{' '})
	switch string(name) {
	case "data":
		if !r.any {
			// The one line of the usual event is given away with its buffer.
			r.ev.data, r.any = r.line[:copy(r.line, value)], true
			r.line = nil
			return
		}
		r.ev.data = appendPooled(appendPooled(r.ev.data, []byte{'\n'}), value)
	case "event":
		r.ev.name = string(value[:min(len(value), maxName)])
	case "id":
		if len(value) <= maxEventID && validHeaderValue(string(value)) {
			r.id = string(value)
		}
	case "retry":
		r.retry = milliseconds(value, r.retry)
	}
}

func milliseconds(digits []byte, old time.Duration) time.Duration {
	if len(digits) == 0 {
		return old
	}
	var d time.Duration
	for _, c := range digits {
		if c < '0' || c > '9' {
			return old
		}
		d = min(d*10+time.Duration(c-'0')*time.Millisecond, maxRetry)
	}
	return d
}

// validHeaderValue reports whether s can stand in a header as it is: an event
// id goes back in Last-Event-ID, a session id in Mcp-Session-Id.
func validHeaderValue(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}
