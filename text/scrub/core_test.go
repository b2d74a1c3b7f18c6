// SPDX-License-Identifier: Apache-2.0

package scrub

import (
	"math"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/pellucid-mcp/pellucid/text/ucd"
)

// What the steps assume of the tables.
func TestAssumptions(t *testing.T) {
	var b ucd.Buffer
	for r := rune(0x80); r <= ucd.MaxRune; r++ {
		if 0xD800 <= r && r < 0xE000 {
			continue
		}
		prop, s := ucd.Of(r), string(r)
		b.Reset()
		b.Decompose(ucd.NFKC, s, 0)
		for _, c := range b.Cells {
			if h := ucd.Of(c.R)&ucd.Hidden != 0; h && prop&ucd.Hidden == 0 {
				t.Errorf("NFKC of %U holds the hidden %U: removal must follow it", r, c.R)
			}
		}
		b.Compose()
		if n := len(b.AppendTo(nil)); n > maxExpansion {
			t.Errorf("NFKC of %U has %d bytes", r, n)
		}
		b.Reset()
		b.Decompose(ucd.NFC, s, 0)
		marks := 0
		for k := len(b.Cells) - 1; k >= 0 && b.Cells[k].CCC != 0; k-- {
			marks++
		}
		if n, _ := marksAt(s, 0); marks == len(b.Cells) && n != marks || marks < len(b.Cells) && n != 0 {
			t.Errorf("%U stands for %d non-starters, marksAt says %d", r, marks, n)
		}
		if marks < len(b.Cells) && marks > maxBaseMarks {
			t.Errorf("%U ends in %d non-starters", r, marks)
		}
		// What opens a token in the view is found by Scan, or made ASCII by NFKC.
		if view := appendView(nil, &b, s, 0, len(s)); len(view) > 0 && strings.IndexByte("<[#", view[0].char) >= 0 {
			if prop&ucd.Opener == 0 {
				t.Errorf("%U opens a token, but is no Opener", r)
			}
		}
	}
}

func TestCompose(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	letters := "abcdefgh"
	edit := func(in string) (string, []Edit) {
		var ed editor
		ed.begin(in)
		for i := rng.Intn(3); i <= len(in); {
			end := min(len(in), i+rng.Intn(3))
			ed.replace(i, end, letters[:rng.Intn(4)], Class(1+rng.Intn(5)))
			i = max(i+1, end+rng.Intn(4)) // neighbours too
		}
		return ed.finish(), slices.Clone(ed.events)
	}
	for range 20000 {
		in := letters[:rng.Intn(len(letters)+1)]
		mid, first := edit(in)
		out, second := edit(mid)
		joined := joinNeighbours(compose(nil, first, second))
		if !Replay(in, mid, first) || !Replay(mid, out, second) || !Replay(in, out, joined) {
			t.Fatalf("%q -> %q -> %q:\n%+v\n%+v\n%+v", in, mid, out, first, second, joined)
		}
		if kept(joined, in) > min(kept(first, in), kept(second, mid)) {
			t.Fatalf("composed events cover less than one of the two")
		}
	}
}

// What a later step takes of a run leaves the events of the rest.
func TestEventsApart(t *testing.T) {
	for _, c := range []struct {
		name   string
		policy Policy
		in     string
		events []Edit
	}{
		{"cut", Policy{Profile: Veritas, MaxBytes: 16}, strings.Repeat("\u0430", 20), []Edit{{Confusable, 0, 12, 0, 6}, {Truncated, 12, 40, 6, 9}}},
		{"token", Policy{}, "\uff21\uff22\uff1c|x|>\uff23", []Edit{{NFKC, 0, 6, 0, 2}, {ControlToken, 6, 13, 2, 2}, {NFKC, 13, 16, 2, 3}}},
		{"fraction", Policy{Profile: Veritas}, "\u00bc", []Edit{{NFKCLossy, 0, 2, 0, 1}, {Confusable, 2, 2, 1, 2}, {NFKCLossy, 2, 2, 2, 3}}},
		{"minus", Policy{Profile: Veritas}, "10\u207b", []Edit{{NFKCLossy, 2, 5, 2, 2}, {Confusable, 5, 5, 2, 3}}},
		{"neighbours", Policy{}, "\u00b2\u00b3\uff21\uff22", []Edit{{NFKCLossy, 0, 4, 0, 2}, {NFKC, 4, 10, 2, 4}}},
	} {
		out, r := clean(t, compile(t, c.policy), c.in)
		if d := cmp.Diff(c.events, r.Edits); d != "" || !Replay(c.in, out, r.Edits) {
			t.Errorf("%s: %+q: %s", c.name, out, d)
		}
	}
}

// A note covers all that made what it is about.
func TestNotePlaces(t *testing.T) {
	for in, want := range map[string]Note{
		"a \u00bc":             {Confusable, 2, 4, 1},
		"\u200b\u0430":         {Confusable, 3, 5, 1},
		"\uff21\uff22\u207b x": {Confusable, 6, 9, 1},
	} {
		_, r := clean(t, compile(t, Policy{Profile: Veritas, Confusables: Flag}), in)
		if d := cmp.Diff([]Note{want}, r.Notes); d != "" {
			t.Errorf("%+q: %s", in, d)
		}
	}
}

// kept returns the bytes of in that no event covers.
func kept(events []Edit, in string) int {
	n := len(in)
	for _, e := range events {
		n -= e.End - e.Start
	}
	return n
}

func TestReplayRefuses(t *testing.T) {
	good := []Edit{{NFKC, 1, 2, 1, 3}}
	if !Replay("abc", "axyc", good) {
		t.Fatal("the good case fails")
	}
	for _, bad := range [][]Edit{
		nil, {{NFKC, 1, 2, 1, 2}}, {{NFKC, 2, 1, 2, 3}}, {{NFKC, 1, 9, 1, 3}}, {{NFKC, 1, 2, 1, 9}},
		{{NFKC, 0, 2, 1, 3}}, {{NFKC, 1, 2, 1, 3}, {NFKC, 1, 2, 1, 3}},
	} {
		if Replay("abc", "axyc", bad) {
			t.Errorf("%+v passes", bad)
		}
	}
}

func TestMerge(t *testing.T) {
	var events []Edit
	for i := range 1000 {
		events = append(events, Edit{ZeroWidth, 3 * i, 3*i + 1, 2 * i, 2 * i})
	}
	got := Merge(nil, events)
	if len(got) != MaxEntries {
		t.Fatalf("%d entries", len(got))
	}
	count := 0
	for _, e := range got {
		count += e.Count
	}
	if last := got[len(got)-1]; count != 1000 || last.End != 2998 || last.Start != 3*255 {
		t.Errorf("%d events, the last entry is %+v", count, last)
	}
	two := Merge(nil, []Edit{{Tag, 0, 4, 0, 0}, {Tag, 4, 8, 0, 0}, {Bidi, 8, 11, 0, 0}})
	if len(two) != 2 || two[0].Count != 2 || two[0].End != 8 {
		t.Errorf("%+v", two)
	}
}

func TestSurface(t *testing.T) {
	narrow := compile(t, Policy{Profile: Surface})
	wide := compile(t, Policy{Profile: Surface, Wide: true})
	for _, c := range []struct {
		in        string
		narrow    Class
		wide      Class
		at, wider int
	}{
		{"plain \u00e9 \u2764", 0, 0, 0, 0},
		{"ab\u200bc", ZeroWidth, ZeroWidth, 2, 2},
		{"a\U000e0041", Tag, Tag, 1, 1},
		{"a\ufffb", Annotation, Annotation, 1, 1},
		{"a\u2064\u202e", InvisibleOperator, InvisibleOperator, 1, 1},
		{"a\u00adb", 0, Filler, 0, 1},
		{"\u2764\ufe0f", 0, 0, 0, 0},
		{"a\ufe0f", 0, VariationSelector, 0, 1},
		{"a\r\nb\u2028", 0, 0, 0, 0},
		{"a\x1b[1m", 0, Control, 0, 1},
		{"a\xff", IllFormedUTF8, IllFormedUTF8, 1, 1},
		{"\u200d", ZeroWidth, ZeroWidth, 0, 0},
	} {
		for _, x := range []struct {
			s     *Scrubber
			class Class
			at    int
		}{{narrow, c.narrow, c.at}, {wide, c.wide, c.wider}} {
			got, r := clean(t, x.s, c.in)
			if got != c.in || r.Changed() {
				t.Errorf("%+q is changed", c.in)
			}
			if (r.Refused != 0) != (x.class != 0) || r.RefusedAt.Class != x.class || r.Refused != 0 && r.RefusedAt.Start != x.at {
				t.Errorf("wide=%v: %+q: %v at %+v", x.s.p.Wide, c.in, r.Refused, r.RefusedAt)
			}
		}
	}
	n := 0
	for r := rune(0); r <= ucd.MaxRune; r++ {
		if !utf8.ValidRune(r) {
			continue
		}
		if _, res := clean(t, narrow, string(r)); res.Refused != 0 {
			n++
		}
	}
	if n != 151 {
		t.Errorf("%d code points are refused, SUSPICIOUS_UNICODE has 151", n)
	}
}

func TestPolicy(t *testing.T) {
	_, err := Compile(Policy{Profile: Faithful, MaxChars: 1, Ellipsis: true, Wide: true})
	faults, ok := err.(*PolicyError)
	if !ok || len(faults.Faults) != 3 {
		t.Errorf("not every fault is named: %v", err)
	}
	for p := range numProfiles {
		if q, ok := ParseProfile(p.String()); !ok || q != p {
			t.Errorf("%v is not read back", p)
		}
		if len(Steps(p)) == 0 {
			t.Errorf("%v has no steps", p)
		}
	}
	for c := Class(1); c < numClasses; c++ {
		if !c.Code().Known() {
			t.Errorf("class %d has no code", c)
		}
	}
	for c := ucd.Bidi; c <= ucd.Noncharacter; c++ {
		if want := "hidden-" + c.String(); c < ucd.Control && string(Class(c).Code()) != want {
			t.Errorf("%s and %s", Class(c).Code(), want)
		}
	}
	if d := (Policy{DangerouslyRFCSetOnly: true}).Deviations(); len(d) != 1 {
		t.Errorf("deviations: %q", d)
	}
}

// A Result that is used again holds nothing of the last text.
func TestReuse(t *testing.T) {
	s := compile(t, Policy{})
	var r Result
	s.Scrub("a\u202e<|im_start|>\ue000", &r)
	if r.Tokens != 1 || len(r.Edits) == 0 || len(r.Notes) != 1 {
		t.Fatalf("%+v", r)
	}
	s.Scrub("plain", &r)
	if r.Changed() || r.Tokens != 0 || len(r.Notes) != 0 || r.Clean.String() != "plain" {
		t.Errorf("%+v", r)
	}
}

func TestNotes(t *testing.T) {
	_, r := clean(t, compile(t, Policy{}), "a\ue000b\ue001\u0378\u2800\u0430")
	want := []Note{{PrivateUse, 1, 4, 2}, {Unassigned, 8, 10, 1}, {BlankSymbol, 10, 13, 1}, {Confusable, 13, 15, 1}}
	if d := cmp.Diff(want, r.Notes); d != "" {
		t.Error(d)
	}
}

func TestAllocations(t *testing.T) {
	for _, p := range []Policy{{}, {Profile: Faithful}, {Profile: Veritas, MaxBytes: 4000}} {
		s := compile(t, p)
		var r Result
		for _, c := range benchCases {
			s.Scrub(c.text, &r)
			if r.Changed() {
				continue
			}
			if n := testing.AllocsPerRun(20, func() { s.Scrub(c.text, &r) }); n != 0 {
				t.Errorf("%s, %s: %v allocations on clean text", p.Profile, c.name, n)
			}
		}
	}
}

// Eight times the text may take some eight times as long; quadratic time would
// take 64 times. The least of several runs is taken, since the machine may be busy.
func TestLinear(t *testing.T) {
	const size, factor, bound = 16 << 10, 8, 32
	units := []string{
		"\ufdfa", "a\u0316\u0301", "\u0301", "<|im_", "[a](", "[a](b (", "[a](b \"", "<", "<a x=\"", "<!--",
		"<a:", "a\u200b", "&#x202e;", "&l", "&amp;", "<s>", "\uff1c\u2039", "s:\n", "SYS", "###", "# ", "\u05d0a\u200e",
		"\x1b]", "\u009d", "\x1b[", "\u200e", "\u0628\u200c", "\u200c", "\U0001f468\u200d", "[", "]", "[a]: ", "\u0430", " <", "\xe2\x80",
		"&l<|x|>", "<[x](", "\n<|x|>",
	}
	for _, p := range []Policy{
		{}, {Profile: Faithful}, {Profile: Veritas, MaxBytes: 2 * factor * size}, {Profile: Veritas, MaxBytes: 2 * factor * size, Scope: Mixed},
	} {
		s := compile(t, p)
		for _, u := range units {
			for _, end := range []string{"", ">", ")", "|>\u05d0"} {
				few, many := strings.Repeat(u, size/len(u))+end, strings.Repeat(u, factor*size/len(u))+end
				base := least(s, few, 3)
				for tries := 1; ; tries++ { // a busy machine makes some of them slow
					if least(s, many, 1) <= bound*base {
						break
					}
					if base = max(base, least(s, few, 1)); tries == 100 {
						t.Errorf("%+v: %+q x %d + %+q: %d times the text takes more than %d times as long", p, u, size/len(u), end, factor, bound)
						break
					}
				}
			}
		}
	}
}

// least is the shortest of the times that some runs take.
func least(s *Scrubber, in string, runs int) time.Duration {
	var r Result
	best := time.Duration(math.MaxInt64)
	for range runs {
		start := time.Now()
		s.Scrub(in, &r)
		best = min(best, time.Since(start))
	}
	return best
}

// TestManyEvents: a text of very many changes has a record of bounded length that still leads
// from the input to the output.
func TestManyEvents(t *testing.T) {
	for name, text := range map[string]string{
		"removals alone":         strings.Repeat("\u200b", 200_000),
		"removals and letters":   strings.Repeat("a\x01", 200_000),
		"removals of two kinds":  strings.Repeat("\u200b\x01", 100_000),
		"changes of each letter": strings.Repeat("\uff41\uff42-", 100_000),
		"marks that reorder":     strings.Repeat("a\u0301\u0323\u200b", 50_000),
	} {
		for _, p := range []Profile{MCP, Faithful} {
			c := compile(t, Policy{Profile: p, MaxChars: 1 << 20})
			out, r := clean(t, c, text)
			if most := max(manyEvents, len(text)/bytesPerEvent) * 2; len(r.Edits) > most {
				t.Errorf("%s, %v: %d events for %d bytes, want at most %d", name, p, len(r.Edits), len(text), most)
			}
			if !Replay(text, out, r.Edits) {
				t.Errorf("%s, %v: the events do not lead to the output", name, p)
			}
			if again, _ := clean(t, c, out); again != out {
				t.Errorf("%s, %v: a second time changes %d bytes to %d", name, p, len(out), len(again))
			}
		}
	}
}
