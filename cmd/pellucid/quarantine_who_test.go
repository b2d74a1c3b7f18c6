// SPDX-License-Identifier: Apache-2.0

package main

import "testing"

// TestWho: users whose names are no labels are different persons, so that one can confirm what the other has proposed.
func TestWho(t *testing.T) {
	who := func(by, user, username string) string {
		e := &env{Getenv: func(name string) string { return map[string]string{"USER": user, "USERNAME": username}[name] }}
		return (&reviewerFlags{By: by}).who(e)
	}
	for _, tt := range []struct{ by, user, username, want string }{
		{"ann", "bob", "", "ann"}, {"", "bob", "", "bob"}, {"", "", "eve", "eve"}, {"", "", "", "operator"},
		{"", "J\u00f6rg", "jorg", "jorg"},
	} {
		if got := who(tt.by, tt.user, tt.username); got != tt.want {
			t.Errorf("%q %q %q: %q, want %q", tt.by, tt.user, tt.username, got, tt.want)
		}
	}
	a, b := who("", "Ann Smith", ""), who("", "", "J\u00f6rg")
	if a == b || a == "operator" || a != who("", "ann smith", "") || (&reviewerFlags{By: a}).Validate() != nil {
		t.Errorf("%q and %q", a, b)
	}
}
