// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"runtime"
	"strconv"
	"strings"
)

// ShellWord is a word that a person may copy into a shell of this system: as it is where it is plain, else quoted. It is
// harmless there whatever is in it, and shows every character.
func ShellWord(s string) string { return shellWord(runtime.GOOS, s) }

const (
	lettersAndDigits = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	// plainWord has the characters that no Unix shell takes for anything else, plainWindowsWord those that neither cmd nor
	// PowerShell does.
	plainWord        = lettersAndDigits + "_-./:@=+,%"
	plainWindowsWord = lettersAndDigits + `_-./:=+\`
)

func shellWord(goos, s string) string {
	visible := Printable(s) == s && !strings.ContainsAny(s, "\n\t")
	if goos == "windows" {
		return windowsWord(s, visible)
	}
	switch {
	case s != "" && strings.Trim(s, plainWord) == "":
		return s
	case visible:
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	inside := strconv.QuoteToASCII(s)
	return "$'" + strings.NewReplacer(`\"`, `"`, "'", `\'`).Replace(inside[1:len(inside)-1]) + "'"
}

// windowsWord quotes a word for cmd and PowerShell, which have only the double quote in common. PowerShell takes curly quotes
// for straight ones, and puts values and results of commands in the place of what begins with a dollar sign.
func windowsWord(s string, visible bool) string {
	switch {
	case s != "" && strings.Trim(s, plainWindowsWord) == "":
		return s
	case visible && !strings.ContainsAny(s, "\"$`\u201c\u201d\u201e"):
		end := len(s) - len(strings.TrimRight(s, `\`)) // a backslash before the last quote would make it text
		return `"` + s + strings.Repeat(`\`, end) + `"`
	case visible && !strings.ContainsAny(s, "\"&|<>^%'\u2018\u2019\u201a\u201b\u201c\u201d\u201e"):
		return "'" + s + "'" // for PowerShell: to cmd it is another word, and harmless
	}
	escaped := strconv.QuoteToASCII(s)
	return `"` + strings.NewReplacer(`\"`, `\u0022`, "$", `\u0024`, "`", `\u0060`).Replace(escaped[1:len(escaped)-1]) + `"`
}
