// SPDX-License-Identifier: Apache-2.0

package guard

import "bytes"

// A splitter cuts a stream of text/event-stream into events and keeps the bytes
// of each: what is passed on is what came. Lines end with CR, LF or CRLF, an empty
// line ends an event.
type splitter struct {
	buf   []byte // of the event that is not complete
	line  int    // where its current line begins
	at    int    // what was looked at
	wasCR bool   // the last byte of a complete event was CR: an LF now belongs to it
	begun bool
	size  int // of all events
}

// A sseEvent is one event. Its bytes are valid until the next feed.
type sseEvent struct {
	raw  []byte // all of it, its empty line included
	name string
	data []byte
	any  bool // it has data
	// odd: a line of it is none that the format knows. Readers that are lenient about
	// spaces, case or the ends of lines may take it for data.
	odd bool
}

// feed takes in bytes and calls f with each event that they complete.
func (s *splitter) feed(p []byte, f func(sseEvent)) {
	s.size += len(p)
	s.buf = append(s.buf, p...)
	start := 0
	for s.at < len(s.buf) {
		c := s.buf[s.at]
		s.at++
		cr := s.wasCR
		s.wasCR = c == '\r'
		switch {
		case c == '\n' && cr: // the rest of the line end before
			s.line = s.at
			continue
		case c != '\r' && c != '\n':
			continue
		}
		empty := s.line == s.at-1
		if s.wasCR && s.at < len(s.buf) && s.buf[s.at] == '\n' {
			s.at, s.wasCR = s.at+1, false
		}
		s.line = s.at
		if empty {
			// An LF that comes only later goes with the next event: a line end that nobody
			// misses, where waiting for it would hold this event back.
			f(s.parse(s.buf[start:s.at]))
			start = s.at
		}
	}
	if start > 0 {
		rest := copy(s.buf, s.buf[start:])
		s.buf, s.at, s.line = s.buf[:rest], s.at-start, s.line-start
	}
}

// rest is what has come and is no event.
func (s *splitter) rest() []byte { return s.buf }

func (s *splitter) parse(raw []byte) sseEvent {
	e := sseEvent{raw: raw}
	text := raw
	if !s.begun {
		s.begun = true
		text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	}
	lines := 0 // of data
	for len(text) > 0 {
		i := bytes.IndexAny(text, "\r\n")
		line := text[:i]
		if text[i] == '\r' && i+1 < len(text) && text[i+1] == '\n' {
			i++
		}
		text = text[i+1:]
		field, value, _ := bytes.Cut(line, []byte{':'})
		value = bytes.TrimPrefix(value, []byte{' '})
		switch string(field) {
		case "data":
			switch lines++; lines {
			case 1:
				e.data, e.any = value, true
				continue
			case 2:
				e.data = bytes.Clone(e.data) // it lies in raw
			}
			e.data = append(append(e.data, '\n'), value...)
			continue
		case "event":
			e.name = string(value[:min(len(value), 64)])
		case "", "id", "retry": // "" is that of a comment
		default:
			e.odd = true
		}
		e.odd = e.odd || bytes.ContainsFunc(line, breaks)
	}
	return e
}

// breaks reports whether some reader takes a character for the end of a line. In data it
// is harmless: within JSON nothing behind it can be JSON again.
func breaks(r rune) bool {
	return r < ' ' && r != '\t' || r == '\u0085' || r == '\u2028' || r == '\u2029'
}
