// SPDX-License-Identifier: Apache-2.0

package scrub

import "strings"

// Restore takes one level of defusing from every control token of s, and returns how many
// there were. It returns s itself where it finds none. spec: scrub/4.8
func (t *TokenTable) Restore(s string) (restored string, n int) {
	for _, tok := range t.tokens {
		if tok.kind == inAngles || tok.kind == inBrackets {
			defused := defusing.Replace(tok.Text)
			n += strings.Count(s, defused)
			s = strings.ReplaceAll(s, defused, tok.Text)
		}
	}
	return s, n
}

var defusing = strings.NewReplacer("<", "\u27e8", ">", "\u27e9", "[", "\u27e6", "]", "\u27e7")
