// SPDX-License-Identifier: Apache-2.0

package scrub

import (
	"strings"
	"testing"
)

// defused is the step of tokens alone, without what removes a disguised token.
func defused(table *TokenTable, s string) (out string, found int) {
	var r Result
	p := pass{policy: &Policy{Profile: Faithful, Tokens: table}, r: &r, text: s, action: DefuseTokens}
	p.facts.seen = surveyed
	p.begin()
	m := p.match()
	m.cuts = m.cuts[:0]
	found = p.defuse(m, true)
	p.end()
	return p.text, found
}

// checkRestores checks that restoring is the inverse of defusing, and that what is left has
// no token that is spelled plainly.
func checkRestores(t testing.TB, table *TokenTable, x string) {
	t.Helper()
	y, found := defused(table, x)
	back, n := table.Restore(y)
	if back != x {
		t.Fatalf("%+q is defused to %+q, which is restored to %+q", x, y, back)
	}
	if n != found {
		t.Fatalf("%+q: %d defused, %d restored of %+q", x, found, n, y)
	}
	var r Result
	p := pass{policy: &Policy{Profile: Faithful, Tokens: table}, r: &r, text: y, action: DefuseTokens}
	p.facts.seen = surveyed
	if m := p.match(); len(m.plain) > 0 {
		t.Fatalf("%+q is defused to %+q, which holds %+q", x, y, y[m.plain[0].Start:m.plain[0].End])
	}
}

// TestRestoreEveryText: restoring is the inverse of defusing on every text of a few pieces.
func TestRestoreEveryText(t *testing.T) {
	house, err := Builtin().With("remove @@SYSTEM@@\nremove [HOUSE CALL]\nremove ab\nremove ba\nremove <SYS>\nremove a<x>b\nremove <x>\nremove x>q\n")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		table  *TokenTable
		pieces []string
		length int
	}{
		{"angles", Builtin(), []string{"<", ">", "\u27e8", "\u27e9", "\u27ea", "\u27eb", "think", "x"}, 5},
		{"bars", Builtin(), []string{"<", ">", "\u27e8", "\u27e9", "|im_start|", "|", "\n"}, 5},
		{"squares", Builtin(), []string{"[", "]", "\u27e6", "\u27e7", "\u27ec", "\u27ed", "THINK", "a"}, 5},
		{"mixed", Builtin(), []string{"<", "\u27e8", "\u27ea", "\u27e9", "[", "]", "\u27e6", "\u27e7", "think>", "THINK"}, 4},
		{"systems", Builtin(), []string{"<", ">", "\u27e8", "\u27e9", "\u27ea", "\u27eb", "SYS"}, 6},
		{"prefixes", Builtin(), []string{"<", "\u27e8", "\u27ea", "steptml:invoke name=", ">", "\u27e9", "\uff5cDSML\uff5c", "x"}, 4},
		{"varied", Builtin(), []string{"<", ">", "\u27e8", "\u27e9", "tool_call", ":", "ns", " id=", "|"}, 4},
		{"literals", Builtin(), []string{"]", "~!b", "~b", "[", "e~", "<", "]minimax", "[>", defuseMark}, 4},
		{"brackets beside literals", Builtin(), []string{"[THINK]", "\u27e6", "THINK", "\u27e7", "]~b]", "~b]", defuseMark, "]"}, 4},
		{"roles", Builtin(), []string{"\n", "USER", ":", " ", "ASSISTANT", defuseMark, "</s>", "### Human"}, 4},
		{"operator", house, []string{"a", "b", defuseMark, "<", "x", ">", "q", "\u27e8", "\u27e9"}, 4},
		{"operator's names", house, []string{"<", ">", "\u27e8", "\u27e9", "SYS", "@@SYSTEM@", "@", defuseMark}, 4},
		{"nested", Builtin(), []string{"<|im_", "<|im_start|>", "start|>", "\u27e8", "\u27e9", "|im_start|"}, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			length := c.length
			n := 0
			var walk func(prefix string, left int)
			walk = func(prefix string, left int) {
				checkRestores(t, c.table, prefix)
				n++
				if left > 0 {
					for _, p := range c.pieces {
						walk(prefix+p, left-1)
					}
				}
			}
			walk("", length)
			t.Logf("%d texts", n)
		})
	}
}

func FuzzRestore(f *testing.F) {
	for _, s := range []string{
		"<|im_start|>\u27e8|im_start|\u27e9", "\u27e8<|im_start|>\u27e9", "\u27e8\u27ea|im_start|\u27eb\u27e9",
		"<<SYS>>\u27e8\u27e8SYS\u27e9\u27e9", "]~b]]\u2982~b]", "\xe2\x9f<<SYS>>", "USER: a ASSISTANT: b", "<tool_call:1 name=\"<think>\">", "<\uff5cUser\uff5c>",
	} {
		f.Add(s)
	}
	table, err := Builtin().With("remove ab\nremove a<x>b\nremove <x>\nremove @@x@@\n")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, s string) {
		checkRestores(t, Builtin(), s)
		checkRestores(t, table, s)
	})
}

// TestDefuseEveryToken: each token of the table, in a place where it counts, is defused by
// its delimiters, and comes back.
func TestDefuseEveryToken(t *testing.T) {
	s, err := Compile(Policy{Profile: Faithful})
	if err != nil {
		t.Fatal(err)
	}
	var r Result
	for _, tok := range Tokens() {
		if tok.Treatment != Remove {
			continue
		}
		for _, x := range []string{tok.Text, "some words\n" + tok.Text + "\nmore", "a " + tok.Text + tok.Text + " b"} {
			s.Scrub(x, &r)
			y := r.Clean.String()
			if strings.Contains(y, tok.Text) || r.Tokens == 0 {
				t.Errorf("%+q stays in %+q", tok.Text, y)
			}
			if back, _ := Builtin().Restore(y); back != x {
				t.Errorf("%+q: %+q is restored to %+q", x, y, back)
			}
			if !Replay(x, y, r.Edits) {
				t.Errorf("%+q: the edits do not lead to %+q", x, y)
			}
		}
	}
}

// TestDefused: what stands in the place of a token, and of what looks like one that is
// defused.
func TestDefused(t *testing.T) {
	s, err := Compile(Policy{Profile: Faithful})
	if err != nil {
		t.Fatal(err)
	}
	var r Result
	for _, c := range []struct{ in, want string }{
		{"<|im_start|>", "\u27e8|im_start|\u27e9"},
		{"\u27e8|im_start|\u27e9", "\u27e8\u27e8|im_start|\u27e9\u27e9"},
		{"\u27e8\u27e8|im_start|\u27e9\u27e9", "\u27e8\u27e8\u27e8|im_start|\u27e9\u27e9\u27e9"},
		{"\u27e8<|im_start|>\u27e9", "\u27e8\u27ea|im_start|\u27eb\u27e9"},
		{"\u27e8\u27ea|im_start|\u27eb\u27e9", "\u27e8\u27ea\u27ea|im_start|\u27eb\u27eb\u27e9"},
		{"[TOOL_CALLS]", "\u27e6TOOL_CALLS\u27e7"},
		{"between <think> and </think>.", "between \u27e8think\u27e9 and \u27e8/think\u27e9."},
		{"<\uff5cUser\uff5c>", "\u27e8\uff5cUser\uff5c\u27e9"},
		{"<\uff5cDSML\uff5cinvoke name=\"x\">", "\u27e8\uff5cDSML\uff5cinvoke name=\"x\">"},
		{"[INST]<<SYS>>", "\u27e6INST\u27e7\u27e8\u27e8SYS\u27e9\u27e9"},
		{"]~b]user", "]~b\u2982]user"},
		{"<|im_<|im_start|>start|>", "<|im_\u27e8|im_start|\u27e9start|>"},
		{"a \u27e8|im_ b", "a \u27e8|im_ b"}, // a part of a token
		{"calls[CALL_ID] = item", "calls[CALL_ID] = item"},
		{"<|im_\u200bstart|>x", "x"}, // disguised
		{"\uff1c|im_start|\uff1ex", "x"},
		{"\uff1cth\u200bink\uff1ex", "x"},
		{"<|IM_START|>", "\u27e8|IM_START|\u27e9"}, // of a shape
	} {
		s.Scrub(c.in, &r)
		if got := r.Clean.String(); got != c.want {
			t.Errorf("%+q: %+q, want %+q", c.in, got, c.want)
		}
	}
}

// TestRestoreAllocates: a text without forms is returned as it is.
func TestRestoreAllocates(t *testing.T) {
	x := strings.Repeat("a <b> [c] \u27e8d\u27e9 \u2982 <|im_start|> USER: ", 20)
	if n := testing.AllocsPerRun(10, func() {
		if y, n := Builtin().Restore(x); n != 0 || y != x {
			t.Fatal("changed")
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestVariedTokens: what is spelled with a namespace, a suffix or attributes goes under mcp,
// and comes back under faithful.
func TestVariedTokens(t *testing.T) {
	s, mcp := compile(t, Policy{Profile: Faithful}), compile(t, Policy{})
	for _, x := range []string{
		"<ifm|think>", "</ifm|tool_calls>", "<ifm|arg_value>", "<tool_calls:6124c78e>", "</think:opensource>", "<arg_key:6124c78e>",
		"<\uff5cGCML\uff5cinvoke name=\"x\">", "</\uff5cGCML\uff5cinvoke>", "<|GCML|invoke>", "<xai:function_call name=\"x\">", "<tool_response id=\"1\">",
		"<tool_call\n name=\"x\">", "<new:tool_calls>", "<|plamo:op|>", "<|begin\u2581of\u2581sentence|>", "[BEGIN FINAL RESPONSE]",
		"<system-reminder>", "<dots_function_call>", "<cofl:tool_call id=\"1\">",
	} {
		in := "some words\n" + x + " and more"
		out, r := clean(t, s, in)
		back, _ := Builtin().Restore(out)
		if r.Tokens == 0 || strings.Contains(out, x) || back != in {
			t.Errorf("faithful: %+q -> %+q, restored %+q", in, out, back)
		}
		if out, r := clean(t, mcp, in); r.Tokens == 0 || strings.Contains(out, x) {
			t.Errorf("mcp: %+q -> %+q", in, out)
		}
	}
	for _, x := range []string{"<if\u200bm|think>", "<tool_calls:61\u200b24>", "<\uff5cGC\u200bML\uff5cinvoke>", "<ab:tool_c\u0430ll>", "<xai:function_c\u200ball name=\"x\">"} {
		if out, r := clean(t, s, x); r.Tokens == 0 && !r.Has(AmbiguousToken) {
			t.Errorf("disguised: %+q -> %+q", x, out)
		}
	}
}
