// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/text/unicode/norm"

	"github.com/pellucid-mcp/pellucid/platform/programtest"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/ucd"
)

func all(t testing.TB) []Vector {
	t.Helper()
	vs, err := All()
	if err != nil {
		t.Fatal(err)
	}
	return vs
}

// TestShape: what the issue of the corpus promises.
func TestShape(t *testing.T) {
	vs := all(t)
	families, clauses := map[string]int{}, map[string]int{}
	for _, v := range vs {
		families[v.Family]++
		for _, c := range v.Clauses {
			clauses[c]++
		}
	}
	if len(vs) < 400 || families["negative"]*3 < len(vs) {
		t.Errorf("%d vectors, %d of them negative", len(vs), families["negative"])
	}
	for _, f := range Families {
		if families[f] < 20 {
			t.Errorf("family %s has %d vectors", f, families[f])
		}
	}
	for _, c := range Clauses {
		if clauses[c] < 3 {
			t.Errorf("clause %s has %d vectors", c, clauses[c])
		}
	}
}

// TestScripts: the negative vectors are written in many scripts.
func TestScripts(t *testing.T) {
	scripts := map[ucd.Script]bool{}
	for _, v := range all(t) {
		if v.Family == "negative" {
			for _, r := range v.Payload {
				scripts[ucd.ScriptOf(r)] = true
			}
		}
	}
	if len(scripts) < 40 {
		t.Errorf("%d scripts", len(scripts))
	}
}

// TestCodes: a reason is one of the closed vocabulary.
func TestCodes(t *testing.T) {
	for _, v := range all(t) {
		if v.Code != "" && !finding.Code(v.Code).Known() {
			t.Errorf("%s: unknown code %s", v.ID(), v.Code)
		}
	}
}

// TestNegative: a negative vector accepts, and but for look-alikes in scope literal
// and what 4.4 strips to the letter, its text is the payload's NFKC.
func TestNegative(t *testing.T) {
	for _, v := range all(t) {
		if v.Family != "negative" {
			continue
		}
		if v.Expected == Reject {
			t.Errorf("%s: rejected", v.ID())
		}
		if v.Field == "uri" || v.Expected == Either || slices.Contains(v.Mixed.Meta, "stripped_positions") {
			continue
		}
		if want := norm.NFKC.String(v.Payload); v.Mixed.Text != want {
			t.Errorf("%s: scope mixed expects %s, and NFKC is %s", v.ID(), finding.Quote(v.Mixed.Text), finding.Quote(want))
		}
	}
}

// TestExpectedTexts: an expected text is what RFC 4 leaves as it is.
func TestExpectedTexts(t *testing.T) {
	for _, v := range all(t) {
		for _, w := range []*Want{&v.Literal, &v.Mixed} {
			switch {
			case !w.Exact:
				continue
			case !utf8.ValidString(w.Text) || !norm.NFKC.IsNormalString(w.Text):
				t.Errorf("%s: the text is not in NFKC", v.ID())
			case strings.ContainsFunc(w.Text, func(r rune) bool { return ucd.Of(r)&ucd.Hidden != 0 && r != '\n' && r != '\t' }):
				t.Errorf("%s: the text holds a hidden character", v.ID())
			}
		}
		if v.Literal.Exact && v.In(Literal) && v.Field != "uri" && strings.ContainsFunc(v.Literal.Text, func(r rune) bool { return ucd.Of(r)&ucd.Confusable != 0 }) && !strings.Contains(v.Literal.Text, " \u2014 ") {
			t.Errorf("%s: the text of scope literal holds a look-alike", v.ID())
		}
	}
}

// TestPython holds the NFKC that the expectations rest on against Python's, whose
// Unicode may be older: what it does not know yet it leaves alone, as we do.
func TestPython(t *testing.T) {
	python := programtest.Find(t, "python3")
	var texts []string
	for _, v := range all(t) {
		if utf8.ValidString(v.Payload) && !v.JSON {
			texts = append(texts, v.Payload)
		}
		if v.Literal.Exact {
			texts = append(texts, v.Literal.Text)
		}
		if v.Mixed.Exact {
			texts = append(texts, v.Mixed.Text)
		}
	}
	in, err := json.Marshal(texts)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(python, "-c", `import json,sys,unicodedata as u
print(json.dumps([u.normalize("NFKC",s) for s in json.load(sys.stdin)]))`)
	cmd.Stdin = bytes.NewReader(in)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	if err := json.Unmarshal(out, &want); err != nil || len(want) != len(texts) {
		t.Fatal(len(want), err)
	}
	for i, s := range texts {
		if got := string(ucd.Append(nil, ucd.NFKC, s)); got != want[i] {
			t.Errorf("%s: NFKC is %s, Python's is %s", finding.Quote(s), finding.Quote(got), finding.Quote(want[i]))
		}
	}
}

const good = `clause: 4.2 4.3
family: homoglyph
field: quote
quotes: 2
scope: any
level: SHOULD
expect: either typed-tag
text: a\u{e9}
contains: a
contains: \u{e9}
absent: \\
bytes: 1..3
meta: confusables_replaced
mixed-text: b
mixed-meta: -
again: c\rep{3}{de}
comment: one of each

a \u{e9}
 \xff\n\t\\\u{20}
`

func TestParse(t *testing.T) {
	src := strings.Replace(good, `\xff`, "", 1)
	got, err := Parse([]byte(src))
	if err != nil {
		t.Fatal(err)
	}
	lit := Want{Exact: true, Text: "a\u00e9", Contains: []string{"a", "\u00e9"}, Absent: []string{`\`}, Min: 1, Max: 3, Meta: []string{"confusables_replaced"}}
	mix := lit
	mix.Text, mix.Meta = "b", []string{}
	want := Vector{
		Family: "homoglyph", Clauses: []string{"4.2", "4.3"}, Field: "quote", Quotes: 2, Expected: Either, Code: "typed-tag",
		Literal: lit, Mixed: mix, Again: "cdedede", Comment: "one of each", Payload: "a \u00e9 \n\t\\ ",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestParseRefuses(t *testing.T) {
	change := func(old, new string) string {
		return strings.Replace(strings.Replace(good, `\xff`, "", 1), old, new, 1)
	}
	for _, c := range []struct {
		src  string
		line int
		why  string
	}{
		{"", 0, "the last line has no end"},
		{good, 0, "ill-formed UTF-8 in JSON is to be rejected"},
		{change("clause: 4.2 4.3", "clause: 4.3 4.2"), 1, "unknown word, or out of order"},
		{change("clause: 4.2 4.3", "clause: 4.9"), 1, "unknown word, or out of order"},
		{change("clause: 4.2 4.3", "clause: -"), 1, "no clause"},
		{change("family: homoglyph\n", ""), 2, "unknown, repeated or out of order"},
		{change("family: homoglyph", "family: other"), 2, "not a value that this header may have"},
		{change("quotes: 2", "quotes: 1"), 4, "quotes is no number from 2 to 100"},
		{change("field: quote", "field: uri"), 0, "quotes of another field"},
		{change("scope: any", "scope: mixed"), 0, "one scope, and yet two expectations"},
		{change("scope: any", "scope: all"), 5, "not a value that this header may have"},
		{change("level: SHOULD", "level: MAY"), 6, "level is neither MUST nor SHOULD"},
		{change("expect: either typed-tag", "expect: either"), 7, "accept alone, or reject or either with a code"},
		{change("expect: either typed-tag", "expect: accept typed-tag"), 7, "accept alone, or reject or either with a code"},
		{change("expect: either typed-tag", "expect: reject typed-tag"), 0, "rejected, and yet something is expected of the text"},
		{change("bytes: 1..3", "bytes: 3..1"), 12, "bytes is not MIN..MAX"},
		{change("comment: one of each", "comment:"), 17, "comment is empty"},
		{change("comment: one of each\n", ""), 17, "no comment"},
		{change("comment: one", "comment: \u00e9"), 17, "not a name, a colon, a space and printable ASCII"},
		{change("a \\u{e9}\n \\n", "a \\u{e9} \n \\n"), 19, "the line ends with a space"},
		{change("a \\u{e9}\n", "\n"), 19, "the payload has an empty line or is too long"},
		{change(`a \u{e9}`, "a\u00e9"), 19, "not printable ASCII"},
		{change(`a \u{e9}`, `\u{E9}`), 19, `\u{HEX} is not in its one spelling`},
		{change(`a \u{e9}`, `\u{0e9}`), 19, `\u{HEX} is not in its one spelling`},
		{change(`a \u{e9}`, `\u{d800}`), 19, "not a Unicode scalar value"},
		{change(`a \u{e9}`, `\u{110000}`), 19, "not a Unicode scalar value"},
		{change(`a \u{e9}`, `\u{61}`), 19, `\u{HEX} for what is written otherwise`},
		{change(`a \u{e9}`, `\u{20}a`), 19, `\u{20} within a line`},
		{change(`a \u{e9}`, `\u{`), 19, `\u{HEX} is not in its one spelling`},
		{change(`a \u{e9}`, `\x7f`), 19, `\xHH is not a byte from 80 to ff`},
		{change(`a \u{e9}`, `\xFF`), 19, `\xHH is not in its one spelling`},
		{change(`a \u{e9}`, `\q`), 19, "no such escape"},
		{change(`a \u{e9}`, `\`), 19, "no such escape"},
		{change(`a \u{e9}`, `\rep{1}{a}`), 19, `\rep needs a number from 2 to 100000`},
		{change(`a \u{e9}`, `\rep{2}{}`), 19, `\rep has no unit`},
		{change(`a \u{e9}`, `\rep{2}{a`), 19, `\rep has no unit`},
		{change(`a \u{e9}`, `\rep{2}{\rep{2}{a}}`), 19, "no such escape"},
		{change(`a \u{e9}`, `\rep{100000}{0123456789a}`), 19, "stands for more than 1 MiB"},
		{strings.Repeat("x", maxFile) + "\n", 0, "the file is too long"},
	} {
		_, err := Parse([]byte(c.src))
		want := &SyntaxError{c.line, c.why}
		if got, ok := err.(*SyntaxError); !ok || *got != *want {
			t.Errorf("%q...\n got %v\nwant %v", c.src[:min(len(c.src), 40)], err, want)
		}
	}
}

func TestLoadRefuses(t *testing.T) {
	src := &fstest.MapFile{Data: []byte(strings.Replace(good, `\xff`, "", 1))}
	for _, c := range []struct{ file, want string }{
		{"vectors/homoglyph/002-x.vec", "is not named 001-NAME.vec"},
		{"vectors/homoglyph/001-X.vec", "is not named 001-NAME.vec"},
		{"vectors/homoglyph/001-x.txt", "is not named 001-NAME.vec"},
		{"vectors/bidi/001-x.vec", "family is not the directory"},
	} {
		set := fstest.MapFS{}
		for _, f := range Families {
			set["vectors/"+f] = &fstest.MapFile{Mode: 0o755 | 1<<31}
		}
		set[c.file] = src
		if _, err := Load(set); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.file, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	vs, err := files.ReadDir("vectors/sanitation-bypass")
	if err != nil {
		f.Fatal(err)
	}
	for _, e := range vs {
		src, err := files.ReadFile("vectors/sanitation-bypass/" + e.Name())
		if err != nil {
			f.Fatal(err)
		}
		f.Add(src)
	}
	f.Add([]byte(good))
	f.Fuzz(func(t *testing.T, src []byte) {
		v, err := Parse(src)
		if err != nil {
			return
		}
		if len(v.Payload) > maxText || len(v.Again) > maxText || !printable(v.Comment) || len(v.Clauses) == 0 {
			t.Errorf("accepted %q", src)
		}
		for _, s := range append(slices.Clone(v.Literal.Contains), v.Literal.Absent...) {
			if s == "" {
				t.Errorf("an empty part in %q", src)
			}
		}
	})
}
