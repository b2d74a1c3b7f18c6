// SPDX-License-Identifier: Apache-2.0

package ucd

import (
	"strings"
	"testing"

	"golang.org/x/text/unicode/norm"
)

var benchTexts = []struct{ name, s string }{
	{"ascii", fill("The claim is supported by the 2021 assessment report; see Table 3, p. 41. ")},
	{"french", fill("Les \u00e9l\u00e8ves ont pass\u00e9 l'\u00e9t\u00e9 \u00e0 la for\u00eat, pr\u00e8s du ch\u00e2teau. ")},
	{"russian", fill("\u0421\u044a\u0435\u0448\u044c \u0436\u0435 \u0435\u0449\u0451 \u044d\u0442\u0438\u0445 \u043c\u044f\u0433\u043a\u0438\u0445 \u0431\u0443\u043b\u043e\u043a. ")},
	{"japanese", fill("\u4eba\u9593\u306f\u3001\u751f\u307e\u308c\u306a\u304c\u3089\u306b\u3057\u3066\u81ea\u7531\u3067\u3042\u308a\u3001\u30c7\u30fc\u30bf\u3002")},
	{"korean", fill("\ubaa8\ub4e0 \uc778\uac04\uc740 \ud0dc\uc5b4\ub0a0 \ub54c\ubd80\ud130 \uc790\uc720\ub85c\uc6b0\uba70 ")},
	{"korean-nfd", fill(norm.NFD.String("\ubaa8\ub4e0 \uc778\uac04\uc740 \ud0dc\uc5b4\ub0a0 \ub54c\ubd80\ud130 "))},
	{"vietnamese-nfd", fill(norm.NFD.String("Ti\u1ebfng Vi\u1ec7t c\u00f3 nhi\u1ec1u d\u1ea5u ph\u1ee9c t\u1ea1p "))},
	{"fullwidth", fill("\uff29\uff27\uff2e\uff2f\uff32\uff25\u3000\uff50\uff52\uff45\uff56")},
	{"marks", "a" + fill("\u0316\u0301\u0327\u0345")},
	{"fdfa", fill("\ufdfa")},
}

// fill repeats s to 2,000 bytes, cut between characters.
func fill(s string) string {
	s = strings.Repeat(s, 2000/len(s)+1)
	n := 2000
	for s[n]&0xC0 == 0x80 {
		n--
	}
	return s[:n]
}

func BenchmarkAppendNFKC(b *testing.B) {
	for _, c := range benchTexts {
		b.Run(c.name, func(b *testing.B) {
			var buf Buffer
			var dst []byte
			b.ReportAllocs()
			for b.Loop() {
				dst = buf.Append(dst[:0], NFKC, c.s)
			}
		})
		b.Run(c.name+"/x-text", func(b *testing.B) {
			var dst []byte
			b.ReportAllocs()
			for b.Loop() {
				dst = norm.NFKC.AppendString(dst[:0], c.s)
			}
		})
	}
}

func BenchmarkScan(b *testing.B) {
	for _, c := range benchTexts {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				Scan(c.s, 0, Hidden)
			}
		})
	}
}

func BenchmarkSkeleton(b *testing.B) {
	for _, c := range benchTexts[:5] {
		b.Run(c.name, func(b *testing.B) {
			var buf Buffer
			var dst []byte
			b.ReportAllocs()
			for b.Loop() {
				dst = buf.AppendSkeleton(dst[:0], c.s)
			}
		})
	}
}
