// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/text/scrub"
)

// tagged spells s in tag characters, which no reader sees.
func tagged(s string) string {
	var b strings.Builder
	for _, r := range s {
		b.WriteRune(0xE0000 + r)
	}
	return b.String()
}

// TestExplain: each text with the lines that a reader must find, and those that must be missing.
func TestExplain(t *testing.T) {
	for _, c := range []struct {
		name, text string
		profile    scrub.Profile
		want, not  []string
	}{
		{"plain", "plain text\n", scrub.Faithful,
			[]string{"received, 11 bytes\n  plain text\n", "delivered unchanged\n"}, []string{"hidden text said", "removed or changed"}},
		{"message in tags", "a" + tagged("do it") + "b", scrub.Faithful,
			[]string{"hidden text said\n  bytes 1 to 21, tag characters:\n    do it\n", "removed or changed, 1 place\n", "delivered, 2 bytes\n  ab\n"}, []string{"unchanged"}},
		{"neighbours", "a\x1b[1mb \u202e\u202ec", scrub.Faithful, []string{"removed or changed, "}, []string{"unchanged"}},
		{"few code points", "a\u202eb", scrub.Faithful,
			[]string{"  1  ", " U+202E\n", "delivered, 2 bytes\n"}, []string{"hidden text said"}},
		{"what it became", "\uff21", scrub.MCP, []string{` U+FF21 became "A"`}, nil},
		{"refused", "a\u202eb", scrub.Surface, []string{"refused\n", ", the first at byte 1\n"}, []string{"delivered"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := scrub.Compile(scrub.Policy{Profile: c.profile})
			if err != nil {
				t.Fatal(err)
			}
			var r scrub.Result
			s.Scrub(c.text, &r)
			var b strings.Builder
			if err := Explain(&b, Palette{}, s, c.text, &r); err != nil {
				t.Fatal(err)
			}
			out := b.String()
			if strings.ContainsAny(out, "\x1b\u202e\U000E0064") {
				t.Errorf("raw characters: %+q", out)
			}
			for _, want := range c.want {
				if !strings.Contains(out, want) {
					t.Errorf("%q is missing:\n%s", want, out)
				}
			}
			for _, not := range c.not {
				if strings.Contains(out, not) {
					t.Errorf("%q is not to be said:\n%s", not, out)
				}
			}
		})
	}
}

// TestExplainHidden: where nothing is hidden, nothing is printed.
func TestExplainHidden(t *testing.T) {
	for text, want := range map[string]string{
		"":                   "",
		"plain":              "",
		"x" + tagged("a[2J"): "\nhidden text said\n  bytes 1 to 17, tag characters:\n    a[2J\n",
	} {
		var b strings.Builder
		ExplainHidden(&b, Palette{}, text)
		if b.String() != want {
			t.Errorf("%+q: %+q, want %+q", text, b.String(), want)
		}
	}
}

// TestQuotedPath: a path in an error cannot break a line; other errors stay as they are.
func TestQuotedPath(t *testing.T) {
	pe := &fs.PathError{Op: "open", Path: "a\n\u202e", Err: errors.New("no")}
	if got := QuotedPath(pe).Error(); got != `"a\n\u202e": no` {
		t.Error(got)
	}
	if err := errors.New("x"); QuotedPath(err) != err {
		t.Error("another error is changed")
	}
}
