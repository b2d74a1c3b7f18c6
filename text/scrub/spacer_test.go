// SPDX-License-Identifier: Apache-2.0

package scrub

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/pellucid-mcp/pellucid/text/ucd"
)

// ignorable are the Default_Ignorable_Code_Points, which keep nothing apart.
func ignorable(r rune) bool {
	for _, x := range [][2]rune{
		{0xAD, 0xAD}, {0x34F, 0x34F}, {0x61C, 0x61C}, {0x115F, 0x1160}, {0x17B4, 0x17B5}, {0x180B, 0x180F},
		{0x200B, 0x200F}, {0x202A, 0x202E}, {0x2060, 0x206F}, {0x3164, 0x3164}, {0xFE00, 0xFE0F}, {0xFEFF, 0xFEFF},
		{0xFFA0, 0xFFA0}, {0xFFF0, 0xFFF8}, {0x1BCA0, 0x1BCA3}, {0x1D173, 0x1D17A}, {0xE0000, 0xE0FFF},
	} {
		if x[0] <= r && r <= x[1] {
			return true
		}
	}
	return false
}

// checkApart reports what joins two numbers when x, which stands between them, is removed.
func checkApart(t *testing.T, x string) {
	t.Helper()
	for _, profile := range []Profile{Faithful, MCP} {
		s := compile(t, Policy{Profile: profile})
		for _, in := range []string{"1" + x + "2", "1" + x + x + "2", "1" + x + "\u200b2", "1\u200b" + x + "2"} {
			out, r := clean(t, s, in)
			if strings.Contains(out, "12") || !Replay(in, out, r.Edits) {
				t.Errorf("%s: %+q -> %+q", profile, in, out)
			}
			if utf8.RuneCountInString(x) == 1 && profile == Faithful && len(out) > len("1 2") {
				t.Errorf("%s: %+q -> %+q leaves more than one gap", profile, in, out)
			}
			if again, _ := clean(t, s, out); again != out {
				t.Errorf("%s: %+q -> %+q -> %+q", profile, in, out, again)
			}
		}
	}
}

// No code point that is removed joins what stood apart, but a default ignorable one.
func TestRemovedCodePointsKeepApart(t *testing.T) {
	for r := rune(0); r <= ucd.MaxRune; r++ {
		if ucd.Of(r)&ucd.Hidden != 0 && !ignorable(r) {
			checkApart(t, string(r))
		}
	}
}

// still are the CSI sequences that leave the cursor where it is: they erase, set what letters
// look like, set a mode, or ask.
const still = "JKXcghilmnpqtxy"

// No control sequence that is removed joins what stood apart, but one that leaves the cursor.
func TestRemovedSequencesKeepApart(t *testing.T) {
	for final := byte(0x40); final < 0x7f; final++ {
		for _, parameters := range []string{"", "1", "2;1", "0;0;0", "7;8"} {
			for _, csi := range []string{"\x1b[", "\u009b"} {
				if parameters == "" && csi != "\x1b[" || strings.IndexByte(still, final) >= 0 {
					continue
				}
				checkApart(t, csi+parameters+string(final))
			}
		}
	}
	for body := byte(0x20); body < 0x7f; body++ {
		switch c := string(body); {
		case strings.Contains("[]PX^_", c), strings.Contains("7=>HNOVWZlmno|}~", c), body < 0x30:
		default:
			checkApart(t, "\x1b"+c)
		}
	}
	for _, x := range []string{
		"\x1b", "\x1b[", "\x1b[\u00e9", "\x1b]0;x", "\u009b", "\u0090", "\u0098", "\u009c", "\u009d0;x", "\u0084", "\x1b#8",
		"\x1b[1C\x1b[31m", "\x1b[31m\x1b[2;1H\x1b[0m", "\x00\x1b[1C\x00", "\x0b\x00", "&#31;&#31;&#30;&#31;&#30;&#31;&#31;",
	} {
		checkApart(t, x)
	}
}

func TestSpacers(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"total 10\f5", "total 10\n5"},
		{"account 12\u20283456", "account 12\n3456"},
		{"10%\r20%\r\n", "10%\n20%\r\n"},
		{"a\r\r\nb", "a\r\nb"},
		{"a;b\rc\r", "a;b\nc\n"},
		{"8=FIX.4.2\x019=65\x01", "8=FIX.4.2 9=65"},
		{"a\x1d b", "a b"},
		{"a \fb", "a \nb"},
		{"a\n\fb", "a\nb"},
		{"\fpage", "page"},
		{"a\x1b[Eb\x1b[3Gc\x1b[2;1Hd", "a\nb c\nd"},
		{"un\x1b[01;31m\x1b[Kbreak\x1b[m\x1b[Kable", "unbreakable"},
		{"N\bNA\bA_\bM", "NAM"},
		{"A\b_B\b_", "AB"},
		{"e\u0301\be\u0301a", "e\u0301a"},
		{"12%\b\b\b13% done", "13% done"},
		{"12%\b\b\b\nx", "12%\nx"},
		{"12\b", "12"},
		{"total 1234\f\b\b\b\b9", "total 1234\n9"},
		{"abc\r\b\b\bxyz\u2028\b\b5", "abc\nxyz\n5"},
		{"foo-\b_bar x \b_y", "foo_bar x_y"},
		{"\b\b12", "12"},
		{"x\u00e3\u0080\u0090y\u00e3\u0080\u0091", "x\u00e3 y\u00e3"},
		{"Die Stra\u00c3\u009fe ist lang. \u00c3\u009cbrigens", "Die Stra\u00c3 e ist lang. \u00c3 brigens"},
		{"\u00e2\u20ac\u009d quoted", "\u00e2\u20ac quoted"},
		{"\u0420\u0098 a \u009c", "\u0420 a "},
		{"\u00c3\u009bt\u00c3\u00a9 2024", "\u00c3 t\u00c3\u00a9 2024"},
		{"a\u009b8mhidden\u009b0mb", "ahiddenb"},
		{"a\u009d0;title\u009cx\u0090q#0~\u009cy", "axy"},
		{"a \u0098 note \u2026 \u009c b", "a  note \u2026  b"},
		{"a\u009e" + strings.Repeat("x", 300) + "\u009cb", "a " + strings.Repeat("x", 300) + " b"},
	} {
		out, r := clean(t, compile(t, Policy{Profile: Faithful}), c.in)
		if out != c.want || !Replay(c.in, out, r.Edits) {
			t.Errorf("%+q -> %+q, want %+q", c.in, out, c.want)
		}
	}
}

// Within a string of JSON a gap is a blank, so that the text stays JSON.
func TestSpacersInJSON(t *testing.T) {
	s := compile(t, Policy{Profile: Faithful})
	for _, x := range []string{"\u2028", "\u2029", "\u0085", "\u007f", "\u009b2;1H", "\u2028\u2029"} {
		for _, form := range []string{`{"a":"1%s2","n":3}`, "\ufeff[\"1%s2\",\r{}]", "{\"a\":1}\n{\"b\":[\"1%s2\"]}\n"} {
			in := fmt.Sprintf(form, x)
			out, _ := clean(t, s, in)
			if !strings.Contains(out, "1 2") {
				t.Errorf("%+q -> %+q", in, out)
			}
		}
	}
	if out, _ := clean(t, s, "{\"a\":1,\r\"b\":2}"); out != "{\"a\":1,\n\"b\":2}" {
		t.Errorf("%+q", out)
	}
}

// What counts as JSON is what encoding/json takes, but for a byte order mark and lines of it.
func TestParsesAsJSON(t *testing.T) {
	for _, in := range []string{
		`{}`, `[]`, `{"a":[1,-2.5e3,true,false,null,"x\u00e9\n"],"b":{"c":{}}}`, ` [ 1 , 2 ] `, `"x"`, `[[],{}]`,
		`{"a"}`, `{"a":}`, `{,}`, `[1,]`, `[1 2]`, `{"a":1,}`, `{1:2}`, `[}`, `{]`, `]`, `[`, `["a`, `["\q"]`, `["\u12"]`,
		"[\"\t\"]", `{"a":1}}`, `[tru]`, `x`, ``, `{"a":1:2}`, `[:]`, `{"a":"b":"c"}`, `"x" "y"`,
		strings.Repeat("[", 512) + strings.Repeat("]", 512),
	} {
		if got, want := parsesAsJSON(in), json.Valid([]byte(in)); got != want {
			t.Errorf("%q: %v, want %v", in, got, want)
		}
	}
	for in, want := range map[string]bool{
		"\ufeff{}": true, "{}\n{}\n[1]": true, "{}\n1": false, "1": false,
		strings.Repeat("[", 513) + strings.Repeat("]", 513): false,
	} {
		if got := parsesAsJSON(in); got != want {
			t.Errorf("%q: %v", in, got)
		}
	}
}
