// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
)

func TestPrintable(t *testing.T) {
	for _, plain := range []string{"", "plain\n\tlines", "caf\u00e9 \u65e5"} {
		if got := terminal.Printable(plain); got != plain {
			t.Errorf("printable(%+q) = %+q", plain, got)
		}
	}
	for in, want := range map[string]string{"\x1b[31m": "U+001B", "a\u202eb": "U+202E", "\u3164": "U+3164", "\xff": "FF"} {
		if got := terminal.Printable(in); !strings.Contains(got, want) {
			t.Errorf("printable(%+q) = %+q, which does not name %s", in, got, want)
		}
	}
}

func TestEscapeJSON(t *testing.T) {
	for in, want := range map[string]string{
		`{"a":"b"}`:            `{"a":"b"}`,
		"\"caf\u00e9\u200b!\"": "\"caf\u00e9\\u200b!\"",
		"\"\U000E0041\u202e\"": `"\udb40\udc41\u202e"`,
		"\"\x7f\"":             `"\u007f"`,
	} {
		if got := string(terminal.EscapeJSON([]byte(in))); got != want {
			t.Errorf("escapeJSON(%+q) = %+q, want %+q", in, got, want)
		}
	}
}

func TestPaletteIsPlainOffTerminal(t *testing.T) {
	none := func(string) string { return "" }
	if p := terminal.PaletteFor(io.Discard, none); p.Red("x") != "x" {
		t.Error("colours where nobody looks")
	}
	if got := (terminal.Palette{On: true}).Red("x"); got != "\x1b[31mx\x1b[0m" {
		t.Errorf("red = %q", got)
	}
}

func TestWithCode(t *testing.T) {
	cause := errors.New("cause")
	inner := exit.With(exit.Config, cause)
	if outer := exit.With(exit.Usage, inner); outer != inner {
		t.Error("the first code must stand")
	}
	if !errors.Is(inner, cause) {
		t.Error("the cause is lost")
	}
	for _, tt := range []struct {
		err  error
		code int
		said string
	}{
		{nil, 0, ""},
		{cause, exit.Failed, "pellucid: cause\n"},
		{inner, exit.Config, "pellucid: cause\n"},
		{exit.With(7, nil), 7, ""},
	} {
		var b strings.Builder
		if code := report(&env{Stderr: &b}, tt.err); code != tt.code || b.String() != tt.said {
			t.Errorf("report(%v) = %d, %q; want %d, %q", tt.err, code, b.String(), tt.code, tt.said)
		}
	}
}

// FuzzRows checks that rows are cut as strings.Split cuts them.
func FuzzRows(f *testing.F) {
	for _, s := range []string{"", "\n", "a", "a\n", "a\n\nb\r\n", strings.Repeat("x", 70<<10) + "\ny"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		want := strings.Split(s, "\n")
		if want[len(want)-1] == "" {
			want = want[:len(want)-1]
		}
		in := terminal.NewRows(strings.NewReader(s))
		for i, w := range want {
			if got, err := in.Next(); err != nil || string(got) != w {
				t.Fatalf("row %d = %q, %v; want %q", i, got, err, w)
			}
		}
		if got, err := in.Next(); err != io.EOF {
			t.Fatalf("after the last row: %q, %v", got, err)
		}
	})
}

// FuzzPrintable checks that nothing unprintable gets through.
func FuzzPrintable(f *testing.F) {
	f.Add("a\u202e\x1b\u3164\xff")
	f.Fuzz(func(t *testing.T, s string) {
		for _, out := range []string{terminal.Printable(s), string(terminal.EscapeJSON([]byte(s)))} {
			for _, r := range out {
				if r >= 0x7F && r <= 0x9F || r == 0x202E || r == 0x200B || r == 0x3164 || 0xE0000 <= r && r <= 0xE0FFF {
					t.Fatalf("%U in %+q", r, out)
				}
			}
		}
		if out := terminal.Printable(s); !utf8.ValidString(out) || strings.ContainsAny(out, "\x1b\r\x00") {
			t.Fatalf("printable(%+q) = %+q", s, out)
		}
	})
}
