// SPDX-License-Identifier: Apache-2.0

package scrub

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// fit repeats s to 2,000 bytes, less what would cut a character.
func fit(s string) string {
	s = strings.Repeat(s, 2000/len(s)+1)
	n := 2000
	for !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

var benchCases = []struct {
	name, text string
	budget     float64 // ns; 0 where the issue names none
}{
	{"ascii", fit("The quick brown fox jumps over the lazy dog, and so on: 3.14 (or so). "), 200},
	{"ascii-lines", fit("The quick brown fox jumps over the lazy dog, and so on.\nIt was late. "), 0},
	{"russian", fit("\u0421\u044a\u0435\u0448\u044c \u0436\u0435 \u0435\u0449\u0451 \u044d\u0442\u0438\u0445 \u043c\u044f\u0433\u043a\u0438\u0445 \u0444\u0440\u0430\u043d\u0446\u0443\u0437\u0441\u043a\u0438\u0445 \u0431\u0443\u043b\u043e\u043a, \u0434\u0430 \u0432\u044b\u043f\u0435\u0439 \u0447\u0430\u044e. "), 4000},
	{"japanese", fit("\u3044\u308d\u306f\u306b\u307b\u3078\u3068\u3001\u5f71\u97ff\u306f\u3001\u3053\u306e\u6570\u5e74\u3067\u5927\u304d\u304f\u5909\u308f\u3063\u305f\u3002\u30b3\u30f3\u30d4\u30e5\u30fc\u30bf\u30fc"), 4000},
	{"japanese-full-width", fit("\u5f71\u97ff\u306f\uff08\u3053\u306e\u6570\u5e74\u3067\uff09\u5927\u304d\u304f\u5909\u308f\u3063\u305f\uff01\u30b3\u30f3\u30d4\u30e5\u30fc\u30bf\u30fc\uff1a\u305d\u3046\uff1f"), 0},
	{"korean", fit("\ud0a4\uc2a4\uc758 \uace0\uc720\uc870\uac74\uc740 \uc785\uc220\ub07c\ub9ac \ub9cc\ub098\uc57c \ud558\uace0 \ud2b9\ubcc4\ud55c \uae30\uc220\uc740 \ud544\uc694\uce58 \uc54a\ub2e4. "), 4000},
	{"korean-nfd", fit("\u110f\u1175\u1109\u1173\u110b\u1174 \u1100\u1169\u110b\u1172\u110c\u1169\u1100\u1165\u11ab\u110b\u1173\u11ab "), 0},
	{"french", fit("Port\u00e9e \u00e0 son z\u00e9nith, l\u2019\u0153uvre \u00ab d\u00e9\u00e7ut \u00bb\u2026 "), 0},
	{"json", fit(`{"id":12,"name":"x","tags":["a","b"],"ok":true,"list":[1,2,[3]],"url":"https://e.example/?a=1&b=2"},` + "\n"), 0},
	{"source", fit("for i := 0; i < len(a); i++ {\n\tif a[i] <= b[i] && x&y != 0 {\n\t\treturn m[\"k\"], nil // see #12\n\t}\n}\n"), 0},
	{"markdown", fit("# Title\n\nSee [the page](https://e.example/) and *that* <b>one</b>.\n\n- item `code`\n- [x] done\n"), 0},
	{"html", fit("<div class=\"a\"><p>Text &amp; more</p><a href=\"/x\">y</a></div>\n"), 0},
	{"hindi", fit("\u0938\u092d\u0940 \u092e\u0928\u0941\u0937\u094d\u092f\u094b\u0902 \u0915\u094b \u0917\u094c\u0930\u0935 \u0914\u0930 \u0905\u0927\u093f\u0915\u093e\u0930\u094b\u0902 \u0915\u0947 \u092e\u093e\u092e\u0932\u0947 \u092e\u0947\u0902 "), 0},
	{"thai", fit("\u0e21\u0e19\u0e38\u0e29\u0e22\u0e4c\u0e17\u0e31\u0e49\u0e07\u0e2b\u0e25\u0e32\u0e22\u0e40\u0e01\u0e34\u0e14\u0e21\u0e32\u0e21\u0e35 "), 0},
	{"worst-fdfa", fit("\ufdfa"), 50000},
	{"worst-zalgo", fit("a" + strings.Repeat("\u0316\u0301\u0327", 30)), 50000},
	{"worst-marks", fit("a\u0301\u0316"), 50000},
	{"worst-nesting", strings.Repeat("<|im_", 300) + strings.Repeat("x|>", 166), 50000},
	{"worst-links", fit("[a]("), 50000},
	{"worst-angles", strings.Repeat("<", 664) + strings.Repeat("a>", 664), 50000},
	{"worst-hidden", fit("a\u200b"), 50000},
	{"worst-references", fit("&#x202e;"), 50000},
	{"worst-tokens", fit("<s>x"), 50000},
	{"worst-openers", fit("\uff1c\u2039"), 50000},
	{"worst-lines", fit("s:\n"), 50000},
	{"worst-direction", fit("\u05d0a\u200e"), 50000},
}

var benchPolicies = []Policy{{}, {Profile: Faithful}, {Profile: Veritas}}

func BenchmarkScrub(b *testing.B) {
	for _, p := range benchPolicies {
		s := compile(b, p)
		for _, c := range benchCases {
			b.Run(p.Profile.String()+"/"+c.name, func(b *testing.B) {
				var r Result
				b.SetBytes(int64(len(c.text)))
				b.ReportAllocs()
				for b.Loop() {
					s.Scrub(c.text, &r)
				}
			})
		}
	}
}

func BenchmarkMemcpy(b *testing.B) {
	buf := make([]byte, 2000)
	b.SetBytes(2000)
	for b.Loop() {
		copy(buf, benchCases[0].text)
	}
}
