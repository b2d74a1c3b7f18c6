// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// FuzzParse: any bytes make rules, or problems that show no secret; rules that
// are dumped and read again are the same. The schema for editors takes what is read.
func FuzzParse(f *testing.F) {
	for _, name := range []string{"mistakes.yaml", "effective.yaml"} {
		b, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte(everything))
	f.Add([]byte(policyFile))
	for _, s := range []string{"version: 1", "version: 1\nx: [[[[", "- - - -", "{", "a: |\n  b\nc: >-\n  d", "\"\\xff\": 1", "? a", "&a *a", "!!x", "--- 1\n...", "a: 'b''c'",
		"version: 1\nservers:\n- a:\n  - b: c", "version: 1\nlisten: \"\\u202e\"", "%TAG", "\t:", "a:\n\tb: c"} {
		f.Add([]byte(s))
	}
	o := newFixed().options()
	editors := compiledSchema(f)
	f.Fuzz(func(t *testing.T, src []byte) {
		start := time.Now()
		r, err := Parse(src, o)
		if d := time.Since(start); d > 10*time.Second {
			t.Errorf("took %v", d)
		}
		if err != nil {
			var p Problems
			if !errors.As(err, &p) || len(p) == 0 || r != nil {
				t.Fatalf("no problems: %v", err)
			}
			shown := err.Error()
			for i := range len(shown) {
				if c := shown[i]; (c < ' ' && c != '\n') || c > '~' {
					t.Fatalf("byte %#x is shown in %q", c, shown)
				}
			}
			if strings.Contains(shown, secret) {
				t.Fatal("a secret is shown")
			}
			return
		}
		if strings.Contains(string(r.Effective()), secret) {
			t.Fatal("a secret is shown")
		}
		if root, _ := parseYAML(src); editors.Validate(plain(root)) != nil {
			t.Fatal("the schema refuses what is read")
		}
		if !utf8.Valid(src) {
			t.Fatal("ill-formed UTF-8 was accepted")
		}
		again, err := Parse(r.Effective(), o)
		if err != nil {
			t.Fatalf("%v\n%s", err, r.Effective())
		}
		if !Equal(r, again) {
			t.Fatalf("read again it is another:\n%s\n%s", r.Effective(), again.Effective())
		}
		for _, s := range r.Servers {
			s.Rule("a")
			s.Rule("")
		}
	})
}

// TestHostileTime: the longest files of the forms that parsers are slow at.
func TestHostileTime(t *testing.T) {
	const n = maxFile - 100
	keys := new(strings.Builder)
	for i := 0; keys.Len() < n; i++ {
		keys.WriteString("k" + strconv.Itoa(i) + ": 1\n")
	}
	stairs := new(strings.Builder)
	for i := 0; stairs.Len() < n-1000; i++ {
		stairs.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	some := keys.String()[:strings.LastIndexByte(keys.String()[:maxTokens/3*7], '\n')]
	o := newFixed().options()
	for name, src := range map[string]string{
		"keys":      keys.String(),
		"somekeys":  some,
		"inside":    "version: 1\nhttp:\n  " + strings.ReplaceAll(some, "\n", "\n  "),
		"stairs":    stairs.String(),
		"brackets":  strings.Repeat("[", n),
		"dashes":    strings.Repeat("- ", n/2),
		"lines":     "- a\n" + strings.Repeat("- a\n", maxTokens/2-1),
		"flow":      "[" + strings.Repeat("a,", maxTokens/2-2) + "]",
		"braces":    strings.Repeat("{a: ", n/4),
		"quote":     "a: \"" + strings.Repeat("\\n", n/2),
		"plain":     "a: " + strings.Repeat("b\n  ", n/4),
		"block":     "a: |\n" + strings.Repeat("  b\n", n/4),
		"colons":    strings.Repeat("a:", n/2),
		"anchors":   strings.Repeat("&a ", n/3),
		"tags":      strings.Repeat("!a ", n/3),
		"comments":  strings.Repeat("#\n", n/2),
		"spaces":    strings.Repeat(" ", n),
		"documents": strings.Repeat("---\n", n/4),
		"hidden":    strings.Repeat("\u202e", n/3),
	} {
		start := time.Now()
		Parse([]byte(src), o)
		d := time.Since(start)
		t.Logf("%-10s %7d bytes %v", name, len(src), d)
		if d > 10*time.Second {
			t.Errorf("%s took %v", name, d)
		}
	}
}
