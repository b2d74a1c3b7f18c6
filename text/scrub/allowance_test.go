// SPDX-License-Identifier: Apache-2.0

package scrub

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/pellucid-mcp/pellucid/text/ucd"
)

// The texts of one item keep together what one text may keep: cut into many strings, a
// code is no longer. spec: scrub/3.6
func TestAllowanceOfItem(t *testing.T) {
	s := compile(t, Policy{Profile: Faithful})
	for _, c := range carriers {
		with := []rune(c.with)
		var item Allowance
		alone, together, visible := 0, 0, 0
		for i := range 400 {
			bare := strings.Repeat(unmarked.Replace(c.unit), 2)
			in := bare + strings.Replace(c.unit, "|", string(with[i%len(with)]), 1) + bare
			own := Result{}
			s.Scrub(in, &own)
			alone += countOf(own.Clean.String(), c.with)
			shared := Result{Item: &item}
			s.Scrub(in, &shared)
			together += countOf(shared.Clean.String(), c.with)
			visible += countVisible(shared.Clean.String())
			if shared.Item != &item {
				t.Fatal("Scrub changed the pointer")
			}
		}
		most := allowed[c.use].always + visible/allowed[c.use].each
		if together > most {
			t.Errorf("%s: %d are kept in 400 strings with %d visible characters, want at most %d", c.name, together, visible, most)
		}
		if want := 400 * (1 + strings.Count(c.unit, "\u2069")); alone != want {
			t.Errorf("%s: %d are kept in 400 items, want %d", c.name, alone, want)
		}
	}
}

func hiddenCount(s string) (n int) {
	for range hiddenIn(s) {
		n++
	}
	return n
}

// countOf counts the characters of s that are in set, and U+2069.
func countOf(s, set string) (n int) {
	for _, r := range s {
		if strings.ContainsRune(set, r) || r == pdi {
			n++
		}
	}
	return n
}

// An item of any texts keeps no more of a use than is allowed, comes out the same when it
// is scrubbed again, and each of its texts is what the text alone would be, or less, with a blank
// where something was removed that is not default ignorable.
func TestItemProperty(t *testing.T) {
	s := compile(t, Policy{Profile: Faithful})
	units := []string{"a", " ", "\u0915\u094d", "\u0627", "\u05d0", "\u0e01", "\u845b", "\u200d", "\u200c", "\u200e", "\u200b", "\U000e0101", "<b>", "\u0301", "\r\n",
		"\u2605", "\ufe0f", "\U0001f355", "\u1100", "\u1160", "\u115f", "\u1161", "\u11a8", "\U00013000", "\U00013430", "\U00013441", "\U00013447",
		"\u0e31", "\u1039", "\U0001d159", "\U0001d173", "\U0001d158", "\U0001faef"}
	rapid.Check(t, func(t *rapid.T) {
		texts := rapid.SliceOfN(rapid.Map(rapid.SliceOfN(rapid.SampledFrom(units), 0, 120),
			func(parts []string) string { return strings.Join(parts, "") }), 1, 12).Draw(t, "texts")
		scrub := func(texts []string) (out []string, a Allowance) {
			var r Result
			r.Item = &a
			for _, text := range texts {
				s.Scrub(text, &r)
				out = append(out, r.Clean.String())
			}
			return out, a
		}
		out, a := scrub(texts)
		visible := 0
		for i, text := range out {
			visible += countVisible(text)
			var own Result
			s.Scrub(texts[i], &own)
			if own.Item != nil || !subsequence(strings.ReplaceAll(text, " ", ""), texts[i]) {
				t.Fatalf("%+q became %+q", texts[i], text)
			}
		}
		if visible != a.visible {
			t.Fatalf("%d visible characters are counted, not %d", a.visible, visible)
		}
		for u, limit := range allowed {
			if limit.each > 0 && a.kept[u] > limit.always+visible/limit.each {
				t.Fatalf("%d of use %d among %d visible characters", a.kept[u], u, visible)
			}
		}
		again, b := scrub(out)
		if strings.Join(again, "|") != strings.Join(out, "|") || a != b {
			t.Fatalf("not a fix point: %+q became %+q; %+v, %+v", out, again, a, b)
		}
	})
}

func subsequence(part, whole string) bool {
	for _, r := range part {
		i := strings.IndexRune(whole, r)
		if i < 0 {
			return false
		}
		whole = whole[i:]
		whole = whole[len(string(r)):]
	}
	return true
}

// countVisible is what a loop over the characters counts.
func TestCountVisible(t *testing.T) {
	for r := range rows(t, "benign_") {
		text := strings.ToValidUTF8(r.Text, "\ufffd")
		want := 0
		for _, c := range text {
			if ucd.Of(c)&(ucd.Hidden|ucd.Mark|ucd.Blank) == 0 {
				want++
			}
		}
		if got := countVisible(text); got != want {
			t.Errorf("%s: %d, want %d", r.ID, got, want)
		}
	}
}

// Honest texts, a whole language as one item, keep every hidden character that they keep
// one by one.
func TestAllowanceOfHonestItems(t *testing.T) {
	s := compile(t, Policy{Profile: Faithful})
	items := map[string]*Allowance{}
	kept, joiners := 0, 0
	for r := range rows(t, "benign_") {
		if items[r.Family] == nil {
			items[r.Family] = new(Allowance)
		}
		alone, of := Result{}, Result{Item: items[r.Family]}
		s.Scrub(r.Text, &alone)
		s.Scrub(r.Text, &of)
		if alone.Clean != of.Clean {
			t.Errorf("%s %s: the item loses what the text keeps", r.ID, r.Family)
		}
		kept += hiddenCount(of.Clean.String())
		joiners += strings.Count(of.Clean.String(), "\u200c") + strings.Count(of.Clean.String(), "\u200d")
		if in := strings.Count(r.Text, "\u200c") + strings.Count(r.Text, "\u200d"); in != strings.Count(of.Clean.String(), "\u200c")+strings.Count(of.Clean.String(), "\u200d") {
			t.Errorf("%s %s: joiners are lost", r.ID, r.Family)
		}
	}
	t.Logf("%d hidden characters are kept, %d of them joiners", kept, joiners)
	if joiners < 1000 {
		t.Errorf("only %d joiners: the corpora are not what this test needs", joiners)
	}
}

// TestStrict: Strict keeps of the hidden characters only those that have no limit, and changes nothing that a person
// sees: numbers, fractions, ligatures, full-width letters, emoji and tokens come out as under faithful.
func TestStrict(t *testing.T) {
	out := func(s *Scrubber, in string) string { text, _ := clean(t, s, in); return text }
	loose, strict := compile(t, Policy{Profile: Faithful}), compile(t, Policy{Profile: Faithful, Strict: true})
	for _, kept := range []string{
		"10\u2076 \u00bd \uff21\ufb01 \u2026 3\u00d710\u00b2\r\nx", "\U0001F468\u200d\U0001F469\u200d\U0001F467 \u2764\ufe0f 1\ufe0f\u20e3", "\U0001F3F4\U000E0067\U000E0062\U000E0073\U000E0063\U000E0074\U000E007F",
		"\u0645\u06cc\u200c\u0631\u0648\u0645", "\u043f\u0440\u043ec\u0442\u043e", "\U00013000\U00013430\U00013001", "<|im_start|> [INST] </s> USER: x",
	} {
		if got, want := out(strict, kept), out(loose, kept); got != want {
			t.Errorf("%+q became %+q, under faithful %+q", kept, got, want)
		}
	}
	for _, c := range carriers {
		in := strings.Replace(c.unit, "|", string([]rune(c.with)[:1]), 1)
		if got := out(strict, in); c.use < laying && countOf(got, c.with) > 0 {
			t.Errorf("%s: %+q became %+q", c.name, in, got)
		}
	}
	if _, err := Compile(Policy{Profile: MCP, Strict: true}); err == nil {
		t.Error("Strict of another profile")
	}
	rapid.Check(t, func(rt *rapid.T) {
		in := rapid.StringOf(rapid.OneOf(rapid.SampledFrom([]rune("a1\u2076\u00ad\u200b\u200c\u200d\u200e\u2066\u2069\ufe0f\ufe0e\u034f\u0e01\u0e02\u05d0\u0915\u094d\u845b\U000E0100\U0001F468\u2764\u1820\u180b <[|]>")), rapid.Rune())).Draw(rt, "in")
		said, under := out(strict, in), out(loose, in)
		if visibleOf(said) != visibleOf(under) {
			rt.Fatalf("%+q became %+q, under faithful %+q", in, said, under)
		}
		if again := out(compile(t, Policy{Profile: Faithful, Strict: true, ControlTokens: KeepTokens}), said); again != said {
			rt.Fatalf("%+q became %+q, then %+q", in, said, again)
		}
	})
}

func visibleOf(s string) string {
	return strings.Map(func(r rune) rune {
		if ucd.Of(r)&ucd.Hidden != 0 {
			return -1
		}
		return r
	}, s)
}
