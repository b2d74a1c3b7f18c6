// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"cmp"
	"slices"
	"strings"
)

// A table finds what applies to a name. Its keys are names, and patterns in which
// "*" stands for any characters, none as well. A name comes before a pattern, the
// longest pattern before others, of equally long ones the last in the order of
// bytes.
type table[T any] struct {
	names    map[string]T
	patterns []pattern[T] // in the order in which they are tried
}

type pattern[T any] struct {
	text string
	val  T
}

func newTable[T any](of map[string]T) table[T] {
	t := table[T]{names: map[string]T{}}
	for key, val := range of {
		if strings.Contains(key, "*") {
			t.patterns = append(t.patterns, pattern[T]{key, val})
		} else {
			t.names[key] = val
		}
	}
	slices.SortFunc(t.patterns, func(a, b pattern[T]) int {
		return cmp.Or(cmp.Compare(len(b.text), len(a.text)), cmp.Compare(b.text, a.text))
	})
	return t
}

func (t *table[T]) find(name string) (val T, ok bool) {
	if val, ok = t.names[name]; ok {
		return val, true
	}
	for _, p := range t.patterns {
		if match(p.text, name) {
			return p.val, true
		}
	}
	return val, false
}

// match reports whether "*" in pattern can stand for what makes it name.
func match(pattern, name string) bool {
	head, rest, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == name
	}
	name, ok := strings.CutPrefix(name, head)
	for ok && star {
		head, rest, star = strings.Cut(rest, "*")
		if !star {
			return strings.HasSuffix(name, head)
		}
		// The first place will do: what is behind it can only grow.
		_, name, ok = strings.Cut(name, head)
	}
	return false
}
