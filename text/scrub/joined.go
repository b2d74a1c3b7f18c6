// SPDX-License-Identifier: Apache-2.0

package scrub

import (
	"slices"
	"strings"
)

// A Span is a part of one of several texts.
type Span struct {
	Part       int // which text
	Start, End int // bytes of it
}

// Joined finds control tokens, and references to hidden characters, that are
// whole only when the texts stand one behind the other, as a client lays adjacent
// blocks before a model. It returns what to remove of each, in order; a token
// within one text is not its business: Scrub each first. spec: scrub/4.5
func (s *Scrubber) Joined(parts []string) []Span {
	var r Result
	events := s.joint(parts, &r)
	var spans []Span
	part, from := 0, 0
	for _, e := range events {
		for start := e.Start; start < e.End; {
			for start >= from+len(parts[part]) {
				from += len(parts[part])
				part++
			}
			end := min(e.End, from+len(parts[part]))
			spans = append(spans, Span{part, start - from, end - from})
			start = end
		}
	}
	return spans
}

// joint returns the removals of the joined text that cross from one part into
// another.
func (s *Scrubber) joint(parts []string, r *Result) []Edit {
	if s.p.Profile > Faithful || s.p.ControlTokens == KeepTokens {
		return nil
	}
	text := strings.Join(parts, "")
	if plain(text, len(text), s.p.Tokens) {
		return nil
	}
	ends := make([]int, len(parts))
	for i, n := 0, 0; i < len(parts); i++ {
		n += len(parts[i])
		ends[i] = n
	}
	p := pass{policy: &s.p, r: r, text: text, ends: ends, action: RemoveTokens}
	for n := 0; n <= maxPasses; n++ {
		p.facts, p.again = survey(p.text, nil), false
		if s.p.Profile == MCP {
			p.apply(&stepReferences)
		} else {
			p.apply(&stepCodedReferences)
		}
		p.apply(&stepTokens) // a token of several texts is removed: no text could restore it
		if !p.again {
			break
		}
	}
	return slices.DeleteFunc(slices.Clone(r.Edits), func(e Edit) bool {
		i, _ := slices.BinarySearch(ends, e.Start+1)
		return e.Class != SplitToken && (i == len(ends) || ends[i] >= e.End)
	})
}

// ScrubAll scrubs parts that will stand one behind the other, and removes what
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
			s.removeSpans(&rs[i], spans[:n])
			clean[i] = rs[i].Clean.s
			spans = spans[n:]
		}
	}
}

// removeSpans removes parts of a clean text, and cleans what that leaves. The text was
// counted for its item before.
func (s *Scrubber) removeSpans(r *Result, spans []Span) {
	item := r.Item
	r.Item = nil
	defer func() { r.Item = item }()
	p := pass{policy: &s.p, r: r, text: r.Clean.s}
	p.begin()
	for _, x := range spans {
		r.ed.drop(x.Start, x.End, SplitToken)
		r.Tokens++
	}
	p.end()
	s.run(p.text, r, false)
}
