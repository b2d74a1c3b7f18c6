// SPDX-License-Identifier: Apache-2.0

package expr

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/pellucid-mcp/pellucid/boundary/policy"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

func mustCompile(tb testing.TB, s Source) *Rules {
	tb.Helper()
	p, err := Compile(s)
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

// one is a policy of one rule that holds a result.
func one(when string) Source {
	return Source{Rules: []Rule{{Name: "r", When: when, Then: policy.Hold}}}
}

var poisoned = policy.Input{
	Server: "files", Tool: "read_file", ReadOnly: true, OpenWorld: true,
	Findings:     []policy.Count{{Code: finding.HiddenTag, N: 12}, {Code: finding.ControlToken, N: 1}, {Code: finding.NFKC, N: 3}},
	NotInspected: 1, Scores: []policy.Score{{Name: "guard", Value: .8}, {Name: "sentry", Value: .3}}, Size: 4096,
	ServerTrust: .7, ToolTrust: .4, Scopes: []string{"mcp", "admin"},
	Facts: &policy.Facts{
		Args: map[string]any{"/path": "/etc/passwd", "/n": int64(9007199254740993), "/u": uint64(1<<63 + 1), "/x": 0.1, "/yes": true, "/none": nil, "/a~1b/~0/0": "deep",
			"/to": []any{"ann@x.example", int64(7), policy.Object{}}, "/object": policy.Object{}},
		Claims: map[string]any{"department": "finance", "groups": []any{"staff", "admins"}, "https://id.example/level": int64(3)},
	},
	Session: policy.Session{Calls: 12, Held: 1, CallsOf: map[string]int{"files/read_file": 9}},
}

// TestExpressions holds every name and function of the language to its meaning.
func TestExpressions(t *testing.T) {
	for when, want := range map[string]bool{
		`direction == "result"`:                                true,
		`direction == "call"`:                                  false,
		`server == "files" && tool.startsWith("read_")`:        true,
		`tool.matches("^write_")`:                              false,
		`tool.contains("file") && tool.endsWith("file")`:       true,
		`hints.read_only && !hints.destructive`:                true,
		`hints.open_world && !privileged`:                      true,
		`findings.count("hidden-tag") == 12`:                   true,
		`findings.count("hidden-bidi") > 0`:                    false,
		`findings.class("hidden") == 12`:                       true,
		`findings.class("token") == 1`:                         true,
		`findings.class("other") == 3`:                         true,
		`findings.class("markup") + findings.class("uri") > 0`: false,
		`severity == error`:                                    true,
		`severity >= warn && severity > info`:                  true,
		`not_inspected == 1`:                                   true,
		`scores.has("guard") && scores.of("guard") > 0.5`:      true,
		`scores.has("other") && scores.of("other") > 0.5`:      false,
		`scores.worst() == 0.8`:                                true,
		`size > 4095 && size < 4097`:                           true,
		`trust.server == 0.7 && trust.tool == 0.4`:             true,
		`"admin" in principal.scopes`:                          true,
		`"root" in principal.scopes`:                           false,
		`server in ["files", "mail"] ? true : false`:           true,
		`server != "files"`:                                    false,

		`args["/path"].startsWith("/etc/")`:                               true,
		`args["/path"].matches("^/(etc|root)(/|$)")`:                      true,
		`args["/n"] == 9007199254740993 && args["/n"] > 9007199254740992`: true,
		`args["/n"] == 9007199254740992`:                                  false,
		`args["/u"] > 9223372036854775807`:                                true,
		`args["/x"] == 0.1 && args["/x"] < 1`:                             true,
		`args["/yes"] && args["/none"] == null`:                           true,
		`args["/a~1b/~0/0"] == "deep"`:                                    true,
		`"ann@x.example" in args["/to"] && 7 in args["/to"]`:              true,
		`"bob" in args["/to"]`:                                            false,
		`size(args["/to"]) == 3`:                                          true,
		`"/missing" in args`:                                              false,
		`"/missing" in args && args["/missing"] == 1`:                     false,
		`"/object" in args`:                                               true,
		`args["/object"] == 1 || args["/n"] == "7"`:                       false,
		`principal.claims["department"] == "finance"`:                     true,
		`"admins" in principal.claims["groups"]`:                          true,
		`principal.claims["https://id.example/level"] >= 3`:               true,
		`"email" in principal.claims`:                                     false,
		`session.calls == 12 && session.held == 1`:                        true,
		`session.calls_of("files/read_file") > 8`:                         true,
		`session.calls_of("mail/send") > 0`:                               false,
	} {
		p, err := Compile(one(when))
		if err != nil {
			t.Errorf("%s: %v", when, err)
			continue
		}
		event := poisoned
		if d := p.Decide(&event); (d.Rule == "r") != want || d.Failed {
			t.Errorf("%s: %+v", when, d)
		}
	}
}

// TestUnreadableFails: a value that could be what a rule looks for fails the rule, but for the question whether it is there.
func TestUnreadableFails(t *testing.T) {
	in := policy.Input{Facts: &policy.Facts{Args: map[string]any{"/to": policy.Unreadable{}}, Claims: map[string]any{"groups": policy.Unreadable{}}}}
	for when, fails := range map[string]bool{
		`"/to" in args`:                          false,
		`args["/to"] == "mallory"`:               true,
		`"mallory" == args["/to"]`:               true,
		`args["/to"] != "ann"`:                   true,
		`args["/to"] == null`:                    true,
		`args["/to"] in ["mallory"]`:             true,
		`"mallory" in args["/to"]`:               true,
		`size(args["/to"]) > 1`:                  true,
		`!args["/to"].endsWith("x")`:             true,
		`"guests" in principal.claims["groups"]`: true,
		`args["/to"] == 1 ? true : false`:        true,
	} {
		event := in
		if d := mustCompile(t, one(when)).Decide(&event); d.Rule != "r" || d.Failed != fails {
			t.Errorf("%s: %+v", when, d)
		}
	}
}

// TestRefused: what is no expression, or names what there is not, has its place.
func TestRefused(t *testing.T) {
	for _, tt := range []struct {
		when         string
		line, column int
		fault        string
	}{
		{"", 1, 1, "Syntax error"},
		{"trust.sever < 0.5", 1, 6, "undeclared reference to 'trust.sever' (did you mean 'trust.server'?)"},
		{"server ==\n  tol", 2, 3, "undeclared reference to 'tol'"},
		{"size", 1, 1, "want a boolean, not int"},
		{"size > 0.5", 1, 6, "found no matching overload"},
		{`findings.count("hidden-tags") > 0`, 1, 16, `want the code of a finding, not "hidden-tags"`},
		{`findings.count(server) > 0`, 1, 16, "want the code of a finding in quotes"},
		{`findings.class("emoji") > 0`, 1, 16, "want one of hidden, token, markup, uri, schema, other"},
		{`findings.class("hidden token") > 0`, 1, 16, `other, not "hidden token"`},
		{`scores.of("a b") > 0.5`, 1, 11, "want the name of a classifier"},
		{`tool.matches(server)`, 1, 14, "want a regular expression in quotes"},
		{`tool.matches("(")`, 1, 1, "missing"},
		{`findings.codes.size() > 0`, 1, 9, "type 'findings' does not support field selection"},
		{`[1, 2].exists(x, x > 1)`, 1, 14, "undeclared reference to 'exists'"},
		{`timestamp("2026-01-01T00:00:00Z") < now`, 1, 10, "undeclared reference to 'timestamp'"},
		{`dyn(server).x`, 1, 4, "undeclared reference to 'dyn'"},
		{strings.Repeat("(", 200) + "true" + strings.Repeat(")", 200), 1, 0, "recursion"},
		{"true || " + strings.Repeat("x", MaxExpression), 1, 0, "size"},
		{strings.Repeat(`tool.contains("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa") || `, 40) + "true", 1, 1, "costs too much in the worst case"},
		{`args.path == "x"`, 1, 1, `want args["/NAME"], a JSON pointer, or "/NAME" in args`},
		{`args["path"] == "x"`, 1, 1, "a JSON pointer"},
		{`args["/a~2"] == "x"`, 1, 1, "a JSON pointer"},
		{`args[""] == "x"`, 1, 1, "a JSON pointer"},
		{`args[tool] == "x"`, 1, 1, "a JSON pointer"},
		{`size(args) > 3`, 1, 6, "a JSON pointer"},
		{`args == principal.claims`, 1, 1, "a JSON pointer"},
		{`tool in args`, 1, 9, "a JSON pointer"},
		{`principal.claims.email == "x"`, 1, 10, `want principal.claims["NAME"]`},
		{`principal.claims[server] == "x"`, 1, 10, `want principal.claims["NAME"]`},
		{`session.calls_of("read") > 1`, 1, 18, "want SERVER/TOOL"},
		{`args["/x"].matches("x{700}y{700}")`, 1, 20, "the regular expressions of the policy do too much"},
		{`args["/x"].contains(args["/y"]) && true`, 1, 1, "costs too much"},
		{"\u202e", 1, 1, `\u202e`},
		{"true\x00", 1, 0, ""},
	} {
		_, err := Compile(one(tt.when))
		var p Problems
		if !errors.As(err, &p) {
			t.Errorf("%.60q: %v", tt.when, err)
			continue
		}
		f := p[0]
		if f.Rule != 0 || f.Member != "when" || f.Line != tt.line || tt.column > 0 && f.Column != tt.column || !strings.Contains(f.Fault, tt.fault) {
			t.Errorf("%.60q: line %d, column %d: %s", tt.when, f.Line, f.Column, f.Fault)
		}
		if s := p.Error(); strings.Trim(s, asciiPrintable+"\n") != "" {
			t.Errorf("%.60q: shown raw: %q", tt.when, s)
		}
	}
}

var asciiPrintable = func() string {
	var b strings.Builder
	for c := byte(' '); c <= '~'; c++ {
		b.WriteByte(c)
	}
	return b.String()
}()

func TestRefusedRules(t *testing.T) {
	ok := Rule{Name: "r", When: "true", Then: policy.Hold}
	for _, tt := range []struct {
		change func(*Rule)
		member string
	}{
		{func(r *Rule) { r.Name = "" }, "name"},
		{func(r *Rule) { r.Name = "A b" }, "name"},
		{func(r *Rule) { r.On = 7 }, "on"},
		{func(r *Rule) { r.Then = 7 }, "then"},
		{func(r *Rule) { r.Then, r.Profile = policy.Sanitise, "faithful" }, "profile"},
		{func(r *Rule) { r.Then, r.On = policy.Sanitise, policy.Call }, "then"},
		{func(r *Rule) { r.Profile = "mcp" }, "profile"},
		{func(r *Rule) { r.Then = policy.Ask }, "question"},
		{func(r *Rule) { r.Question = "why?" }, "question"},
		{func(r *Rule) { r.Unless = "1" }, "unless"},
	} {
		r := ok
		tt.change(&r)
		_, err := Compile(Source{Rules: []Rule{r}})
		var p Problems
		if !errors.As(err, &p) || len(p) != 1 || p[0].Member != tt.member {
			t.Errorf("%s: %v", tt.member, err)
		}
	}
	if _, err := Compile(Source{Rules: []Rule{ok, ok}}); err == nil {
		t.Error("two rules of one name")
	}
	if _, err := Compile(Source{OnError: policy.Sanitise}); err == nil || err.Error() != "policy: refused:\n  on_error: want hold or deny" {
		t.Errorf("a failure that is let through: %v", err)
	}
	if _, err := Compile(Source{Rules: make([]Rule, MaxRules+1)}); err == nil {
		t.Error("too many rules")
	}
}

func TestDecide(t *testing.T) {
	rule := func(name, when string, then policy.Action, more ...func(*Rule)) Rule {
		r := Rule{Name: name, When: when, Then: then}
		for _, m := range more {
			m(&r)
		}
		if then == policy.Ask {
			r.Question = "why?"
		}
		return r
	}
	audit := func(r *Rule) { r.Audit = true }
	const fails = `scores.of("absent") > 0.5`
	hold := policy.Match{Action: policy.Hold, Rule: "hold"}
	mcp := policy.Match{Action: policy.Sanitise, Rule: "mcp"}
	for _, tt := range []struct {
		name string
		of   Source
		want policy.Ruling
	}{
		{"nothing", Source{}, policy.Ruling{}},
		{"no match", Source{Rules: []Rule{rule("hold", "false", policy.Hold)}}, policy.Ruling{}},
		{"strictest wins", Source{Rules: []Rule{rule("allow", "true", policy.Allow), rule("mcp", "true", policy.Sanitise), rule("hold", "true", policy.Hold)}}, policy.Ruling{Match: hold}},
		{"allow is a match", Source{Rules: []Rule{rule("allow", "true", policy.Allow)}}, policy.Ruling{Match: policy.Match{Rule: "allow"}}},
		{"unless", Source{Rules: []Rule{rule("hold", "true", policy.Hold, func(r *Rule) { r.Unless = `server == "files"` }), rule("mcp", "true", policy.Sanitise)}}, policy.Ruling{Match: mcp}},
		{"question", Source{Rules: []Rule{rule("ask", "true", policy.Ask)}}, policy.Ruling{Match: policy.Match{Action: policy.Ask, Rule: "ask", Question: "why?"}}},
		{"audit", Source{Audit: true, Rules: []Rule{rule("hold", "true", policy.Hold)}}, policy.Ruling{Would: hold}},
		{"audit of one rule", Source{Rules: []Rule{rule("hold", "true", policy.Hold, audit), rule("mcp", "true", policy.Sanitise)}}, policy.Ruling{Match: mcp, Would: hold}},
		{"audit that is no stricter", Source{Rules: []Rule{rule("hold", "true", policy.Hold), rule("mcp", "true", policy.Sanitise, audit)}}, policy.Ruling{Match: hold}},
		{"failure", Source{Rules: []Rule{rule("hold", fails, policy.Allow)}}, policy.Ruling{Match: policy.Match{Action: policy.Hold, Rule: "hold", Failed: true}}},
		{"failure of an exception", Source{Rules: []Rule{rule("mcp", "true", policy.Sanitise, func(r *Rule) { r.Unless = fails })}}, policy.Ruling{Match: policy.Match{Action: policy.Hold, Rule: "mcp", Failed: true}}},
		{"failure denies", Source{OnError: policy.Deny, Rules: []Rule{rule("hold", "true", policy.Hold), rule("mcp", fails, policy.Sanitise)}}, policy.Ruling{Match: policy.Match{Action: policy.Deny, Rule: "mcp", Failed: true}}},
		{"failure in audit", Source{Audit: true, Rules: []Rule{rule("mcp", fails, policy.Sanitise)}}, policy.Ruling{Would: policy.Match{Action: policy.Hold, Rule: "mcp", Failed: true}}},
		{"overflow fails", Source{Rules: []Rule{rule("hold", "size + 9223372036854775807 > 0", policy.Deny)}}, policy.Ruling{Match: policy.Match{Action: policy.Hold, Rule: "hold", Failed: true}}},
		{"the other direction", Source{Rules: []Rule{rule("hold", "true", policy.Hold, func(r *Rule) { r.On = policy.Call })}}, policy.Ruling{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			event := poisoned
			if got := mustCompile(t, tt.of).Decide(&event); got != tt.want {
				t.Errorf("got %+v\nwant %+v", got, tt.want)
			}
		})
	}
}

// TestReuse: nothing of one event is left when the next is decided on.
func TestReuse(t *testing.T) {
	src := Source{Rules: []Rule{
		{Name: "server", When: `server == "files"`, Then: policy.Deny},
		{Name: "tool", When: `tool == "read_file"`, Then: policy.Hold},
		{Name: "size", When: `size > 4000`, Then: policy.Ask, Question: "q"},
		{Name: "trust", When: `trust.server == 0.7 || trust.tool == 0.4 || "admin" in principal.scopes || scores.worst() > 0.5`, Then: policy.Sanitise},
	}}
	events := []policy.Input{poisoned, {}, {Server: "mail", Tool: "read_file"}, {Server: "mail", Tool: "send", Size: 5000}, poisoned, {Scopes: []string{"admin"}}, {}, {ToolTrust: .4}, {Size: 1}}
	warm := mustCompile(t, src)
	for i, e := range events {
		fresh := e
		if got, want := warm.Decide(&e), mustCompile(t, src).Decide(&fresh); got != want {
			t.Errorf("event %d: %+v, by a fresh policy %+v", i, got, want)
		}
	}
}

// TestUnknownNumbers: what is no number is never a reason to trust.
func TestUnknownNumbers(t *testing.T) {
	event := policy.Input{ServerTrust: math.NaN(), ToolTrust: math.NaN(), Scores: []policy.Score{{Name: "a", Value: .1}, {Name: "b", Value: math.NaN()}}}
	for _, when := range []string{`trust.server < 0.1 && trust.tool < 0.1`, `scores.worst() >= 0.9`, `scores.of("b") >= 0.9`} {
		if d := mustCompile(t, one(when)).Decide(&event); d.Action != policy.Hold || d.Failed {
			t.Errorf("%s: %+v", when, d)
		}
	}
}

// TestMeter: what may cost much is metered while it runs; what cannot, is not.
func TestMeter(t *testing.T) {
	event := policy.Input{Tool: strings.Repeat("a", 200), Scopes: []string{strings.Repeat("s", 200)}}
	long := one(`tool == "other" && ` + strings.Repeat(`tool.contains("xyz") || `, 20) + `principal.scopes == []`)
	if d := mustCompile(t, long).Decide(&event); d.Action != policy.Hold || d.Failed {
		t.Errorf("%+v", d)
	}
}

var genRule = rapid.Custom(func(t *rapid.T) Rule {
	r := Rule{Then: policy.Action(rapid.IntRange(0, int(policy.Deny)).Draw(t, "then")), Audit: rapid.Bool().Draw(t, "audit"),
		When: rapid.SampledFrom([]string{"true", "false", `scores.of("absent") > 0.5`, "trust.tool < 0.5", "severity >= error"}).Draw(t, "when")}
	if r.Then == policy.Ask {
		r.Question = "why?"
	}
	return r
})

// TestStrictest: the order of rules changes no action, and one more rule loosens nothing.
func TestStrictest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rules := rapid.SliceOfN(genRule, 1, 6).Draw(t, "rules")
		for i := range rules {
			rules[i].Name = string(rune('a' + i))
		}
		onError := rapid.SampledFrom([]policy.Action{policy.Hold, policy.Deny}).Draw(t, "on_error")
		decide := func(rules []Rule) policy.Ruling {
			p, err := Compile(Source{Rules: rules, OnError: onError})
			if err != nil {
				t.Fatal(err)
			}
			event := poisoned
			return p.Decide(&event)
		}
		would := func(d policy.Ruling) policy.Action { return max(d.Action, d.Would.Action) }
		all := decide(rules)
		if other := decide(rapid.Permutation(rules).Draw(t, "order")); other.Action != all.Action || would(other) != would(all) {
			t.Fatalf("%+v in another order is %+v", all, other)
		}
		if fewer := decide(rules[:len(rules)-1]); fewer.Action > all.Action || would(fewer) > would(all) {
			t.Fatalf("%+v without the last rule is %+v", all, fewer)
		}
	})
}

func TestPresets(t *testing.T) {
	for _, name := range Presets {
		if b, ok := Preset(name); !ok || len(b) == 0 {
			t.Errorf("%s is missing", name)
		}
	}
	if _, ok := Preset("../policy"); ok {
		t.Error("a preset by path")
	}
}

// FuzzCompile: any text is an expression that decides on every event, or problems in ASCII.
func FuzzCompile(f *testing.F) {
	for _, s := range []string{"true", `findings.count("hidden-tag") > 0`, `scores.of("a") > 0.5 || tool.matches("^a{1,9}")`, "((((", "\u202e", `"\xff"`, "size + size > 1 ? true : false",
		`tool + tool + tool == server`, "`a`.b", "{1: 2}[1] == 2", "a.b.c{d: 1}", "1 in [1]", "r'''x'''", "-9223372036854775808 - size < 0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, when string) {
		p, err := Compile(one(when))
		if err != nil {
			if strings.Trim(err.Error(), asciiPrintable+"\n") != "" {
				t.Fatalf("shown raw: %q", err)
			}
			return
		}
		event := poisoned
		if d := p.Decide(&event); d.Action != policy.Allow && d.Action != policy.Hold {
			t.Fatalf("%+v", d)
		}
	})
}

// FuzzDecide: no event makes a rule panic, and what rules say of it does not depend on what was decided before.
func FuzzDecide(f *testing.F) {
	f.Add("files", "read", "hidden-tag", "guard", "mcp", 3, .5, .2, uint8(5))
	f.Add("", strings.Repeat("x", 300), "", "", "", -1, math.NaN(), math.Inf(1), uint8(255))
	src := Source{Rules: []Rule{
		{Name: "a", When: `findings.count("hidden-tag") > 0 && trust.tool < 0.5`, Then: policy.Hold},
		{Name: "b", When: `scores.of("guard") > 0.5 || size > 100`, Then: policy.Deny},
		{Name: "c", When: `"mcp" in principal.scopes && tool.matches("x+y")`, Then: policy.Ask, Question: "q", On: policy.Call},
		{Name: "d", When: `severity >= warn || not_inspected + size > 3`, Unless: `hints.read_only`, Then: policy.Sanitise},
	}}
	warm := mustCompile(f, src)
	f.Fuzz(func(t *testing.T, server, tool, code, classifier, scope string, n int, x, y float64, flags uint8) {
		event := policy.Input{Direction: policy.Direction(flags & 1), Server: server, Tool: tool, ReadOnly: flags&2 != 0, Privileged: flags&4 != 0,
			Findings: []policy.Count{{Code: finding.Code(code), N: n}}, NotInspected: n, Scores: []policy.Score{{Name: classifier, Value: x}}, Size: n,
			ServerTrust: x, ToolTrust: y, Scopes: []string{scope}}
		fresh := event
		if got, want := warm.Decide(&event), mustCompile(t, src).Decide(&fresh); got != want {
			t.Fatalf("%+v, by a fresh policy %+v", got, want)
		}
	})
}

func BenchmarkDecide(b *testing.B) {
	p := mustCompile(b, Source{Rules: []Rule{
		{Name: "distrusted-hidden", When: `trust.tool < 0.5 && findings.class("hidden") + findings.class("token") > 0`, Then: policy.Hold},
		{Name: "classified", When: `scores.worst() >= 0.9`, Then: policy.Hold},
		{Name: "no-honest-use", When: `severity >= error`, Then: policy.Hold},
		{Name: "suspected", When: `scores.worst() >= 0.5`, Then: policy.Hold},
		{Name: "unread", When: `not_inspected > 0 && trust.server < 0.6`, Then: policy.Hold},
		{Name: "distrusted", When: `trust.server < 0.6 || trust.tool < 0.6`, Then: policy.Sanitise},
	}})
	clean := policy.Input{Server: "files", Tool: "read_file", ServerTrust: .81, ToolTrust: .83, Size: 4096}
	for name, event := range map[string]policy.Input{"clean": clean, "poisoned": poisoned} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				event.Size++
				p.Decide(&event)
			}
		})
	}
}

func TestReadsTrust(t *testing.T) {
	for when, want := range map[string]bool{"size > 3": false, "trust.tool < 0.5": true, "size > 3 || trust . server < 0.5": true} {
		if got := mustCompile(t, one(when)).Reads().Trust; got != want {
			t.Errorf("%s: %v", when, got)
		}
	}
	s := one("size > 3")
	if s.Rules[0].Unless = "trust.server > 0.9"; !mustCompile(t, s).Reads().Trust {
		t.Error("of unless: false")
	}
}

// TestFactsFail: what is missing, not known, or cannot be compared makes a rule fail, and is never false.
func TestFactsFail(t *testing.T) {
	for _, when := range []string{`args["/missing"] == 1`, `args["/path"] > 1`, `args["/object"] > 1`, `args["/object"].startsWith("a")`, `args["/n"].contains("9")`,
		`principal.claims["email"] == "x"`, `args["/to"] > 1`, `args["/none"] > 0`, `size(args["/n"]) > 1`} {
		event := poisoned
		if d := mustCompile(t, one(when)).Decide(&event); d.Action != policy.Hold || !d.Failed {
			t.Errorf("%s: %+v", when, d)
		}
	}
	event := poisoned
	event.Facts = nil
	for _, when := range []string{`"/path" in args`, `args["/path"] == "x"`, `"a" in principal.claims`} {
		if d := mustCompile(t, one(when)).Decide(&event); d.Action != policy.Hold || !d.Failed {
			t.Errorf("%s: %+v", when, d)
		}
	}
}

// TestReads: what is kept of a call is what the rules read, once each.
func TestReads(t *testing.T) {
	p := mustCompile(t, Source{Rules: []Rule{
		{Name: "a", When: `args["/b"] == 1 || "/a" in args`, Unless: `args["/b"] == 2 && principal.claims["groups"] == []`, Then: policy.Hold},
		{Name: "b", When: `session.calls > 3`, Then: policy.Hold},
	}})
	if got := p.Reads(); !slices.Equal(got.Args, []string{"/b", "/a"}) || !slices.Equal(got.Claims, []string{"groups"}) || !got.Session {
		t.Errorf("%+v", got)
	}
	if got := mustCompile(t, one("size > 3")).Reads(); got.Args != nil || got.Claims != nil || got.Session {
		t.Errorf("%+v", got)
	}
	var many []string
	for i := range maxReads + 1 {
		many = append(many, fmt.Sprintf(`"/%d" in args`, i))
	}
	if _, err := Compile(one(strings.Join(many, " || "))); err == nil || !strings.Contains(err.Error(), "more than 64") {
		t.Error(err)
	}
}

// TestFactsAreBounded: what a rule that is accepted does with the longest values takes no longer than its cost allows.
func TestFactsAreBounded(t *testing.T) {
	long, list := strings.Repeat("a", policy.MaxValue), make([]any, policy.MaxElements)
	for i := range list {
		list[i] = long
	}
	event := policy.Input{Facts: &policy.Facts{Args: map[string]any{"/a": long, "/l": list}}}
	for _, when := range []string{`args["/a"].matches("^(a+)+(a|aa)*b$")`, `args["/a"].contains("aaaaaaaaab")`, `args["/a"] + "b" == args["/a"]`, `"x" in args["/l"]`, `args["/l"] == args["/l"]`} {
		p, err := Compile(one(when))
		if err != nil {
			continue // refused before it costs anything
		}
		begun := testing.Benchmark(func(b *testing.B) {
			for b.Loop() {
				p.Decide(&event)
			}
		})
		if begun.NsPerOp() > 100_000_000 {
			t.Errorf("%s takes %d ms", when, begun.NsPerOp()/1_000_000)
		}
	}
}
