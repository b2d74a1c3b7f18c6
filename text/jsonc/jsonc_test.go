// SPDX-License-Identifier: Apache-2.0

package jsonc

import (
	"bytes"
	"encoding/json"
	"testing"
)

func TestPlain(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"plain", `{"a":[1,2]}`, `{"a":[1,2]}`},
		{"line comment", "{//x\n\"a\":1}", "{   \n\"a\":1}"},
		{"line comment at the end", `{} // x`, `{}     `},
		{"block comment", "{/*x\n*/}", "{   \n  }"},
		{"carriage returns stay", "{//x\r\n}", "{   \r\n}"},
		{"trailing commas", `{"a":[1,2,],}`, `{"a":[1,2 ] }`},
		{"comma, then comment", "[1,/*x*/\n]", "[1      \n]"},
		{"two commas stay wrong", `[1,,]`, `[1, ]`},
		{"no comments in strings", `{"a":"//x /*y*/ ,]"}`, `{"a":"//x /*y*/ ,]"}`},
		{"escaped quote", `["\"//",1,]`, `["\"//",1 ]`},
		{"byte order mark", "\xef\xbb\xbf{}", `   {}`},
		{"no end", `{/*x}`, `{/*x}`},
		{"lone slash", `{/}`, `{/}`},
		{"slash at the end", `{}/`, `{}/`},
		{"string without end", "[\"a\n//x\n]", "[\"a\n   \n]"},
		{"empty", ``, ``},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := string(Plain([]byte(tt.in))); got != tt.want {
				t.Errorf("Plain(%q) = %q, want %q", tt.in, got, tt.want)
			}
		})
	}
}

// FuzzPlain: the length never changes, strict JSON is left alone, and what became
// spaces stays so.
func FuzzPlain(f *testing.F) {
	for _, s := range []string{`{"a":[1,2,],}//x`, "\xef\xbb\xbf[/*,*/]", `"\`, `/`, "{\"a\n\":1}"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		before := bytes.Clone(src)
		out := Plain(src)
		if !bytes.Equal(src, before) {
			t.Fatal("the input was changed")
		}
		if len(out) != len(src) {
			t.Fatalf("length %d, was %d", len(out), len(src))
		}
		if json.Valid(src) && !bytes.Equal(out, src) {
			t.Fatalf("%q is JSON and became %q", src, out)
		}
		if json.Valid(out) && !bytes.Equal(Plain(out), out) {
			t.Fatalf("%q is not what it makes of itself", out)
		}
	})
}
