// SPDX-License-Identifier: Apache-2.0

package format

import (
	"cmp"
	"strings"

	"github.com/pellucid-mcp/pellucid/text/eventstream"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// events is what the streams of all formats have in common.
type events struct {
	fields
	parts []Part // of the event that is being read

	answer Answer
	texts  [PartRefusal + 1]strings.Builder // by kind
	calls  []*call
	kept   [2]int // bytes: of texts, of arguments
}

// A call is one whose arguments may still be coming in.
type call struct {
	Call
	arguments strings.Builder
}

func (c *call) whole() Call {
	w := c.Call
	w.Arguments = []byte(cmp.Or(c.arguments.String(), "{}"))
	return w
}

// begin starts an event: whether it has data, and what stands in it. Without data it is
// a comment or a sign of life.
func (s *events) begin(e eventstream.Event) bool {
	s.odd, s.parts = 0, s.parts[:0]
	if e.Odd {
		s.odd = OddCall
	}
	return s.odd == 0 && e.HasData
}

// data reads the object that the data of an event is.
func (s *events) data(data []byte) strictjson.Value {
	v := Parse(data)
	if !v.Exists() {
		s.odd |= OddCall
	}
	return v
}

// typed reads the data of an event that says its type itself, under one of names.
func (s *events) typed(e eventstream.Event, names ...string) (v strictjson.Value, kind string) {
	v = s.data(e.Data)
	kind = s.text(v, "type")
	s.strays(v, names...)
	if e.Name != "" && e.Name != kind {
		s.odd |= OddCall
	}
	return v, kind
}

func (s *events) add(p Part) { s.parts = append(s.parts, p) }

// say takes in a piece of a text.
func (s *events) say(kind PartKind, text string) {
	if text == "" {
		return
	}
	keep := text[:min(len(text), max(MaxKept-s.kept[0], 0))]
	s.kept[0] += len(keep)
	s.texts[kind].WriteString(keep)
	s.add(Part{Kind: kind, Text: text})
}

// call takes in a call that begins; nil if there are too many.
func (s *events) call(c Call) *call {
	if len(s.calls) == MaxCalls {
		s.odd |= OddCall
		return nil
	}
	p := &call{Call: c}
	s.calls = append(s.calls, p)
	s.add(Part{Kind: PartCall, Index: len(s.calls) - 1, Call: c})
	return p
}

// argue takes in a piece of the arguments of call i.
func (s *events) argue(i int, text string) {
	if text == "" {
		return
	}
	if s.keep(text) {
		s.calls[i].arguments.WriteString(text)
		s.add(Part{Kind: PartArguments, Index: i, Text: text})
	}
}

// keep reports whether there is room for a piece of arguments.
func (s *events) keep(text string) bool {
	if s.kept[1] += len(text); s.kept[1] > MaxKept {
		s.odd |= OddCall
		return false
	}
	return true
}

// Whole: most formats have an event that ends the stream.
func (s *events) Whole() bool { return false }

// once keeps the first text that is not empty. Another one later is another answer's.
func (s *events) once(have *string, got string) {
	if *have == "" {
		*have = got
	}
	if got != "" && got != *have {
		s.odd |= OddShape
	}
}

// stop keeps why the answer ended.
func (s *events) stop(reason string, of func(string) Stop) {
	if reason == "" {
		return
	}
	if s.answer.Stop != "" && s.answer.Stop != of(reason) {
		s.odd |= OddShape
	}
	s.answer.Stop = of(reason)
}

// whole is the answer as far as it was read.
func (s *events) whole() *Answer {
	a := s.answer
	a.Parts = nil
	for _, k := range []PartKind{PartReasoning, PartText, PartRefusal} {
		if t := s.texts[k].String(); t != "" {
			a.Parts = append(a.Parts, Part{Kind: k, Text: t, Paragraph: true})
		}
	}
	for i, c := range s.calls {
		a.Parts = append(a.Parts, Part{Kind: PartCall, Index: i, Call: c.whole()})
	}
	return &a
}
