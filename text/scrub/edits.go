// SPDX-License-Identifier: Apache-2.0

package scrub

import (
	"sort"
	"unicode/utf8"
)

// An Edit says what became of a part of the input: the bytes [Start, End) are
// in the output the bytes [Out, OutEnd); this range is empty if they were dropped.
// The Edits of one text are sorted and do not overlap, and what stands between
// them is the same in input and output.
type Edit struct {
	Class       Class
	Start, End  int // bytes of the input
	Out, OutEnd int // bytes of the output
}

// Replay applies events to in, taking what replaces a part from out, and reports
// whether that yields out.
func Replay(in, out string, events []Edit) bool {
	pos, at := 0, 0
	for _, e := range events {
		same := e.Start - pos
		if same < 0 || e.End < e.Start || e.End > len(in) ||
			e.Out-at != same || e.OutEnd < e.Out || e.OutEnd > len(out) ||
			in[pos:e.Start] != out[at:e.Out] {
			return false
		}
		pos, at = e.End, e.OutEnd
	}
	return in[pos:] == out[at:]
}

// compose appends to dst the events that lead from before first to after second,
// where first leads from one text to the next and second on from there. An event
// of second that touches what first made becomes one with it.
func compose(dst, first, second []Edit) []Edit {
	c := composer{first: first, second: second}
	for len(c.first) > 0 || len(c.second) > 0 {
		dst = append(dst, c.next())
	}
	return dst
}

type composer struct {
	first, second []Edit
	back, on      int // from an offset in the text between to the input, the output
	end           int // of the stretch of that text which becomes one event
	class         Class
}

// next returns the event made of the next stretch that either list touches.
func (c *composer) next() Edit {
	c.end, c.class = 0, 0
	var e Edit
	if c.firstIsNext() {
		e.Start, e.Out = c.first[0].Out+c.back, c.first[0].Out+c.on
		c.takeFirst()
	} else {
		e.Start, e.Out = c.second[0].Start+c.back, c.second[0].Start+c.on
		c.takeSecond()
	}
	for {
		switch {
		case len(c.first) > 0 && c.first[0].Out < c.end:
			c.takeFirst()
		case len(c.second) > 0 && c.second[0].Start < c.end:
			c.takeSecond()
		default:
			e.End, e.OutEnd, e.Class = c.end+c.back, c.end+c.on, c.class
			return e
		}
	}
}

// firstIsNext: what lies further left goes first; at one place, what is empty in
// the text between.
func (c *composer) firstIsNext() bool {
	if len(c.first) == 0 || len(c.second) == 0 {
		return len(c.second) == 0
	}
	f, s := &c.first[0], &c.second[0]
	return f.Out < s.Start || f.Out == s.Start && (f.Out == f.OutEnd || s.Start < s.End)
}

func (c *composer) takeFirst() {
	f := &c.first[0]
	c.end = max(c.end, f.OutEnd)
	c.back = f.End - f.OutEnd
	if weight(f.Class) > weight(c.class) {
		c.class = f.Class
	}
	c.first = c.first[1:]
}

func (c *composer) takeSecond() {
	s := &c.second[0]
	c.end = max(c.end, s.End)
	c.on = s.OutEnd - s.End
	if weight(s.Class) >= weight(c.class) {
		c.class = s.Class
	}
	c.second = c.second[1:]
}

// weight ranks classes for an event that two steps made: what was hidden or
// claimed to be syntax tells more than that it was also normalised.
func weight(c Class) int {
	switch {
	case c == 0:
		return 0
	case c == NFKC:
		return 1
	case c == NFKCLossy, c == LineBreak, c == OddSpace:
		return 2
	case c.Hidden():
		return 3
	}
	return 4
}

// follows reports whether e and what stands before it are one event.
func (e *Edit) follows(before *Edit) bool {
	return e.Class == before.Class && e.Start == before.End && e.Out == before.OutEnd
}

// joinNeighbours makes one event of neighbours of one class, in place. It comes
// last: were they one event while steps go on, a step that touches the end of a run
// would take all of it.
func joinNeighbours(events []Edit) []Edit {
	joined := events[:0]
	for _, e := range events {
		if n := len(joined); n > 0 {
			if l := &joined[n-1]; e.follows(l) {
				l.End, l.OutEnd = e.End, e.OutEnd
				continue
			}
		}
		joined = append(joined, e)
	}
	return joined
}

// An Entry stands for Count events from the first's Start to the last's End.
type Entry struct {
	Edit
	Count int
}

// MaxEntries is the number of entries that a record may hold for one field.
const MaxEntries = 256

// Merge appends at most MaxEntries entries for events to dst: neighbours become
// one; of what is over, the last entry covers the whole range and the count, under
// the class of its first event.
func Merge(dst []Entry, events []Edit) []Entry {
	from := len(dst)
	for _, e := range events {
		if n := len(dst); n > from {
			l := &dst[n-1]
			if n-from == MaxEntries || l.End == e.Start && l.Class == e.Class {
				l.End, l.OutEnd = e.End, e.OutEnd
				l.Count++
				continue
			}
		}
		dst = append(dst, Entry{e, 1})
	}
	return dst
}

// An editor rewrites one text into the next and records how. A step goes through
// the text from left to right and says what to replace.
type editor struct {
	in     string
	out    []byte
	done   int // bytes of in that are in out or were replaced
	events []Edit
}

func (ed *editor) begin(in string) {
	ed.in, ed.out, ed.done, ed.events = in, ed.out[:0], 0, ed.events[:0]
}

// replace puts with in the place of in[start:end]. start must not lie before the
// end of the last replacement.
func (ed *editor) replace(start, end int, with string, c Class) {
	at := ed.copy(start)
	ed.out = append(ed.out, with...)
	ed.recordEdit(c, start, end, at)
}

// drop removes in[start:end].
func (ed *editor) drop(start, end int, c Class) { ed.replace(start, end, "", c) }

// copy takes over what stands before start, and returns where the output ends.
func (ed *editor) copy(start int) int {
	ed.out = append(ed.out, ed.in[ed.done:start]...)
	return len(ed.out)
}

// recordEdit records that in[start:end] has become out[at:].
func (ed *editor) recordEdit(c Class, start, end, at int) {
	ed.add(Edit{c, start, end, at, len(ed.out)})
	ed.done = end
}

// A text of very many changes is recorded coarsely behind the first of them, so that the
// record costs no more than a small multiple of the text: 4,096 events of 40 bytes, or one for
// each 32 bytes of a longer text.
const (
	manyEvents    = 4096
	bytesPerEvent = 32
)

// add records e. A removal behind another one of its class is one event with it: a later step
// takes all of what stands at one place of its input, or nothing.
func (ed *editor) add(e Edit) {
	if n := len(ed.events); n > 0 {
		l := &ed.events[n-1]
		switch {
		case e.follows(l) && l.Out == l.OutEnd && e.Out == e.OutEnd:
			l.End = e.End
			return
		case n >= max(manyEvents, len(ed.in)/bytesPerEvent):
			l.End, l.OutEnd = e.End, e.OutEnd
			if weight(e.Class) > weight(l.Class) {
				l.Class = e.Class
			}
			return
		}
	}
	ed.events = append(ed.events, e)
}

// noteApart records the same as a removal and an insertion for each character, so
// that a later step which takes some of them leaves an event of class c.
func (ed *editor) noteApart(c Class, start, end, at int) {
	ed.add(Edit{c, start, end, at, at})
	for at < len(ed.out) {
		_, w := utf8.DecodeRune(ed.out[at:])
		ed.add(Edit{c, end, end, at, at + w})
		at += w
	}
	ed.done = end
}

// finish returns the new text, in memory of its own.
func (ed *editor) finish() string {
	ed.copy(len(ed.in))
	ed.done = len(ed.in)
	return string(ed.out)
}

// sourceOf returns the bytes of the input that [start, end) of the output comes
// from: all those of every event that made a part of it.
func sourceOf(events []Edit, start, end int) (from, to int) {
	n := sort.Search(len(events), func(i int) bool { return events[i].OutEnd > start })
	switch {
	case n < len(events) && events[n].Out <= start:
		for n > 0 && events[n].apartFrom(&events[n-1]) {
			n--
		}
		from = events[n].Start
	case n > 0:
		from = start + events[n-1].End - events[n-1].OutEnd
	default:
		from = start
	}
	n = sort.Search(len(events), func(i int) bool { return events[i].Out >= end })
	switch {
	case n > 0 && end <= events[n-1].OutEnd:
		to = events[n-1].End
	case n > 0:
		to = end + events[n-1].End - events[n-1].OutEnd
	default:
		to = end
	}
	return from, to
}

// apartFrom reports whether e is an insertion that noteApart put behind before.
func (e *Edit) apartFrom(before *Edit) bool {
	return e.Start == e.End && e.follows(before)
}
