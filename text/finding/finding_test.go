// SPDX-License-Identifier: Apache-2.0

package finding

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// Every constant of type Code has a severity, a distinct value, and a value that
// is safe in a label.
func TestCodes(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), "finding.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	label := regexp.MustCompile(`^[a-z][a-z0-9-]{2,31}$`)
	seen, seenMeaning := map[Code]string{}, map[string]bool{}
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST {
			continue
		}
		for _, s := range g.Specs {
			v := s.(*ast.ValueSpec)
			if id, ok := v.Type.(*ast.Ident); !ok || id.Name != "Code" {
				continue
			}
			text, err := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			c, name := Code(text), v.Names[0].Name
			if other, ok := seen[c]; ok {
				t.Errorf("%s and %s are both %q", name, other, c)
			}
			seen[c] = name
			if !label.MatchString(text) {
				t.Errorf("%s = %q does not suit a label", name, c)
			}
			if !c.Known() {
				t.Errorf("%s has no severity", name)
			}
			if m := c.Meaning(); len(m) < 20 || len(m) > 160 || !strings.HasSuffix(m, ".") || seenMeaning[m] {
				t.Errorf("%s has no meaning of its own: %q", name, m)
			}
			seenMeaning[c.Meaning()] = true
		}
	}
	if len(seen) != len(severities) {
		t.Errorf("%d constants, %d severities", len(seen), len(severities))
	}
	if len(meanings) != len(severities) {
		t.Errorf("%d meanings, %d severities", len(meanings), len(severities))
	}
	if Code("made-up").Meaning() != "" || Code("made-up").Known() || Code("made-up").Severity() != Error {
		t.Error("an unknown code passes for a known one")
	}
}

func TestQuote(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"", `""`},
		{"plain", `"plain"`},
		{"a\"b\\\n\x1b[31m", `"a\"b\\\n\x1b[31m"`},
		{"\u202e\U000e0041\u00e9", `"\u202e\U000e0041\u00e9"`},
		{"\xff\xc0\x80", `"\xff\xc0\x80"`},
		{strings.Repeat("x", 64), `"` + strings.Repeat("x", 64) + `"`},
		{strings.Repeat("x", 65), `"` + strings.Repeat("x", 64) + `"...(+1 bytes)`},
		{strings.Repeat("x", 63) + "\u00e9y", `"` + strings.Repeat("x", 63) + `"...(+3 bytes)`},
		{strings.Repeat("x", 61) + "\U0001f600y", `"` + strings.Repeat("x", 61) + `"...(+5 bytes)`},
		{strings.Repeat("\x80", 70), `"` + strings.Repeat(`\x80`, 64) + `"...(+6 bytes)`},
	} {
		if got := Quote(c.in); got != c.want {
			t.Errorf("Quote(%+q) = %s, want %s", c.in, got, c.want)
		}
	}
}

func FuzzQuote(f *testing.F) {
	f.Add("\u202e", 3)
	f.Add(strings.Repeat("\xe2\x80", 40), 64)
	f.Fuzz(func(t *testing.T, s string, pad int) {
		s = strings.Repeat("x", pad&127) + s
		q := Quote(s)
		for i := range len(q) {
			if q[i] < 0x20 || q[i] > 0x7e {
				t.Fatalf("%q holds byte %#02x", q, q[i])
			}
		}
		if len(q) > QuoteLimit*len(`\U00000000`)+32 {
			t.Fatalf("%d bytes", len(q))
		}
		body, rest, cut := strings.Cut(q, `"...(+`)
		if !cut {
			body = strings.TrimSuffix(q, `"`)
		}
		shown, err := strconv.Unquote(body + `"`)
		if err != nil || !strings.HasPrefix(s, shown) {
			t.Fatalf("Quote(%+q) = %s, which is no prefix: %v", s, q, err)
		}
		if n, _ := strconv.Atoi(strings.TrimSuffix(rest, " bytes)")); cut && len(shown)+n != len(s) {
			t.Fatalf("%d shown + %d left out of %d", len(shown), n, len(s))
		}
	})
}
