// SPDX-License-Identifier: Apache-2.0

package scrub

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestOperatorTokens(t *testing.T) {
	table, err := Builtin().With("# ours\nfamily House\nremove <|house|>\nremove @@SYSTEM@@\nremove {{#role}}\n" +
		"flag [HOUSE]\nwhen [HOUSE]\u2026<|house|>\nwhen [HOUSE]\u21b5\nremove [/INST]\nremove Agent:\nflag <think>\n")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []Policy{{Tokens: table}, {Profile: Faithful, ControlTokens: RemoveTokens, Tokens: table}} {
		s := compile(t, p)
		for _, c := range []struct{ in, want string }{
			{"a@@SYSTEM@@b", "ab"},
			{"a@@SYS\u200bTEM@@b", "ab"},
			{"@@SYS@@SYSTEM@@TEM@@", ""},
			{"x {{#role}} y", "x  y"},
			{"Agent: obey", " obey"},
			{"AGENT: obey", "AGENT: obey"},
			{"[HOUSE] x", "[HOUSE] x"},
			{"[HOUSE]\nobey", "\nobey"},
			{"[HOUSE] x <|house|>", " x "},
			{"<|im_start|>", ""},
			{"a <think> b", "a <think> b"}, // the operator's word on a token of ours
		} {
			out, r := clean(t, s, c.in)
			if out != c.want || !Replay(c.in, out, r.Edits) {
				t.Errorf("%s: %+q -> %+q, want %+q", s.p.Profile, c.in, out, c.want)
			}
		}
	}
	if out, _ := clean(t, compile(t, Policy{}), "a@@SYSTEM@@b <think>"); out != "a@@SYSTEM@@b " {
		t.Errorf("the table of one policy changed another's: %q", out)
	}
}

// Every fault of a file is in one error, with its line.
func TestTokenFaults(t *testing.T) {
	_, err := Builtin().With("family\nremove x\nremove  <a>\ncolour red\nwhen <s>\nremove <|a|>\nunless <|a|><s>\nremove <|a|>\n" +
		"flag <b>\nwhen <b>\nwhen <s>[INST]\nwhen <b>\u2026<s>\u2026<b>\nflag <c>\nwhen <c>\u2026<s>\nunless <c><s>\nremove <\u200bd>\n" +
		"remove \u4e2d\u6587\u6587\nremove " + strings.Repeat("x", 65) + "\nremove <\u0301>\nremove \u0301\u0302\nremove \u27e8a>\nremove a\u2982b\nvaried a b\n")
	var faults *TokenFileError
	if !errors.As(err, &faults) {
		t.Fatal(err)
	}
	got := strings.Join(faults.Faults, "\n")
	for _, want := range []string{
		"line 1: want a word", "line 2: a token has 2 to 64 characters: \"x\"", "line 3: want a word", "line 4: unknown word \"colour\"",
		"line 5: when stands behind no token", "line 7: only a token that stays elsewhere", "line 8: the file has the token", "is the token alone",
		"does not hold the token", "has a gap before another part than the last", "line 15: a token has sequences of one kind",
		"line 16: the text holds the hidden character U+200B", "begins with a visible ASCII character", "line 18: a token has 2 to 64",
		"line 19: the text, or the name in it, is nothing but marks", "line 20: the text, or the name in it, is nothing but marks",
		"line 21: the text holds a look-alike", "line 22: the text holds a look-alike", "line 23: a varied name",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no fault %q in:\n%s", want, got)
		}
	}
	for _, in := range []string{"\xff", strings.Repeat("#", MaxTokenFile+1)} {
		if _, err := Builtin().With(in); err == nil {
			t.Errorf("%.8q is taken", in)
		}
	}
	var many strings.Builder
	for range 30 {
		many.WriteString("x\n")
	}
	if _, err := Builtin().With(many.String()); !errors.As(err, &faults) || len(faults.Faults) != maxFaults || faults.More != 10 {
		t.Errorf("%v", err)
	}
}

// The table of this version is whole: each token has a source and a date, each
// ambiguous one a reason.
func TestBuiltinTokens(t *testing.T) {
	table := Builtin()
	if table.Version() == "" || len(table.Tokens()) < 250 {
		t.Errorf("version %q, %d tokens", table.Version(), len(table.Tokens()))
	}
	for _, tok := range table.Tokens() {
		if tok.Source == "" || tok.Package == "" || len(tok.Read) != len("2006-01-02") || tok.Treatment != Remove && tok.Why == "" {
			t.Errorf("%s: %+v", tok.Text, tok)
		}
	}
	// The doubles that are written down are those that the view gives.
	for c, known := range doubles {
		if all := allDoubles()[c]; all != known {
			t.Errorf("%q: doubles %+q, the view gives %+q", c, known, all)
		}
	}
	for c := range byte(utf8.RuneSelf) {
		if table.starts[c] && doubles[c] == "" {
			t.Errorf("literals of this version begin with %q, whose doubles are not written down", c)
		}
	}
}

func FuzzTokenFile(f *testing.F) {
	f.Add("family x\nremove <|a|>\nflag [B]\nwhen [B]\u2026<|a|>\n", "a <|a|> [B]")
	f.Add("flag <a>\nunless <a>\u2024</a>\nremove </a>\n", "<a>x</a>")
	f.Add("remove Agent:\nremove ### Agent:\nremove {x}\nremove <\u7528>\n", "Agent: {x} <\u7528>")
	f.Add("remove <\u0301>\nflag [\u0301]\nremove \u0301\u0302\nremove <\u0301=\n", "<\u0301>")
	f.Add(builtinSource[:4096], "x")
	f.Fuzz(func(t *testing.T, source, in string) {
		table, err := Builtin().With(source)
		if err != nil {
			var faults *TokenFileError
			if !errors.As(err, &faults) || len(faults.Faults) == 0 || len(faults.Faults) > maxFaults || !utf8.ValidString(err.Error()) {
				t.Fatalf("%+q: %v", source, err)
			}
			return
		}
		for _, p := range []Policy{{Tokens: table}, {Profile: Faithful, Tokens: table}} {
			s := compile(t, p)
			var r, again Result
			s.Scrub(in, &r)
			out := r.Clean.String()
			s.Scrub(out, &again)
			if !fixPoint(s, out, &again) || !Replay(in, out, r.Edits) {
				t.Fatalf("%+q under %+q: %+q -> %+q -> %+q", in, source, in, out, again.Clean)
			}
		}
	})
}
