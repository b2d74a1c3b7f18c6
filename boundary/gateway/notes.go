// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"strconv"

	"github.com/pellucid-mcp/pellucid/boundary/policy"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/frame"
)

// noteEvents notes what the last scrub did, and what it saw and left.
func (w *walker) noteEvents() {
	for _, e := range w.res.Edits {
		w.addFinding(e.Class.Code(), 1, &frame.Span{Start: e.Start, End: e.End})
	}
	w.credentials = append(w.credentials, w.res.Credentials...)
	for _, n := range w.res.Notes {
		w.addFinding(n.Class.Code(), n.Count, &frame.Span{Start: n.Start, End: n.End})
	}
}

// addFinding adds to the findings of the place where the walker stands.
func (w *walker) addFinding(code finding.Code, n int, at *frame.Span) {
	if len(w.found) >= maxFields {
		w.foundMore = addCount(w.foundMore, code, n)
		return
	}
	w.addFindingIn(w.place(), code, n, at)
}

// addFindingAt adds one finding to those of a place that is spelled already.
func (w *walker) addFindingAt(field string, code finding.Code) {
	if len(w.found) >= maxFields {
		w.foundMore = addCount(w.foundMore, code, 1)
		return
	}
	w.addFindingIn(field, code, 1, nil)
}

func (w *walker) addFindingIn(field string, code finding.Code, n int, at *frame.Span) {
	for i := len(w.found) - 1; ; i-- {
		if i < 0 || w.found[i].Field != field {
			w.found = append(w.found, frame.Finding{Field: field, Code: code})
			i = len(w.found) - 1
		} else if w.found[i].Code != code {
			continue
		}
		f := &w.found[i]
		f.Count += n
		if at != nil {
			f.Positions = addSpan(f.Positions, *at)
		}
		return
	}
}

// findings adds to list how often each code was noted, wherever.
func (w *walker) findings(list []policy.Count) []policy.Count {
	for _, f := range w.found {
		list = addCount(list, f.Code, f.Count)
	}
	for _, c := range w.foundMore {
		list = addCount(list, c.Code, c.N)
	}
	return list
}

// addSpan adds a position; the last of those that are kept covers the rest.
func addSpan(list []frame.Span, s frame.Span) []frame.Span {
	if n := len(list); n > 0 && (list[n-1].End == s.Start || n == frame.MaxPositions) {
		list[n-1].End = max(list[n-1].End, s.End)
		return list
	}
	return append(list, s)
}

// skip notes that the value where the walker stands passed without a look inside.
func (w *walker) skip(why finding.Code) {
	w.uninspected = addCount(w.uninspected, why, 1)
	if len(w.notInspected) < maxFields {
		w.notInspected = append(w.notInspected, frame.NotInspected{Field: w.place(), Reason: why})
	}
}

// place spells the path: names of the table as they are, others as #ordinal,
// elements by their index.
func (w *walker) place() string { return w.spell(false) }

// spell is place, or with delivered the place of an element in what is delivered.
func (w *walker) spell(delivered bool) string {
	var b []byte
	for i, s := range w.path {
		if i > 0 {
			b = append(b, '/')
		}
		if s.name != "" {
			b = append(b, s.name...)
			continue
		}
		if !s.element { // a name that a third party chose
			b = append(b, '#')
		}
		if delivered {
			s.ordinal -= s.cut
		}
		b = strconv.AppendInt(b, int64(s.ordinal), 10)
	}
	return string(b)
}
