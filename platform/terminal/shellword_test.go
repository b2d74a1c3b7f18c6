// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"os/exec"
	"strings"
	"testing"
)

// TestShellWord: a word can be copied as it is shown, and no shell runs a part of it.
func TestShellWord(t *testing.T) {
	for s, want := range map[string][2]string{ // on Unix, on Windows
		"a-b_c.d/e:f":     {"a-b_c.d/e:f", "a-b_c.d/e:f"},
		"":                {"''", `""`},
		"a b":             {"'a b'", `"a b"`},
		"50%,@x":          {"50%,@x", `"50%,@x"`},
		`C:\Users\a.json`: {`'C:\Users\a.json'`, `C:\Users\a.json`},
		"C:\\users\\Zo\u00eb M\u00fcller\\.cursor\\mcp.json": {"'C:\\users\\Zo\u00eb M\u00fcller\\.cursor\\mcp.json'", "\"C:\\users\\Zo\u00eb M\u00fcller\\.cursor\\mcp.json\""},
		`\\server\my share\`: {`'\\server\my share\'`, `"\\server\my share\\"`},
		"\u65e5\u672c":       {"'\u65e5\u672c'", "\"\u65e5\u672c\""},
		"it's":               {`'it'\''s'`, `"it's"`},
		"a;b&c|d":            {"'a;b&c|d'", `"a;b&c|d"`},
		`a"b`:                {`'a"b'`, `"a\u0022b"`},
		"a$b":                {"'a$b'", "'a$b'"},
		"$(calc)&calc":       {"'$(calc)&calc'", `"\u0024(calc)&calc"`},
		"`calc` $'x":         {"'`calc` $'\\''x'", `"\u0060calc\u0060 \u0024'x"`},
		"a\u201d;calc":       {"'a\u201d;calc'", `"a\u201d;calc"`},
		"zed/b\u202e":        {`$'zed/b\u202e'`, `"zed/b\u202e"`},
		"a\nb'\"\\":          {`$'a\nb\'"\\'`, `"a\nb'\u0022\\"`},
		"a\tb\x1b\xff":       {`$'a\tb\x1b\xff'`, `"a\tb\x1b\xff"`},
	} {
		for i, goos := range []string{"linux", "windows"} {
			if got := shellWord(goos, s); got != want[i] {
				t.Errorf("%s: %q is %s, want %s", goos, s, got, want[i])
			}
		}
	}
}

// FuzzShellWord: bash reads a word as what it was made of, and cmd.exe finds no command in one of Windows.
func FuzzShellWord(f *testing.F) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		f.Skip(err)
	}
	for _, s := range []string{"", "a b", "it's", "$(x)", "a\nb", "\u202e\xff", "`a`", "\x1b'", "\u201c\"&a", "C:\\a b\\", "!x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if strings.Contains(s, "\x00") { // which no argument can have
			return
		}
		word := shellWord("linux", s)
		cmd := exec.Command(bash, "-c", "printf %s "+word)
		cmd.Env = []string{"LC_ALL=C.UTF-8"}
		if got, err := cmd.Output(); err != nil || string(got) != s {
			t.Errorf("%q is %s, which bash reads as %q, %v", s, word, got, err)
		}
		word = shellWord("windows", s)
		if Printable(word) != word || strings.ContainsAny(word, "\r\n") {
			t.Errorf("%q is %q on Windows", s, word)
		}
		inside := strings.Trim(word, `"`)
		if bare := word == inside; bare && word[0] != '\'' && strings.Trim(word, plainWindowsWord) != "" || strings.Contains(inside, `"`) ||
			word[0] == '\'' && strings.ContainsAny(word, "&|<>^%\u2018") || word[0] == '"' && strings.ContainsAny(word, "$`\u201c\u201d") {
			t.Errorf("%q is %s on Windows", s, word)
		}
	})
}
