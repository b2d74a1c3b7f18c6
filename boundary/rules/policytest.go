// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/pellucid-mcp/pellucid/boundary/policy"
	"github.com/pellucid-mcp/pellucid/boundary/policy/expr"
	"github.com/pellucid-mcp/pellucid/record/trust"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/frame"
)

// A PolicyTest is a policy, and what it is to decide.
type PolicyTest struct {
	policy *Policy
	Cases  []PolicyCase
}

// A PolicyCase is an input and what is wanted of it.
type PolicyCase struct {
	name  string
	line  int // of the file
	Input policy.Input

	Want  policy.Action
	rule  *string        // nil: whichever; "": none
	Would *policy.Action // what rules in audit mode would have made of it; nil: whatever
}

const maxCases = 10_000

// parsePolicyTest compiles a file of cases. The error is Problems, all of them.
func parsePolicyTest(src []byte, o Options) (*PolicyTest, error) {
	root, problems := parseYAML(src)
	if problems != nil {
		return nil, problems
	}
	c := &compiler{src: string(src), opt: o.orSystem(), out: newRules()}
	t := &PolicyTest{}
	var at, cases place
	keep := func(to *place) value { return value{read: func(_ *compiler, p place) { *to = p }} }
	c.object(place{node: root}, []member{
		{name: "policy", value: keep(&at).then(policySection(&c.out.Policy).read)},
		{name: "config", value: keep(&at).then((*compiler).policyOf)},
		{name: "cases", trait: needed, value: keep(&cases)},
	})
	whole := place{node: root}
	twice := whole.member("policy") != nil && whole.member("config") != nil
	switch {
	case at.node == nil || twice:
		c.report(whole, "want either policy, or config: the file that holds it")
	case c.out.Policy == nil && len(c.problems) == 0:
		c.report(at, "there is no policy")
	}
	if cases.node != nil {
		c.list(cases, maxCases, func(p place) { t.Cases = append(t.Cases, c.policyCase(p)) })
		if len(t.Cases) == 0 && cases.kind == isList {
			c.report(cases, "there are no cases")
		}
	}
	if len(c.problems) > 0 {
		return nil, c.problems.sorted()
	}
	t.policy = c.out.Policy
	for i := range t.Cases {
		e := &t.Cases[i].Input
		e.Privileged = e.Privileged || t.policy.Privileged(e.Server, e.Tool)
	}
	return t, nil
}

// policyOf takes the policy of a configuration, of which nothing else is read.
func (c *compiler) policyOf(p place) {
	name := c.text(p, maxText)
	if name == "" {
		return
	}
	src, err := c.opt.read(name, maxFile)
	if err != nil {
		c.report(p, "%v", err)
		return
	}
	inner := onlyPolicy(src, c.opt)
	for _, x := range inner.problems {
		c.report(p, "%s", x.String())
	}
	c.out.Policy = inner.out.Policy
}

// onlyPolicy compiles the policy of a configuration.
func onlyPolicy(src []byte, o Options) *compiler {
	root, problems := parseYAML(src)
	c := &compiler{src: string(src), reader: reader{problems: problems}, opt: o, out: newRules()}
	if problems == nil {
		if at := (place{node: root}).at("policy"); at.node != nil {
			policySection(&c.out.Policy).read(c, at)
		}
	}
	return c
}

// LoadPolicy compiles the policy of the configuration at path, of which nothing else is
// read: rules that say nothing else. The errors are those of Load.
func LoadPolicy(path string) (*Rules, error) {
	src, err := Options{}.orSystem().ReadFile(path)
	if err != nil {
		return nil, unread(path, err)
	}
	c := onlyPolicy(src, Options{}.orSystem())
	if c.out.Policy == nil && len(c.problems) == 0 {
		c.report(place{node: &node{}}, "there is no policy")
	}
	if len(c.problems) > 0 {
		return nil, fmt.Errorf("%s: %w", finding.Quote(path), c.problems.sorted())
	}
	return c.out.dumped(), nil
}

func (c *compiler) policyCase(p place) PolicyCase {
	// What MCP assumes of a tool of which nothing is said, and nobody knows anything.
	out := PolicyCase{line: p.line, Input: policy.Input{Server: "server", Tool: "tool", Destructive: true, OpenWorld: true,
		ServerTrust: trust.New(trust.Options{}).Score(trust.Origin{}, 0).Float()}}
	out.Input.ToolTrust = out.Input.ServerTrust
	c.object(p, []member{
		{name: "name", trait: needed, value: text(&out.name, 256)},
		{name: "event", trait: needed, value: value{read: func(c *compiler, p place) { c.policyInput(p, &out.Input) }}},
		{name: "want", trait: needed, value: value{read: func(c *compiler, p place) { c.policyWant(p, &out) }}},
	})
	return out
}

func (c *compiler) policyWant(p place, out *PolicyCase) {
	if p.kind != isObject {
		action(&out.Want).read(c, p)
		return
	}
	var would policy.Action
	c.object(p, []member{
		{name: "action", trait: needed, value: action(&out.Want)},
		{name: "rule", value: value{read: func(c *compiler, p place) {
			name := ""
			if p.kind != isText || p.node.text != "" {
				name = c.text(p, 64)
			}
			out.rule = &name
		}}},
		{name: "would", value: action(&would).then(func(*compiler, place) { out.Would = &would })},
	})
}

func action(v *policy.Action) value {
	return word(v, 0, []string{"allow", "sanitise", "ask", "hold", "deny"}, []policy.Action{policy.Allow, policy.Sanitise, policy.Ask, policy.Hold, policy.Deny})
}

func (c *compiler) policyInput(p place, e *policy.Input) {
	e.Facts = &policy.Facts{Args: map[string]any{}, Claims: map[string]any{}}
	label := func(to *string) value { return checked(to, "", "a label", frame.IsLabel) }
	count := func(to *int) value { return integer(to, 0, 0, 1<<31-1) }
	privileged := false
	c.object(p, []member{
		{name: "direction", value: word(&e.Direction, 0, []string{"result", "call"}, []policy.Direction{policy.Result, policy.Call})},
		{name: "server", value: label(&e.Server)},
		{name: "tool", value: label(&e.Tool)},
		{name: "hints", value: section(func() []member {
			return []member{{name: "read_only", value: boolean(&e.ReadOnly, false)}, {name: "destructive", value: boolean(&e.Destructive, true)},
				{name: "open_world", value: boolean(&e.OpenWorld, true)}}
		})},
		{name: "privileged", value: boolean(&e.Privileged, false).then(func(*compiler, place) { privileged = true })},
		{name: "findings", value: value{read: func(c *compiler, p place) {
			c.names(p, maxNames, isCode, func(code string, _, val place) {
				e.Findings = append(e.Findings, policy.Count{Code: finding.Code(code), N: c.integer(val, 1, 1<<31-1)})
			})
		}}},
		{name: "not_inspected", value: count(&e.NotInspected)},
		{name: "scores", value: value{read: func(c *compiler, p place) {
			c.names(p, maxNames, isName, func(name string, _, val place) {
				e.Scores = append(e.Scores, policy.Score{Name: name, Value: c.number(val, 1)})
			})
		}}},
		{name: "size", value: count(&e.Size)},
		{name: "trust", value: section(func() []member {
			return []member{{name: "server", value: number(&e.ServerTrust, 0, 1)}, {name: "tool", value: number(&e.ToolTrust, 0, 1)}}
		})},
		{name: "args", value: value{read: func(c *compiler, p place) { c.readFacts(p, &e.Facts.Args, expr.IsPointer) }}},
		{name: "claims", value: value{read: func(c *compiler, p place) { c.readFacts(p, &e.Facts.Claims, isClaim) }}},
		{name: "session", value: section(func() []member {
			return []member{{name: "calls", value: count(&e.Session.Calls)}, {name: "held", value: count(&e.Session.Held)},
				{name: "calls_of", value: value{read: func(c *compiler, p place) {
					e.Session.CallsOf = map[string]int{}
					c.names(p, maxNames, expr.IsToolPath, func(tool string, _, val place) { e.Session.CallsOf[tool] = c.integer(val, 0, 1<<31-1) })
				}}}}
		})},
		{name: "scopes", value: list(&e.Scopes, nil, expr.MaxScopes, "a scope", isScope)},
	})
	if !privileged { // as the gateway has it
		e.Privileged = !e.ReadOnly
	}
	slices.SortFunc(e.Findings, func(a, b policy.Count) int { return cmp.Compare(a.Code, b.Code) })
}

// readFacts reads the args, by JSON pointer, or the claims, by name.
func (c *compiler) readFacts(p place, to *map[string]any, valid func(string) bool) {
	c.names(p, maxNames, valid, func(name string, _, val place) { (*to)[name] = c.readFact(val, 1) })
}

func (c *compiler) readFact(p place, depth int) any {
	switch {
	case p.kind == isText:
		return p.node.text
	case p.kind == isNumber:
		return policy.Number(p.node.text)
	case p.kind == isBool:
		return c.boolean(p)
	case p.kind == isList && depth > 0:
		list := []any{}
		c.list(p, policy.MaxElements, func(e place) { list = append(list, c.readFact(e, depth-1)) })
		if slices.Contains(list, any(policy.Unreadable{})) {
			return policy.Unreadable{}
		}
		return list
	case p.kind == isObject || p.kind == isList:
		return policy.Object{}
	}
	return nil
}

func isScope(s string) bool { return s != "" && len(s) <= expr.MaxName }

// check decides on the case. It returns what was decided, and whether that is wanted.
func (x *PolicyCase) check(p *Policy) (policy.Ruling, bool) {
	in := x.Input
	d := p.Decide(&in)
	ok := d.Action == x.Want &&
		(x.rule == nil || d.Rule == *x.rule) &&
		(x.Would == nil || max(d.Action, d.Would.Action) == *x.Would)
	return d, ok
}
