// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/pellucid-mcp/pellucid/boundary/policy"
)

// A Policy decides about calls and their results beside all other rules.
type Policy struct {
	*policy.Policy

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
	own      []policy.Rule
	ownAt    []ruleAt
	inherits []policy.Rule // of the preset, without what is left out
}

// ruleAt says where the members of a rule stand.
type ruleAt map[string]place

const (
	noPreset      = "none"
	maxPresets    = 4 // one on top of the other
	maxPrivileged = 1024
)

// policy reads the section of that name.
func (c *compiler) policy(p place) {
	s, privileged := policySource{}, []string(nil)
	without := place{}
	before := len(c.problems)
	m := c.policyMembers(&s, 0)
	m["without"] = func(p place) { without = p }
	m["privileged"] = func(p place) {
		privileged = c.checkedList(p, maxPrivileged, "SERVER/TOOL, where * stands for any characters", isToolPath)
	}
	c.object(p, m)
	if without.node != nil { // behind the preset, wherever that stands
		s.without = c.checkedList(without, policy.MaxRules, "the name of a rule of the preset", s.leaveOut)
	}
	if len(c.problems) > before {
		return
	}
	if compiled := c.compilePolicy(p, &s); compiled != nil {
		c.out.Policy = &Policy{Policy: compiled, source: s, privileged: privileged}
	}
}

func isToolPath(s string) bool {
	server, tool, slash := strings.Cut(s, "/")
	return slash && server != "" && tool != "" && len(s) <= maxToolName
}

// policyMembers says how to read what stands in a policy and in a preset.
func (c *compiler) policyMembers(s *policySource, depth int) members {
	return members{
		"preset": func(p place) {
			words := append([]string{noPreset}, policy.Presets...)
			s.preset = choice(&c.reader, p, words, words)
			if s.preset != "" && s.preset != noPreset && depth < maxPresets {
				c.preset(p, s, depth)
			}
		},
		"mode": func(p place) { s.audit = choice(&c.reader, p, []string{"enforce", "audit"}, []bool{false, true}) },
		"on_error": func(p place) {
			s.onError = choice(&c.reader, p, []string{"hold", "deny"}, []policy.Action{policy.Hold, policy.Deny})
		},
		"rules": func(p place) { c.list(p, policy.MaxRules, func(p place) { c.policyRule(p, s) }) },
	}
}

// leaveOut reports whether there was a rule of that name.
func (s *policySource) leaveOut(name string) bool {
	n := len(s.inherits)
	s.inherits = slices.DeleteFunc(s.inherits, func(r policy.Rule) bool { return r.Name == name })
	return len(s.inherits) < n
}

// preset reads the file of a preset, which is ours: a problem in it is a bug.
func (c *compiler) preset(p place, s *policySource, depth int) {
	src, _ := policy.Preset(s.preset)
	root, problems := parseYAML(src)
	inner := &compiler{reader: reader{problems: problems}}
	of := policySource{}
	if problems == nil {
		inner.object(place{node: root}, inner.policyMembers(&of, depth+1))
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

func (c *compiler) policyRule(p place, s *policySource) {
	r, at := policy.Rule{}, ruleAt{"": p}
	keep := func(name string, read func(place)) func(place) {
		return func(p place) { at[name] = p; read(p) }
	}
	c.object(p, members{
		"name": keep("name", func(p place) { r.Name = c.text(p, 64) }),
		"on": keep("on", func(p place) {
			r.On = choice(&c.reader, p, []string{"result", "call"}, []policy.Direction{policy.Result, policy.Call})
		}),
		"when":     keep("when", func(p place) { r.When = c.text(p, 4*policy.MaxExpression) }),
		"unless":   keep("unless", func(p place) { r.Unless = c.text(p, 4*policy.MaxExpression) }),
		"then":     keep("then", func(p place) { r.Then = c.action(p) }),
		"profile":  keep("profile", func(p place) { r.Profile = c.text(p, 64) }),
		"question": keep("question", func(p place) { r.Question = c.text(p, policy.MaxQuestion) }),
		"mode": keep("mode", func(p place) {
			r.Audit = choice(&c.reader, p, []string{"enforce", "audit"}, []bool{false, true})
		}),
	}, "name", "on", "when", "then")
	s.own, s.ownAt = append(s.own, r), append(s.ownAt, at)
}

// compilePolicy compiles what a preset and the file say together. The preset's rules
// come first, so that a name that stands twice is told where the file has it.
func (c *compiler) compilePolicy(p place, s *policySource) *policy.Policy {
	n := len(s.inherits)
	compiled, err := policy.Compile(policy.Source{Rules: append(slices.Clone(s.inherits), s.own...), OnError: s.onError, Audit: s.audit})
	if err == nil {
		return compiled
	}
	for _, f := range err.(policy.Problems) {
		if f.Rule < n {
			c.report(p, "%s: %s", f.Member, f.Fault)
			continue
		}
		at := s.ownAt[f.Rule-n]
		where, known := at[f.Member]
		if !known {
			where = at[""]
		}
		problem := Problem{line: where.line, column: where.col, path: where.path, Fault: f.Fault}
		if f.Line > 0 && known {
			problem = c.inside(where, f, problem)
		}
		c.problems = append(c.problems, problem)
	}
	return nil
}

// inside finds in the file what stands in a string of it: in a plain or quoted one
// of one line, and in a block. Of any other it says the place inside the string.
func (c *compiler) inside(p place, f policy.Problem, out Problem) Problem {
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

func (d *dumper) policy(p *Policy) {
	if p == nil {
		return
	}
	s := p.source
	d.object("policy", func() {
		if s.preset != "" {
			d.word("preset", s.preset)
		}
		d.word("mode", map[bool]string{false: "enforce", true: "audit"}[s.audit])
		d.word("on_error", max(s.onError, policy.Hold).String())
		if len(s.without) > 0 {
			d.list("without", s.without)
		}
		if len(p.privileged) > 0 {
			d.list("privileged", p.privileged)
		}
		if len(s.own) == 0 {
			return
		}
		d.line("rules:")
		for _, r := range s.own {
			d.line("  - name: ", r.Name)
			d.depth += 2
			d.policyRule(&r)
			d.depth -= 2
		}
	})
}

func (d *dumper) policyRule(r *policy.Rule) {
	d.word("on", r.On.String())
	d.quote("when", r.When)
	if r.Unless != "" {
		d.quote("unless", r.Unless)
	}
	d.word("then", r.Then.String())
	if r.Profile != "" {
		d.word("profile", r.Profile)
	}
	if r.Question != "" {
		d.quote("question", r.Question)
	}
	if r.Audit {
		d.word("mode", "audit")
	}
}

func samePolicy(a, b *Rules) bool {
	return same(func(d *dumper) { d.policy(a.Policy) }, func(d *dumper) { d.policy(b.Policy) })
}
