// SPDX-License-Identifier: Apache-2.0

package expr

import (
	"testing"

	"github.com/pellucid-mcp/pellucid/boundary/policy"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

func TestTry(t *testing.T) {
	unknown := []string{"size", "hints.read_only", "privileged", "principal.scopes", "scores"}
	for _, c := range []struct {
		when, unless string
		in           policy.Input
		want         policy.Action
		lacks        string
	}{
		{`size > 10`, "", policy.Input{}, policy.Allow, "size"},
		{`size > 10 && tool == "a"`, "", policy.Input{Tool: "b"}, policy.Allow, ""},
		{`tool == "a" && size > 10`, "", policy.Input{Tool: "a"}, policy.Allow, "size"},
		{`size > 10 || tool == "a"`, "", policy.Input{Tool: "a"}, policy.Hold, ""},
		{`!hints.read_only`, "", policy.Input{}, policy.Allow, "hints.read_only"},
		{`privileged ? tool == "a" : tool == "a"`, "", policy.Input{Tool: "a"}, policy.Allow, "privileged"},
		{`"x" in principal.scopes`, "", policy.Input{}, policy.Allow, "principal.scopes"},
		{`principal.scopes == ["x"]`, "", policy.Input{}, policy.Allow, "principal.scopes"},
		{`size + 1 == 3`, "", policy.Input{}, policy.Allow, "size"},
		{`findings.count("hidden-tag") > 0`, "", policy.Input{Findings: []policy.Count{{Code: finding.HiddenTag, N: 1}}}, policy.Hold, ""},
		{`findings.count("hidden-tag") > 0`, "size > 3", policy.Input{Findings: []policy.Count{{Code: finding.HiddenTag, N: 1}}}, policy.Allow, "size"},
		{`findings.count("hidden-tag") > 0`, "size > 3", policy.Input{}, policy.Allow, ""},
		{`scores.of("a") > 0.5`, "", policy.Input{Scores: []policy.Score{{Name: "a", Value: 0.9}}}, policy.Hold, ""},
		{`scores.of("b") > 0.5`, "", policy.Input{Scores: []policy.Score{{Name: "a", Value: 0.9}}}, policy.Allow, "scores"},
		{`scores.has("b")`, "", policy.Input{}, policy.Allow, "scores"},
		{`scores.worst() > 0.5`, "", policy.Input{}, policy.Allow, "scores"},
		{`trust.server < 0.5`, "", policy.Input{ServerTrust: 0.2}, policy.Hold, ""},
		{`true`, "", policy.Input{}, policy.Hold, ""},
	} {
		p, err := Compile(Source{Rules: []Rule{{Name: "r", On: policy.Result, When: c.when, Unless: c.unless, Then: policy.Hold}}})
		if err != nil {
			t.Errorf("%s: %v", c.when, err)
			continue
		}
		got := p.Try(&c.in, unknown)
		lacks := ""
		if len(got.Undecided) > 0 {
			lacks = got.Undecided[0].Lacks
		}
		if got.Action != c.want || lacks != c.lacks {
			t.Errorf("%s unless %q: %s, lacks %q", c.when, c.unless, got.Match, lacks)
		}
		// With everything known it is what Decide answers.
		if all, d := p.Try(&c.in, nil), p.Decide(&c.in); all.Ruling != d || len(all.Undecided) > 0 {
			t.Errorf("%s: %v, not %v", c.when, all, d)
		}
	}
	// What is not known matters only where it could be stricter.
	p, err := Compile(Source{Rules: []Rule{{Name: "big", When: "size > 3", Then: policy.Hold}, {Name: "all", When: "true", Then: policy.Deny}, {Name: "watch", When: "size > 3", Then: policy.Deny, Audit: true}}})
	if err != nil {
		t.Fatal(err)
	}
	if got := p.Try(&policy.Input{}, unknown); got.Rule != "all" || len(got.Undecided) > 0 {
		t.Errorf("%+v", got)
	}
}
