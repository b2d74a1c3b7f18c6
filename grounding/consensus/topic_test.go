// SPDX-License-Identifier: Apache-2.0

package consensus

import (
	"slices"
	"testing"
)

func TestWithin(t *testing.T) {
	for _, tt := range []struct {
		topic, root string
		want        bool
	}{
		{"a:b", "a", true},
		{"a:b", "a:b", true},
		{"a:b", "", true},
		{"", "", true},
		{"", "a", false},
		{"a", "a:b", false},
		{"ab", "a", false},
		{"a-b", "a", false},
		{"b:a", "a", false},
	} {
		if got := within(tt.topic, tt.root); got != tt.want {
			t.Errorf("within(%q, %q) = %v", tt.topic, tt.root, got)
		}
	}
	if got, want := slices.Collect(above("a:bc:d")), []string{"a:bc:d", "a:bc", "a"}; !slices.Equal(got, want) {
		t.Errorf("above: %q, want %q", got, want)
	}
	if got := slices.Collect(above("::")); !slices.Equal(got, []string{"::", ":"}) {
		t.Errorf("above: %q", got)
	}
}
