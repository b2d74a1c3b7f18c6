// SPDX-License-Identifier: Apache-2.0

package child

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// batchArguments are arguments that cmd.exe reads in another way than programs do.
var batchArguments = [][]string{
	{"plain", "-y", "@scope/srv", "C:\\Users\\x", "a.b-c_d/e:f?g#h$i*j+k"},
	{"https://h/x?a=b&c=d", "a|b", "a<b", "a>b", "p^q", "(x)", "a;b,c=d", "!x!", "~x", "100%", "%PATH%x", "%PATH%%PATH%", "%%", "%cd:~,%", "%*", "%1"},
	{"a b", "\ta", "", " ", "'a b'", "`a`", "zo\u00eb m\u00fcller", "\u201cq\u201d", "\U0001f600", "\u00a0", "\u3000"},
	{`"`, `""`, `"""`, `a"b`, `{"a":1}`, `{"a": "b & c"}`, `say "hi & bye" now`, `"&calc`, `"& calc`, `x "&calc&" y`, `5" & 6" | 7"`, `^"^&`, `"%PATH%"`},
	{`\`, `a\`, `a b\`, `a b\\`, `\"`, `\\"`, `a\"b c\`, `a\ "b\ &\" c`, `C:\Program Files\x\`, `"\\ & \\"`},
	{`odd"`, "next", "a b", `even"`, "a&b", "", `x "`, "", "a", "b c"},
	{`-c`, `@echo off & del /q *`, `"a" > b`, `"a > b`, "a\x1ab", "a\x0bb\x0cc", "a\u0085b"},
	{},
}

// TestBatchLine: what a batch file passes on with %* arrives byte for byte, and nothing of it is run.
func TestBatchLine(t *testing.T) {
	for _, args := range batchArguments {
		checkBatchLine(t, `C:\Program Files\100% & %PATH%\run.cmd`, args)
		for _, arg := range args {
			checkBatchLine(t, `C:\run.bat`, []string{arg})
			checkBatchLine(t, `C:\run.bat`, []string{`"`, arg})
		}
	}
	for _, arg := range []string{"a\nb", "a\r", "\x00"} {
		if line, err := batchLine("cmd.exe", "x.cmd", []string{"a", arg}); !errors.Is(err, errBatchArgument) {
			t.Errorf("%q: %q, %v", arg, line, err)
		}
	}
	if _, err := batchLine("cmd.exe", "x.cmd", []string{strings.Repeat("x", 8100)}); err != nil {
		t.Error(err)
	}
	for _, arg := range []string{strings.Repeat("x", 8192), strings.Repeat("%", 1100), strings.Repeat("\U0001f600", 4096)} {
		if _, err := batchLine("cmd.exe", "x.cmd", []string{arg}); !errors.Is(err, errBatchLine) {
			t.Errorf("%d bytes: %v", len(arg), err)
		}
	}
}

func TestIsBatch(t *testing.T) {
	for path, want := range map[string]bool{
		`C:\x.cmd`: true, `x.BAT`: true, `x.cmd.`: true, `x.bat. .`: true, `x.cmd  `: true,
		`x.exe`: false, `x.cmd.exe`: false, `x`: false, ``: false, `. .`: false, `x.bat\y`: false, `x.ps1`: false,
	} {
		if got := isBatch(path); got != want {
			t.Errorf("%q: %v", path, got)
		}
	}
}

func FuzzBatchLine(f *testing.F) {
	for _, args := range batchArguments {
		for i := range args {
			f.Add(args[i], args[(i+1)%len(args)])
		}
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		a, b = strings.ToValidUTF8(a, "?"), strings.ToValidUTF8(b, "?")
		if _, err := batchLine("cmd.exe", "x.cmd", []string{a, b}); err == nil {
			checkBatchLine(t, `C:\a b\run.cmd`, []string{a, b})
		}
	})
}

// checkBatchLine reads a line as cmd.exe does, then the line of the batch file, then as programs do.
func checkBatchLine(t *testing.T, script string, args []string) {
	t.Helper()
	line, err := batchLine(`C:\Windows\system32\cmd.exe`, script, args)
	if err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	command, found := strings.CutPrefix(line, `"C:\Windows\system32\cmd.exe" /e:ON /v:OFF /d /s /c "`)
	command, closed := strings.CutSuffix(command, `"`)
	if !found || !closed {
		t.Fatalf("%q", line)
	}
	command = shellExpand(command)
	if special := shellSpecial(command); special != 0 {
		t.Fatalf("%q: %q is not quoted in %q", args, special, line)
	}
	words := programWords(command, quoteRules[0])
	if len(words) == 0 || words[0] != script {
		t.Fatalf("%q: runs %q", line, words)
	}
	rest := strings.TrimPrefix(command, `"`+script+`"`)
	rest = strings.TrimPrefix(rest, script) // %*
	if special := shellSpecial(`"C:\a b\node.exe" x.js` + rest); special != 0 {
		t.Fatalf("%q: %q is not quoted in the batch file: %q", args, special, rest)
	}
	for _, rule := range quoteRules {
		if got := programWords(rest, rule); !slices.Equal(got, args) {
			t.Fatalf("a program gets %q, want %q where %s: %s", got, args, rule, line)
		}
	}
}

// shellExpand puts the values of variables into a command line, as cmd.exe does before it looks for quotes: outside a batch
// file, a variable that is not set stays as it is written.
func shellExpand(line string) string {
	values := map[string]string{"path": `C:\"evil" & x`, "cd": `C:\here`, "cd:~,": ""}
	var b strings.Builder
	for line != "" {
		before, after, found := strings.Cut(line, "%")
		b.WriteString(before)
		if !found {
			break
		}
		name, rest, closed := strings.Cut(after, "%")
		if value, set := values[strings.ToLower(name)]; closed && set {
			b.WriteString(value)
			line = rest
			continue
		}
		b.WriteByte('%')
		line = after
	}
	return b.String()
}

// shellSpecial returns a character outside quotes to which cmd.exe gives a meaning.
func shellSpecial(line string) rune {
	quoted := false
	for _, c := range line {
		switch {
		case c == '"':
			quoted = !quoted
		case !quoted && strings.ContainsRune("&|<>^()!,;=~`'", c), c == '\r', c == '\n':
			return c
		}
	}
	return 0
}

// quoteRules are the ways in which programs read a quote that follows another.
var quoteRules = []string{"after a doubled quote the quoted part goes on", "a doubled quote ends the quoted part", "three quotes are one, and end it"}

// programWords takes a line apart as programs do that follow a rule.
func programWords(line, rule string) (words []string) {
	var word strings.Builder
	inWord, quoted, backslashes := false, false, 0
	for i := 0; i <= len(line); i++ {
		if i < len(line) && line[i] == '\\' {
			backslashes++
			continue
		}
		if i < len(line) && line[i] == '"' {
			inWord = true
			literal := backslashes%2 == 1
			word.WriteString(strings.Repeat(`\`, backslashes/2))
			backslashes = 0
			doubled := !literal && quoted && strings.HasPrefix(line[i+1:], `"`)
			if literal || doubled && rule != quoteRules[2] {
				word.WriteByte('"')
			}
			switch {
			case rule == quoteRules[2]: // CommandLineToArgvW
				n := 0
				for _, one := range []bool{quoted, !literal} {
					if one {
						n++
					}
				}
				for ; strings.HasPrefix(line[i+1:], `"`); i++ {
					if n++; n == 3 {
						word.WriteByte('"')
						n = 0
					}
				}
				quoted = n == 1
			case doubled:
				i++
				quoted = rule == quoteRules[0]
			case !literal:
				quoted = !quoted
			}
			continue
		}
		if backslashes > 0 {
			inWord = true
			word.WriteString(strings.Repeat(`\`, backslashes))
			backslashes = 0
		}
		if i == len(line) || !quoted && (line[i] == ' ' || line[i] == '\t') {
			if inWord {
				words = append(words, word.String())
			}
			word.Reset()
			inWord = false
			continue
		}
		inWord = true
		word.WriteByte(line[i])
	}
	return words
}
