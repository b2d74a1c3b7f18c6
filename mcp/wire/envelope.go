// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"

	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// envelopeScan finds the id and the shape of a message that could not be
// parsed, because it is broken or too long to be held, so that the request
// with that id gets an answer. It takes the text in pieces, keeps a few hundred bytes,
// and believes nothing: a message with two ids has no id.
type envelopeScan struct {
	depth        int
	inString     bool
	escaped      bool
	expectName   bool // at depth 1, the next string is a member's name
	taking       bool // bytes go to taken
	over         bool // taken is full
	dead         bool // not an object, or past its end
	taken        []byte
	name         string
	id           []byte
	ids          int
	method, resp bool
	failed       bool
}

const maxTaken = 2*maxIDBytes + 2

func (s *envelopeScan) feed(b []byte) {
	for i := 0; i < len(b) && !s.dead; i++ {
		c := b[i]
		if s.inString {
			if !s.taking && !s.escaped { // skip what is of no interest
				j := bytes.IndexAny(b[i:min(len(b), i+512)], "\"\\")
				if j < 0 {
					i = min(len(b), i+512) - 1
					continue
				}
				i += j
				c = b[i]
			}
			s.take(c)
			switch {
			case s.escaped:
				s.escaped = false
			case c == '\\':
				s.escaped = true
			case c == '"':
				s.inString = false
				if s.expectName && s.depth == 1 {
					s.endName()
				}
			}
			continue
		}
		s.structural(c)
	}
}

func (s *envelopeScan) take(c byte) {
	if !s.taking {
		return
	}
	if len(s.taken) >= maxTaken {
		s.over = true
		return
	}
	s.taken = append(s.taken, c)
}

func (s *envelopeScan) structural(c byte) {
	switch c {
	case '"':
		s.inString = true
		if s.depth == 1 && s.expectName {
			s.taken, s.taking, s.over = s.taken[:0], true, false
			return
		}
		s.take(c)
	case '{', '[':
		s.taking = false // an id is no container
		s.depth++
		if s.depth == 1 {
			s.expectName, s.dead = true, c == '['
		}
	case '}', ']':
		if s.depth == 1 {
			s.endValue()
			s.dead = true
		}
		s.depth--
	case ',':
		if s.depth == 1 {
			s.endValue()
			s.expectName = true
		}
	case ':':
		if s.depth == 1 {
			s.expectName = false
			s.taken, s.over = s.taken[:0], false
			s.taking = s.name == "id"
		}
	default:
		s.take(c)
	}
}

func (s *envelopeScan) endName() {
	s.taking, s.expectName = false, false
	s.name = string(bytes.TrimSuffix(s.taken, []byte{'"'}))
	switch s.name {
	case "method":
		s.method = true
	case "result":
		s.resp = true
	case "error":
		s.failed = true
	}
}

func (s *envelopeScan) endValue() {
	if s.taking && !s.over {
		s.ids++
		s.id = append(s.id[:0], s.taken...)
	}
	s.taking = false
}

// envelope is what was found. The shape is a guess: the text was never valid.
func (s *envelopeScan) envelope() (id ID, k Kind) {
	if s.ids == 1 {
		var doc strictjson.Doc
		if doc.Reset(s.id, strictjson.Limits{}) == nil {
			id, _ = IDOf(doc.Root())
		}
	}
	switch {
	case s.method && s.ids > 0:
		return id, Request
	case s.method:
		k = Notification
	case s.failed:
		k = ErrorResponse
	case s.resp:
		k = Response
	}
	return id.asRequestID(), k
}
