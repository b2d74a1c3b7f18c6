// SPDX-License-Identifier: Apache-2.0

package format

import (
	"bytes"
	"errors"

	"github.com/pellucid-mcp/pellucid/text/eventstream"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// geminiArray is Google's generateContent, and streamGenerateContent as it answers a request
// that does not ask for server-sent events: the elements of one JSON array come one by one.
type geminiArray struct{ gemini }

func (geminiArray) Name() Name { return GeminiArray }

func (geminiArray) Path(model string, stream bool) string {
	if stream {
		return geminiPath(model, ":streamGenerateContent")
	}
	return geminiPath(model, ":generateContent")
}

// ContentType is that of a body, too.
func (geminiArray) ContentType() string { return "application/json" }

func (geminiArray) Split(most int, _ bool) Splitter { return &arraySplitter{most: most} }

// AppendBeat appends white space, which may stand between elements.
func (geminiArray) AppendBeat(dst []byte) []byte { return append(dst, '\n') }

func (geminiArray) NewStream() Stream { return &arrayStream{} }

func (geminiArray) AppendEvents(dst []byte, root strictjson.Value) []byte {
	dst = append(dst, '[')
	dst = append(dst, root.Raw()...)
	return append(dst, "\n]\n"...)
}

// arrayEnd is the name of the event that the end of the array is; it has no data.
const arrayEnd = "]"

// An arrayStream reads the elements of the array.
type arrayStream struct {
	geminiStream
	inside, passed bool // the array: it has begun, and a client has got its beginning
}

func (s *arrayStream) Event(e eventstream.Event) ([]Part, Odd) {
	s.inside = true
	parts, odd := s.geminiStream.Event(e)
	if e.Name == arrayEnd && !e.Odd {
		s.add(Part{Kind: PartEnd})
		parts = s.parts
	}
	return parts, odd
}

// Whole: it is the end of the array that ends the stream.
func (*arrayStream) Whole() bool { return false }

func (s *arrayStream) Passed() { s.passed = s.inside }

func (s *arrayStream) AppendTail(dst []byte, text string) []byte {
	before := byte('[')
	if s.passed {
		before = ','
	}
	return append(s.tail(append(dst, before), text), "\n]\n"...)
}

// errElement is for an element that is longer than its bound.
var errElement = errors.New("format: an element of the stream is too long")

// arraySlack is what an element may be longer than its bound: who bounds all of the answer
// says so first.
const arraySlack = 1 << 10

// An arraySplitter finds the objects in a JSON array that comes in pieces. What stands
// between two of them belongs to the second.
type arraySplitter struct {
	most  int
	in    []byte // not yet part of an event
	at    int    // so much of in has been looked at
	start int    // where the object begins in in; only of one that has begun
	depth int    // of brackets, the array's own included
	text  bool   // at stands in a string
	slash bool   // behind a backslash
	comma bool   // the next object may begin: there was a comma, or nothing before
	ended bool
	odd   bool // what comes is no array of objects: each piece of it is an event that is odd
	err   error
}

func (s *arraySplitter) Feed(p []byte) { s.in = append(s.in, p...) }
func (s *arraySplitter) Rest() []byte  { return s.in }

func (s *arraySplitter) Next() (e eventstream.Event, ok bool, err error) {
	if s.err != nil {
		return e, false, s.err
	}
	if s.odd && len(s.in) > 0 {
		s.at = len(s.in) - 1
		return s.event(eventstream.Event{Odd: true}), true, nil
	}
	for ; s.at < len(s.in); s.at++ {
		c := s.in[s.at]
		switch {
		case s.text:
			s.text = c != '"' || s.slash
			s.slash = c == '\\' && !s.slash
		case s.depth > 1 && c == '"':
			s.text, s.slash = true, false
		case s.depth > 1 && (c == '{' || c == '['):
			s.depth++
		case s.depth > 1 && (c == '}' || c == ']'):
			if s.depth--; s.depth == 1 {
				return s.event(eventstream.Event{Data: bytes.Clone(s.in[s.start : s.at+1]), HasData: true}), true, nil
			}
		case s.depth > 1 || c == ' ' || c == '\t' || c == '\n' || c == '\r':
		case !s.between(c):
			s.odd = true
			return s.Next()
		case s.ended:
			return s.event(eventstream.Event{Name: arrayEnd}), true, nil
		}
	}
	if len(s.in) > s.most+arraySlack {
		s.err = errElement
	}
	return e, false, s.err
}

// between takes a character outside of objects; ok: it may stand there.
func (s *arraySplitter) between(c byte) (ok bool) {
	switch {
	case s.ended:
	case c == '[' && s.depth == 0:
		s.depth, s.comma = 1, true
		return true
	case c == '{' && s.depth == 1 && s.comma:
		s.depth, s.start, s.comma = 2, s.at, false
		return true
	case c == ',' && s.depth == 1 && !s.comma:
		s.comma = true
		return true
	case c == ']' && s.depth == 1:
		s.ended = true
		return true
	}
	return false
}

// event ends an event at the character that is looked at.
func (s *arraySplitter) event(e eventstream.Event) eventstream.Event {
	e.Raw = bytes.Clone(s.in[:s.at+1])
	s.in, s.at, s.start = append(s.in[:0], s.in[s.at+1:]...), 0, 0
	return e
}
