// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/pellucid-mcp/pellucid/boundary/policy"
	"github.com/pellucid-mcp/pellucid/boundary/policy/expr"
)

// A Policy decides about calls and their results beside all other rules.
type Policy struct {
	*expr.Rules

	source     policySource
	privileged []string
}

// Privileged reports whether the operator says that a tool acts, whatever its
// server says of it.
func (p *Policy) Privileged(server, tool string) bool {
	return slices.ContainsFunc(p.privileged, func(pattern string) bool { return match(pattern, server+"/"+tool) })
}

// policySource is what a file says of a policy.
type policySource struct {
	preset   string
	audit    bool
	onError  policy.Action
	without  []string
	own      []expr.Rule
	ownAt    []place
	inherits []expr.Rule // of the preset, without what is left out
}

const (
	noPreset      = "none"
	maxPresets    = 4 // one on top of the other
	maxPrivileged = 1024
)

// policySection is the policy of a file.
func policySection(to **Policy) value {
	return optional(to, (*Policy).members, func(c *compiler, p place, x *Policy, sound bool) bool {
		if sound {
			x.Rules = c.compilePolicy(p, &x.source)
		}
		return x.Rules != nil
	})
}

func (p *Policy) members() []member {
	return append(p.source.members(0),
		member{"without", live, list(&p.source.without, nil, expr.MaxRules, "the name of a rule of the preset", p.source.leaveOut), "rules of the preset that do not apply"},
		member{"privileged", live, list(&p.privileged, nil, maxPrivileged, "SERVER/TOOL, where * stands for any characters", expr.IsToolPath), "tools that act, whatever their server says"})
}

var enforceOrAudit = []string{"enforce", "audit"}

// members are what stands in a policy and in a preset.
func (s *policySource) members(depth int) []member {
	words := append([]string{noPreset}, expr.Presets...)
	rules := objects(&s.own, expr.MaxRules, ruleMembers, func(_ *compiler, p place, _ *expr.Rule) { s.ownAt = append(s.ownAt, p) })
	return []member{
		{"preset", live, word(&s.preset, "", words, words).then(func(c *compiler, p place) {
			if s.preset != "" && s.preset != noPreset && depth < maxPresets {
				c.preset(p, s, depth)
			}
		}), "rules that come with the program ([policy](policy.md))"},
		{"mode", live, word(&s.audit, false, enforceOrAudit, []bool{false, true}), "`audit`: rules are recorded, and decide nothing"},
		{"on_error", live, word(&s.onError, policy.Hold, []string{"hold", "deny"}, []policy.Action{policy.Hold, policy.Deny}), "what a rule means that cannot be evaluated"},
		{"rules", live, rules, "the rules, beside those of the preset"},
	}
}

// leaveOut reports whether there was a rule of that name.
func (s *policySource) leaveOut(name string) bool {
	n := len(s.inherits)
	s.inherits = slices.DeleteFunc(s.inherits, func(r expr.Rule) bool { return r.Name == name })
	return len(s.inherits) < n
}

// preset reads the file of a preset, which is ours: a problem in it is a bug.
func (c *compiler) preset(p place, s *policySource, depth int) {
	src, _ := expr.Preset(s.preset)
	root, problems := parseYAML(src)
	inner := &compiler{reader: reader{problems: problems}}
	of := policySource{}
	if problems == nil {
		inner.object(place{node: root}, reset(of.members(depth+1)))
	}
	if len(inner.problems) > 0 {
		c.report(p, "this preset cannot be read: %s", inner.problems[0].String())
		return
	}
	s.inherits = append(of.inherits, of.own...)
	for i := range s.inherits {
		s.inherits[i].Audit = s.inherits[i].Audit || of.audit
	}
}

func ruleMembers(r *expr.Rule) []member {
	return []member{
		{"name", needed, text(&r.Name, 64), "names the rule in records"},
		{"on", needed, word(&r.On, 0, []string{"result", "call"}, []policy.Direction{policy.Result, policy.Call}), "what the rule decides about"},
		{"when", needed, text(&r.When, 4*expr.MaxExpression), "an expression in CEL"},
		{"unless", live, text(&r.Unless, 4*expr.MaxExpression), "an expression in CEL"},
		{"then", needed, action(&r.Then), "what becomes of it"},
		{"profile", live, text(&r.Profile, 64), "no longer needed, of `then: sanitise`"},
		{"question", live, text(&r.Question, expr.MaxQuestion), "what is asked, of `then: ask`"},
		{"mode", live, word(&r.Audit, false, enforceOrAudit, []bool{false, true}), "`audit`: the rule is recorded, and decides nothing"},
	}
}

// compilePolicy compiles what a preset and the file say together. The preset's rules
// come first, so that a name that stands twice is told where the file has it.
func (c *compiler) compilePolicy(p place, s *policySource) *expr.Rules {
	n := len(s.inherits)
	compiled, err := expr.Compile(expr.Source{Rules: append(slices.Clone(s.inherits), s.own...), OnError: s.onError, Audit: s.audit})
	if err == nil {
		return compiled
	}
	var own expr.Problems
	for _, f := range err.(expr.Problems) {
		if f.Rule < n {
			c.report(p, "%s: %s", f.Member, f.Fault)
			continue
		}
		f.Rule -= n
		own = append(own, f)
	}
	c.inRules(p, s.ownAt, own)
	return nil
}

// inRules reports problems of a list of rules at p, which stand at the places of at.
func (c *compiler) inRules(p place, at []place, problems expr.Problems) {
	for _, f := range problems {
		if f.Rule < 0 || f.Rule >= len(at) {
			c.report(p, "%s: %s", f.Member, f.Fault)
			continue
		}
		rule := at[f.Rule]
		where, known := rule.at(f.Member), true
		if where.node == nil {
			where, known = rule, false
		}
		problem := Problem{line: where.line, column: where.col, path: where.path, Fault: f.Fault}
		if f.Line > 0 && known {
			problem = c.inside(where, f, problem)
		}
		c.problems = append(c.problems, problem)
	}
}

// inside finds in the file what stands in a string of it: in a plain or quoted one
// of one line, and in a block. Of any other it says the place inside the string.
func (c *compiler) inside(p place, f expr.Problem, out Problem) Problem {
	lines := strings.Split(p.node.text, "\n")
	if f.Line <= len(lines) {
		want := lines[f.Line-1]
		if line, col, ok := c.find(p, f.Line, want); ok {
			out.line, out.column = line, col+f.Column-1
			return out
		}
	}
	out.Fault = "at line " + strconv.Itoa(f.Line) + ", column " + strconv.Itoa(f.Column) + " of the expression: " + out.Fault
	return out
}

// find looks for line n of the string at p: on the line where it begins, or, of a
// block, n lines below.
func (c *compiler) find(p place, n int, want string) (line, col int, ok bool) {
	file := strings.Split(c.src, "\n")
	if p.line < 1 || p.line > len(file) {
		return 0, 0, false
	}
	first := []rune(file[p.line-1])
	if n == 1 && p.col >= 1 && p.col <= len(first) {
		rest := string(first[p.col-1:])
		if strings.HasPrefix(rest, want) && !strings.ContainsAny(want[:min(1, len(want))], `"'`) {
			return p.line, p.col, true
		}
		if len(rest) > 0 && (rest[0] == '"' || rest[0] == '\'') && strings.HasPrefix(rest[1:], want+rest[:1]) {
			return p.line, p.col + 1, true
		}
	}
	if at := p.line - 1 + n; at < len(file) && blockBegins(file[p.line-1]) {
		text := strings.TrimSuffix(file[at], "\r")
		trimmed := strings.TrimLeft(text, " ")
		if strings.HasSuffix(text, want) && strings.TrimLeft(want, " ") == trimmed {
			return at + 1, utf8.RuneCountInString(text) - utf8.RuneCountInString(want) + 1, true
		}
	}
	return 0, 0, false
}

// blockBegins reports whether a line ends as one does after which a literal block stands.
func blockBegins(line string) bool {
	line = strings.TrimRight(line, " \r")
	return strings.HasSuffix(line, "|") || strings.HasSuffix(line, "|-") || strings.HasSuffix(line, "|+")
}
