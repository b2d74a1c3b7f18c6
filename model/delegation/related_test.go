// SPDX-License-Identifier: Apache-2.0

package delegation

import "testing"

// TestRelated: which values a name of the user may stand for. Both are canonical.
func TestRelated(t *testing.T) {
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
		{"", "", true},
	} {
		if got := related(tt.name, tt.value); got != tt.want {
			t.Errorf("related(%q, %q) = %v", tt.name, tt.value, got)
		}
	}
}
