// SPDX-License-Identifier: Apache-2.0

package delegation

import "strings"

// related reports whether a value may be what the user has called by a shorter name: "Ann" is
// ann@example.com, "general" is #general, "main.go" is /srv/app/main.go. Every word of the name
// begins, but for its last letters, a word of the value. Both are canonical. A third party decides
// what a name stands for, so the value is still looked at like any other that is read.
func related(name, value string) bool {
	if name == value {
		return true
	}
	in := wordsOf(value)
	list := wordsOf(name)
	for _, w := range list {
		found := false
		for _, v := range in {
			found = found || w == v || len(w) > 4 && strings.HasPrefix(v, w[:len(w)-len(w)/4])
		}
		if !found {
			return false
		}
	}
	return len(list) > 0
}

// wordsOf are the letters and digits of a canonical value between other ASCII characters.
func wordsOf(canonical string) []string {
	if len(canonical) > 2 && canonical[1] == ':' {
		canonical = canonical[2:]
	}
	return strings.FieldsFunc(strings.ToLower(canonical), func(r rune) bool {
		return r < 0x80 && !('a' <= r && r <= 'z' || '0' <= r && r <= '9')
	})
}
