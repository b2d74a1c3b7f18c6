// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/pellucid-mcp/pellucid/platform/terminal"
)

// TestEscapes: a path of Windows in double quotes is refused wherever it stands, with what to write instead. It would mean
// another character, or the end of a line.
func TestEscapes(t *testing.T) {
	befores := []string{"", "# \u00e4 \"x\\u1\"\n", "a: \"x\n  \u00e4 y\"\n", "a: |\n  \"C:\\x\"\n  b\n", "\u00e4: [ \"\\u00e4\", 'C:\\u' , \"\\\"\" ]\r\n", "a: x\r\n\r\nb: \"c\r\n\r\n  d\"\r\n", "a: >-\n  \u65e5\n\nb: 'it''s'\n", "a: \"\\\n  x\"\n", "\ufeffa: 1\n"}
	for value, wrong := range map[string]bool{
		`"C:\upstream.exe"`: true, `"C:\Users\x"`: true, `"D:\xyz"`: true, `"C:\new\temp"`: true, `"C:\bin"`: true, `"C:\0"`: true, `"c:\Temp\x.exe"`: true,
		`"\u12G4"`: true, `"\U0001f60"`: true, `"x\x4"`: true, `"\\\u"`: true, `"a\Temp"`: true,
		`"C:\\upstream.exe"`: false, `'C:\upstream.exe'`: false, `C:\upstream.exe`: false, `"C:/upstream.exe"`: false, `"\u00e4\U0001F600\x41"`: false,
		`"\\u12"`: false, `"\\\\d+\n\t"`: false, `"\uD83D\uDE00"`: false, `"a \" \\"`: false, `"ab:\nb"`: false,
	} {
		for _, before := range befores {
			for _, form := range []string{"z: VALUE\n", "z: {y: [\u00e4, VALUE]}\n", "VALUE: z\n", "z:\n  - VALUE"} {
				_, p := parseYAML([]byte(before + strings.Replace(form, "VALUE", value, 1)))
				if hinted := strings.Contains(p.Error(), escapeHint); hinted != wrong || !wrong && p != nil {
					t.Errorf("%q in %q: %v", value, before+form, p)
				}
			}
		}
	}
	// One file of many strings on a single line takes no time to speak of.
	if _, p := parseYAML([]byte("a: [" + strings.Repeat("\"\u00e4\",", 16000) + "\"C:\\u\"]")); !strings.Contains(p.Error(), "escape") {
		t.Error(p)
	}
}

// TestUTF16: the encoding is named once.
func TestUTF16(t *testing.T) {
	for _, order := range []func(uint16) (byte, byte){
		func(u uint16) (byte, byte) { return byte(u), byte(u >> 8) }, func(u uint16) (byte, byte) { return byte(u >> 8), byte(u) },
	} {
		for _, text := range []string{"\ufeffversion: 1\n" + strings.Repeat("# x\n", 20), "version: 1\n", "\ufeff\u65e5: 1\n"} {
			var src []byte
			for _, u := range utf16.Encode([]rune(text)) {
				a, b := order(u)
				src = append(src, a, b)
			}
			if _, p := parseYAML(src); len(p) != 1 || p[0].Fault != terminal.ErrUTF16.Error() {
				t.Errorf("%q: %v", src[:4], p)
			}
		}
	}
	for _, text := range []string{"", "v", "\x00", "\u65e5: 1"} {
		if _, p := parseYAML([]byte(text)); strings.Contains(p.Error(), "UTF-16") {
			t.Errorf("%q: %v", text, p)
		}
	}
}
