// SPDX-License-Identifier: Apache-2.0

// Package values compiles the guard's rules about the values of tool calls, which are written in CEL, and applies them.
//
// A rule has a condition over the arguments of a call and where they come from, and says what
// is done with a call for which the condition is true. A rule that says ask, hold or repair
// tightens: the sternest one that matches decides. A rule that says pass or mark loosens: it
// is for the verdicts that it names, and counts only where no rule tightens.
// docs/spec/guard.md lists what a condition may name.
package values

import (
	"cmp"
	"fmt"
	"slices"

	"cel.dev/cel-go/cel"

	"github.com/pellucid-mcp/pellucid/boundary/policy/expr"
	"github.com/pellucid-mcp/pellucid/model/counterfactual"
	"github.com/pellucid-mcp/pellucid/model/delegation"
)

// A Rule is the source form of one rule.
type Rule struct {
	Name string // 1 to 64 of a-z 0-9 -, the first a letter or digit
	Tool string // pattern, in which * stands for any characters; "": every tool
	When string // CEL, true: the rule matches
	Then delegation.Response
	// Verdicts are those that a rule which loosens is for; nil: delegation.Delegated.
	Verdicts []delegation.Verdict
}

// Source is the source form of Rules.
type Source struct {
	Rules []Rule
	// Lists are what listed looks values up in, by name.
	Lists map[string][]string
}

// Bounds of the rules.
const (
	MaxRules = 64
	MaxLists = 64
	MaxList  = 100_000 // values of one list
	maxCost  = 100_000 // units of CEL that one condition may cost
	maxBytes = 64 << 10
)

// Rules are a compiled Source. They are safe for concurrent use.
type Rules struct{ all []*rule }

type rule struct {
	ruling delegation.Ruling
	tool   string // pattern
	when   cel.Program
}

var _ delegation.Rules = (*Rules)(nil)

// Compile compiles a Source. The error is expr.Problems, all of them.
func Compile(s Source) (*Rules, error) {
	out := &Rules{}
	var problems expr.Problems
	fail := func(i int, member, fault string) {
		problems = append(problems, expr.Problem{Rule: i, Member: member, Fault: fault})
	}
	if len(s.Rules) > MaxRules {
		fail(-1, "values", fmt.Sprintf("more than %d", MaxRules))
		s.Rules = s.Rules[:MaxRules]
	}
	env, err := environment(s.Lists)
	if err != nil {
		return nil, expr.Problems{{Rule: -1, Member: "values", Fault: "CEL cannot be used"}}
	}
	seen := map[string]bool{}
	for i, r := range s.Rules {
		if !expr.IsRuleName(r.Name) {
			fail(i, "name", "want 1 to 64 of a-z 0-9 -, the first a letter or digit")
		}
		if seen[r.Name] {
			fail(i, "name", "another rule has this name")
		}
		seen[r.Name] = true
		c := &rule{ruling: delegation.Ruling{Rule: r.Name, Says: r.Then}, tool: cmp.Or(r.Tool, "*")}
		switch {
		case !slices.Contains(delegation.Responses, r.Then):
			fail(i, "then", "want pass, mark, ask, hold or repair")
		case !r.Then.Passes() && r.Verdicts != nil:
			fail(i, "verdicts", "is for a rule that says pass or mark: one that says "+string(r.Then)+" is for every verdict")
		case r.Then.Passes():
			c.ruling.Verdicts = r.Verdicts
			if r.Verdicts == nil {
				c.ruling.Verdicts = []delegation.Verdict{delegation.Delegated}
			}
		}
		when, faults := condition(env, r.When, s.Lists)
		for _, f := range faults {
			f.Rule, f.Member = i, "when"
			problems = append(problems, f)
		}
		c.when = when
		out.all = append(out.all, c)
	}
	if problems != nil {
		return nil, problems
	}
	return out, nil
}

// Names implements delegation.Rules.
func (r *Rules) Names(tool string) bool {
	return slices.ContainsFunc(r.all, func(x *rule) bool { return counterfactual.Glob(x.tool, tool) })
}

// Rulings implements delegation.Rules. The cost of a condition is bounded; what costs more has
// failed.
func (r *Rules) Rulings(a *counterfactual.Assembly, c counterfactual.Call, origins []counterfactual.Origin) (out []delegation.Ruling) {
	var in map[string]any
	for _, x := range r.all {
		if !counterfactual.Glob(x.tool, c.Name) {
			continue
		}
		if in == nil {
			in = input(a, c, origins)
		}
		ruling := x.ruling
		switch matched, ok := x.matches(in); {
		case ok && !matched:
			continue
		case !ok:
			if ruling.Failed = true; !ruling.Says.Passes() {
				ruling.Says = delegation.Ask
			}
		}
		out = append(out, ruling)
	}
	return out
}

// matches evaluates a condition; ok is false if that fails.
func (r *rule) matches(in map[string]any) (matched, ok bool) {
	defer func() {
		if recover() != nil { // a bug below must not end the guard, nor let anything pass
			matched, ok = false, false
		}
	}()
	if in["args"] == nil {
		return false, false
	}
	out, _, err := r.when.Eval(in)
	if err != nil {
		return false, false
	}
	matched, ok = out.Value().(bool)
	return matched, ok
}
