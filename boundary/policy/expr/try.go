// SPDX-License-Identifier: Apache-2.0

package expr

import (
	"errors"
	"slices"

	"github.com/pellucid-mcp/pellucid/boundary/policy"
)

// A Trial is what a policy would have answered to an input of which not everything is known.
type Trial struct {
	policy.Ruling             // by the rules that could be evaluated
	Undecided     []Undecided // that are stricter, and depend on what is not known
}

// An Undecided is a rule that could not be evaluated.
type Undecided struct {
	Rule   string
	Action policy.Action
	Lacks  string // the variable that is not known
	Audit  bool   // the rule only watches
}

// scoresName is the variable of the scores. Where it is not known, a score that the input has counts,
// and any other is not known.
const scoresName = "scores"

// errUnknown means that an expression depends on a variable that is not known.
var errUnknown = errors.New("policy: a variable is not known")

// Try decides as Decide does, on an input that says nothing about the variables unknown. A rule that
// decides without them is evaluated. Rules in audit mode count as they do there.
func (p *Rules) Try(in *policy.Input, unknown []string) (t Trial) {
	rules := p.by[min(in.Direction, policy.Call)]
	if len(rules) == 0 {
		return t
	}
	h := p.pool.Get()
	defer h.Release()
	e := h.Value()
	e.begin(in)
	e.unknown = unknown
	t.Ruling = p.decide(e, rules, func(r *rule) {
		t.Undecided = append(t.Undecided, Undecided{r.out.Rule, r.out.Action, e.lacks, r.audit})
	})
	e.in, e.unknown = nil, nil
	t.Undecided = slices.DeleteFunc(t.Undecided, func(u Undecided) bool { return u.Action <= t.Action })
	return t
}

// isUnknown reports whether the input says nothing about a variable, and notes that it was asked.
func (e *evaluation) isUnknown(name string) bool {
	if !slices.Contains(e.unknown, name) {
		return false
	}
	e.lacks = name
	return true
}
