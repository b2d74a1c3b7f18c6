// SPDX-License-Identifier: Apache-2.0

package ucd

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
	"unsafe"
)

func TestCount(t *testing.T) {
	for _, s := range []string{"", "a", "caf\u00e9", strings.Repeat("\u00e9a\u65e5\U0001f600", 9), "\u007f\u0080\u07ff\u0800\uffff\U00010000\U0010ffff"} {
		for i := range s {
			for j := i; j <= len(s); j++ {
				if j < len(s) && !utf8.RuneStart(s[j]) {
					continue
				}
				if got, want := Count(s[i:j]), utf8.RuneCountInString(s[i:j]); got != want {
					t.Errorf("%+q: %d characters, want %d", s[i:j], got, want)
				}
			}
		}
	}
}

func TestOf(t *testing.T) {
	for _, c := range []struct {
		r    rune
		want Prop
	}{
		{'a', 0}, {'\n', 0}, {'\t', 0}, {'<', Opener}, {'|', Opener}, {'7', EmojiPart},
		{'\r', Hidden}, {0x85, Hidden}, {0xE9, 0}, {0xA0, NFKCActive}, {0xB2, NFKCActive | Lossy},
		{0x301, NFKCActive | NFCActive | NFKCJoins | NFCJoins | NonStarter | Mark},
		{0x34F, Hidden | Mark}, {0x430, Confusable}, {0x436, 0}, {0xAC00, 0}, {0x4E00, 0},
		{0x2039, Confusable | Opener}, {0xFF1C, NFKCActive | Opener}, {0x226E, Opener}, {0x226F, 0}, {0x2FB1, NFKCActive},
		{0x1D16D, NFKCActive | NFCActive | NFKCJoins | NFCJoins | NonStarter | Confusable | Mark},
		{0x1CCD6, Flagged}, {0xE000, Flagged}, {0x2800, Flagged}, {0xFFFC, Flagged}, {0x10FFFD, Flagged},
		{0xFFFE, Hidden}, {0x10FFFF, Hidden}, {0xFDD0, Hidden}, {0x600, 0}, {0x6DD, 0}, {0x70F, Blank},
		{0x94D, NFKCActive | NFCActive | NFKCJoins | NFCJoins | NonStarter | Joining | Mark | Bound},
		{0x628, Joining}, {0x200D, Hidden | EmojiPart}, {0x200C, Hidden}, {0xFE0F, Hidden | EmojiPart | Mark},
		{0xFE0E, Hidden | Mark}, {0x13447, Mark | Blank | Bound}, {0x1D159, Blank}, {0x1D15A, 0}, {0x897, Mark | Bound}, {0x20DD, Mark | Bound}, {0x1CCD6, Flagged}, {0x1FAE9, EmojiPart}, {0xFE00, Hidden | Mark}, {0xE0001, Hidden}, {0xE0067, Hidden | EmojiPart}, {0x1F468, EmojiPart},
		{0xE0000, Hidden}, {0xFFF0, Hidden}, {0x1161, NFKCActive | NFCActive | NFKCJoins | NFCJoins}, {0x1160, Hidden}, {0x2F800, NFKCActive | NFCActive},
		{0x20000, 0}, {0x2A6E0, Flagged}, {0xD800, Flagged}, {0x110000, Flagged}, {-1, Flagged},
	} {
		if got := Of(c.r); got != c.want {
			t.Errorf("Of(%U) = %#x, not %#x", c.r, got, c.want)
		}
	}
}

// TestPropLaws: what the comments of the constants promise, for every character.
func TestPropLaws(t *testing.T) {
	hidden, confusables, rfc, suspicious := 0, 0, 0, 0
	for r := range allRunes {
		p, s := Of(r), string(r)
		if (ClassOf(r) != NotHidden) != (p&Hidden != 0) {
			t.Fatalf("%U: class %s, facts %#x", r, ClassOf(r), p)
		}
		if Substitute(r) != 0 && p&Hidden == 0 || (InRFCSet(r) && r != 0x202F || Suspicious(r)) && p&Hidden == 0 {
			t.Fatalf("%U is not hidden", r)
		}
		if p&(Hidden|Flagged) == Hidden|Flagged {
			t.Fatalf("%U is hidden and flagged", r)
		}
		if p&NFKCJoins != 0 && p&NFKCActive == 0 || p&NFCJoins != 0 && p&NFCActive == 0 || p&NFCActive != 0 && p&NFKCActive == 0 {
			t.Fatalf("%U: facts %#x", r, p)
		}
		if p&NonStarter != 0 != (CCC(r) != 0) || p&NonStarter != 0 && p&(NFKCJoins&NFCJoins) != NFKCJoins&NFCJoins {
			t.Fatalf("%U: combining class %d, facts %#x", r, CCC(r), p)
		}
		if got, w := Peek(s, 0); got != p || w != len(s) {
			t.Fatalf("Peek(%U) = %#x, %d, not %#x", r, got, w, p)
		}
		if got, w, ok := Decode(s); got != r || w != len(s) || !ok {
			t.Fatalf("Decode(%U) = %U, %d, %v", r, got, w, ok)
		}
		if c, ok := ASCIIPrototype(r); ok {
			confusables++
			if r < 0x80 || !NFKC.IsNormal(s) || Prototype(r) != string(rune(c)) || c < 0x20 || c > 0x7E {
				t.Fatalf("%U is replaced by %#x", r, c)
			}
		}
		if p&Bound != 0 && p&(Mark|Hidden) != Mark || p&Blank != 0 && p&Hidden != 0 {
			t.Fatalf("%U: facts %#x", r, p)
		}
		hidden += int(p & Hidden)
		rfc += count(InRFCSet(r))
		suspicious += count(Suspicious(r))
	}
	if hidden != 4325 || confusables != 562 || rfc != 156 || suspicious != 151 {
		t.Errorf("%d hidden, %d confusables, %d in the RFC's set, %d suspicious", hidden, confusables, rfc, suspicious)
	}
}

func count(is bool) int {
	if is {
		return 1
	}
	return 0
}

func TestHiddenClass(t *testing.T) {
	for r, want := range map[rune]HiddenClass{
		0x202E: Bidi, 0x200F: Bidi, 0x061C: Bidi, 0x200B: ZeroWidth, 0xFEFF: ZeroWidth, 0x2062: InvisibleOperator,
		0x206F: InvisibleOperator, 0xFE0F: VariationSelector, 0x180E: VariationSelector, 0xE01EF: VariationSelector,
		0xE0041: Tag, 0xE01F0: Tag, 0xE0FFF: Tag, 0xE1000: NotHidden, 0x3164: Filler, 0xAD: Filler, 0xFFF9: Annotation,
		0x1D173: Format, 0x1343F: Format, 0x7F: Control, 0: Control, 0x1680: Separator, 0x2029: Separator,
		0x5FFFE: Noncharacter, 0xFDEF: Noncharacter, 0x110BD: NotHidden, '\n': NotHidden, 0x110000: NotHidden, -1: NotHidden, -2: NotHidden,
	} {
		if got := ClassOf(r); got != want {
			t.Errorf("ClassOf(%U) = %s, not %s", r, got, want)
		}
	}
	for c := range HiddenClass(numHiddenClasses) {
		if s := c.String(); s == "" || s != strings.ToLower(s) {
			t.Errorf("class %d is called %q", c, s)
		}
	}
	if HiddenClass(200).String() != "invalid" {
		t.Error("a class out of range")
	}
	if Substitute('\r') != '\n' || Substitute(0x1680) != ' ' || Substitute(0x200B) != 0 || Substitute('a') != 0 {
		t.Error("Substitute")
	}
}

// TestDecodeIllFormed holds the maximal subparts: table 3-8 to 3-11 of the
// Unicode Standard 15.0 and the edges of table 3-7.
func TestDecodeIllFormed(t *testing.T) {
	for s, want := range map[string][]int{
		"\xc0\xaf\xe0\x80\xbf\xf0\x81\x82A": {1, 1, 1, 1, 1, 1, 1, 1, 1},
		"\xed\xa0\x80\xed\xbf\xbf\xed\xafA": {1, 1, 1, 1, 1, 1, 1, 1, 1},
		"\xf4\x91\x92\x93\xffA\x80\xbfB":    {1, 1, 1, 1, 1, 1, 1, 1, 1},
		"\xe1\x80\xe2\xf0\x91\x92\xf1\xbfA": {2, 1, 3, 2, 1},
		"\xf0\x90\x80":                      {3},
		"\xf4\x8f\xbf\xbf\xf5\x80":          {4, 1, 1},
		"\xed\x9f\xbf\xed\x9f":              {3, 2},
		"\xe0\xa0\xc2":                      {2, 1},
		"":                                  nil,
	} {
		var got []int
		for i := 0; i < len(s); {
			r, w, ok := Decode(s[i:])
			if p, pw := Peek(s, i); pw != w || (p == IllFormed) == ok || ok != (r != utf8.RuneError) {
				t.Errorf("%+q at %d: Peek %#x, %d; Decode %U, %d, %v", s, i, p, pw, r, w, ok)
			}
			got = append(got, w)
			i += w
		}
		if !slices.Equal(got, want) {
			t.Errorf("%+q: widths %v, not %v", s, got, want)
		}
	}
	if r, w, ok := Decode(""); r != utf8.RuneError || w != 0 || ok {
		t.Error("Decode of nothing")
	}
	if r, w, ok := Decode("\uFFFD"); r != utf8.RuneError || w != 3 || !ok {
		t.Error("U+FFFD itself is well-formed")
	}
}

// scanSlowly is Scan as its comment says it.
func scanSlowly(s string, i int, mask Prop) (int, Prop, int) {
	for i < len(s) {
		r, w, ok := Decode(s[i:])
		p := Of(r)
		if !ok {
			p = IllFormed
		}
		switch {
		case r < 0x80 && (r >= ' ' && r < 0x7F || r == '\t' || r == '\n'):
		case !ok || r < 0x80 || p&mask != 0:
			return i, p, w
		}
		i += w
	}
	return len(s), 0, 0
}

func checkScan(t *testing.T, s string, mask Prop) {
	t.Helper()
	for i := 0; i <= len(s); {
		at, p, w := Scan(s, i, mask)
		if wat, wp, ww := scanSlowly(s, i, mask); at != wat || p != wp || w != ww {
			t.Fatalf("Scan(%+q, %d, %#x) = %d, %#x, %d, not %d, %#x, %d", s, i, mask, at, p, w, wat, wp, ww)
		}
		i = at + max(w, 1)
	}
}

// TestScanASCII puts every byte at every place of the wide loads.
func TestScanASCII(t *testing.T) {
	for size := range 75 {
		text := []byte(strings.Repeat("x ~", 25)[:size])
		for at := range size {
			for c := range 256 {
				old := text[at]
				text[at] = byte(c)
				checkScan(t, string(text), 0)
				text[at] = old
			}
		}
	}
}

func FuzzScan(f *testing.F) {
	for i, s := range hardTexts {
		f.Add(s, uint16(1)<<(i%16))
	}
	f.Fuzz(func(t *testing.T, s string, mask uint16) { checkScan(t, s, Prop(mask)) })
}

// TestTableSize: a program that wraps one server must stay small.
func TestTableSize(t *testing.T) {
	size := unsafe.Sizeof(propIndex) + unsafe.Sizeof(propData) + unsafe.Sizeof(propHigh) +
		unsafe.Sizeof(indexCCC) + unsafe.Sizeof(dataCCC) + unsafe.Sizeof(indexNFD) + unsafe.Sizeof(dataNFD) +
		unsafe.Sizeof(indexNFKD) + unsafe.Sizeof(dataNFKD) + unsafe.Sizeof(decompRuns) +
		unsafe.Sizeof(compositions) + unsafe.Sizeof(secondFilter) +
		unsafe.Sizeof(indexPrototype) + unsafe.Sizeof(dataPrototype) + uintptr(len(prototypes)) +
		unsafe.Sizeof(indexScript) + unsafe.Sizeof(dataScript) + unsafe.Sizeof(scriptNames) +
		unsafe.Sizeof(indexScriptSet) + unsafe.Sizeof(dataScriptSet) + unsafe.Sizeof(scriptSets) +
		unsafe.Sizeof(indexLayout) + unsafe.Sizeof(dataLayout) +
		unsafe.Sizeof(scriptChanges) + unsafe.Sizeof(pinnedScriptSets) + unsafe.Sizeof(standardVariants) +
		unsafe.Sizeof(emojiStates) + unsafe.Sizeof(emojiEdges) + unsafe.Sizeof(hiddenRanges)
	t.Logf("%d bytes", size)
	if size > 370_000 {
		t.Errorf("the tables have %d bytes", size)
	}
}
