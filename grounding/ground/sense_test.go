// SPDX-License-Identifier: Apache-2.0

package ground

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestSameSense: what differs by a negation or a number is another claim.
func TestSameSense(t *testing.T) {
	for _, x := range []struct {
		a, b string
		same bool
	}{
		{"Vaccine X causes condition Y.", "does vaccine X cause condition Y?", true},
		{"Vaccine X causes condition Y.", "Vaccine X does not cause condition Y.", false},
		{"Vaccine X does not cause Y.", "Vaccine X doesn't cause Y", true},
		{"Vaccine X does not cause Y.", "Vaccine X doesn\u2019t cause Y", true},
		{"It cannot be", "It can be", false},
		{"No drug cures it", "A drug cures it", false},
		{"Es gibt keinen Beweis", "Es gibt einen Beweis", false},
		{"El agua no hierve", "El agua hierve", false},
		{"L'eau ne bout pas", "L'eau bout", false},
		{"\u00c1gua n\u00e3o ferve", "\u00c1gua ferve", false},
		{"Su kaynamaz de\u011fil", "Su kaynamaz", false},
		{"\u0412\u043e\u0434\u0430 \u043d\u0435 \u043a\u0438\u043f\u0438\u0442", "\u0412\u043e\u0434\u0430 \u043a\u0438\u043f\u0438\u0442", false},
		{"\u0627\u0644\u0645\u0627\u0621 \u0644\u0627 \u064a\u063a\u0644\u064a", "\u0627\u0644\u0645\u0627\u0621 \u064a\u063a\u0644\u064a", false},
		{"\u092a\u093e\u0928\u0940 \u0928\u0939\u0940\u0902 \u0909\u092c\u0932\u0924\u093e", "\u092a\u093e\u0928\u0940 \u0909\u092c\u0932\u0924\u093e", false},
		{"\u6c34\u4e0d\u4f1a\u6cb8\u817e", "\u6c34\u4f1a\u6cb8\u817e", false},
		{"\u6c34\u306f\u6cb8\u9a30\u3057\u306a\u3044", "\u6c34\u306f\u6cb8\u9a30\u3059\u308b", false},
		{"\ubb3c\uc740 \ub053\uc9c0 \uc54a\ub294\ub2e4", "\ubb3c\uc740 \ub053\ub294\ub2e4", false},
		{"1,000 people died", "1000 people died", true},
		{"1'000\u00a0000 people died", "1000000 people died", false}, // two kinds of separators are two numbers
		{"1 in 5 died", "5 in 1 died", true}, // the order of words is not seen
		{"5 of 10 died", "50 of 10 died", false},
		{"It rose 1.50 m", "It rose 1,5 m", true},
		{"It rose 1.5 m", "It rose 15 m", false},
		{"It was -5 degrees", "It was 5 degrees", false},
		{"from 1990-2000", "from 1990 2000", true},
		{"10\u2076 Hz", "106 Hz", false},
		{"10\u2076 Hz", "10\u2076 Hz", true},
		{"\u0661\u0662 men", "12 men", true},
		{"The sea rises 3 mm a year.", "The sea rises.", false},
		{"", "", true},
	} {
		if got := sameSense(x.a, x.b); got != x.same {
			t.Errorf("%+q and %+q: %t; negations %d and %d, numbers %q and %q", x.a, x.b, got, negationsOf(x.a), negationsOf(x.b), numbersOf(x.a), numbersOf(x.b))
		}
		if sameSense(x.a, x.b) != sameSense(x.b, x.a) || !sameSense(x.a, x.a) {
			t.Errorf("%+q and %+q: it depends on the order", x.a, x.b)
		}
	}
}

// TestSenseProperty: one more negation or number makes another claim of any text, in any
// place, and case and punctuation make none.
func TestSenseProperty(t *testing.T) {
	whole, parts := negations()
	var all []string
	for w := range whole {
		all = append(all, w)
	}
	slices.Sort(all)
	if len(all) < 150 || len(parts) < 15 {
		t.Fatalf("%d words and %d parts", len(all), len(parts))
	}
	words := rapid.SliceOfN(rapid.SampledFrom([]string{"water", "causes", "40", "1,000", "not", "\u6c34", "ever", "3.5"}), 1, 8)
	join := func(ws []string) (s string) {
		for _, w := range ws {
			s += w + " "
		}
		return s
	}
	rapid.Check(t, func(t *rapid.T) {
		ws := words.Draw(t, "words")
		at := rapid.IntRange(0, len(ws)).Draw(t, "at")
		one := join(ws)
		for _, more := range []string{rapid.SampledFrom(all).Draw(t, "negation"), rapid.StringMatching(`[1-9][0-9]{0,8}`).Draw(t, "number")} {
			if two := join(slices.Insert(slices.Clone(ws), at, more)); sameSense(one, two) || sameSense(two, one) {
				t.Fatalf("%q and %q are taken for the same", one, two)
			}
		}
		if two := join(slices.Insert(slices.Clone(ws), at, "(Well!)")); !sameSense(one, two) {
			t.Fatalf("%q and %q are not", one, two)
		}
	})
}

// FuzzSense: any texts can be compared, and each is the same as itself.
func FuzzSense(f *testing.F) {
	f.Add("1,000,00 isn't 10\u2076", "\xff\u0661,\u0662")
	f.Add("-\u22125", "\u0e44\u0e21\u0e48")
	f.Fuzz(func(t *testing.T, a, b string) {
		if !sameSense(a, a) || sameSense(a, b) != sameSense(b, a) {
			t.Errorf("%+q, %+q", a, b)
		}
	})
}
