// SPDX-License-Identifier: Apache-2.0

package scrub

import (
	"slices"
	"strings"
)

// A Span is a part of one of several texts, and what is to stand in its place.
type Span struct {
	Part       int // which text
	Start, End int // bytes of it
	With       string
}

// Joined finds control tokens, and references to hidden characters, that are
// whole only when the texts stand one behind the other, as a client lays adjacent
// blocks before a model. It returns what to replace in each, in order: a part of a token goes, a
// token that stands in one text and is one because of another text is defused, where s defuses.
// A token within one text is not its business: Scrub each first. spec: scrub/4.5
func (s *Scrubber) Joined(parts []string) []Span {
	var r Result
	edits, out := s.joint(parts, &r)
	var spans []Span
	part, from := 0, 0
	for _, e := range edits {
		for start := e.Start; ; {
			for start >= from+len(parts[part]) {
				from += len(parts[part])
				part++
			}
			end := min(e.End, from+len(parts[part]))
			x := Span{Part: part, Start: start - from, End: end - from}
			if start == e.Start && end == e.End {
				x.With = out[e.Out:e.OutEnd]
			}
			spans = append(spans, x)
			if start = end; start == e.End {
				break
			}
		}
	}
	return spans
}

// joint returns the edits of the joined text that cross from one part into another, and what they
// make of it.
func (s *Scrubber) joint(parts []string, r *Result) (edits []Edit, out string) {
	if s.p.Profile > Faithful || s.p.ControlTokens == KeepTokens {
		return nil, ""
	}
	text := strings.Join(parts, "")
	if plain(text, len(text), s.p.Tokens) {
		return nil, ""
	}
	ends := make([]int, len(parts))
	for i, n := 0, 0; i < len(parts); i++ {
		n += len(parts[i])
		ends[i] = n
	}
	p := pass{policy: &s.p, r: r, text: text, ends: ends, action: s.tokenAction()}
	for n := 0; n <= maxPasses; n++ {
		p.facts, p.again = survey(p.text, nil), false
		if s.p.Profile == MCP {
			p.apply(&stepReferences)
		} else {
			p.apply(&stepCodedReferences)
		}
		p.apply(&stepTokens)
		if !p.again {
			break
		}
	}
	edits = slices.DeleteFunc(slices.Clone(r.Edits), func(e Edit) bool {
		i, _ := slices.BinarySearch(ends, e.Start+1)
		return e.Class != SplitToken && (i == len(ends) || ends[i] >= e.End)
	})
	return edits, p.text
}

// ScrubAll scrubs parts that will stand one behind the other, and replaces what
// Joined finds. It needs a Result for each: len(rs) must be len(parts). Results
// without an Item share one.
func (s *Scrubber) ScrubAll(parts []string, rs []Result) {
	clean := make([]string, len(parts))
	var item Allowance
	for i := range parts {
		own := rs[i].Item
		if own == nil {
			rs[i].Item = &item
		}
		s.Scrub(parts[i], &rs[i])
		clean[i], rs[i].Item = rs[i].Clean.s, own
	}
	for n := 0; n < maxPasses; n++ {
		spans := s.Joined(clean)
		if len(spans) == 0 {
			return
		}
		for len(spans) > 0 {
			i := spans[0].Part
			n := 1
			for n < len(spans) && spans[n].Part == i {
				n++
			}
			s.replaceSpans(clean[i], spans[:n], &rs[i])
			clean[i] = rs[i].Clean.s
			spans = spans[n:]
		}
	}
}

// ScrubAgain cleans a text that s has made, in which spans are replaced. Tokens that were defused
// before stay as they are. The text was counted for its item before.
func (s *Scrubber) ScrubAgain(clean string, spans []Span, r *Result) {
	r.reset()
	s.replaceSpans(clean, spans, r)
}

func (s *Scrubber) replaceSpans(clean string, spans []Span, r *Result) {
	item := r.Item
	r.Item = nil
	defer func() { r.Item = item }()
	p := pass{policy: &s.p, r: r, text: clean}
	p.begin()
	for _, x := range spans {
		r.ed.replace(x.Start, x.End, x.With, SplitToken)
		r.Tokens++
	}
	p.end()
	s.run(p.text, r, false)
}
