// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"strings"
	"testing"
)

// FuzzParseChange: whoever may use the database may send any notification. What is read of it is bounded,
// and has one spelling.
func FuzzParseChange(f *testing.F) {
	for _, s := range []string{"", "pins", "blocks", "replicas", "session a b", "session a b c", "any", "session  ", "pins "} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		c, ok := parseChange(s)
		if !ok {
			return
		}
		again := string(c.What)
		if c.What == SessionClaimed {
			again = strings.Join([]string{again, c.ID, c.Owner}, " ")
		}
		if again != s || len(s) > 256 || c.What == AnyChanged {
			t.Errorf("%q: %+v", s, c)
		}
	})
}
