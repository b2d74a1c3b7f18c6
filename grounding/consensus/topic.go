// SPDX-License-Identifier: Apache-2.0

package consensus

import (
	"iter"
	"strings"
)

const maxTopic = 256 // bytes

// word reports whether s is not empty and made of ASCII letters, digits and the
// characters of also.
func word(s, also string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && !strings.ContainsRune(also, r)
	})
}

// within reports whether topic is root or lies below it. Every topic lies below "".
func within(topic, root string) bool {
	if root == "" {
		return true
	}
	rest, ok := strings.CutPrefix(topic, root)
	return ok && (rest == "" || rest[0] == ':')
}

// above yields topic and every topic above it, the longest first.
func above(topic string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for t := topic; t != "" && yield(t); {
			t = t[:max(0, strings.LastIndexByte(t, ':'))]
		}
	}
}
