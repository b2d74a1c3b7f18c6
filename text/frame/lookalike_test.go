// SPDX-License-Identifier: Apache-2.0

package frame

import (
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/text/ucd"
)

func TestLookalikes(t *testing.T) {
	for _, c := range []struct {
		in string
		n  int
	}{
		{"</pellucid-0123>", 1},
		{"<pellucid-0123>", 1},
		{"</PELLUCID-0123>", 1},
		{"</PeLLuCiD>", 1},
		{"< / pellucid", 1},
		{"<\n/\tpellucid", 1},
		{"<//pellucid", 1},
		{"<\\pellucid", 1},
		{"</pel lu\ncid", 1},
		{"</p-e-l-l-u-c-i-d", 1},
		{"\uff1c\uff0fpellucid", 1},
		{"\uff1c/\uff50\uff45\uff4c\uff4c\uff55\uff43\uff49\uff44", 1},
		{"\ufe64/pellucid", 1},
		{"\u2039/pellucid", 1},
		{"\u02c2/pellucid", 1},
		{"\u226e/pellucid", 1}, // an angle, struck through
		{"<\u2044pellucid", 1},
		{"<\u2215pellucid", 1},
		{"</\u0440\u0435llu\u0441id", 1}, // Cyrillic er, ie, es
		{"</pe11ucid", 1},                // digits
		{"</peIIuc\u0131d", 1},           // capital I, dotless i
		{"</pe||ucid", 1},                // bars
		{"</p\u00e9llucid", 1},           // accent
		{"</pe\u0301llucid", 1},          // combining accent
		{"</pe\u200bllu\u200dcid", 1},    // zero width
		{"<\u202e/pellucid", 1},          // bidi
		{"<\U000e002f/pellucid", 1},      // tag character
		{"<\u00ad/pell\ufe0fucid", 1},    // soft hyphen, variation selector
		{"</\U0001d429\U0001d41e\U0001d425\U0001d425\U0001d42e\U0001d41c\U0001d422d", 1}, // mathematical bold
		{"</\u24df\u24d4\u24db\u24db\u24e4\u24d2\u24d8\u24d3", 1},                        // circled
		{"</pellu\u03f2id", 1}, // lunate sigma, small and capital
		{"</pellu\u03f9id", 1},
		{"</pe\uffe8lucid", 1}, // half-width line
		{"<<pellucid", 1},
		{"<pellucid<pellucid", 2},
		{"<< <pellucid", 1},
		{"a < b </pellucid", 1},
		{"<\xffpellucid", 0},
		{"<", 0},
		{"\uff1c", 0},
		{"", 0},
		{"pellucid", 0},
		{"&lt;/pellucid", 0},
		{"<pelluci", 0},
		{"<b>pellucid</b>", 0},
		{"<a/pellucid>", 0},
		{"if a < 3 { pellucid }", 0},
		{"\u27e8pellucid", 0},
		{"x \u226a y", 0},
	} {
		out, n := appendNeutral(nil, c.in, fenceTag)
		if n != c.n {
			t.Errorf("%+q: %d look-alikes, want %d", c.in, n, c.n)
		}
		if n == 0 && string(out) != c.in {
			t.Errorf("%+q became %+q", c.in, out)
		}
		if strings.Count(string(out), "&lt;") != strings.Count(c.in, "&lt;")+c.n {
			t.Errorf("%+q became %+q", c.in, out)
		}
		if at, w := next(string(out), 0, fenceTag); w != 0 {
			t.Errorf("%+q: a look-alike is left at %d of %+q", c.in, at, out)
		}
	}
}

// seen returns every text that r is taken for: NFKC and the UTS #39 skeleton, in any
// order, as often as they change anything.
func seen(r rune) map[string]bool {
	all := map[string]bool{string(r): true}
	for todo := []string{string(r)}; len(todo) > 0; todo = todo[1:] {
		for _, next := range []string{ucd.NFKC.String(todo[0]), string(ucd.AppendSkeleton(nil, todo[0]))} {
			if !all[next] {
				all[next] = true
				todo = append(todo, next)
			}
		}
	}
	return all
}

// TestEveryCodePoint walks Unicode 15.0: a code point that NFKC and the skeleton, in
// any order, make a character of a fence of takes that character's place in it.
func TestEveryCodePoint(t *testing.T) {
	places := map[string]string{"<": "%s/pellucid-0", "/": "<%spellucid-0"}
	for i, c := range "pellucid" {
		places[string(c)] = "</" + "pellucid"[:i] + "%s" + "pellucid"[i+1:] + "-0"
	}
	var b ucd.Buffer
	found, most := 0, 0
	for r := rune(0x80); r <= ucd.MaxRune; r++ {
		if 0xD800 <= r && r < 0xE000 {
			continue
		}
		all := seen(r)
		most = max(most, len(all))
		for text := range all {
			for c, in := range places {
				if !strings.EqualFold(text, c) && (c != "l" && c != "i" || !strings.Contains("1|I", text) || text == "") {
					continue
				}
				found++
				in = strings.Replace(in, "%s", string(r), 1)
				if out, n := appendNeutral(nil, in, fenceTag); n != 1 {
					t.Errorf("%U is taken for %q: %+q became %+q", r, c, in, out)
				}
				break
			}
		}
	}
	t.Logf("%d code points are taken for a character of a fence; one is taken for %d texts at most", found, most)
	if found < 450 || most > maxReadings {
		t.Errorf("%d code points, %d texts", found, most)
	}
	if got := readings(&b, "\u03f2"); len(got) < 2 {
		t.Errorf("U+03F2: %q", got)
	}
}

// TestAngles: a character is an opening angle exactly where NFKC and the UTS #39
// skeleton, in any order, make a text of it that begins with one.
func TestAngles(t *testing.T) {
	var b ucd.Buffer
	found := 0
	for r := rune(0); r <= ucd.MaxRune; r++ {
		if 0xD800 <= r && r < 0xE000 {
			continue
		}
		want := false
		for text := range seen(r) {
			want = want || strings.HasPrefix(text, "<")
		}
		if want {
			found++
		}
		if got := angle(&b, string(r)) > 0; got != want {
			t.Errorf("%U: %v, want %v", r, got, want)
		}
	}
	if found < 6 {
		t.Errorf("only %d characters look like an angle", found)
	}
}

// TestLookalikeLinear: doubling the text must not square the time.
func TestLookalikeLinear(t *testing.T) {
	for _, unit := range []string{"<", "< ", "</pelluci", "\uff1c\u200b", "<\u0301", "<pellucid", "\u226a", "\u200b", "\u0301"} {
		var dst []byte
		linear(t, unit, 1<<12, func(text string) { dst, _ = appendNeutral(dst[:0], text, fenceTag) })
	}
}
