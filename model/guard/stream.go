// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"io"
	"net/http"
	"slices"

	"github.com/pellucid-mcp/pellucid/model/format"
	"github.com/pellucid-mcp/pellucid/text/eventstream"
)

// stream passes on a stream of events up to the first that proposes a privileged
// call, and from there on what was decided.
func (in *incoming) stream(w http.ResponseWriter) {
	copyHeader(w.Header(), in.resp.Header, true)
	buf := make([]byte, 32<<10)
	s := &flow{in: in, w: w, out: http.NewResponseController(w), read: newReading(in.x.f, in.gate()),
		split: in.x.f.Split(in.g.o.maxAnswer+len(buf), true)} // below, Rest is bounded first
	w.WriteHeader(in.resp.StatusCode)
	for !s.over {
		n, err := in.resp.Body.Read(buf)
		in.alive()
		s.split.Feed(buf[:n])
		e, ok, damaged := s.split.Next()
		for ; ok; e, ok, damaged = s.split.Next() {
			s.event(e)
		}
		s.flush()
		switch {
		case s.over:
		case damaged != nil:
			s.damaged(damaged)
		case s.holds()+len(s.split.Rest()) > in.g.o.maxAnswer || in.reserve(s.holds()+len(s.split.Rest())) != nil:
			s.tooLong()
		case err == io.EOF && s.read.stream.Whole() && len(s.split.Rest()) == 0:
			s.end(eventstream.Event{})
			s.flush()
		case err == io.EOF:
			s.cut()
		case err != nil:
			s.cut()
			in.aborted()
		}
	}
}

// A flow is a stream on its way.
type flow struct {
	in    *incoming
	w     http.ResponseWriter
	out   *http.ResponseController
	read  *reading
	split format.Splitter

	kept    []byte // events that say nothing yet
	held    []byte // events from the first call on
	holding bool
	shown   bool // a part of the answer has gone to the client
	dirty   bool // something is written and not flushed
	over    bool
}

func (s *flow) holds() int { return len(s.kept) + len(s.held) }

func (s *flow) write(b []byte) {
	if len(b) > 0 {
		_, _ = s.w.Write(b) // a client that has gone ends the request's context
		s.dirty = true
	}
}

func (s *flow) flush() {
	if s.dirty {
		_ = s.out.Flush() // as above
		s.dirty = false
	}
}

// event takes one event.
func (s *flow) event(e eventstream.Event) {
	if s.over {
		return // nothing comes behind the end
	}
	is := s.read.event(e)
	enforce := !s.in.g.o.Audit
	switch {
	case is == partFault:
		// Of an answer that has failed nothing more is worth a decision.
		if !s.holding {
			s.write(s.kept)
		}
		s.write(e.Raw)
		s.in.g.counters.exchanged("upstream-fault")
		s.over = true
	case is == partEnd:
		s.end(e)
	case !enforce:
		s.write(e.Raw)
	case is == partHeld || s.holding || s.in.g.o.Buffer:
		s.holding = s.holding || is == partHeld
		s.held = append(s.held, e.Raw...)
	case is == partPreamble && !s.shown:
		s.kept = append(s.kept, e.Raw...)
	default:
		s.shown = s.shown || is == partShown
		s.write(s.kept)
		s.kept = nil
		s.write(e.Raw)
	}
}

// end is the end of the answer, whose last event is last.
func (s *flow) end(last eventstream.Event) {
	s.over = true
	g, a := s.in.g, s.read.answer()
	switch {
	case g.o.Audit:
		s.write(last.Raw)
		if a.decides(g.gate()) {
			g.auditLater(s.in.x, a)
			g.counters.exchanged("audited")
			return
		}
		g.counters.exchanged("forwarded")
	case !a.decides(g.gate()):
		s.release(last.Raw)
		g.counters.exchanged("forwarded")
	default:
		s.held = append(s.held, last.Raw...)
		s.decideHeld(a)
	}
}

// release passes on everything that was held, and last.
func (s *flow) release(last []byte) {
	s.write(s.kept)
	s.write(s.held)
	s.write(last)
	s.kept, s.held = nil, nil
}

// decideHeld decides on the calls that are held.
func (s *flow) decideHeld(a *answer) {
	s.flush()
	in := s.in
	var o decision
	in.beat(s.w, func() { o = in.g.decide(in.r.Context(), in.x, a, !s.shown, false) })
	s.remark(&o)
	switch o.act {
	case forwarded:
		if o.labelled() {
			s.kept, s.held = nil, format.AppendLabelledEvents(nil, in.x.f, slices.Concat(s.kept, s.held), in.x.label(&o), !s.shown)
		}
		s.release(nil)
	case repaired:
		s.answer(in.x.withNotice(o.body), &o)
	default:
		s.refuse(&o)
	}
	s.flush()
	in.g.counters.exchanged(string(o.act))
}

// remark says what was decided, where events have comments: the header has gone already.
func (s *flow) remark(o *decision) {
	if !o.told() {
		return
	}
	line := "pellucid act=" + string(o.act) + " evidence=" + s.in.x.id
	for _, v := range o.verdicts {
		line += " verdict=" + string(v)
	}
	s.write(s.in.x.f.AppendComment(nil, line))
}

// refuse says why nothing more comes: as the end of what was shown, or as an answer
// of its own.
func (s *flow) refuse(o *decision) {
	x := s.in.x
	text := x.refusalText(o)
	if s.shown {
		s.write(format.AppendLabelledEvents(nil, x.f, s.read.tail(text), x.label(o), false))
		return
	}
	s.answer(x.f.AppendText(nil, x.id, x.model, text), o)
}

// answer writes the events of an answer that the guard puts into the place of the provider's.
func (s *flow) answer(body []byte, o *decision) {
	x := s.in.x
	s.write(format.AppendLabelledEvents(nil, x.f, x.f.AppendEvents(nil, format.Parse(body)), x.label(o), true))
}

// cut is a stream that ends without its end. A call in it may not be whole.
func (s *flow) cut() {
	s.over = true
	if !s.holding {
		var rest []byte // of an event: nobody has looked at it
		if s.in.g.o.Audit {
			rest = s.split.Rest()
		}
		s.release(rest)
		s.flush()
		return
	}
	a := s.read.answer()
	a.strange = true
	s.decideHeld(a)
}

// tooLong is a stream of which more would have to be held than there is room for.
func (s *flow) tooLong() {
	s.over = true
	if s.in.g.o.Audit {
		s.passRest()
		return
	}
	a := s.read.answer()
	a.strange = true
	s.decideHeld(a)
}

// damaged is a stream in which no event can be found any more. A client must not take what
// it has got for whole.
func (s *flow) damaged(why error) {
	s.in.g.o.Log.Warn("the provider's stream cannot be read further", "format", s.in.x.f.Name(), "error", why)
	if s.in.g.o.Audit {
		s.over = true
		s.in.g.counters.exchanged("not-inspected")
		s.passRest()
		return
	}
	s.cut()
	s.in.aborted()
}

// passRest passes on what is not read.
func (s *flow) passRest() {
	s.write(s.split.Rest())
	copyFlushed(s.w, s.in.resp.Body, s.in.alive)
}
