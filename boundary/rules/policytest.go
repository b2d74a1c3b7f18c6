// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/pellucid-mcp/pellucid/boundary/policy"
	"github.com/pellucid-mcp/pellucid/record/trust"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/frame"
)

// A PolicyTest is a policy, and what it is to decide.
type PolicyTest struct {
	policy *Policy
	Cases  []PolicyCase
}

// A PolicyCase is an event and what is wanted of it.
type PolicyCase struct {
	name  string
	line  int // of the file
	Event policy.Event

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
	c.object(place{node: root}, members{
		"policy": func(p place) { at = p; c.policy(p) },
		"config": func(p place) { at = p; c.policyOf(p) },
		"cases":  func(p place) { cases = p },
	}, "cases")
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
		e := &t.Cases[i].Event
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
	c := &compiler{src: string(src), reader: reader{problems: problems}, opt: o, secret: fingerprint{sha256.New()}, out: newRules()}
	if problems == nil {
		if n := (place{node: root}).member("policy"); n != nil {
			c.policy(place{n, "policy"})
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
	c.out.print, c.out.text = c.secret.sum(), dump(c.out)
	return c.out, nil
}

func (c *compiler) policyCase(p place) PolicyCase {
	// What MCP assumes of a tool of which nothing is said, and nobody knows anything.
	out := PolicyCase{line: p.line, Event: policy.Event{Server: "server", Tool: "tool", Destructive: true, OpenWorld: true,
		ServerTrust: trust.New(trust.Options{}).Score(trust.Origin{}, 0).Float()}}
	out.Event.ToolTrust = out.Event.ServerTrust
	c.object(p, members{
		"name":  func(p place) { out.name = c.text(p, 256) },
		"event": func(p place) { c.policyEvent(p, &out.Event) },
		"want":  func(p place) { c.policyWant(p, &out) },
	}, "name", "event", "want")
	return out
}

func (c *compiler) policyWant(p place, out *PolicyCase) {
	if p.kind != isObject {
		out.Want = c.action(p)
		return
	}
	c.object(p, members{
		"action": func(p place) { out.Want = c.action(p) },
		"rule": func(p place) {
			name := ""
			if p.kind != isText || p.node.text != "" {
				name = c.text(p, 64)
			}
			out.rule = &name
		},
		"would": func(p place) { a := c.action(p); out.Would = &a },
	}, "action")
}

var actions = []string{"allow", "sanitise", "ask", "hold", "deny"}

func (c *compiler) action(p place) policy.Action {
	a, _ := policy.ParseAction(c.checked(p, orList(actions), func(s string) bool { return slices.Contains(actions, s) }))
	return a
}

func (c *compiler) policyEvent(p place, e *policy.Event) {
	label := func(to *string) func(place) {
		return func(p place) { *to = c.checked(p, "a label", frame.IsLabel) }
	}
	boolean := func(to *bool) func(place) { return func(p place) { *to = c.boolean(p) } }
	privileged := false
	c.object(p, members{
		"direction": func(p place) {
			e.Direction = choice(&c.reader, p, []string{"result", "call"}, []policy.Direction{policy.Result, policy.Call})
		},
		"server": label(&e.Server),
		"tool":   label(&e.Tool),
		"hints": func(p place) {
			c.object(p, members{"read_only": boolean(&e.ReadOnly), "destructive": boolean(&e.Destructive), "open_world": boolean(&e.OpenWorld)})
		},
		"privileged": func(p place) { privileged = true; e.Privileged = c.boolean(p) },
		"findings": func(p place) {
			c.names(p, maxNames, isCode, func(code string, _, val place) {
				e.Findings = append(e.Findings, policy.Count{Code: finding.Code(code), N: c.integer(val, 1, 1<<31-1)})
			})
		},
		"not_inspected": func(p place) { e.NotInspected = c.integer(p, 0, 1<<31-1) },
		"scores": func(p place) {
			c.names(p, maxNames, isName, func(name string, _, val place) {
				e.Scores = append(e.Scores, policy.Score{Name: name, Value: c.number(val, 1)})
			})
		},
		"size": func(p place) { e.Size = c.integer(p, 0, 1<<31-1) },
		"trust": func(p place) {
			c.object(p, members{"server": func(p place) { e.ServerTrust = c.number(p, 1) }, "tool": func(p place) { e.ToolTrust = c.number(p, 1) }})
		},
		"scopes": func(p place) { e.Scopes = c.checkedList(p, policy.MaxScopes, "a scope", isScope) },
	})
	if !privileged { // as the gateway has it
		e.Privileged = !e.ReadOnly
	}
	slices.SortFunc(e.Findings, func(a, b policy.Count) int { return cmp.Compare(a.Code, b.Code) })
}

func isScope(s string) bool { return s != "" && len(s) <= policy.MaxName }

// check decides on the case. It returns what was decided, and whether that is wanted.
func (x *PolicyCase) check(p *Policy) (policy.Decision, bool) {
	event := x.Event
	d := p.Decide(&event)
	ok := d.Action == x.Want &&
		(x.rule == nil || d.Rule == *x.rule) &&
		(x.Would == nil || max(d.Action, d.Would.Action) == *x.Would)
	return d, ok
}
