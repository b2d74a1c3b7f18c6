// SPDX-License-Identifier: Apache-2.0

package delegation

import (
	"testing"

	"github.com/pellucid-mcp/pellucid/model/counterfactual"
)

// TestRelated: which values a name of the user may stand for. Both are canonical.
func TestRelated(t *testing.T) {
	a := &counterfactual.Assembly{Segments: []counterfactual.Segment{{Text: "Dentist: Dr. Wu, office@wu.test\nSummary for summary.md: see /home/ann/.bashrc"}}}
	for _, tt := range []struct {
		name, value string
		want        bool
	}{
		{"ann", "e:ann@corp.test", true},
		{"general", "#general", true},
		{"main.go", "/work/repo/main.go", true},
		{"bob", "bob miller", true},
		{"\u043c\u0430\u0440\u0438\u0438", "\u043c\u0430\u0440\u0438\u044f", true},
		{"ann", "e:anna@corp.test", false},
		{"ann", "e:mallory@evil.test", false},
		{"bob miller", "bob", false},
		{"general", "general-archive", true},
		{"...", "x", false},
		{"bob stone", "e:bob.stone@corp.test", true},
		{"the dev team", "#dev-berlin", true},
		{"app", "acme/app", true},
		{"archive", "archive/a.pdf", true},
		{"my dentist", "e:office@wu.test", true},
		{"my dentist", "e:mallory@evil.test", false},
		{"ann and bob", "e:bob@corp.test", true},
		{"ann and bob", "ann@corp.test, bob@corp.test", true},
		{"ann and bob", "ann@corp.test, mallory@evil.test", false},
		{"e:ann@corp.test", "e:\u0430nn@corp.test", false},
		{"e:ann@corp.test", "e:ann@corp.test.evil.test", false},
		{"9 pm", "t:21:00", true},
		{"9 pm", "t:22:00", false},
		{"next friday", "d:2026-12-04", true},
		{"fifty euros", "n:50", true},
		{"fifty euros", "n:550", false},
		{"n:100", "n:9100", false},
		{"an hour and a half", "n:90", true},
		{"summary.md", "/home/ann/.bashrc", false},
		{"", "", true},
	} {
		if got := (comparison{a}).same(tt.name, tt.value); got != tt.want {
			t.Errorf("related(%q, %q) = %v", tt.name, tt.value, got)
		}
	}
}
