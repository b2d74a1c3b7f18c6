// SPDX-License-Identifier: Apache-2.0

package expr

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/interpreter"

	"github.com/pellucid-mcp/pellucid/boundary/policy"
	"github.com/pellucid-mcp/pellucid/platform/reuse"
)

// Rules are a compiled Source. It is safe for concurrent use.
type Rules struct {
	onError policy.Action
	by      [2][]*rule // by direction, the strictest first
	reads   policy.Reads
	pool    reuse.Pool[evaluation]
}

type rule struct {
	out          policy.Match
	audit        bool
	when, unless cel.Program // nil: the constant true
	excepts      bool        // there is unless
}

// Compile compiles a Source. The error is Problems, all of them.
func Compile(s Source) (*Rules, error) {
	p := &Rules{onError: cmp.Or(s.OnError, policy.Hold)}
	var problems Problems
	if p.onError != policy.Hold && p.onError != policy.Deny {
		problems = append(problems, Problem{Rule: -1, Member: "on_error", Fault: "want hold or deny"})
	}
	if len(s.Rules) > MaxRules {
		problems = append(problems, Problem{Rule: -1, Member: "rules", Fault: fmt.Sprintf("more than %d", MaxRules)})
		s.Rules = s.Rules[:MaxRules]
	}
	seen, read := map[string]bool{}, reads{}
	for i, r := range s.Rules {
		found := r.check()
		if seen[r.Name] {
			found = append(found, Problem{Member: "name", Fault: "another rule has this name"})
		}
		seen[r.Name] = true
		c := &rule{audit: s.Audit || r.Audit,
			out: policy.Match{Action: r.Then, Rule: r.Name, Question: r.Question}}
		c.when, found = expression(found, "when", r.When, &read)
		if r.Unless != "" {
			c.excepts = true
			c.unless, found = expression(found, "unless", r.Unless, &read)
		}
		for _, f := range found {
			f.Rule = i
			problems = append(problems, f)
		}
		if len(found) == 0 {
			p.by[r.On] = append(p.by[r.On], c)
		}
	}
	if problems != nil {
		return nil, problems
	}
	p.reads = read.Reads
	for _, list := range p.by {
		slices.SortStableFunc(list, func(a, b *rule) int { return cmp.Compare(b.out.Action, a.out.Action) })
	}
	return p, nil
}

func expression(found []Problem, member, text string, read *reads) (cel.Program, []Problem) {
	p, faults := compile(text, read)
	for _, f := range faults {
		f.Member = member
		found = append(found, f)
	}
	return p, found
}

// check finds what is wrong beside the expressions.
func (r *Rule) check() (out []Problem) {
	fail := func(member, fault string) { out = append(out, Problem{Member: member, Fault: fault}) }
	if !IsRuleName(r.Name) {
		fail("name", "want 1 to 64 of a-z 0-9 -, the first a letter or digit")
	}
	switch {
	case r.On > policy.Call:
		r.On = policy.Result
		fail("on", "want call or result")
	case r.Then > policy.Deny:
		fail("then", "want "+"allow, sanitise, ask, hold, deny")
	case r.Then == policy.Sanitise && r.On == policy.Call:
		fail("then", "sanitise is for results: a call is the client's own")
	case r.Profile != "" && r.Profile != formerProfile:
		fail("profile", "leave it out: there is one way to sanitise")
	case r.Then != policy.Sanitise && r.Profile != "":
		fail("profile", "is for then: sanitise")
	case r.Then == policy.Ask && (r.Question == "" || len(r.Question) > MaxQuestion):
		fail("question", fmt.Sprintf("want the question to ask, of 1 to %d bytes", MaxQuestion))
	case r.Then != policy.Ask && r.Question != "":
		fail("question", "is for then: ask")
	}
	return out
}

// Count returns how many rules there are for a direction.
func (p *Rules) Count(d policy.Direction) int { return len(p.by[min(d, policy.Call)]) }

// Reads implements policy.Policy.
func (p *Rules) Reads() policy.Reads { return p.reads }

// Decide decides on an input, which it does not keep. It takes no longer than the
// costs of the rules allow, and panics for no input.
func (p *Rules) Decide(in *policy.Input) policy.Ruling {
	rules := p.by[min(in.Direction, policy.Call)]
	if len(rules) == 0 {
		return policy.Ruling{}
	}
	h := p.pool.Get()
	defer h.Release()
	e := h.Value()
	e.begin(in)
	d := p.decide(e, rules, nil)
	e.in = nil
	return d
}

// decide asks the rules of a direction, the strictest first. undecided, if not nil, is told of the
// rules that depend on what is not known.
func (p *Rules) decide(e *evaluation, rules []*rule, undecided func(r *rule)) policy.Ruling {
	var d policy.Ruling
	for _, r := range rules {
		// The rest wants no more than r does, unless it fails.
		if d.Action >= max(r.out.Action, p.onError) && d.Rule != "" {
			break
		}
		out := r.out
		switch matched, err := e.matches(r); {
		case undecided != nil && errors.Is(err, errUnknown):
			undecided(r)
			continue
		case err != nil:
			out = policy.Match{Action: p.onError, Rule: r.out.Rule, Failed: true}
		case !matched:
			continue
		}
		if !r.audit && (d.Rule == "" || out.Action > d.Action) {
			d.Match = out
		}
		if r.audit && (d.Would.Rule == "" || out.Action > d.Would.Action) {
			d.Would = out
		}
	}
	if d.Rule != "" && d.Would.Action <= d.Action {
		d.Would = policy.Match{}
	}
	return d
}

// An evaluation is the input that is decided on, as CEL sees it. Values that CEL
// wants on the heap are kept for the next input, which often has the same.
type evaluation struct {
	in           *policy.Input
	server, tool text
	trust        [2]number
	size         ref.Val
	sized        int
	scopes       ref.Val

	findings, scores, session opaque

	unknown []string // variables of which the input says nothing: Try
	lacks   string   // the one of them that was asked last
}

type text struct {
	s string
	v ref.Val
}

func (t *text) of(s string) ref.Val {
	if len(s) > MaxName {
		s = "other"
	}
	if t.v == nil || t.s != s {
		t.s = strings.Clone(s)
		t.v = types.String(t.s)
	}
	return t.v
}

type number struct {
	f float64
	v ref.Val
}

func (n *number) of(f float64) ref.Val {
	if f != f {
		f = 0 // what nobody knows is not trusted
	}
	if n.v == nil || n.f != f {
		n.f, n.v = f, types.Double(f)
	}
	return n.v
}

func (e *evaluation) begin(in *policy.Input) {
	e.findings, e.scores, e.session = opaque{findingsType, e}, opaque{scoresType, e}, opaque{sessionType, e}
	e.in, e.scopes, e.unknown, e.lacks = in, nil, nil, ""
}

var errNoBoolean = errors.New("policy: a rule made no boolean")

// matches evaluates a rule. Whatever goes wrong is an error: over-cost, overflow, a
// score that there is not.
func (e *evaluation) matches(r *rule) (matched bool, err error) {
	defer func() {
		if recover() != nil { // a bug below must not end the gateway, nor let anything through
			matched, err = false, errNoBoolean
		}
	}()
	if matched, err = e.eval(r.when); !matched || err != nil || !r.excepts {
		return matched, err
	}
	except, err := e.eval(r.unless)
	return !except, err
}

func (e *evaluation) eval(p cel.Program) (bool, error) {
	if p == nil {
		return true, nil
	}
	out, _, err := p.Eval(e)
	if err != nil {
		return false, err
	}
	b, ok := out.(types.Bool)
	switch {
	case types.IsUnknown(out):
		return false, errUnknown
	case !ok:
		return false, errNoBoolean
	}
	return bool(b), nil
}

// ResolveName implements CEL's Activation.
func (e *evaluation) ResolveName(name string) (any, bool) {
	in := e.in
	if name != scoresName && e.isUnknown(name) {
		return types.NewUnknown(1, nil), true
	}
	switch name {
	case "direction":
		return directions[min(in.Direction, policy.Call)], true
	case "server":
		return e.server.of(in.Server), true
	case "tool":
		return e.tool.of(in.Tool), true
	case "hints.read_only":
		return types.Bool(in.ReadOnly), true
	case "hints.destructive":
		return types.Bool(in.Destructive), true
	case "hints.open_world":
		return types.Bool(in.OpenWorld), true
	case "privileged":
		return types.Bool(in.Privileged), true
	case "findings":
		return &e.findings, true
	case "severity":
		return types.Int(e.severity()), true
	case "not_inspected":
		return types.Int(in.NotInspected), true
	case "scores":
		return &e.scores, true
	case "size":
		if e.size == nil || e.sized != in.Size {
			e.size, e.sized = types.Int(in.Size), in.Size
		}
		return e.size, true
	case "trust.server":
		return e.trust[0].of(in.ServerTrust), true
	case "trust.tool":
		return e.trust[1].of(in.ToolTrust), true
	case "principal.scopes":
		return e.scopeList(), true
	case argsName, claimsName:
		return e.factsOf(name), true
	case "session":
		return &e.session, true
	case "session.calls":
		return types.Int(in.Session.Calls), true
	case "session.held":
		return types.Int(in.Session.Held), true
	}
	return nil, false
}

// Parent implements CEL's Activation.
func (e *evaluation) Parent() interpreter.Activation { return nil }

var directions = [...]ref.Val{types.String("result"), types.String("call")}

func (e *evaluation) scopeList() ref.Val {
	if e.scopes == nil {
		list := e.in.Scopes
		list = list[:min(len(list), MaxScopes)]
		if slices.ContainsFunc(list, func(s string) bool { return len(s) > MaxName }) {
			list = slices.DeleteFunc(slices.Clone(list), func(s string) bool { return len(s) > MaxName })
		}
		e.scopes = types.NewStringList(types.DefaultTypeAdapter, list)
	}
	return e.scopes
}

// severity is that of the worst finding: 0 none, 1 info, 2 warn, 3 error.
func (e *evaluation) severity() (worst int) {
	for _, c := range e.in.Findings {
		if c.N > 0 {
			worst = max(worst, int(c.Code.Severity())+1)
		}
	}
	return worst
}

func (e *evaluation) count(code string) ref.Val {
	n := 0
	for _, c := range e.in.Findings {
		if string(c.Code) == code {
			n += c.N
		}
	}
	return types.Int(n)
}

func (e *evaluation) class(class string) ref.Val {
	n := 0
	for _, c := range e.in.Findings {
		if classOf(c.Code) == class {
			n += c.N
		}
	}
	return types.Int(n)
}

func (e *evaluation) score(name string) (float64, bool) {
	i := slices.IndexFunc(e.in.Scores, func(s policy.Score) bool { return s.Name == name })
	if i < 0 {
		return 0, false
	}
	return known(e.in.Scores[i].Value), true
}

// known is a score, the worst for one that is no number.
func known(f float64) float64 {
	if f != f {
		return 1
	}
	return f
}

// scoreOf is an error where the classifier has not judged: what nobody has looked at
// is not harmless.
func (e *evaluation) scoreOf(name string) ref.Val {
	if f, ok := e.score(name); ok {
		return types.Double(f)
	}
	if e.isUnknown(scoresName) {
		return types.NewUnknown(1, nil)
	}
	return types.NewErr("policy: this classifier has not judged")
}

func (e *evaluation) hasScore(name string) ref.Val {
	_, ok := e.score(name)
	if !ok && e.isUnknown(scoresName) {
		return types.NewUnknown(1, nil)
	}
	return types.Bool(ok)
}

func (e *evaluation) worst() ref.Val {
	if len(e.in.Scores) == 0 && e.isUnknown(scoresName) {
		return types.NewUnknown(1, nil)
	}
	worst := 0.0
	for _, s := range e.in.Scores {
		worst = max(worst, known(s.Value))
	}
	return types.Double(worst)
}
