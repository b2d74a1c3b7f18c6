// SPDX-License-Identifier: Apache-2.0

package counterfactual

import (
	"strings"
	"testing"
)

// TestSameValue: a value has one canonical form, however a text spells it, and stands in a sentence
// that spells it so.
func TestSameValue(t *testing.T) {
	for want, spellings := range map[string][]string{
		"n:12000":    {"12000", "12,000", "12k", "12K", "12.0k", "$12k", "\u0967\u0968\u0966\u0966\u0966", "12000.00"},
		"n:1500":     {"1.5k", "1500", "\u0661\u0665\u0660\u0660"},
		"n:12.5":     {"12.5", "0.0125k"},
		"n:100000":   {"1,00,000", "100,000", "100k", "\u0967,\u0966\u0966,\u0966\u0966\u0966"},
		"n:12345678": {"1,23,45,678", "12,345,678"},
		"n:50":       {"50", "\u096b\u0966", "\u09eb\u09e6", "\u0665\u0660", "\u06f5\u06f0", "\uff15\uff10"},
		"d:2026-03-05": {"2026-03-05", "5 March 2026", "March 5th, 2026", "5 de marzo de 2026", "5 mars 2026", "5 de mar\u00e7o de 2026", "5. M\u00e4rz 2026",
			"5 marzo 2026", "5 maart 2026", "5 \u043c\u0430\u0440\u0442\u0430 2026", "5 Mart 2026", "5 Maret 2026", "5 marca 2026", "5 \u092e\u093e\u0930\u094d\u091a 2026",
			"\u096b \u092e\u093e\u0930\u094d\u091a \u0968\u0966\u0968\u096c", "5 \u09ae\u09be\u09b0\u09cd\u099a 2026", "5 \u0645\u0627\u0631\u0633 2026", "\u0665 \u0645\u0627\u0631\u0633 \u0662\u0660\u0662\u0666",
			"5 \u0645\u0627\u0631\u0686 2026", "2026\u5e743\u67085\u65e5", "2026\ub144 3\uc6d4 5\uc77c", "2026\ub1443\uc6d45\uc77c"},
		"d:2026-10-01": {"1 October 2026", "1er octobre 2026", "1 de outubro de 2026", "1. Oktober 2026", "1 \u043e\u043a\u0442\u044f\u0431\u0440\u044f 2026", "1 \u0985\u0995\u09cd\u099f\u09cb\u09ac\u09b0 2026"},
	} {
		for _, s := range spellings {
			if got := canonical(s); got != want {
				t.Errorf("%q is %q, want %q", s, got, want)
			}
			if s == "2026\ub144 3\uc6d4 5\uc77c" {
				continue // as three words of a sentence it is not put together
			}
			for _, sentence := range []string{"Please use " + s + " for it.", s, "(" + s + ")"} {
				if v := (&vocabulary{text: sentence}); !v.holds(want) {
					t.Errorf("%q does not hold %q", sentence, want)
				}
			}
		}
	}
	if v := (&vocabulary{text: "\u8bf7\u57282026\u5e743\u67085\u65e5\u4ed8\u6b3e"}); !v.holds("d:2026-03-05") {
		t.Error("a date between Chinese characters is not found")
	}
}

// TestOtherValue: what only looks like one of these is a text.
func TestOtherValue(t *testing.T) {
	for _, s := range []string{"12kk", "k", "1,0,000", "1,00,00", "100,00,000", "12,34k,000", "5 marraskuuta 2026", "5 de 2026", "32 March 2026", "5 March 26",
		"2026\u5e7413\u67085\u65e5", "2026\u5e743\u6708", "\u5e74\u6708\u65e5", "5 de marzo de 20266", "March 2026"} {
		if got := canonical(s); formOf(got) != FormText {
			t.Errorf("%q is %q", s, got)
		}
	}
	total := 0
	for _, names := range monthNames {
		for range strings.FieldsSeq(names) {
			total++
		}
	}
	if total != len(months()) {
		t.Errorf("%d names for %d: one is that of two months, or stands twice", total, len(months()))
	}
}
