// SPDX-License-Identifier: Apache-2.0

package values_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/boundary/policy/expr"
	"github.com/pellucid-mcp/pellucid/boundary/policy/values"
	"github.com/pellucid-mcp/pellucid/model/counterfactual"
	"github.com/pellucid-mcp/pellucid/model/delegation"
	"github.com/pellucid-mcp/pellucid/model/format"
)

// context is one in which the user asks for something, and a tool has answered.
func context(tb testing.TB, user, read string) *counterfactual.Assembly {
	tb.Helper()
	q := func(s string) string { b, _ := json.Marshal(s); return string(b) }
	src := `{"model":"m","messages":[{"role":"user","content":` + q(user) + `},
		{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"read_file","arguments":"{}"}}]},
		{"role":"tool","tool_call_id":"c","content":` + q(read) + `}]}`
	a, err := counterfactual.Parse(format.Chat, []byte(src), counterfactual.ParseOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	return a
}

const (
	asked = "Pay Bob what bill.txt says."
	bill  = "Pay 1200.50 to DE89370400440532013000, questions to billing@waterworks.example, see https://a.example/bill"
	full  = `{"recipient":"Bob","amount":1200.5,"iban":"DE89370400440532013000","url":"https://a.example/other","note":"thanks for all",
		"mail":"who@evil.example","items":[{"url":"https://a.example/bill"}],"to":["Bob","Eve"],"flag":true,"nothing":null,"text_amount":" 1200.50 ","odd":"NaN"}`
)

var lists = map[string][]string{"payees": {"Bob", "Waterworks"}, "none": {}}

func rulings(tb testing.TB, r values.Rule, args string) []delegation.Ruling {
	tb.Helper()
	rules, err := values.Compile(values.Source{Rules: []values.Rule{r}, Lists: lists})
	if err != nil {
		tb.Fatalf("%s: %v", r.When, err)
	}
	a, c := context(tb, asked, bill), counterfactual.Call{Name: "send_money", Arguments: []byte(args)}
	origins, ok := a.Origins(&counterfactual.Privileges{}, c)
	if ok && origins == nil {
		origins = []counterfactual.Origin{}
	}
	return rules.Rulings(a, c, origins)
}

// TestConditions holds every name and function of the language to its meaning.
func TestConditions(t *testing.T) {
	const failed = -1
	for when, want := range map[string]int{
		`tool == "send_money"`:                                            1,
		`args.recipient in ["Bob", "Alice"]`:                              1,
		`args.recipient in ["bob"]`:                                       0,
		`listed("payees", args.recipient)`:                                1,
		`listed("none", args.recipient)`:                                  0,
		`listed("payees", args.amount)`:                                   failed,
		`double(args.amount) > 1000`:                                      1,
		`args.amount > 1000`:                                              1,
		`args.amount > 1200.5`:                                            0,
		`double(args.text_amount) == 1200.5`:                              1,
		`double(args.odd) > 1000`:                                         failed,
		`args.recipient > 1000`:                                           failed,
		`host(args.url) == "a.example"`:                                   1,
		`host(args.url) in ["b.example"]`:                                 0,
		`host(args.recipient + "@x") == "x"`:                              failed,
		`domain(args.mail) == "evil.example"`:                             1,
		`origin.recipient == "user"`:                                      1,
		`origin.iban == "data" && form.iban == "iban"`:                    1,
		`origin.url == "composed" && form.url == "url"`:                   1,
		`origin.mail == "nowhere" && form.mail == "mail"`:                 1,
		`origin.note == "free"`:                                           1,
		`origin.items == "data" && origin["items.url"] == "data"`:         1,
		`origin.amount == "data" && form.amount == "number"`:              1,
		`origin.to == "user"`:                                             0,
		`sources.iban == ["?/read_file"]`:                                 1,
		`size(sources.recipient) == 0`:                                    1,
		`origin.absent != "user"`:                                         failed,
		`has(args.absent) && args.absent == 1`:                            0,
		`!has(args.iban) || origin.iban == "user"`:                        0,
		`args.to.all(x, listed("payees", x))`:                             0,
		`args.to.exists(x, listed("payees", x))`:                          1,
		`args.items.all(i, host(i.url) == "a.example")`:                   1,
		`args.flag && args.nothing == null`:                               1,
		`args.note.contains("thanks") && !args.note.matches("^x")`:        1,
		`args["recipient"].startsWith("B") && args.amount * 2.0 > 2000.0`: 1,
	} {
		got := rulings(t, values.Rule{Name: "r", When: when, Then: delegation.Hold}, full)
		switch {
		case want == 0 && len(got) == 0:
		case want == 1 && len(got) == 1 && got[0].Says == delegation.Hold && !got[0].Failed:
		case want == failed && len(got) == 1 && got[0].Says == delegation.Ask && got[0].Failed:
		default:
			t.Errorf("%s: %+v, want %d", when, got, want)
		}
	}
}

// TestFailedConditions: a rule that cannot be evaluated asks; one that loosens does not.
func TestFailedConditions(t *testing.T) {
	for name, args := range map[string]string{
		"no JSON": `{"recipient":`, "no object": `[1]`, "a name twice": `{"a":1,"a":2}`, "too long": `{"a":"` + strings.Repeat("x", 70<<10) + `"}`,
		"too many": `{"to":[` + strings.Repeat(`"a@b.example",`, 3) + strings.TrimSuffix(strings.Repeat(`"x%d",`, 70), ",") + `]}`, "costs too much": `{"a":[` + strings.TrimSuffix(strings.Repeat(`1,`, 8000), ",") + `]}`,
	} {
		n := 0
		for strings.Contains(args, "%d") {
			n++
			args = strings.Replace(args, "%d", fmt.Sprint(n), 1)
		}
		when := `!has(args.a) || args.a.all(x, args.a.all(y, x == y))`
		if got := rulings(t, values.Rule{Name: "r", When: when, Then: delegation.Repair}, args); len(got) != 1 || got[0].Says != delegation.Ask || !got[0].Failed {
			t.Errorf("%s: %+v", name, got)
		}
		if got := rulings(t, values.Rule{Name: "r", When: when, Then: delegation.Pass}, args); len(got) != 1 || !got[0].Failed {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := rulings(t, values.Rule{Name: "r", When: "size(args) == 0", Then: delegation.Ask}, ""); len(got) != 1 || got[0].Failed {
		t.Errorf("a call without arguments: %+v", got)
	}
}

// TestHosts: a URL that programs read in different ways has no host.
func TestHosts(t *testing.T) {
	for url, want := range map[string]string{
		"https://A.example/x": "a.example", "a.example:8080/x": "a.example", "http://[::1]:80/": "::1", "https://a.example.": "a.example",
		`https://a.example\\@evil.example/`: "", "https://a.example@evil.example/": "", "https://a.example /": "", "https://a%2eexample/": "",
		"https://\u0430.example/": "", "javascript:alert(1)": "", "": "", "https:///x": "", "https://a..example/": "", "//evil.example/x": "", "https://a.example:/": "",
	} {
		got := rulings(t, values.Rule{Name: "r", When: `host(args.url) == "` + want + `"`, Then: delegation.Hold}, `{"url":"`+url+`"}`)
		if len(got) != 1 || got[0].Failed != (want == "") {
			t.Errorf("%q: %+v", url, got)
		}
	}
	for mail, want := range map[string]string{
		"who@A.example": "a.example", "a@b@c.example": "", "a.example": "", "<who@a.example>": "", "who@a.example,eve@b.example": "", "who@\u0430.example": "",
	} {
		got := rulings(t, values.Rule{Name: "r", When: `domain(args.to) == "` + want + `"`, Then: delegation.Hold}, `{"to":"`+mail+`"}`)
		if len(got) != 1 || got[0].Failed != (want == "") {
			t.Errorf("%q: %+v", mail, got)
		}
	}
}

func TestRefused(t *testing.T) {
	ok := values.Rule{Name: "r", When: "true", Then: delegation.Ask}
	with := func(change func(*values.Rule)) values.Source {
		r := ok
		change(&r)
		return values.Source{Rules: []values.Rule{r}, Lists: lists}
	}
	for _, tt := range []struct {
		source       values.Source
		member       string
		line, column int
		fault        string
	}{
		{with(func(r *values.Rule) { r.Name = "A b" }), "name", 0, 0, "want 1 to 64"},
		{values.Source{Rules: []values.Rule{ok, ok}}, "name", 0, 0, "another rule"},
		{with(func(r *values.Rule) { r.Then = "allow" }), "then", 0, 0, "want pass, mark, ask, hold or repair"},
		{with(func(r *values.Rule) { r.Verdicts = []delegation.Verdict{delegation.Delegated} }), "verdicts", 0, 0, "pass or mark"},
		{with(func(r *values.Rule) { r.When = "args.a" }), "when", 1, 1, "want a boolean"},
		{with(func(r *values.Rule) { r.When = "" }), "when", 1, 1, "Syntax error"},
		{with(func(r *values.Rule) { r.When = "true &&\n  arg.a == 1" }), "when", 2, 3, "undeclared reference to 'arg'"},
		{with(func(r *values.Rule) { r.When = `listed("payee", args.to)` }), "when", 1, 8, "want the name of one of guard.lists"},
		{with(func(r *values.Rule) { r.When = `listed(tool, args.to)` }), "when", 1, 8, "want the name of one of guard.lists"},
		{with(func(r *values.Rule) { r.When = `origin.to == 1` }), "when", 1, 11, "no matching overload"},
		{with(func(r *values.Rule) { r.When = `timestamp("2026-01-01T00:00:00Z") < now` }), "when", 1, 10, "undeclared reference"},
		{values.Source{Rules: make([]values.Rule, values.MaxRules+1)}, "values", 0, 0, "more than"},
	} {
		_, err := values.Compile(tt.source)
		var p expr.Problems
		if !errors.As(err, &p) || !slices.ContainsFunc(p, func(f expr.Problem) bool {
			return f.Member == tt.member && f.Line == tt.line && f.Column == tt.column && strings.Contains(f.Fault, tt.fault)
		}) {
			t.Errorf("%s %s: %v", tt.member, tt.fault, err)
		}
	}
}

func TestNames(t *testing.T) {
	rules, err := values.Compile(values.Source{Rules: []values.Rule{{Name: "a", Tool: "send_*", When: "true", Then: delegation.Ask}, {Name: "b", Tool: "get_url", When: "true", Then: delegation.Pass}}})
	if err != nil {
		t.Fatal(err)
	}
	for tool, want := range map[string]bool{"send_money": true, "get_url": true, "get_urls": false, "resend_": false} {
		if rules.Names(tool) != want {
			t.Error(tool)
		}
	}
}

// FuzzValues: no arguments and no condition end anything, and what cannot be evaluated asks.
func FuzzValues(f *testing.F) {
	for _, when := range []string{`double(args.amount) > 1000`, `origin.recipient != "user"`, `args.to.all(x, listed("payees", x))`, `host(args.url) in ["a"]`, `domain(args.mail) == "x"`} {
		f.Add(when, full)
	}
	f.Fuzz(func(t *testing.T, when, args string) {
		rules, err := values.Compile(values.Source{Rules: []values.Rule{{Name: "r", When: when, Then: delegation.Hold}}, Lists: lists})
		if err != nil {
			return
		}
		a, c := context(t, asked, bill), counterfactual.Call{Name: "send_money", Arguments: []byte(args)}
		origins, ok := a.Origins(&counterfactual.Privileges{}, c)
		if ok && origins == nil {
			origins = []counterfactual.Origin{}
		}
		got := rules.Rulings(a, c, origins)
		if len(got) > 1 || len(got) == 1 && got[0].Failed != (got[0].Says == delegation.Ask) {
			t.Errorf("%+v", got)
		}
		if !ok && len(got) != 1 {
			t.Error("what cannot be read passes")
		}
	})
}
