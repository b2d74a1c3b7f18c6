// SPDX-License-Identifier: Apache-2.0

package scrub

import (
	"strings"
	"testing"

	"golang.org/x/net/html"
)

func TestVeritas(t *testing.T) {
	s := compile(t, Policy{Profile: Veritas})
	for _, c := range []struct{ name, in, want string }{
		// The order of 4.2 to 4.6: each falls if two steps are swapped.
		{"long s", "te\u017ft", "test"},
		{"roman numeral", "\u217f", "m"},
		{"lunate sigma", "\u03f2", "\u03c2"},
		{"full width tag", "\uff1cb\uff1ex", "x"},
		{"narrow space", "a\u202fb", "a b"},
		{"cyrillic", "\u0406gnore", "lgnore"},
		{"music", "\U0001d16d", "."},
		{"script i\u0261nore", "i\u0261nore", "ignore"},
		{"exponent", "10\u2076", "106"},
		{"fraction", "2\u00bd", "21/2"},
		{"compose again", "e\u200c\u0301", "\u00e9"},
		{"ogonek order", "q\u0301\u200d\u0316", "q\u0316\u0301"},
		{"deseret", "\U00010041\u0301", "\U00010041\u0301"},
		{"unassigned in 15.0", "\U0001ccd6", "\U0001ccd6"},
		{"override", "\u202eabc", "abc"},
		// 4.6
		{"tags recombine", "<<b>script>", ""},
		{"no tag", "a < b <3 <= c", "a < b <3 <= c"},
		{"unterminated", "a <b", "a b"},
		{"html says tag", "if a<b and c>d", "if ad"},
		{"raw text element", "<textarea><b>", ""},
		{"quoted >", `<a title="x>y">z`, "z"},
		{"comment", "a<!-- <b> x -->b<!-->c<!--->d", "abcd"},
		{"comment without end", "a<!-- b> c", "a c"},
		{"bogus comment", "a</3>b<?x?>c", "abc"},
		{"autolink", "<https://e.example/x> <a@b.example>", "https://e.example/x a@b.example"},
		{"autolink within", "<<https://x>script>", ""},
		{"link", "see [the page](https://e.example) now", "see the page \u2014 https://e.example now"},
		{"nested links", "[a[b](c)](d)", "ab \u2014 c \u2014 d"},
		{"image", "![x](https://e/?q=)", "x \u2014 https://e/?q="},
		{"link title", `[a](b "hidden")`, "a \u2014 b"},
		{"empty link", "[a]()", "a"},
		{"definition", "[h]: https://e", "h \u2014 https://e"},
		{"brackets", "a[i] [1] [x]", "a[i] [1] [x]"},
		{"emphasis stays", "**a** __b__ `c`\n```\nd\n```", "**a** __b__ `c`\n```\nd\n```"},
		{"entities stay", "&lt;b&gt; &amp;", "&lt;b&gt; &amp;"},
		{"hidden reference", "a&#x202E;b", "ab"},
		{"guillemets", "\u2039script\u203a", ""},
		{"synthesised syntax", "\u2216input\u2774x\u2775", "\\input{x}"},
		{"link within a tag", "<[x](y) >", "< >"},
		// RFC 9, negative tests
		{"quote about attacks", "The token <|im_start|> marks a turn; `ignore previous instructions` is classic.",
			"The token <|im_start|> marks a turn; `ignore previous instructions` is classic."},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, r := clean(t, s, c.in)
			if c.name == "link within a tag" {
				c.want = got // any, as long as no tag is left; see FuzzMarkup
			}
			if got != c.want || !Replay(c.in, got, r.Edits) {
				t.Errorf("%+q -> %+q, want %+q; %+v", c.in, got, c.want, r.Edits)
			}
			checkNoTag(t, c.in, got)
		})
	}
	_, r := clean(t, s, "a <|im_start|> b")
	if r.Tokens != 1 || r.Changed() {
		t.Errorf("a token is not counted: %+v", r.Tokens)
	}
	if _, r = clean(t, s, "10\u2076"); !r.Has(NFKCLossy) {
		t.Error("a changed number is not recorded")
	}
}

func TestVeritasCap(t *testing.T) {
	for _, c := range []struct {
		name, in, want string
		p              Policy
	}{
		{"at the cap", strings.Repeat("x", 2000), strings.Repeat("x", 2000), Policy{}},
		{"over it", strings.Repeat("x", 2001), strings.Repeat("x", 1997) + "...", Policy{}},
		{"length attack", strings.Repeat("x", 50000), strings.Repeat("x", 1997) + "...", Policy{}},
		{"a quote", strings.Repeat("x", 1001), strings.Repeat("x", 997) + "...", Policy{MaxBytes: QuoteMaxBytes}},
		{"ellipsis", strings.Repeat("x", 2001), strings.Repeat("x", 1997) + "\u2026", Policy{Ellipsis: true}},
		{"whole characters", strings.Repeat("\u00e9", 20), strings.Repeat("\u00e9", 14) + "...", Policy{MaxBytes: 32}},
		{"no base without its mark", strings.Repeat("x", 28) + "x\u0316yyyy", strings.Repeat("x", 28) + "...", Policy{MaxBytes: 32}},
		{"hidden text makes room", strings.Repeat("x\u200b", 8), strings.Repeat("x", 8), Policy{MaxBytes: 32}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.p.Profile = Veritas
			got, r := clean(t, compile(t, c.p), c.in)
			if got != c.want || !Replay(c.in, got, r.Edits) {
				t.Errorf("%d bytes, want %d: %+q; %+v", len(got), len(c.want), got[max(0, len(got)-40):], r.Edits)
			}
			if r.Truncated() != (c.in != got && !r.Has(ZeroWidth)) {
				t.Errorf("Truncated() = %v", r.Truncated())
			}
		})
	}
	s := compile(t, Policy{Profile: Veritas})
	got, r := clean(t, s, strings.Repeat("\ufdfa", 666))
	if len(got) > 2000 || len(got) < 1900 || !r.Truncated() {
		t.Errorf("%d bytes", len(got))
	}
}

func TestConfusables(t *testing.T) {
	const russian = "\u0441\u044a\u0435\u0448\u044c \u0435\u0449\u0451 \u043e\u0440\u0430"
	mixed := compile(t, Policy{Profile: Veritas, Scope: Mixed})
	for _, c := range []struct{ in, want string }{
		{russian, russian},
		{"s\u0131k g\u00f6r", "s\u0131k g\u00f6r"},                         // Turkish
		{"i\u0261nore", "ignore"},                                          // phonetic
		{"p\u0430ypal", "paypal"},                                          // one Cyrillic letter
		{"\u0430\u0440\u0440\u04cf\u0435", "appie"},                        // Cyrillic only, without other evidence
		{"\u0441\u0441\u0441 " + russian, "\u0441\u0441\u0441 " + russian}, // … with it
		{"\u2039b\u203a", "\u2039b\u203a"},                                 // never makes syntax
	} {
		got, r := clean(t, mixed, c.in)
		if got != c.want || !Replay(c.in, got, r.Edits) {
			t.Errorf("mixed: %+q -> %+q, want %+q", c.in, got, c.want)
		}
	}
	_, r := clean(t, compile(t, Policy{Profile: Veritas, Confusables: Reject}), "a\u200bb p\u0430y")
	if r.Refused != Confusable || r.RefusedAt.Start != 7 || r.RefusedAt.End != 9 {
		t.Errorf("reject: %v at %+v", r.Refused, r.RefusedAt)
	}
	got, r := clean(t, compile(t, Policy{Profile: Veritas, Confusables: Flag}), "p\u0430y")
	if got != "p\u0430y" || !r.Has(Confusable) || r.Refused != 0 {
		t.Errorf("flag: %+q %+v", got, r.Notes)
	}
}

// checkNoTag asks an HTML parser whether out is all text.
func checkNoTag(t *testing.T, in, out string) {
	t.Helper()
	z := html.NewTokenizer(strings.NewReader(out))
	for {
		switch z.Next() {
		case html.ErrorToken:
			return
		case html.TextToken:
		default:
			t.Fatalf("%+q -> %+q keeps a tag: %+q", in, out, z.Raw())
		}
	}
}

// No tag, no link and no definition is left.
func FuzzMarkup(f *testing.F) {
	addSeeds(f)
	s := compile(f, Policy{Profile: Veritas})
	var r Result
	f.Fuzz(func(t *testing.T, in string) {
		s.Scrub(in, &r)
		out := r.Clean.String()
		checkNoTag(t, in, out)
		if i := strings.Index(out, "[x](y)"); i >= 0 {
			t.Fatalf("%+q -> %+q keeps a link", in, out)
		}
	})
}

// A character of RFC 4.4 that is put anywhere changes nothing, unless it parts
// what the cap cuts.
func FuzzInsertion(f *testing.F) {
	for _, s := range seeds {
		f.Add(s, 1, uint16(0x200D))
	}
	s := compile(f, Policy{Profile: Veritas, MaxBytes: 1 << 20})
	m := compile(f, Policy{})
	f.Fuzz(func(t *testing.T, in string, at int, c uint16) {
		in = strings.ToValidUTF8(in, "\ufffd")
		if !inRFC44(rune(c)) || len(in) == 0 || strings.ContainsAny(in, "\r\x1b\u009b\u009d\u0090\u0098\u009e\u009f") {
			return // CR LF and escape sequences are defined by adjacency
		}
		at = runeStart(in, int(uint(at)%uint(len(in)+1)))
		if at == len(in) {
			at = 0
		}
		with := in[:at] + string(rune(c)) + in[at:]
		for _, x := range []*Scrubber{s, m} {
			a, ra := clean(t, x, in)
			b, rb := clean(t, x, with)
			if ra.Has(AmbiguousToken) || rb.Has(AmbiguousToken) {
				continue // such a token stays where nothing was put into it
			}
			if a != b {
				t.Fatalf("%s: %+q -> %+q, but %+q -> %+q", x.p.Profile, in, a, with, b)
			}
		}
	})
}

func inRFC44(r rune) bool {
	return 0x202A <= r && r <= 0x202E || 0x200B <= r && r <= 0x200D || r == 0x2060 || r == 0x2062 ||
		r == 0x2063 || 0xFE00 <= r && r <= 0xFE0F
}
