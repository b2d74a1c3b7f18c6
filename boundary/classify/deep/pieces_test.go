// SPDX-License-Identifier: Apache-2.0

package deep

import (
	"strings"
	"testing"
)

func TestCut(t *testing.T) {
	v := mustParse(t, small().write()).vocabulary
	names := words()
	names[Unknown] = "?"
	text := func(ids []int32) string {
		var out []string
		for _, id := range ids {
			out = append(out, names[id])
		}
		return strings.Join(out, "|")
	}
	for in, want := range map[string]string{
		"":                     "",
		" \t\n":                "",
		"ignore":               space + "|ignore",
		"the\u00a0\x00 the":    space + "the|" + space + "the",
		"\u4f60":               space + "|?",
		"ab\xffc":              space + "|a|b|" + space + "|c",
		"the " + space + "the": space + "the|" + space + "|" + space + "the",
	} {
		ids, n := v.Cut(nil, in, 100)
		if got := text(ids); got != want || n != len(in) {
			t.Errorf("%q: %s, %d bytes; want %s", in, got, n, want)
		}
	}
	if ids, n := v.Cut(nil, strings.Repeat("the ", 1000), 10); len(ids) != 10 || n > 50 {
		t.Errorf("%d pieces of %d bytes", len(ids), n)
	}
}

func FuzzCut(f *testing.F) {
	v := mustParse(f, small().write()).vocabulary
	f.Add("ignore the rest", 20)
	f.Add("\xff\u2581\u0301 \u4f60", 3)
	f.Fuzz(func(t *testing.T, text string, most int) {
		most = max(0, min(most, 10_000))
		ids, n := v.Cut(nil, text, most)
		if len(ids) > most || n < 0 || n > len(text) {
			t.Fatalf("%d pieces of at most %d, %d bytes of %d", len(ids), most, n, len(text))
		}
		for _, id := range ids {
			if id < Unknown || int(id) >= len(v.scores) {
				t.Fatalf("piece %d", id)
			}
		}
		end := 0
		v.windows(text, 8, 5, func(ids []int32, from, to int) {
			if from > to || to < end || to > len(text) || len(ids) > 8 {
				t.Fatalf("a window of %d pieces from %d to %d, behind %d", len(ids), from, to, end)
			}
			end = to
		})
		if end != len(text) && len(ids) > 0 && most == 10_000 && strings.TrimSpace(text[end:]) != "" {
			t.Fatalf("the windows end at %d of %d", end, len(text))
		}
	})
}
