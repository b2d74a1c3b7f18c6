// SPDX-License-Identifier: Apache-2.0

// Package eventstream parses text/event-stream, the format of server-sent events.
//
// It follows WHATWG HTML 9.2: UTF-8 with an optional byte order mark; lines that end with
// CR, LF or CRLF; an empty line ends an event; an event that is not ended is dropped.
package eventstream

import (
	"bytes"
	"errors"
	"time"
)

// Bounds of what a server chooses.
const (
	MaxID    = 1024 // bytes of an id; a longer one is ignored
	MaxName  = 64   // bytes of a name; the rest is cut off
	MaxRetry = 30 * time.Second
	usualMax = 1 << 20
)

// ErrTooLong is the error for an event that is longer than Decoder.Max.
var ErrTooLong = errors.New("eventstream: event too long")

// An Event is what ended with an empty line. It may have no data, and even no line.
type Event struct {
	Name    string
	Data    []byte // belongs to the caller of Next
	HasData bool   // a data field was there, perhaps an empty one

	// Raw is the event as it came, with Decoder.Raw; it is valid until the next call of
	// Next. An LF behind a CR belongs to the event after it where it came later.
	Raw []byte
	// Odd, with Decoder.Raw, says that another reader may find other data in this event: a
	// field has a name that the format does not know, or a line holds a character that a
	// lenient reader takes for the end of a line.
	Odd bool
}

// A Decoder finds the events in a stream that comes in pieces: Feed gives it a piece, and
// then Next returns what the piece completes. It holds one event at most.
type Decoder struct {
	Max int  // most bytes of the data and the current line of an event; 0: 1 MiB
	Raw bool // have Event.Raw and Event.Odd; Max does not bound Raw, see Rest
	// Append is how Data grows, for memory of a pool; nil: the append of the language.
	Append func(b, more []byte) []byte

	in    []byte // fed, and not looked at
	noLF  int    // so many bytes of in hold no LF: none is looked at twice
	begun bool   // no byte order mark can come any more
	wasCR bool   // the last line ended in CR: an LF now belongs to it
	given bool   // raw belongs to an event that Next has returned

	line []byte // the line so far
	skip bool   // the line is a comment: it is not kept
	ev   Event  // so far
	raw  []byte // of ev, with Raw

	lastID string // of the last event that was ended
	id     string // of ev
	retry  time.Duration
}

// LastID returns the id to resume the stream from: that of the last event that was ended,
// or of one before that. It has printable ASCII alone, since it goes into a header.
func (d *Decoder) LastID() string { return d.lastID }

// Retry returns how long the server wants a client to wait before it connects again, up to
// MaxRetry; 0 if the server has not said it.
func (d *Decoder) Retry() time.Duration { return d.retry }

// Rest returns the bytes of the event that is not ended, with Raw, once Next has returned
// all events of what was fed. It is valid until the next call of Feed.
func (d *Decoder) Rest() []byte { return d.raw }

// Feed gives the Decoder the next bytes of the stream. Next must have returned all events
// of the bytes before. p is not kept once Next has done so again.
func (d *Decoder) Feed(p []byte) { d.in, d.noLF = p, 0 }

// Next returns the next event of what was fed; ok is false where that completes none. The
// error is ErrTooLong, and final.
func (d *Decoder) Next() (e Event, ok bool, err error) {
	if d.given {
		d.raw, d.given = d.raw[:0], false
	}
	for len(d.in) > 0 {
		ended, err := d.readLine()
		if err != nil {
			return Event{}, false, err
		}
		if !ended {
			continue
		}
		if len(d.line) > 0 || d.skip {
			if !d.skip {
				d.field()
			}
			d.line, d.skip = d.line[:0], false
			continue
		}
		e, d.ev, d.lastID = d.ev, Event{}, d.id
		e.Raw, d.given = d.raw, true
		return e, true, nil
	}
	return Event{}, false, nil
}

// readLine takes bytes up to the end of a line or of what was fed.
func (d *Decoder) readLine() (ended bool, err error) {
	if d.wasCR {
		d.wasCR = false
		if d.in[0] == '\n' {
			d.take(1)
			return false, nil
		}
	}
	n := bytes.IndexByte(d.in[d.noLF:], '\n')
	if n += d.noLF; n < d.noLF {
		n = len(d.in)
	}
	d.noLF = n
	if cr := bytes.IndexByte(d.in[:n], '\r'); cr >= 0 {
		n = cr
	}
	piece, rest := d.in[:n], d.in[n:]
	switch {
	case len(rest) > 1 && rest[0] == '\r' && rest[1] == '\n':
		n += 2
	case len(rest) > 0:
		d.wasCR = rest[0] == '\r'
		n++
	}
	d.take(n)
	if len(d.line) == 0 && len(piece) > 0 && piece[0] == ':' && !d.Raw {
		d.skip, d.begun = true, true
	}
	if !d.skip {
		err = d.append(piece, len(rest) > 0)
	}
	return len(rest) > 0, err
}

func (d *Decoder) take(n int) {
	if d.Raw {
		d.raw = append(d.raw, d.in[:n]...)
	}
	d.in, d.noLF = d.in[n:], max(0, d.noLF-n)
}

const mark = "\xef\xbb\xbf" // U+FEFF

// append adds a piece to the line.
func (d *Decoder) append(piece []byte, last bool) error {
	most := d.Max
	if most <= 0 {
		most = usualMax
	}
	if most += MaxID; len(piece) > most-len(d.line)-len(d.ev.Data) {
		return ErrTooLong
	}
	d.line = d.grow(d.line, piece)
	if !d.begun && (last || len(d.line) >= len(mark)) {
		d.begun = true
		d.line = d.line[:copy(d.line, bytes.TrimPrefix(d.line, []byte(mark)))]
	}
	return nil
}

func (d *Decoder) grow(b, more []byte) []byte {
	if d.Append != nil {
		return d.Append(b, more)
	}
	return append(b, more...)
}

// field takes in one line that is not empty.
func (d *Decoder) field() {
	name, value, _ := bytes.Cut(d.line, []byte{':'})
	value = bytes.TrimPrefix(value, []byte{' '})
	if d.Raw && !d.ev.Odd {
		d.ev.Odd = bytes.ContainsFunc(d.line, endsLine)
	}
	switch string(name) {
	case "data":
		if !d.ev.HasData {
			// The one line of the usual event is given away with its memory.
			d.ev.Data, d.ev.HasData = d.line[:copy(d.line, value)], true
			d.line = nil
			return
		}
		d.ev.Data = d.grow(d.grow(d.ev.Data, []byte{'\n'}), value)
	case "event":
		d.ev.Name = string(value[:min(len(value), MaxName)])
	case "id":
		if len(value) <= MaxID && !bytes.ContainsFunc(value, unprintable) {
			d.id = string(value)
		}
	case "retry":
		d.retry = milliseconds(value, d.retry)
	case "": // a comment
	default:
		d.ev.Odd = d.Raw
	}
}

// endsLine reports whether some reader takes c for the end of a line. In data this is
// harmless: within JSON nothing behind it can be JSON again.
func endsLine(c rune) bool {
	return c < ' ' && c != '\t' || c == '\u0085' || c == '\u2028' || c == '\u2029'
}

func unprintable(c rune) bool { return c < ' ' || c > '~' }

func milliseconds(digits []byte, old time.Duration) time.Duration {
	if len(digits) == 0 {
		return old
	}
	var d time.Duration
	for _, c := range digits {
		if c < '0' || c > '9' {
			return old
		}
		d = min(d*10+time.Duration(c-'0')*time.Millisecond, MaxRetry)
	}
	return d
}
