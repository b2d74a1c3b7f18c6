// SPDX-License-Identifier: Apache-2.0

package counterfactual

import (
	"slices"

	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// An agent that writes the text of a page into a note carries the text on: it stands in the
// arguments of the call, the tool's answer may repeat it, and the note can be read again. A
// variant without the page has to be one without all of these.
const (
	carryStep  = 8       // one in so many runs of an argument is looked up: 31 letters are always found
	maxCarried = 1 << 20 // bytes of arguments that are looked into; the rest is taken to carry everything
	// maxHolders is how many segments that hold one run are told apart: what more of them share
	// is their form.
	maxHolders = 64
	maxParents = 16 // of one segment
)

// A made is a tool call of the context.
type made struct {
	args   strictjson.Value // what the agent wrote
	inner  strictjson.Value // the document that args, a string, holds
	before int              // how many segments stand before the call
	leaves []leaf
}

// A leaf is a string in the arguments of a call.
type leaf struct {
	v  strictjson.Value
	of Set // segments before the call of which it holds text
	// all: it was not looked into, or what it holds stands in very many segments. of is
	// everything before the call then, and no edge is made.
	all bool
}

// carrying finds what the calls hold of segments.
type carrying struct {
	r      *reader
	size   int
	filter [1 << 10]uint64 // of the keys of index
	index  map[uint64]*run
}

// A run is printLength letters of arguments.
type run struct {
	segments []int // that hold it
	many     bool  // there are more
}

// carry finds what the arguments of calls hold of the segments before them, and makes the
// edges that follow. Its time and memory grow with the bytes of the context.
func (r *reader) carry() {
	c := &carrying{r: r, index: map[uint64]*run{}}
	for i := range r.made {
		c.call(&r.made[i])
	}
	if len(c.index) > 0 {
		for _, trusted := range []string{r.a.Task, r.a.Instructions} {
			runs(trusted, func(h uint64, _ bool) { delete(c.index, h) })
		}
		for i := range r.a.Segments {
			c.segment(i)
		}
	}
	parents := make([]parentage, len(r.a.Segments))
	for i := range r.made {
		c.trace(&r.made[i], parents)
	}
	for i := range r.a.Segments {
		if m := r.a.Segments[i].made; m > 0 {
			for _, l := range r.made[m-1].leaves {
				parents[i].add(l, false)
			}
		}
		r.a.Edges = append(r.a.Edges, parents[i].edges(i)...)
	}
}

// call takes the strings in the arguments of a call.
func (c *carrying) call(m *made) {
	if m.before == 0 || !m.args.Exists() {
		return
	}
	args := m.args
	if m.inner = within(args); m.inner.Exists() {
		args = m.inner
	}
	whole := false // a name that is a text: no tool has such an argument
	eachString(args, func(v strictjson.Value, name bool) {
		runs(v.Text(), func(_ uint64, words bool) { whole = whole || name && words })
	})
	if whole {
		m.leaves = []leaf{{v: m.args}}
		c.put(&m.leaves[0])
		return
	}
	eachString(args, func(v strictjson.Value, name bool) {
		if l := (leaf{v: v}); !name && c.put(&l) {
			m.leaves = append(m.leaves, l)
		}
	})
}

// within is the document that a string holds, if it holds an object or a list.
func within(v strictjson.Value) (root strictjson.Value) {
	doc := new(strictjson.Doc)
	if v.Kind() == '"' && doc.Reset([]byte(v.Text()), strictjson.Limits{}) == nil && (doc.Root().Kind() == '{' || doc.Root().Kind() == '[') {
		return doc.Root()
	}
	return root
}

// eachString calls f with every string under v, names of members too.
func eachString(v strictjson.Value, f func(v strictjson.Value, name bool)) {
	switch v.Kind() {
	case '"':
		f(v, false)
	case '{':
		for name, val := range v.Members() {
			f(name, true)
			eachString(val, f)
		}
	case '[':
		for e := range v.Elements() {
			eachString(e, f)
		}
	}
}

// put indexes a leaf; false if it is too short to carry anything.
func (c *carrying) put(l *leaf) (kept bool) {
	text := written(l.v)
	if len(text) < printLength {
		return false
	}
	if c.size += len(text); c.size > maxCarried {
		l.all = true
		return true
	}
	sampled(text, func(h uint64) {
		kept = true
		if c.index[h] == nil {
			c.index[h] = &run{}
			c.filter[h>>54] |= 1 << (h >> 48 & 63)
		}
	})
	return kept
}

// segment notes which runs segment i holds.
func (c *carrying) segment(i int) {
	runs(c.r.a.Segments[i].Text, func(h uint64, _ bool) {
		if c.filter[h>>54]>>(h>>48&63)&1 == 0 {
			return
		}
		switch e := c.index[h]; {
		case e == nil, len(e.segments) > 0 && e.segments[len(e.segments)-1] == i:
		case len(e.segments) < maxHolders:
			e.segments = append(e.segments, i)
		default:
			e.many = true
		}
	})
}

// trace says what each leaf of a call carries, and notes who repeats it.
func (c *carrying) trace(m *made, parents []parentage) {
	for i := range m.leaves {
		l := &m.leaves[i]
		var of setBuilder
		repeats := map[int]bool{}
		if !l.all {
			sampled(written(l.v), func(h uint64) {
				e := c.index[h]
				if e == nil {
					return
				}
				for _, s := range e.segments {
					if s < m.before {
						of.add(s)
					} else {
						repeats[s] = true
					}
				}
				l.all = l.all || e.many && e.segments[0] < m.before
			})
			l.of = of.set()
		}
		if l.all {
			l.of = AllOf(m.before)
			continue
		}
		for s := range repeats {
			parents[s].add(*l, true)
		}
	}
	c.r.withhold(m)
}

// A parentage is what a segment came of.
type parentage struct {
	of     []int
	copied bool // the text of a call stands in it
}

func (p *parentage) add(l leaf, copied bool) {
	if l.all || l.of == "" {
		return
	}
	p.copied = p.copied || copied
	for i := range l.of.Places() {
		if len(p.of) < maxParents && !slices.Contains(p.of, i) {
			p.of = append(p.of, i)
		}
	}
}

func (p *parentage) edges(to int) []Edge {
	kind := EdgeDerived
	switch {
	case len(p.of) > 1:
		kind = EdgeComposed
	case p.copied:
		kind = EdgeCopied
	}
	var out []Edge
	for _, from := range slices.Sorted(slices.Values(p.of)) {
		out = append(out, Edge{kind, from, to})
	}
	return out
}

// withhold makes slots of what a call carries.
func (r *reader) withhold(m *made) {
	m.leaves = slices.DeleteFunc(m.leaves, func(l leaf) bool { return l.of == "" })
	if len(m.leaves) == 0 {
		return
	}
	if m.args.Kind() == '"' { // one string, whatever it holds
		r.a.slots = append(r.a.slots, slot{v: m.args, role: slotCall, carried: m.leaves, inner: m.inner})
		return
	}
	for i := range m.leaves {
		r.a.slots = append(r.a.slots, slot{v: m.leaves[i].v, role: slotCall, carried: m.leaves[i : i+1]})
	}
}

// withoutCarried edits the arguments of a call that carry what plain does not show.
func withoutCarried(e *strictjson.Edits, s *slot, plain Set) {
	var inner strictjson.Edits
	for _, l := range s.carried {
		switch {
		case plain.Contains(l.of):
		case l.v.Kind() != '"':
			e.Replace(l.v, []byte("{}"))
		case l.v == s.v:
			e.ReplaceText(l.v, agentPlaceholder)
		default:
			inner.ReplaceText(l.v, agentPlaceholder)
		}
	}
	if inner.Len() > 0 {
		e.ReplaceText(s.v, string(inner.Apply(nil, s.inner)))
	}
}

// sampled calls f with one in carryStep of the runs of text that are words.
func sampled(text string, f func(h uint64)) {
	n := 0
	runs(text, func(h uint64, words bool) {
		if !words {
			return
		}
		if n%carryStep == 0 {
			f(h)
		}
		n++
	})
}

// runs calls f with the hash of each run of printLength letters and digits, ASCII letters
// folded and everything else left out. words: it is part of a text, not of a path or an
// identifier: white space stands in it twice, or half of it is not ASCII.
func runs(text string, f func(h uint64, words bool)) {
	const ringSize = 32 // a power of two, at least printLength
	var (
		ring         [ringSize]byte
		gaps         [ringSize]int // 1: white space stands before the letter
		h            uint64
		n, gap       int
		spaces, wide int
	)
	for i := range len(text) {
		c := letter(text[i])
		if c == 0 {
			if b := text[i]; b == ' ' || b == '\n' || b == '\t' || b == '\r' {
				gap = 1
			}
			continue
		}
		h = h*printBase + uint64(c)
		if n >= printLength {
			old := ring[(n-printLength)%ringSize]
			h -= printOut * uint64(old)
			wide -= int(old >> 7)
			spaces -= gaps[(n-printLength+1)%ringSize]
		}
		ring[n%ringSize], gaps[n%ringSize] = c, gap
		wide += int(c >> 7)
		if n > 0 {
			spaces += gap
		}
		gap = 0
		if n++; n >= printLength {
			f(mix(h), spaces >= 2 || wide >= printLength/2)
		}
	}
}
