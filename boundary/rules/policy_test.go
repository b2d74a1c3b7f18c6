// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/boundary/policy"
	"github.com/pellucid-mcp/pellucid/boundary/policy/expr"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

const policyFile = `version: 1
policy:
  preset: standard
  on_error: deny
  without: [classified]
  privileged: ["mail/*", files/write_file]
  rules:
    - name: big
      on: result
      when: size > 1000000
      unless: |
        server == "files" &&
          trust.server > 0.8
      then: ask
      question: "Is this large \"answer\" wanted?"
    - name: later
      on: call
      when: "tool == 'x'"
      then: deny
      mode: audit
`

func TestPolicy(t *testing.T) {
	r := parse(t, policyFile)
	for _, tt := range []struct {
		input policy.Input
		want  policy.Ruling
	}{
		{policy.Input{ServerTrust: .7, ToolTrust: .7, Size: 2_000_000},
			policy.Ruling{Match: policy.Match{Action: policy.Ask, Rule: "big", Question: `Is this large "answer" wanted?`}}},
		{policy.Input{Server: "files", ServerTrust: .9, ToolTrust: .7, Size: 2_000_000}, policy.Ruling{}},
		{policy.Input{ServerTrust: .7, ToolTrust: .7, Scores: []policy.Score{{Name: "a", Value: 1}}}, policy.Ruling{}},
		{policy.Input{ServerTrust: .7, ToolTrust: .4, Findings: []policy.Count{{Code: finding.HiddenTag, N: 1}}},
			policy.Ruling{Match: policy.Match{Action: policy.Hold, Rule: "distrusted-hidden"}}},
		{policy.Input{Direction: policy.Call, Tool: "x", ServerTrust: .7, ToolTrust: .7},
			policy.Ruling{Would: policy.Match{Action: policy.Deny, Rule: "later"}}},
	} {
		if got := r.Policy.Decide(&tt.input); got != tt.want {
			t.Errorf("%+v:\n%+v\nwant %+v", tt.input, got, tt.want)
		}
	}
	for tool, want := range map[[2]string]bool{{"mail", "send"}: true, {"files", "write_file"}: true, {"files", "read"}: false} {
		if r.Policy.Privileged(tool[0], tool[1]) != want {
			t.Errorf("%v", tool)
		}
	}
	again := parse(t, string(r.Effective()))
	if !Equal(r, again) {
		t.Errorf("read again it is another:\n%s\n%s", r.Effective(), again.Effective())
	}
	if none := parse(t, "version: 1"); none.Policy != nil || strings.Contains(string(none.Effective()), "policy") {
		t.Error("a policy that nobody has asked for")
	}
	if d := Diff(r, parse(t, "version: 1")); !slices.Equal(d.Sections, []string{"policy"}) {
		t.Errorf("%+v", d)
	}
}

// TestPolicyProblems: an expression's mistake stands where it stands in the file.
func TestPolicyProblems(t *testing.T) {
	rule := func(members string) string {
		return "version: 1\npolicy:\n  rules:\n    - name: r\n      on: result\n      then: hold\n" + members
	}
	for _, x := range []struct{ src, want string }{
		{rule("      when: trust.sever < 0.5"), "line 7, column 18: policy.rules[0].when: undeclared reference to 'trust.sever' (did you mean 'trust.server'?)"},
		{rule("      when: \"sizes > 1\""), "line 7, column 14: policy.rules[0].when: undeclared reference to 'sizes'"},
		{rule("      when: 'size > 1 && sizes > 1'"), "line 7, column 26: policy.rules[0].when: undeclared reference to 'sizes'"},
		{rule("      when: |\n        size > 1 &&\n          sizes > 1"), "line 9, column 11: policy.rules[0].when: undeclared reference to 'sizes'"},
		{rule("      when: |-\n        findings.count(\"hidden-tags\") > 0"), "line 8, column 24: policy.rules[0].when: want the code of a finding, not \"hidden-tags\""},
		{rule("      when: >\n        size > 1 &&\n        sizes > 1"), "line 7, column 13: policy.rules[0].when: at line 1, column 13 of the expression: undeclared reference to 'sizes'"},
		{rule("      when: \"\\x73izes > 1\""), "at line 1, column 1 of the expression: undeclared reference to 'sizes'"},
		{rule("      when: 1"), "line 7, column 13: policy.rules[0].when: want a string, not a number"},
		{rule("      when: \"true\"\n      unless: \"2\""), "line 8, column 16: policy.rules[0].unless: want a boolean, not int"},
		{rule("      when: \"true\"\n      whem: x"), "line 8, column 7: policy.rules[0].whem: there is no such member: is when meant?"},
		{rule(""), "policy.rules[0].when: is missing"},
		{rule("      when: \"true\"\n      profile: mcp"), "line 8, column 16: policy.rules[0].profile: is for then: sanitise"},
		{rule("      when: \"true\"\n    - name: r\n      on: call\n      when: \"true\"\n      then: deny"), "line 8, column 13: policy.rules[1].name: another rule has this name"},
		{"version: 1\npolicy: {preset: lax}", `line 2, column 18: policy.preset: want none, observe, standard or strict: "lax"`},
		{"version: 1\npolicy: {preset: standard, without: [x]}", `policy.without[0]: want the name of a rule of the preset: "x"`},
		{"version: 1\npolicy: {without: [classified]}", `policy.without[0]: want the name of a rule of the preset: "classified"`},
		{"version: 1\npolicy: {mode: loud}", "policy.mode: want enforce or audit"},
		{"version: 1\npolicy: {on_error: allow}", "policy.on_error: want hold or deny"},
		{"version: 1\npolicy: {privileged: [files]}", "policy.privileged[0]: want SERVER/TOOL"},
		{"version: 1\npolicy: {preset: standard, rules: [{name: classified, on: result, when: \"true\", then: hold}]}", "policy.rules[0].name: another rule has this name"},
		{"version: 1\ntrust: {rest: 0.5}", "trust: there is no such member"},
	} {
		if p := problemsOf(t, x.src); !strings.Contains(p[0].String(), x.want) {
			t.Errorf("%s\ngot  %s\nwant %s", x.src, p[0], x.want)
		}
	}
}

// TestPresets: every preset compiles, alone and in audit mode; each is at least as
// strict as the one before it; none denies, and observe does nothing.
func TestPresets(t *testing.T) {
	inputs := []policy.Input{
		{ServerTrust: .7, ToolTrust: .7},
		{ServerTrust: .5, ToolTrust: .5, Findings: []policy.Count{{Code: finding.HiddenTag, N: 1}}, NotInspected: 1},
		{ServerTrust: .05, ToolTrust: .05, Findings: []policy.Count{{Code: finding.ControlToken, N: 9}}, Scores: []policy.Score{{Name: "a", Value: .95}}},
		{ServerTrust: .7, ToolTrust: .7, Scores: []policy.Score{{Name: "a", Value: .6}}},
		{Direction: policy.Call, ServerTrust: .05, ToolTrust: .05, Privileged: true, Destructive: true},
		{Direction: policy.Call, ServerTrust: .65, ToolTrust: .65, Privileged: true, Destructive: true},
		{Direction: policy.Call, ServerTrust: 1, ToolTrust: 1, Privileged: true, Destructive: true},
	}
	strictness := make([]policy.Action, len(inputs))
	for _, name := range expr.Presets {
		p := parse(t, "version: 1\npolicy: {preset: "+name+"}").Policy
		for i, e := range inputs {
			d := p.Decide(&e)
			if d.Failed || d.Would.Failed || d.Action == policy.Deny || name == "observe" && d.Rule != "" {
				t.Errorf("%s: %+v: %+v", name, e, d)
			}
			would := max(d.Action, d.Would.Action)
			if would < strictness[i] {
				t.Errorf("%s: %+v: %s, and %s under a milder preset", name, e, would, strictness[i])
			}
			strictness[i] = would
		}
	}
	if want := []policy.Action{policy.Sanitise, policy.Hold, policy.Hold, policy.Hold, policy.Ask, policy.Ask, policy.Allow}; !slices.Equal(strictness, want) {
		t.Errorf("strict decides %v, want %v", strictness, want)
	}
}

func TestPolicyTest(t *testing.T) {
	const head = "policy: {preset: standard}\ncases:\n"
	good, err := parsePolicyTest([]byte(head+`  - name: clean
    event: {hints: {read_only: true}}
    want: allow
  - name: hidden
    event: {findings: {hidden-tag: 3, nfkc: 1}, trust: {tool: 0.3}, scores: {guard: 0.2}, size: 10, not_inspected: 1, scopes: [mcp]}
    want: {action: hold, rule: distrusted-hidden}
  - name: call
    event: {direction: call, server: files, tool: write, trust: {tool: 0.3}}
    want: {action: deny, would: ask}
`), newFixed().options())
	if err != nil {
		t.Fatal(err)
	}
	var got []bool
	for _, x := range good.Cases {
		_, ok := x.check(good.policy)
		got = append(got, ok)
	}
	if !slices.Equal(got, []bool{true, true, false}) || good.Cases[2].line != 9 {
		t.Errorf("%v, line %d", got, good.Cases[2].line)
	}
	for _, x := range []struct{ src, want string }{
		{"cases: []", "want either policy, or config"},
		{"policy: {preset: strict}\nconfig: x\ncases: []", "want either policy, or config"},
		{"policy: {preset: strict}", "cases: is missing"},
		{"policy: {preset: strict}\ncases: []", "cases: there are no cases"},
		{head + "  - {name: a, event: {findings: {x: 1}}, want: hold}", "cases[0].event.findings.x: not a name that can stand here"},
		{head + "  - {name: a, event: {sever: b}, want: hold}", "there is no such member: is server meant?"},
		{head + "  - {name: a, event: {}, want: maybe}", "cases[0].want: want allow, sanitise, ask, hold or deny"},
		{head + "  - {name: a, event: {}}", "cases[0].want: is missing"},
		{"config: nowhere.yaml\ncases: [{name: a, event: {}, want: hold}]", "config: "},
	} {
		_, err := parsePolicyTest([]byte(x.src), newFixed().options())
		var p Problems
		if !errors.As(err, &p) || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s\ngot  %v\nwant %s", x.src, err, x.want)
		}
	}
}

// TestPolicyExample holds the example of docs to what it says.
func TestPolicyExample(t *testing.T) {
	dir := filepath.Join("..", "..", "docs", "examples", "policy")
	src, err := os.ReadFile(filepath.Join(dir, "policy_cases.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	x, err := parsePolicyTest(src, Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range x.Cases {
		if d, ok := c.check(x.policy); !ok {
			t.Errorf("%s: %+v", c.name, d)
		}
	}
}

// FuzzPolicy: any bytes are a policy with cases that can be checked, or problems in ASCII.
func FuzzPolicy(f *testing.F) {
	f.Add([]byte("policy: {preset: strict}\ncases:\n  - {name: a, event: {findings: {hidden-tag: 1}}, want: hold}"))
	f.Add([]byte("policy:\n  rules:\n    - name: r\n      on: result\n      when: |\n        size > 1 &&\n          sizes > 1\n      then: hold\ncases: []"))
	f.Add([]byte("policy:\n  rules:\n    - {name: r, on: call, when: 'sizes', then: ask, question: q}\ncases: []"))
	f.Fuzz(func(t *testing.T, src []byte) {
		x, err := parsePolicyTest(src, newFixed().options())
		if err != nil {
			for _, c := range err.Error() {
				if (c < ' ' && c != '\n') || c > '~' {
					t.Fatalf("%q", err)
				}
			}
			return
		}
		for _, c := range x.Cases {
			c.check(x.policy)
		}
	})
}

// BenchmarkPolicy decides under the strictest preset.
func BenchmarkPolicy(b *testing.B) {
	r, err := Parse([]byte("version: 1\npolicy: {preset: strict}"), Options{})
	if err != nil {
		b.Fatal(err)
	}
	clean := policy.Input{Server: "files", Tool: "read_file", ServerTrust: .81, ToolTrust: .83, Size: 4096}
	b.ReportAllocs()
	for b.Loop() {
		clean.Size++
		r.Policy.Decide(&clean)
	}
}
