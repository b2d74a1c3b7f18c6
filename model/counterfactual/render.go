// SPDX-License-Identifier: Apache-2.0

package counterfactual

import (
	"errors"
	"slices"
	"strings"

	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// Render is the request that shows the assembly as v says. What v does not touch
// keeps its bytes. In every variant the agent's own text behind the first
// segment is blanked. Its tool calls are kept, but for the arguments that carry text
// of a segment that v does not show as it is.
func (a *Assembly) Render(v Variant) ([]byte, error) {
	if !a.fits(v) {
		return nil, errors.New("counterfactual: render: the variant is not of this assembly")
	}
	v = v.same()
	kept, without := shown(v.Kept, a.parent), v.Without.bySegment()
	var e strictjson.Edits
	size := len(a.src) // of what comes out, roughly
	plain := v.plain(kept)
	for i := range a.slots {
		s := &a.slots[i]
		if s.role == slotCall {
			withoutCarried(&e, s, plain)
			continue
		}
		if !s.isText() || s.block != "" && s.role == slotAgent {
			switch {
			case !s.withheld(kept, v.MaskUser):
			case s.block == "":
				e.Remove(s.v)
			default:
				e.Replace(s.v, []byte(s.block))
			}
			continue
		}
		if was, text := s.reads(), a.text(s, kept, without, v); text != was {
			if s.v.Kind() == '"' {
				e.ReplaceText(s.v, text)
			} else {
				e.Replace(s.v, []byte(s.whole.JSON(text)))
			}
			size += len(text) - len(was)
		}
	}
	for _, d := range a.drops {
		e.Remove(d)
	}
	if v.Order != 0 {
		return a.reordered(&e, v.Order)
	}
	return e.Apply(make([]byte, 0, max(size, 0)), a.doc.Root()), nil
}

func (a *Assembly) fits(v Variant) bool {
	all := AllOf(len(a.Segments))
	if !all.Contains(v.Kept) || !all.Contains(v.Weak) || v.Level > LevelWithheld {
		return false
	}
	without, err := v.Without.List()
	return err == nil && (v.Span == (Span{}) || a.within(v.Span)) &&
		!slices.ContainsFunc(without, func(s Span) bool { return !a.within(s) })
}

// within reports whether a span is a piece of a segment whose text stands in one place.
func (a *Assembly) within(s Span) bool {
	return s.Segment >= 0 && s.Segment < len(a.Segments) && a.single(s.Segment) &&
		0 <= s.Start && s.Start < s.End && s.End <= len(a.Segments[s.Segment].Text)
}

// single reports whether a segment's text stands in one place.
func (a *Assembly) single(segment int) bool { return a.places[segment] == 1 }

// withheld is for slots that are replaced whole.
func (s *slot) withheld(kept Set, maskUser bool) bool {
	switch s.role {
	case slotAgent:
		return true
	case slotTask:
		return maskUser
	}
	return !kept.Has(s.pieces[0].segment)
}

// text is what a slot reads in a variant.
func (a *Assembly) text(s *slot, kept Set, without map[int][]Span, v Variant) string {
	if s.role == slotAgent {
		return agentPlaceholder
	}
	text := s.reads()
	if len(s.pieces) == 1 { // as most are: nothing is copied
		return a.piece(s, s.pieces[0], text, kept, without, v)
	}
	var b strings.Builder
	masked := false
	for _, p := range s.pieces {
		if p.segment < 0 && s.role == slotTask && v.MaskUser {
			if masked {
				continue
			}
			masked = true
		}
		b.WriteString(a.piece(s, p, text[p.start:p.end], kept, without, v))
	}
	return b.String()
}

// piece is what one piece of a slot, which reads part, reads in a variant.
func (a *Assembly) piece(s *slot, p piece, part string, kept Set, without map[int][]Span, v Variant) string {
	switch {
	case p.segment < 0 && s.role == slotTask && v.MaskUser:
		return taskPlaceholder
	case p.segment < 0:
		return part
	case !kept.Has(p.segment):
		return Placeholder
	case v.Span.Segment == p.segment && v.Span.End > 0:
		return excerpt(a.Segments[p.segment].Text, v.Span)
	case len(without[p.segment]) > 0:
		part = cut(a.Segments[p.segment].Text, without[p.segment])
	case v.Weak.Has(p.segment) && a.single(p.segment):
		part = a.Segments[p.segment].Text
	}
	if v.Weak.Has(p.segment) {
		return attenuate(part, v.Level)
	}
	return part
}

// excerpt is the span of a text, with placeholders where something is left out.
func excerpt(text string, s Span) string {
	out := text[s.Start:s.End]
	if s.Start > 0 {
		out = Placeholder + "\n" + out
	}
	if s.End < len(text) {
		out += "\n" + Placeholder
	}
	return out
}

// reordered is the request with edits e and the rounds in the order of a seed. Only
// neighbours change places, so the user's turns stay between the same rounds; where
// there is nothing but one round, its results do.
func (a *Assembly) reordered(e *strictjson.Edits, seed uint64) ([]byte, error) {
	if a.list.Kind() != '[' {
		return e.Apply(nil, a.doc.Root()), nil
	}
	elements := slices.Collect(a.list.Elements())
	order := a.permutation(len(elements), seed)
	gone := make(map[strictjson.Value]bool, len(a.drops))
	for _, v := range a.drops {
		gone[v] = true
	}
	list := []byte{'['}
	for _, i := range order {
		if gone[elements[i]] {
			continue
		}
		if len(list) > 1 {
			list = append(list, ',')
		}
		list = e.Apply(list, elements[i])
	}
	list = append(list, ']')
	if a.list == a.doc.Root() {
		return list, nil
	}
	e.Replace(a.list, list)
	return e.Apply(make([]byte, 0, len(a.src)), a.doc.Root()), nil
}

// permutation is the order of n elements of the list that a seed gives.
func (a *Assembly) permutation(n int, seed uint64) []int {
	d := draw(seed)
	order := make([]int, 0, n)
	at := 0
	for _, neighbours := range a.rounds {
		for at < neighbours[0].start {
			order = append(order, at)
			at++
		}
		perm := slices.Clone(neighbours)
		d.shuffle(len(perm), func(i, j int) { perm[i], perm[j] = perm[j], perm[i] })
		for _, r := range perm {
			for i := r.start; i < r.end; i++ {
				order = append(order, i)
			}
		}
		at = neighbours[len(neighbours)-1].end
	}
	for ; at < n; at++ {
		order = append(order, at)
	}
	return order
}

// A Manifest is everything that it takes to rebuild a variant out of its assembly.
type Manifest struct {
	Assembly  string  `json:"assembly"` // Assembly.ID
	Transform string  `json:"transform"`
	Variant   Variant `json:"variant"`
}

// Manifest describes v.
func (a *Assembly) Manifest(v Variant) Manifest {
	return Manifest{Assembly: a.id, Transform: TransformVersion, Variant: v}
}

// Rebuild makes the bytes that m describes.
func (a *Assembly) Rebuild(m Manifest) ([]byte, error) {
	if m.Assembly != a.id {
		return nil, errors.New("counterfactual: rebuild: the manifest is of another assembly")
	}
	if m.Transform != TransformVersion {
		return nil, errors.New("counterfactual: rebuild: the manifest is of another version")
	}
	return a.Render(m.Variant)
}
