// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/pellucid-mcp/pellucid/model/counterfactual"
	"github.com/pellucid-mcp/pellucid/model/delegation"
	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// A shownCall is what a reviewer sees of a call.
type shownCall struct {
	Tool    string             `json:"tool"`
	Verdict delegation.Verdict `json:"verdict,omitempty"`
	// Rules are what the operator's rules about values say.
	Rules     []string        `json:"rules,omitempty"`
	Arguments []shownArgument `json:"arguments"`
	// Approval is the digest under which an approval of the call is looked for: see
	// hold.Approvals.Remember. "": it cannot be approved.
	Approval string `json:"approval,omitempty"`
}

type shownArgument struct {
	Name  string   `json:"name"`
	Value string   `json:"value"`          // canonical
	From  []string `json:"from,omitempty"` // where it stands: "user", or sources of segments
	// Instead is the value that the model gives if it does not see this one.
	Instead []string `json:"instead,omitempty"`
}

// A ContextSegment is what a reviewer sees of a piece of the context. Text is third-party text.
type ContextSegment struct {
	ID     string `json:"id"`
	Source string `json:"source"`
	Bytes  int    `json:"bytes"`
	Text   string `json:"text,omitempty"` // the beginning of it
}

// Bounds of the context that is kept with a held call, in bytes of text.
const (
	maxSegment = 16 << 10
	maxContext = 256 << 10
)

// context is the document of what the model has read; nil: it is not kept.
func (d *decider) context() []byte {
	if !d.g.o.Hooks.Context || d.assembly == nil {
		return nil
	}
	list, left := []ContextSegment{}, maxContext
	for i := range d.assembly.Segments {
		s := &d.assembly.Segments[i]
		text := strings.ToValidUTF8(s.Text[:min(len(s.Text), maxSegment, left)], "")
		left -= len(text)
		list = append(list, ContextSegment{s.ID, s.Source.Label(), len(s.Text), text})
	}
	b, err := json.Marshal(list)
	if err != nil {
		return nil
	}
	return hold.Question{ID: d.x.id, Context: b}.Document()
}

// errContext says that what was kept is no context.
var errContext = errors.New("guard: the context that was kept cannot be read")

// ReadContext reads the context that was kept with a held call: its segments in their places.
func ReadContext(b []byte) (out []ContextSegment, err error) {
	if json.Unmarshal(b, &out) != nil {
		return nil, errContext
	}
	return out, nil
}

func (d *decider) shown() (out []shownCall) {
	for i := range d.targets {
		t := &d.targets[i]
		c := shownCall{Tool: t.Tool, Arguments: []shownArgument{}}
		if i < len(d.found) {
			c.Verdict = d.found[i].Verdict
			for _, r := range d.found[i].Rulings {
				c.Rules = append(c.Rules, r.Rule+": "+string(r.Says))
			}
			if call, ok := d.approvable(d.assembly, d.calls[i]); ok {
				c.Approval = call.String()
			}
		}
		for _, a := range slices.Concat(t.Critical, t.Free) {
			x := shownArgument{Name: a.Path, Value: a.Value}
			if i < len(d.found) {
				x.From = d.from(&d.found[i], a.Path)
				for _, other := range d.found[i].Candidates {
					if other.Path == a.Path && other.Value != a.Value && !slices.Contains(x.Instead, other.Value) {
						x.Instead = append(x.Instead, other.Value)
					}
				}
			}
			c.Arguments = append(c.Arguments, x)
		}
		out = append(out, c)
	}
	return out
}

// from says where the values of an argument come from.
func (d *decider) from(f *delegation.Result, path string) (out []string) {
	add := func(s string) {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	for _, o := range f.Origins {
		if o.Path() != path {
			continue
		}
		if o.Trusted {
			add("user")
		}
		for i := range o.Segments.Places() {
			add(d.assembly.Segments[i].ID + " " + d.assembly.Segments[i].Source.Label())
		}
	}
	return out
}

// approvable is the digest of who makes which call with values from where. ok is false if the
// arguments of the call cannot be read. A text that moves to another source, or that the user no
// longer states, makes another digest.
func (d *decider) approvable(assembly *counterfactual.Assembly, c counterfactual.Call) (call hold.Digest, ok bool) {
	origins, ok := d.finder(assembly).Origins(c)
	if !ok {
		return call, false
	}
	type origin struct {
		Path, Form                string
		Inside, Trusted, Composed bool
		Sources                   []string
	}
	of := []origin{}
	for _, o := range origins {
		x := origin{Path: o.Path(), Form: string(o.Form), Inside: o.Inside, Trusted: o.Trusted, Composed: o.Composed, Sources: []string{}}
		for i := range o.Segments.Places() {
			s := &assembly.Segments[i].Source
			x.Sources = append(x.Sources, string(s.Class)+" "+s.Label())
		}
		slices.Sort(x.Sources)
		x.Sources = slices.Compact(x.Sources)
		of = append(of, x)
	}
	slices.SortStableFunc(of, func(a, b origin) int { return strings.Compare(a.Path, b.Path) })
	b, err := json.Marshal(struct {
		Call    string
		Origins []origin
	}{exactly(c), of})
	return hold.CallOf(d.x.principal, DeskServer, c.Name, b), err == nil
}

// exactly is the digest of a call as a client would execute it: where two spellings may mean
// something else to a tool, a person has decided about one of them.
func exactly(c counterfactual.Call) string {
	args, err := strictjson.Canonical(nil, c.Arguments, strictjson.Limits{})
	if err != nil {
		args = c.Arguments
	}
	return digestOf(append(strictjson.AppendQuote(nil, c.Name), args...))
}

// finder says where values come from in a context; it remembers what it has found in the last.
func (d *decider) finder(a *counterfactual.Assembly) *counterfactual.Finder {
	if d.findsIn != a {
		d.finds, d.findsIn = a.Finder(d.g.policy), a
	}
	return d.finds
}
