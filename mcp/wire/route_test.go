// SPDX-License-Identifier: Apache-2.0

package wire

import "testing"

func TestHeaderEncoding(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ plain, header string }{
		{"search", "search"},
		{"two words, (1)", "two words, (1)"},
		{"", ""},
		{" lead", "=?base64?IGxlYWQ=?="},
		{"trail ", "=?base64?dHJhaWwg?="},
		{"\ttab", "=?base64?CXRhYg==?="},
		{"a\r\nX-Evil: 1", "=?base64?YQ0KWC1FdmlsOiAx?="},
		{"\u65e5\u672c", "=?base64?5pel5pys?="},
		{"=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="},
	} {
		if got := encodeHeader(tt.plain); got != tt.header {
			t.Errorf("encodeHeader(%q) = %q, want %q", tt.plain, got, tt.header)
		}
		if got, ok := decodeHeader(tt.header); got != tt.plain || !ok {
			t.Errorf("decodeHeader(%q) = %q, %v", tt.header, got, ok)
		}
	}
	for _, bad := range []string{"=?base64?!?=", "=?base64?YQ?="} {
		if _, ok := decodeHeader(bad); ok {
			t.Errorf("decodeHeader(%q) was accepted", bad)
		}
	}
}

func FuzzHeaderEncoding(f *testing.F) {
	f.Add("=?base64??=")
	f.Fuzz(func(t *testing.T, s string) {
		h := encodeHeader(s)
		if back, ok := decodeHeader(h); back != s || !ok || !validHeaderValue(h) {
			t.Fatalf("%q became %q became %q", s, h, back)
		}
	})
}
