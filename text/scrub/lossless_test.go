// SPDX-License-Identifier: Apache-2.0

package scrub

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// visibleSpellings returns how text can be spelled without anything hidden or imitated.
func visibleSpellings(text string) []string {
	var decimal, named strings.Builder
	for _, r := range text {
		fmt.Fprintf(&decimal, "&#%d;", r)
	}
	named.WriteString(strings.NewReplacer("<", "&lt;", ">", "&gt;", "[", "&lbrack;", "]", "&rsqb;", "#", "&num;", ":", "&#58;").Replace(text))
	_, last := utf8.DecodeLastRuneInString(text)
	last = len(text) - last
	all := []string{
		text, decimal.String(), named.String(), strings.ReplaceAll(text, "<", "&lt"), strings.ReplaceAll(text, "<", "&amp;lt;"),
		strings.Replace(text, "### ", "###  ", 1), strings.Replace(text, "### ", "###\t", 1), strings.Replace(text, "### ", "### \n", 1), "#" + text,
		text[:1] + "\n" + text[1:], text[:last] + "\r\n" + text[last:],
	}
	if strings.HasSuffix(text, ":") {
		all = append(all, text[:last]+"\uff1a")
	}
	if !strings.ContainsAny(text, "|\uff5c") {
		all = append(all, fullWidth(text), strings.NewReplacer("<", "\u2039", ">", "\u203a").Replace(text))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// fullWidth returns text in the letters that stand beside Chinese and Japanese ones.
func fullWidth(text string) string {
	return strings.Map(func(r rune) rune {
		if '!' <= r && r <= '~' {
			return r - '!' + 0xff01
		}
		return r
	}, text)
}

// losesNothing checks that what stands in the text is there after it is restored.
func losesNothing(t interface{ Errorf(string, ...any) }, s *Scrubber, in string) {
	var r Result
	s.Scrub(in, &r)
	if back, _ := Builtin().Restore(r.Clean.String()); back != in {
		t.Errorf("%+q became %+q, which is restored to %+q", in, r.Clean.String(), back)
	}
}

// TestFaithfulLosesNoToken: under faithful no visible spelling of a token is removed, wherever it
// stands and whatever token stands beside it.
func TestFaithfulLosesNoToken(t *testing.T) {
	s := compile(t, Policy{Profile: Faithful})
	var beside []string // one token of each kind of delimiter, and those that share characters with others
	for _, tok := range Tokens() {
		if tok.kind == asLiteral || tok.kind == asHeading || tok.index%23 == 0 {
			beside = append(beside, tok.Text)
		}
	}
	for _, tok := range Tokens() {
		for _, x := range visibleSpellings(tok.Text) {
			for _, form := range []string{"%s", "one %s two", "one\n%s\ntwo", "<code>%s</code>", "`%s`: x", "%[1]s a %[1]s", "{\"a\":\"%s\"}"} {
				losesNothing(t, s, fmt.Sprintf(form, x))
			}
		}
		for _, other := range beside {
			losesNothing(t, s, tok.Text+other)
			losesNothing(t, s, other+tok.Text+" x")
		}
	}
}

// TestFaithfulLosesNoText is the same for texts that are put together of spellings, disguises and
// words. What is disguised may go; then edits say what, and every word is still there.
func TestFaithfulLosesNoText(t *testing.T) {
	s := compile(t, Policy{Profile: Faithful})
	tokens := Tokens()
	rapid.Check(t, func(t *rapid.T) {
		var in strings.Builder
		disguises := false
		words := rapid.IntRange(1, 8).Draw(t, "words")
		for i := range words {
			text := tokens[rapid.IntRange(0, len(tokens)-1).Draw(t, "token")].Text
			spelled := rapid.SampledFrom(visibleSpellings(text)).Draw(t, "spelling")
			if rapid.IntRange(0, 9).Draw(t, "disguise") == 0 {
				disguises = true
				spelled = rapid.SampledFrom([]string{
					text[:1] + "\u200b" + text[1:], strings.NewReplacer("<", "\uff1c", "[", "\uff3b").Replace(text),
					strings.NewReplacer("o", "\u043e", "s", "\u0455", "<", "\u2039").Replace(text), text[:1] + "&#8203;" + text[1:],
				}).Draw(t, "disguised")
			}
			in.WriteString(spelled)
			in.WriteString(rapid.SampledFrom([]string{"", " ", "\n", "\u27e8", "\u27e9", "; "}).Draw(t, "gap"))
			if rapid.Bool().Draw(t, "word") {
				fmt.Fprintf(&in, "@%d@ ", i)
			}
		}
		if !disguises {
			losesNothing(t, s, in.String())
			return
		}
		var r Result
		s.Scrub(in.String(), &r)
		for i := range words {
			word := fmt.Sprintf("@%d@", i)
			if out := r.Clean.String(); strings.Contains(in.String(), word) && !strings.Contains(out, word) {
				t.Errorf("%+q became %+q: %s is lost", in.String(), out, word)
			}
		}
		if !Replay(in.String(), r.Clean.String(), r.Edits) {
			t.Errorf("%+q: the edits do not say what is gone", in.String())
		}
	})
}
