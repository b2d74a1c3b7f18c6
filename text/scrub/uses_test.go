// SPDX-License-Identifier: Apache-2.0

package scrub

import (
	"encoding/json"
	"fmt"
	"math/big"
	"os"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/pellucid-mcp/pellucid/text/ucd"
)

// A hidden character stays where a language, an emoji or a file needs it, once. A row of
// them, or one where nothing needs it, goes. spec: scrub/3.6
func TestUses(t *testing.T) {
	s := compile(t, Policy{Profile: Faithful})
	const same = "="
	for _, c := range []struct{ name, in, want string }{
		{"family behind a digit", "10\U0001f469\u200d\U0001f467, 1\ufe0f\u20e3", same},
		{"ideographic selector", "\u845b\U000e0100\u57ce", same},
		{"standardised selector", "\u795e\ufe00\u793e", same},
		{"two selectors", "\u845b\U000e0100\U000e0101", "\u845b"},
		{"selector of a byte", "\u845b\U000e0158\u57ce", "\u845b\u57ce"},
		{"selector behind kana", "\u3042\U000e0100", "\u3042"},
		{"selector behind a letter", "a\U000e0100b\ufe00", "ab"},
		{"mongolian selector", "\u1820\u180b\u1828", same},
		{"mongolian vowel separator", "\u182d\u180e\u1820", same},
		{"mongolian selector in latin", "a\u180bb\u180ec", "abc"},

		{"soft hyphen", "Donau\u00addampf\u00adschiff", same},
		{"soft hyphen behind a mark", "e\u0301e\u0301\u00adtat", same},
		{"soft hyphens between letters", "i\u00adg\u00adn\u00ado\u00adr\u00ade", "ignore"},
		{"two soft hyphens", "Donau\u00ad\u00addampf", "Donaudampf"},
		{"soft hyphen at the edge of a word", "Donau\u00ad dampf", "Donau dampf"},
		{"soft hyphen at the edge of a text", "\u00adDonau\u00ad", "Donau"},
		{"soft hyphen in markup", "<sc\u00adript> [/IN\u00adner] a_un\u00adder", "<script> [/INner] a_under"},
		{"soft hyphen in markup that is hidden", "<\u200bsc\u00adript>", "<script>"},
		{"soft hyphen in a very long word", strings.Repeat("a", 80) + "\u00adbc", strings.Repeat("a", 80) + "bc"},
		{"soft hyphen in digits", "12\u00ad34", "1234"},

		{"isolate of right-to-left text", "by \u2067\u05d0\u05d1\u2069, 3", same},
		{"isolate of a name", "\u05d0\u05d1 \u2068Anna\u2069!", same},
		{"isolate before right-to-left text", "\u2066Anna\u2069 \u05d0\u05d1", same},
		{"isolate in an isolate", "\u2067\u05d0 \u2066C\u2069\u2069", same},
		{"isolates too deep", "\u2068\u05d0\u2068\u05d1\u2068\u05d2\u2069\u2069\u2069", "\u2068\u05d0\u2068\u05d1\u05d2\u2069\u2069"},
		{"isolate in plain text", "a \u2068Anna\u2069 b", "a Anna b"},
		{"isolate far from it", "\u2068Anna\u2069" + strings.Repeat(".", 80) + "\u05d0", "Anna" + strings.Repeat(".", 80) + "\u05d0"},
		{"empty isolate", "\u05d0\u2068\u2069 \u2068 \u200b\u2069", "\u05d0  "},
		{"isolate not closed", "\u05d0 \u2067\u05d1", "\u05d0 \u05d1"},
		{"isolate not opened", "\u05d0\u2069", "\u05d0"},
		{"isolate over two lines", "\u2067\u05d0\n\u05d1\u2069", "\u05d0\n\u05d1"},
		{"isolate that shows another order", "\u05d0 \u2067} if (x) {\u2069", "\u05d0 } if (x) {"},
		{"override", "\u202e\u05d0\u202c", "\u05d0"},

		{"thai word boundary", "\u0e01\u0e32\u200b\u0e02\u0e32", same},
		{"two word boundaries", "\u0e01\u200b\u200b\u0e02", "\u0e01\u0e02"},
		{"word boundary in latin", "a\u200bb", "ab"},
		{"word boundary at the edge of a line", "\u0e01\u200b\n\u200b\u0e01", "\u0e01\n\u0e01"},

		{"joiner behind a virama", "\u0915\u094d\u200d\u0937 \u0dc1\u0dca\u200d\u0dbb\u0dd3 \u0d28\u0d4d\u200d", same},
		{"joiner behind a nukta and a virama", "\u0915\u093c\u094d\u200c\u0937", same},
		{"joiner behind a virama of historic scripts", "\U00011315\U0001134d\u200c\U00011337 \ua98f\ua9c0\u200c\ua98f", same},
		{"two joiners behind a virama", "\u0915\u094d\u200d\u200c\u0937", "\u0915\u094d\u200d\u0937"},
		{"virama on a latin letter", "a\u094d\u200db\u0dca\u200c", "a\u094db\u0dca"},
		{"virama of another script", "\u0915\u09cd\u200dx \u05d0\u094d\u200d", "\u0915\u09cd\u200dx \u05d0\u094d"},
		{"virama behind more marks than a letter has", "\u0915\u0316\u0316\u0316\u094d\u200d", same}, // counted as another joiner
		{"virama on nothing", "\u094d\u200d \u094d\u200d", "\u094d \u094d"},
		{"marks of the class of the virama", "a\u2d7f\u200db\U0001107f\u200cc\u17d2\u200dd\u0e3a\u200c", "a b c d\u0e3a"},
		{"in their own script too", "\u2d30\u2d7f\u200d\u2d31 \U00011013\U0001107f\u200d \u0e01\u0e3a\u200d\u0e01", "\u2d30\u2d7f\u2d31 \U00011013\U0001107f \u0e01\u0e3a\u0e01"},
		{"joiner behind a mark that stands on a latin letter", "a\u093e\u200db", "a\u093eb"},
		{"joiner before a mark on a latin letter", "a\u200d\u093e", "a\u093e"},
		{"joiner in a khmer cluster", "\u1798\u17d2\u1794\u17c9\u200c\u17b8", same},

		{"grapheme joiner in a word", "ac\u034fha", same},
		{"grapheme joiner among hebrew points", "\u05dc\u05b7\u034f\u05b4\u05dd", same},
		{"grapheme joiner in stacked marks", "a\u0316\u034f\u0301\u034f\u0316", "a\u0316\u0301\u0316"},
		{"grapheme joiners among hebrew points", "\u05dc\u05b7\u034f\u05b4\u034f\u05b5", "\u05dc\u05b7\u05b4\u05b5"},
		{"marks that a grapheme joiner parts", "a" + strings.Repeat("\u0316", 8) + "\u034f" + strings.Repeat("\u0316", 8), "a" + strings.Repeat("\u0316", 8)},
		{"points that a grapheme joiner parts", "\u05dc" + strings.Repeat("\u05b7", 8) + "\u034f\u05b4", "\u05dc" + strings.Repeat("\u05b7", 8)},

		{"selectors of symbols", "\u2605\ufe0f \u263a\ufe0e \u2765\ufe0f \u27a5\ufe0f \u21d2\ufe0f \u2460\ufe0f \u2192\ufe0f", same},
		{"two selectors of a symbol", "\u2605\ufe0f\ufe0f", "\u2605"},
		{"selector of an emoji that needs none", "\U0001f600\ufe0f", "\U0001f600"},
		{"selectors of letters and signs", "a\ufe0f \u2014\ufe0e 7\ufe0f", "a \u2014 7"},
		{"selectors of the standard", "\u2268\ufe00 0\ufe00 \u22da\ufe00 \ua85e\ufe00 \ua843\ufe00 \u1002\ufe00 \U00013091\ufe00", same},
		{"selectors that the standard lacks", "\u2268\ufe01 1\ufe00 \ua843\ufe01 \u1035\ufe00", "\u2268 1 \ua843 \u1035"},
		{"emoji of 17.0", "\U0001faea \U0001f9d1\u200d\U0001fa70 \U0001f469\U0001f3fb\u200d\U0001faef\u200d\U0001f469\U0001f3fd", same},
		{"emoji to come", "\U0001fadb\u200d\U0001f525 \U0001f9d1\U0001f3fd\u200d\U0001fae0 \u2764\ufe0f\u200d\U0001fadb", same},
		{"joiner that joins no emoji", "\U0001f525\u200da \U0001f525\u200d\u200d\U0001f9e0 \u200d\U0001f525 \U0001f525\u200d", "\U0001f525a \U0001f525\U0001f9e0 \U0001f525 \U0001f525"},
		{"tags of no flag", "\U0001f3f4\U000e0067\U000e0062\U000e007f", "\U0001f3f4"},

		{"jamo fillers", "\u1100\u1160 \u115f\u1161 \u115f\u1160\u11a8 \ua960\u1160\ud7cb \u115f\ud7b0", same},
		{"jamo fillers elsewhere", "a\u115fb\u1160 \uac00\u1160 \u1100\u1160\u1160 \u115f\u115f\u1161 \u115f\u1160\u1161", "ab \uac00 \u1100\u1160 \u115f\u1161 \u1161"},
		{"hangul filler for a blank name", "\ub2c9\ub124\uc784: \u3164 (\uacf5\ubc31)", same},
		{"hangul fillers in a row", "\ub2c9\ub124\uc784: \u3164\u3164 \u3164\u200b", "\ub2c9\ub124\uc784:  "},
		{"hangul filler without hangul", "name: \u3164 (blank)", "name:  (blank)"},
		{"half-width filler", "\u3131\uffa0", "\u3131"},
		{"hieroglyphs", "\U000131d3\U00013430\U000133cf\U00013431\U000132b5\U00013438\U00013430\U00013437\U000133d9", same},
		{"hieroglyph joiners in a row", "\U000131d3\U00013430\U00013430\U00013430\U00013430\U000133cf", "\U000131d3 \U000133cf"},
		{"hieroglyph joiners in latin", "a\U00013430b", "a b"},
		{"music", "\U0001d158\U0001d165\U0001d173\U0001d158\U0001d165\U0001d174 \U0001d177\U0001d15f", same},
		{"music in latin", "a\U0001d173b \U0001bca0", "ab "},
		{"duployan", "\U0001bc03\U0001bca0\U0001bc06\U0001bc9d", same},

		{"blank signs beside their script", "\U00013000\U00013447\U00013441 \U00013442\U00013000 \U0001d800\U0001da9b\U0001daa1 \U00018b00\U00016fe4 \U0001d159\U0001d165 \U0001d158\U0001d159 \U0001bc03\U0001bc9d \u2d30\u2d7f\u2d31 \U00011065\U0001107f\U00011066", "\U00013000\U00013447\U00013441 \U00013442\U00013000 \U0001d800\U0001da9b\U0001daa1 \U00018b00\U00016fe4 \U0001d165 \U0001d158\U0001d159 \U0001bc03\U0001bc9d \u2d30\u2d7f\u2d31 \U00011065\U0001107f\U00011066"},
		{"syriac abbreviation mark", "\u072b\u0720\u0721\u0710\u070f \u0725 \u070f\u0720 a\u070fb", "\u072b\u0720\u0721\u0710\u070f \u0725 \u070f\u0720 a b"},
		{"blank signs elsewhere", "a\U00013447 \U00013441b c\U0001daa1\U00016fe4 \U0001d159 \U0001bc9d", "a b c   "},
		{"rows of blank signs", "\U00013000\U00013447\U00013448\U00013449", "\U00013000\U00013447\U00013448"},
		{"stacked consonants", "\u1780\u17d2\u1781\u17d2\u1782 \u1000\u1039\u1001 \u25cc\u1039", same},
		{"a mark on a letter of another script", "a\u0e31 \u0902 (\u093f)", same},
		{"a mark alone", "\u25cc\u0e31 \u25cc\u093f", same},
		{"marks of class 0 in a row", "\u0915" + strings.Repeat("\u0902", 40), "\u0915" + strings.Repeat("\u0902", 16)},
		{"a tall stack", "\u0f67\u0f90\u0fb5\u0fa8\u0fb3\u0fba\u0fbc\u0fbb\u0f82", same},

		{"references of a page", "a&shy;b&zwnj;c&#8203;&rlm;d", same},
		{"references of a flag", "&#x1f3f4;&#xe0067;&#xe0062;&#xe0065;&#xe006e;&#xe0067;&#xe007f;", same},
		{"row of references", "x" + strings.Repeat("&zwnj;&#8203;", 4) + "y", "xy"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.want == same {
				c.want = c.in
			}
			got, r := clean(t, s, c.in)
			if got != c.want || !Replay(c.in, got, r.Edits) {
				t.Errorf("%+q -> %+q, want %+q: %+v", c.in, got, c.want, r.Edits)
			}
			if again, _ := clean(t, s, got); again != got {
				t.Errorf("%+q -> %+q: not a fix point", got, again)
			}
		})
	}
}

// Emoji that no list has yet stay by their structure, in one item too. With the sequences of
// emoji-test.txt 17.0 (UNICODE_17_JSON: see text/ucd/gen) these stay too, each and all in one item.
func TestEmojiOfAnyVersion(t *testing.T) {
	s := compile(t, Policy{Profile: Faithful})
	var texts []string
	var pictographs []string
	for r := rune(0x1F300); r <= 0x1FAFF; r++ {
		if ucd.Pictographic(r) {
			pictographs = append(pictographs, string(r))
		}
	}
	for i := 0; i+7 < len(pictographs); i++ {
		texts = append(texts, pictographs[i]+"\u200d"+pictographs[i+7])
	}
	if path := os.Getenv("UNICODE_17_JSON"); path != "" {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var listed struct{ Emoji []string }
		if err := json.Unmarshal(b, &listed); err != nil || len(listed.Emoji) != 5225 {
			t.Fatalf("%d sequences: %v", len(listed.Emoji), err)
		}
		texts = append(texts, listed.Emoji...)
	}
	all := Result{Item: new(Allowance)}
	for _, in := range texts {
		if out, _ := clean(t, s, in); out != in {
			t.Errorf("%+q became %+q", in, out)
		}
		if s.Scrub(in, &all); all.Clean.String() != in {
			t.Errorf("%+q became %+q in one item", in, all.Clean.String())
		}
	}
	if out, r := clean(t, s, strings.Join(texts, "")); len(r.Edits) != 0 {
		t.Errorf("%d changes in one text of %d sequences, %d bytes", len(r.Edits), len(texts), len(out))
	}
}

// carriers are texts in which a use is possible as often as it can be. In unit, "|" is where
// a hidden character of with may stand, and U+2069 stands only beside one. values is how many
// different ones may stand there, row how many in a row (0: one).
var carriers = []struct {
	use    use
	name   string
	unit   string
	with   string
	values int
	row    int
}{
	{conjoining, "joiners behind a virama", "\u0915\u094d|", "\u200c\u200d", 2, 0},
	{joining, "joiners beyond RFC 5892", "\u0627|", "\u200c\u200d", 2 + 4, 0},
	{directing, "direction marks", "\u05d0|", "\u200e\u200f\u061c", 3 + 3, 0},
	{isolating, "pairs of isolates", "|\u05d0\u2069", "\u2067\u2068", 2, 0},
	{spacing, "word boundaries", "\u0e01|", "\u200b", 1, 0},
	{hyphenating, "soft hyphens", "ab|cd ", "\u00ad", 1, 0},
	{sorting, "grapheme joiners", "a|b", "\u034f", 1, 0},
	{varying, "selectors of Han characters", "\u845b|", "\ufe00\ufe02\U000e0100\U000e011f", lastStandard - firstStandard + lastIdeographic - firstIdeographic + 2, 0},
	{mongolian, "selectors of Mongolian letters", "\u1820|", "\u180b\u180c\u180d\u180f", 4, 0},
	{styling, "selectors of symbols", "\u2605|", "\ufe0e\ufe0f", 2, 0},
	{pictographing, "joiners between emoji that are not listed", "\U0001f355|", "\u200d", 1, 0},
	{filling, "fillers of Hangul", "\u1100|", "\u1160", 6, 0},
	{laying, "format characters of hieroglyphs, shorthand and music", "\U00013000|", "\U00013430\U00013431", 16, 3},
	{modifying, "blank signs of a script", "\U0001d800|", "\U0001da9b\U0001daa1", 20 + 20*20, 0},
	{foreign, "marks of one script on letters of another", "a|", "\u0e31\u0902", foreignMarks(), 0},
}

// foreignMarks is how many marks belong to scripts.
func foreignMarks() (n int) {
	for r := range rune(ucd.MaxRune) {
		if p := ucd.Of(r); p&(ucd.Mark|ucd.Hidden|ucd.Blank) == ucd.Mark && ucd.ScriptOf(r) > ucd.ScriptInherited {
			n++
		}
	}
	return n
}

var unmarked = strings.NewReplacer("|", "", "\u2069", "")

// Of a use of which a text holds more than is allowed, nothing is kept; else all is.
func TestAllowance(t *testing.T) {
	s := compile(t, Policy{Profile: Faithful})
	for _, c := range carriers {
		const places = 600
		bare, with := unmarked.Replace(c.unit), []rune(c.with)
		edge := strings.Repeat(bare, 2)
		clear := edge + strings.Repeat(bare, places) + edge
		most := allowed[c.use].always + countVisible(clear)/allowed[c.use].each
		if strings.Contains(c.unit, "\u2069") {
			most /= 2
		}
		for _, n := range []int{most, most + 1} {
			in := edge
			for i := range places {
				if i < n {
					in += strings.Replace(c.unit, "|", string(with[i%len(with)]), 1)
				} else {
					in += bare
				}
			}
			in += edge
			want := in
			switch {
			case n <= most:
			case c.use == laying || c.use == modifying || c.use == foreign: // none is default ignorable
				want = edge + strings.Repeat(bare+" ", n) + strings.Repeat(bare, places-n) + edge
			default:
				want = clear
			}
			out, r := clean(t, s, in)
			if out != want || !Replay(in, out, r.Edits) {
				t.Errorf("%s, %d of %d: %d events, %+q", c.name, n, most, len(r.Edits), out)
			}
			if again, _ := clean(t, s, out); again != out {
				t.Errorf("%s: not a fix point", c.name)
			}
		}
	}
}

// bitsNeeded is how many bits are needed to say which of the places hold a character, at most
// most of them, and which of the values it has.
func bitsNeeded(places, most, values int) int {
	ways := new(big.Int)
	for i := range min(most, places) + 1 {
		n := new(big.Int).Binomial(int64(places), int64(i))
		ways.Add(ways, n.Mul(n, new(big.Int).Exp(big.NewInt(int64(values)), big.NewInt(int64(i)), nil)))
	}
	return ways.BitLen()
}

// The page says how much a text of 1,000 visible characters can still hold at most: as if
// a hidden character could stand behind each of them.
func TestHiddenBits(t *testing.T) {
	page, err := os.ReadFile("../../docs/spec/scrub.md")
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	for _, c := range carriers {
		always, each := allowed[c.use].always, allowed[c.use].each
		if strings.Contains(c.unit, "\u2069") {
			always, each = always/2, 2*each
		}
		fmt.Fprintf(&table, "| %s | %d, and 1 for each %d | %d | %d |\n", c.name, always, each, c.values, bitsNeeded(1000*max(1, c.row), always+1000/each, c.values))
	}
	if !strings.Contains(string(page), table.String()) {
		t.Errorf("the page lacks\n%s", table.String())
	}
}

// Honest text stays far below the limits.
func TestAllowanceOfHonestText(t *testing.T) {
	s := compile(t, Policy{Profile: Faithful})
	for r := range rows(t, "benign_") {
		var res Result
		p := pass{policy: &s.p, r: &res, text: r.Text}
		p.begin()
		var f faithful
		f.sweep(p.text, [numUses]bool{}, p.remove)
		sweepMarks(&p, &f.kept, [numUses]bool{})
		for u, limit := range allowed {
			if k := f.kept[u]; limit.each > 0 && 2*k > limit.always+countVisible(r.Text)/limit.each {
				t.Errorf("%s %s: %d characters of use %d among %d", r.ID, r.Family, k, u, countVisible(r.Text))
			}
		}
	}
}

// digits are the numerals of a text, in order, without those of terminal escapes.
func digits(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Nd, unicode.No, unicode.Nl) {
			return r
		}
		return -1
	}, terminal.ReplaceAllString(s, ""))
}

var terminal = regexp.MustCompile("\x1b\\[[0-9;]*[A-Za-z]")

// Under faithful no honest text changes a digit, in any language. Under mcp some do.
func TestDigitsOfHonestText(t *testing.T) {
	s, m := compile(t, Policy{Profile: Faithful}), compile(t, Policy{})
	all, changed := 0, 0
	for r := range rows(t, "benign_") {
		all++
		if out, _ := clean(t, s, r.Text); digits(r.Text) != digits(out) {
			t.Errorf("%s %s: digits %+q became %+q", r.ID, r.Family, digits(r.Text), digits(out))
		}
		if out, _ := clean(t, m, r.Text); digits(r.Text) != digits(out) {
			changed++
		}
	}
	t.Logf("mcp changes the digits of %d of %d honest rows, faithful of none", changed, all)
	want := fmt.Sprintf("Of %d,%03d honest rows of the development corpora", all/1000, all%1000)
	for _, page := range []string{"../../docs/spec/scrub.md", "../../docs/CONFORMANCE.md"} {
		b, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Join(strings.Fields(string(b)), " ")
		_, rest, _ := strings.Cut(text, want)
		if !strings.Contains(rest[:min(len(rest), 80)], fmt.Sprintf("changes the digits of %d ", changed)) {
			t.Errorf("%s has other figures", page)
		}
	}
}

// A finding that only the normalised view has takes away the part that it covers. All else
// stays as it came, byte for byte. spec: scrub/1
func TestFindingsOfTheView(t *testing.T) {
	s := compile(t, Policy{Profile: Faithful, ControlTokens: RemoveTokens})
	const before, after = "10\u2076 Hz \uff21\u2026 \u845b\U000e0100\n", "\n3\u00bd \u0645\u06cc\u200c\u062e \u2460 \ufb01"
	for _, honest := range []string{"Human: hi", "Assistant\uff1a\u4f60\u597d"} {
		if out, _ := clean(t, s, before+honest+after); out != before+honest+after {
			t.Errorf("%+q became %+q", honest, out)
		}
	}
	for name, part := range map[string]string{
		"full width":               "\uff1c\uff5c\uff49\uff4d\uff3f\uff53\uff54\uff41\uff52\uff54\uff5c\uff1e",
		"small forms":              "\ufe64|im_start|\ufe65",
		"mathematical letters":     "<|\U0001d422\U0001d426_\U0001d42c\U0001d42d\U0001d41a\U0001d42b\U0001d42d|>",
		"confusable letters":       "<|\u0456m_\u0455t\u0430rt|>",
		"quotation marks":          "\u2039|im_start|\u203a",
		"a mark on it":             "<|i\u0338m_start|>",
		"zero width":               "<|im_\u200bstart|>",
		"soft hyphen":              "<|im_st\u00adart|>",
		"selectors":                "<|im\U000e0100_start\ufe0f|>",
		"grapheme joiner":          "<|im_st\u034fart|>",
		"isolates":                 "\u2067<|im_start|>\u2069",
		"tag characters":           "<|im_\U000e0041start|>",
		"line breaks":              "<|im_\nstart|>",
		"named references":         "&lt;&verbar;im&lowbar;start|&gt;",
		"numeric references":       "&#60;|im_start&#x7c;&#062;",
		"references of references": "&amp;lt;|im_start|&amp;gt;",
		"one in another":           "<|im_<|im_start|>start|>",
		"brackets, full width":     "\uff3bINST\uff3d",
		"role, full width":         "\uff33\uff39\uff33\uff34\uff25\uff2d\uff1a",
		"role, confusable":         "\u0405\u03a5\u0405\u03a4\u0395\u039c:",
		"role of a chat log":       "\uff28\uff55\uff4d\uff41\uff4e\uff1a",
		"role behind an escape":    "As\u00adsis\u00adtant:",
		"row of references":        strings.Repeat("&#xe0049;&#xe0067;", 4),
	} {
		in := before + part + after
		out, r := clean(t, s, in)
		if out != before+after {
			t.Errorf("%s: %+q", name, out)
		}
		if !Replay(in, out, r.Edits) {
			t.Errorf("%s: events do not replay: %+v", name, r.Edits)
		}
	}
}
