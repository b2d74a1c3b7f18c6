// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/boundary/gateway"
	"github.com/pellucid-mcp/pellucid/boundary/policy"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/text/frame"
)

// TestWrapRules: what the flags say stands in the rules, each in its place.
func TestWrapRules(t *testing.T) {
	for _, name := range []string{"XDG_CONFIG_HOME", "HOME", "APPDATA"} {
		t.Setenv(name, t.TempDir())
	}
	for _, tt := range []struct {
		args []string
		is   func(r *rules.Rules, s *rules.Server, g *gateway.Rule) bool
	}{
		{[]string{"--", "server", "-x"}, func(r *rules.Rules, s *rules.Server, g *gateway.Rule) bool {
			return s.Name == "server" && slices.Equal(s.Command, []string{"server", "-x"}) && s.Admission.Pins == policy.Enforce && s.Admission.Wide && !s.DangerouslyAllowSampling &&
				g.Profile == gateway.Faithful && g.Frame == frame.KindFence && g.Timeout == 10*time.Minute && g.PassUnverifiable && g.Mode == policy.Enforce &&
				r.Evidence.Mode == rules.NoEvidence && r.Policy == nil && r.Review == nil && r.Reviewers == nil && len(s.Tool("x").Classifiers) == 0
		}},
		{[]string{"--name", "n", "--profile", "mcp", "--frame", "meta", "--set", "validate=audit", "--timeout", "3s", "--set", "structured=text", "--", "a"}, func(_ *rules.Rules, s *rules.Server, g *gateway.Rule) bool {
			return s.Name == "n" && g.Profile == gateway.MCP && g.Frame == frame.KindMeta && g.Mode == policy.Audit && g.Timeout == 3*time.Second && g.StructuredText
		}},
		{[]string{"--frame", "llm", "--set", "llm.provider=Example AI", "--", "a"}, func(_ *rules.Rules, _ *rules.Server, g *gateway.Rule) bool {
			return g.Frame == frame.KindLLM && g.LLM != nil
		}},
		{[]string{"--env", "A=b=c", "--env", "HOME", "--cwd", "/d", "--", "a"}, func(_ *rules.Rules, s *rules.Server, _ *gateway.Rule) bool {
			return slices.Equal(s.Environ(), []string{"A=b=c"}) && slices.Equal(s.Inherit, []string{"HOME"}) && s.Cwd == "/d"
		}},
		{[]string{"--url", "env:THE_URL", "--transport", "sse", "--header", "X-Key=env:THE_KEY"}, func(_ *rules.Rules, s *rules.Server, _ *gateway.Rule) bool {
			return s.Command == nil && s.URL.Reveal() == "https://mcp.example/?key=k" && s.URL.String() == "env:THE_URL" && s.Transport == wire.HTTPWithSSE && s.Header().Get("X-Key") == "secret"
		}},
		{[]string{"--set", "admission.pins=audit", "--set", "pin=12", "--set", "admission.wide=false", "--set", "dangerously_allow_sampling=true", "--", "a"}, func(_ *rules.Rules, s *rules.Server, _ *gateway.Rule) bool {
			return s.Pin == "12" && s.Admission.Pins == policy.Audit && !s.Admission.Wide && s.DangerouslyAllowSampling
		}},
		{[]string{"--set", "admission.pins=off", "--evidence", "required", "--set", "classify=local", "--set", "hold=hidden-tag,hidden-bidi", "--", "a"}, func(r *rules.Rules, s *rules.Server, g *gateway.Rule) bool {
			return s.Admission.Pins == policy.Off && r.Evidence.Mode == rules.Required && slices.Equal(s.Tool("x").Classifiers, []string{rules.Local}) && len(g.Hold) == 2
		}},
		{[]string{"--policy", "strict", "--evidence", "best-effort", "--", "a"}, func(r *rules.Rules, _ *rules.Server, _ *gateway.Rule) bool {
			return r.Policy != nil && r.Evidence.Mode == rules.BestEffort
		}},
	} {
		var c cli
		e := &env{Getenv: func(name string) string {
			return map[string]string{"THE_URL": "https://mcp.example/?key=k", "THE_KEY": "secret"}[name]
		}}
		k, err := newParser(&c, e)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := k.Parse(append([]string{"wrap"}, tt.args...)); err != nil {
			t.Fatalf("%q: %v", tt.args, err)
		}
		if err := c.Wrap.command(); err != nil {
			t.Fatalf("%q: %v", tt.args, err)
		}
		if err := c.Wrap.check(); err != nil {
			t.Fatalf("%q: %v", tt.args, err)
		}
		r, err := c.Wrap.compile(e.references())
		if err != nil {
			t.Fatalf("%q: %v", tt.args, err)
		}
		if s := r.Servers[0]; len(r.Servers) != 1 || !tt.is(r.Rules, s, s.Rule("any")) {
			t.Errorf("%q: server %+v, rule %+v", tt.args, s, s.Rule("any"))
		}
	}
}
