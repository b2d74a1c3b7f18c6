// SPDX-License-Identifier: Apache-2.0

package ucd

import (
	"bufio"
	"os"
	"strings"
	"testing"
)

func TestJoinerAllowed(t *testing.T) {
	for _, c := range []struct {
		before string
		r      rune
		after  string
		want   bool
	}{
		{"\u0646\u0645\u06cc", zwnj, "\u062e\u0648\u0627\u0647\u0645", true}, // Persian: a dual and a joining letter
		{"\u0646\u0645\u06cc", zwj, "\u062e", false},
		{"\u0627", zwnj, "\u0628", false},                       // alef joins to nothing after it
		{"\u0628", zwnj, "\u0621", false},                       // hamza joins to nothing
		{"\u0628\u064e\u0651", zwnj, "\u0650\u0628", true},      // past the marks
		{"\u0915\u094d", zwnj, "\u0937", true},                  // Devanagari virama
		{"\u0915\u094d", zwj, "\u0937", true},                   //
		{"\u0915", zwj, "\u0937", false},                        //
		{"\u0dc1\u0dca", zwj, "\u0dbb", true},                   // Sinhala
		{"\u0628", zwnj, "", false},                             //
		{"", zwnj, "\u0628", false},                             //
		{"ab", zwnj, "cd", false},                               //
		{"\u0628", zwnj, "\u200d\u0628", false},                 // a joiner is not transparent
		{"\u0628", 0x200B, "\u0628", false},                     //
		{"\u0628\xff", zwnj, "\u0628", false},                   //
		{"\u0628", zwnj, "\xd8", false},                         //
		{"\ua872", zwnj, "\u0628", true},                        // Phags-pa: the one that joins only onwards
		{strings.Repeat("\u064e", 1000), zwnj, "\u0628", false}, //
	} {
		if got := JoinerAllowed(c.before, c.r, c.after); got != c.want {
			t.Errorf("%+q %U %+q: %v", c.before, c.r, c.after, got)
		}
	}
}

// TestJoiningProp: where JoinerAllowed is true, a Joining character stands before.
func TestJoiningProp(t *testing.T) {
	for r := range allRunes {
		joins := Virama(r) || joiningType(r) == joinLeft || joiningType(r) == joinRight || joiningType(r) == joinDual
		if joins != (Of(r)&Joining != 0) {
			t.Fatalf("%U: joining type %d, facts %#x", r, joiningType(r), Of(r))
		}
	}
}

func TestDirection(t *testing.T) {
	for r, want := range map[rune][2]bool{
		'a': {true, false}, '1': {}, ' ': {}, 0x5D0: {false, true}, 0x628: {false, true}, 0x661: {}, 0x4E00: {true, false},
		0x200E: {true, false}, 0x200F: {false, true}, 0x202E: {}, 0x301: {}, 0x1E900: {false, true}, 0x10FFF: {false, true},
		0xE000: {true, false}, 0x110000: {}, -1: {},
	} {
		if l, rt := Direction(r); l != want[0] || rt != want[1] {
			t.Errorf("Direction(%U) = %v, %v", r, l, rt)
		}
	}
}

func TestEmojiSequence(t *testing.T) {
	const england = "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f"
	for _, c := range []struct {
		s    string
		want string
	}{
		{"", ""}, {"a", ""}, {"7", ""}, {"#", ""}, {"7\ufe0f", ""}, {"\u200d", ""}, {"\ufe0f", ""},
		{"7\ufe0f\u20e3x", "7\ufe0f\u20e3"}, {"#\u20e3", "#\u20e3"},
		{"\U0001f600x", "\U0001f600"},
		{"\u2764\ufe0f\u200d", "\u2764\ufe0f"},
		{"\u2764\ufe0f\u200d\U0001f525", "\u2764\ufe0f\u200d\U0001f525"},
		{"\u2764\ufe0e", "\u2764"},       // a variant of text
		{"\u231a\ufe0f", "\u231a\ufe0f"}, // a standardized variant
		{"\U0001f600\ufe0f", "\U0001f600"},
		{"\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466!", "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466"},
		{"\U0001f468\u200d\U0001f469", "\U0001f468"},
		{"\U0001f44d\U0001f3fd\U0001f3fd", "\U0001f44d\U0001f3fd"},
		{"\U0001f441\u200d\U0001f5e8", "\U0001f441\u200d\U0001f5e8"}, // unqualified, and common
		{"\U0001f1e9\U0001f1ea\U0001f1e9", "\U0001f1e9\U0001f1ea"}, {"\U0001f1e6\U0001f1e6", ""},
		{england, england}, {england + "\U000e0041", england},
		{"\U0001f3f4\U000e0068\U000e0069\U000e007f", "\U0001f3f4"}, // a flag that hides "hi"
		{england[:len(england)-4], "\U0001f3f4"},
		{england[:len(england)-2], "\U0001f3f4"},
	} {
		if got := EmojiSequence(c.s); got != len(c.want) {
			t.Errorf("EmojiSequence(%+q) = %d, not %d", c.s, got, len(c.want))
		}
	}
}

func TestEmojiTest(t *testing.T) {
	f, err := os.Open(unicodeDir + "emoji/emoji-test.txt")
	if err != nil {
		t.Skipf("needs Debian's unicode-data: %v", err)
	}
	defer f.Close()
	n := 0
	for sc := bufio.NewScanner(f); sc.Scan(); {
		line, _, _ := strings.Cut(sc.Text(), "#")
		if hex, _, ok := strings.Cut(line, ";"); ok {
			n++
			if s := parseRunes(t, hex); EmojiSequence(s) != len(s) {
				t.Errorf("%+q: %d of %d bytes", s, EmojiSequence(s), len(s))
			}
		}
	}
	if n != 4733 {
		t.Errorf("%d sequences", n)
	}
}

func TestStandardVariant(t *testing.T) {
	for _, c := range []struct {
		base, selector rune
		want           bool
	}{
		{'0', 0xFE00, true}, {'0', 0xFE01, false}, {0x2229, 0xFE00, true}, {0x2A9D, 0xFE00, true}, {0xA85E, 0xFE00, true}, {0x1002, 0xFE00, true},
		{0x13091, 0xFE00, true}, {0x2764, 0xFE0E, true}, {0x2764, 0xFE0F, false}, {'a', 0xFE00, false}, {0x4E00, 0xFE00, false},
		{0x2229, 0xFDFF, false}, {0x2229, 0xE0100, false}, {-1, 0xFE00, false}, {0x110000, 0xFE00, false},
	} {
		if got := StandardVariant(c.base, c.selector); got != c.want {
			t.Errorf("StandardVariant(%U, %U) = %v", c.base, c.selector, got)
		}
	}
}

func TestSymbols(t *testing.T) {
	for r, want := range map[rune][2]bool{
		0x21D2: {true, false}, 0x2605: {true, false}, 0x1F600: {true, true}, 0x1FAFF: {false, true}, 0x1FAE9: {true, true},
		0x2460: {true, false}, 'a': {}, '+': {}, 0xA9: {true, true}, 0x2014: {}, -1: {}, 0x110000: {},
	} {
		if Symbol(r) != want[0] || Pictographic(r) != want[1] {
			t.Errorf("%U: %v, %v", r, Symbol(r), Pictographic(r))
		}
	}
}

// allEmoji yields every sequence that the automaton accepts, in order.
func allEmoji(yield func(string) bool) {
	var walk func(state uint32, s string) bool
	walk = func(state uint32, s string) bool {
		if emojiStates[state]&1 != 0 && !yield(s) {
			return false
		}
		for _, e := range emojiEdges[emojiStates[state]>>1 : emojiStates[state+1]>>1] {
			if !walk(e>>21, s+string(rune(e&decompRune))) {
				return false
			}
		}
		return true
	}
	walk(emojiStart, "")
}

// TestEmojiParts: the fact EmojiPart is that of the sequences' characters.
func TestEmojiParts(t *testing.T) {
	parts := map[rune]bool{}
	for s := range allEmoji {
		for _, r := range s {
			parts[r] = true
		}
		if EmojiSequence(s+"x") != len(s) {
			t.Errorf("%+q is accepted, but not found", s)
		}
	}
	for r := range allRunes {
		if parts[r] != (Of(r)&EmojiPart != 0) {
			t.Errorf("%U: facts %#x", r, Of(r))
		}
	}
}

func FuzzLayout(f *testing.F) {
	f.Add("\u0628", rune(zwnj), "\u0628")
	f.Add("\u094d\xff", rune(zwj), "\U0001f468\u200d\U0001f469")
	f.Fuzz(func(t *testing.T, before string, r rune, after string) {
		if JoinerAllowed(before, r, after) && r != zwnj && r != zwj {
			t.Fatal("allowed for what is no joiner")
		}
		if n := EmojiSequence(after); n < 0 || n > len(after) || n > 0 && EmojiSequence(after[:n]) != n {
			t.Fatalf("EmojiSequence(%+q) = %d", after, n)
		}
		l, rt := Direction(r)
		if l && rt || !Extensions(r).Has(ScriptOf(r)) && ScriptOf(r) > ScriptInherited && Extensions(r).Len() < 1 {
			t.Fatalf("%U: left and right, or no script", r)
		}
	})
}
