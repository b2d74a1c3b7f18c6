// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"slices"
	"strings"
	"testing"
)

func TestWrap(t *testing.T) {
	for _, c := range []struct {
		text  string
		width int
		want  []string
	}{
		{"", 5, []string{""}},
		{"abc", 5, []string{"abc"}},
		{"ab cd ef", 5, []string{"ab cd", "ef"}},
		{"ab cd ef", 6, []string{"ab cd", "ef"}},
		{"abcdefgh", 5, []string{"abcde", "fgh"}},
		{"ab,cdefgh", 5, []string{"ab,", "cdefg", "h"}},
		{"a\n\nb", 5, []string{"a", "", "b"}},
		{"\uff21\uff22\uff23", 4, []string{"\uff21\uff22", "\uff23"}},
		{"e\u0301e\u0301e\u0301", 3, []string{"e\u0301e\u0301e\u0301"}},
		{"ab cdef ghi", 5, []string{"ab", "cdef", "ghi"}},
	} {
		if got := Wrap(c.text, c.width); !slices.Equal(got, c.want) {
			t.Errorf("%+q at %d: %+q, want %+q", c.text, c.width, got, c.want)
		}
	}
}

// TestField: a label stands once, and every line of text behind its column.
func TestField(t *testing.T) {
	var b strings.Builder
	Field(&b, 10, "label", "one\ntwo", nil)
	Field(&b, 10, "", "three", strings.ToUpper)
	if want := "    label one\n          two\n          THREE\n"; b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
	b.Reset()
	Field(&b, 10, "", "", nil)
	if want := "          \n"; b.String() != want {
		t.Errorf("an empty text gives %q, want %q", b.String(), want)
	}
}
