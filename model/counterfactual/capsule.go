// SPDX-License-Identifier: Apache-2.0

package counterfactual

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// A Capsule is a group of segments that moves together, with what must hold while
// it is in a context. The zero value of each condition asks for nothing.
type Capsule struct {
	ID              string
	ForbiddenTopics []string // words or phrases that neither its text nor the answer may hold
	Clearance       int      // that the reader has to have
	OutputSchema    []byte   // JSON Schema that the answer's text must match
	NoExternalCalls bool     // the answer may call no tool
	Expires         int64    // seconds since 1970; 0 = never
}

// A Reader is who is given the context: its clearance, and the time in seconds since 1970.
type Reader struct {
	Clearance int
	Now       int64
}

// A Claim is what somebody who knows a context says of it, beside its bytes. Segments are
// named by their places.
type Claim struct {
	Edges    []Edge
	Capsules []Capsule
	Members  map[int]string // of which capsule a segment is
	Trust    map[int]int    // thousandths
}

// With is the assembly with what is claimed of it.
func (a *Assembly) With(c Claim) (*Assembly, error) {
	b := *a
	b.Segments = slices.Clone(a.Segments)
	b.Edges = slices.Concat(a.Edges, c.Edges)
	b.Capsules = slices.Concat(a.Capsules, c.Capsules)
	for _, i := range slices.Sorted(maps.Keys(c.Members)) {
		if i < 0 || i >= len(b.Segments) {
			return nil, errors.New("counterfactual: link assembly: no such segment")
		}
		if !slices.ContainsFunc(b.Capsules, func(p Capsule) bool { return p.ID == c.Members[i] }) {
			return nil, errors.New("counterfactual: link assembly: no such capsule")
		}
		b.Segments[i].Capsule = c.Members[i]
	}
	for i, weight := range c.Trust {
		if i < 0 || i >= len(b.Segments) {
			return nil, errors.New("counterfactual: link assembly: no such segment")
		}
		b.Segments[i].Trust = min(max(weight, 0), 1000)
	}
	if err := b.seal(); err != nil {
		return nil, err
	}
	return &b, nil
}

// A BreachKind is an invariant of a capsule that does not hold.
type BreachKind string

// The kinds.
const (
	BreachTopic        BreachKind = "forbidden-topic"
	BreachCall         BreachKind = "external-call"
	BreachSchema       BreachKind = "output-schema"
	BreachExpired      BreachKind = "expired"
	BreachClearance    BreachKind = "clearance"
	BreachUnverifiable BreachKind = "output-schema-unverifiable" // no validator was given
)

// A Breach says where an invariant does not hold.
type Breach struct {
	Capsule string
	Kind    BreachKind
	Segment int // its place; -1: the answer, or the capsule as a whole
}

// Breaches holds the context and an answer to it against the capsules that have a segment.
// valid says whether a text matches a JSON Schema; without one a schema cannot be verified, which
// is a breach as well.
func (a *Assembly) Breaches(ans *Answer, r Reader, valid func(schema []byte, text string) bool) []Breach {
	var out []Breach
	for i := range a.Capsules {
		c := &a.Capsules[i]
		add := func(kind BreachKind, segment int) { out = append(out, Breach{c.ID, kind, segment}) }
		inside := false
		for k := range a.Segments {
			if s := &a.Segments[k]; s.Capsule == c.ID {
				inside = true
				if c.forbids(s.Text) {
					add(BreachTopic, k)
				}
			}
		}
		if !inside {
			continue
		}
		if c.Expires != 0 && r.Now >= c.Expires {
			add(BreachExpired, -1)
		}
		if c.Clearance > r.Clearance {
			add(BreachClearance, -1)
		}
		if c.forbids(ans.Text) || slices.ContainsFunc(ans.Calls, func(call Call) bool { return c.breaks(call) == BreachTopic }) {
			add(BreachTopic, -1)
		}
		if c.NoExternalCalls && len(ans.Calls) > 0 {
			add(BreachCall, -1)
		}
		switch {
		case len(c.OutputSchema) == 0:
		case valid == nil:
			add(BreachUnverifiable, -1)
		case !valid(c.OutputSchema, ans.Text):
			add(BreachSchema, -1)
		}
	}
	return out
}

// breaks is what a call breaks of the capsule; "" is nothing.
func (c *Capsule) breaks(call Call) BreachKind {
	switch {
	case c.forbids(shownArguments(call)):
		return BreachTopic
	case c.NoExternalCalls:
		return BreachCall
	}
	return ""
}

// shownArguments is the text of a call's arguments: what stands behind escapes too.
func shownArguments(call Call) string {
	var doc strictjson.Doc
	if doc.Reset(call.Arguments, strictjson.Limits{}) != nil {
		return string(call.Arguments)
	}
	var b strings.Builder
	eachString(doc.Root(), func(v strictjson.Value, _ bool) {
		b.WriteString(v.Text())
		b.WriteByte('\n')
	})
	return b.String()
}

// Breaks is the first capsule with a segment in the context that a call breaks, and how; "" is
// none.
func (a *Assembly) Breaks(call Call) (capsule string, kind BreachKind) {
	for i := range a.Capsules {
		c := &a.Capsules[i]
		if !slices.ContainsFunc(a.Segments, func(s Segment) bool { return s.Capsule == c.ID }) {
			continue
		}
		if kind := c.breaks(call); kind != "" {
			return c.ID, kind
		}
	}
	return "", ""
}

// forbids reports whether text holds a topic that must not be in it.
func (c *Capsule) forbids(text string) bool {
	if len(c.ForbiddenTopics) == 0 {
		return false
	}
	text = " " + strings.Join(words(squeeze(text)), " ") + " "
	return slices.ContainsFunc(c.ForbiddenTopics, func(topic string) bool {
		t := strings.Join(words(squeeze(topic)), " ")
		return t != "" && strings.Contains(text, " "+t+" ")
	})
}
