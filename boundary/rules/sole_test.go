// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/boundary/gateway"
)

// TestSole: one server has one rule for every tool, the rest is what a file that says nothing
// has, or what base says, which stays as it is.
func TestSole(t *testing.T) {
	base, err := Parse([]byte("version: 1\npolicy: {preset: strict}\nservers:\n  other: {url: https://other.example/mcp}\n"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	version := base.Version()
	server := Server{Name: "one", Command: []string{"server"}, Inherit: []string{"HOME"}}
	tool := Tool{Rule: gateway.Rule{Timeout: time.Minute}, Classifiers: []string{Local}}
	for _, of := range []*Rules{nil, base} {
		r := Sole(of, server, tool)
		if len(r.Servers) != 1 || r.Server("one") != r.Servers[0] || r.Server("other") != nil {
			t.Errorf("servers: %+v", r.Servers)
		}
		for _, name := range []string{"", "a", "a*"} {
			if got := r.Server("one").Tool(name); got.Rule.Timeout != time.Minute || !slices.Equal(got.Classifiers, tool.Classifiers) {
				t.Errorf("tool %q: %+v", name, got)
			}
		}
		if r.Limits != newRules().Limits || r.Classifiers[Local] == nil {
			t.Errorf("limits %+v, classifiers %v", r.Limits, r.Classifiers)
		}
		if of == nil && r.Policy != nil || of != nil && (r.Policy != base.Policy || r.Version() != version) {
			t.Errorf("the policy of %v", of)
		}
	}
	if len(base.Servers) != 1 || base.Server("other") == nil || base.Server("one") != nil {
		t.Error("base has changed")
	}
}

func TestLiteral(t *testing.T) {
	if v := Literal("text"); v.Reveal() != "text" || v.String() != "text" {
		t.Errorf("%#v", v)
	}
}
