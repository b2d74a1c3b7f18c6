// SPDX-License-Identifier: Apache-2.0

package completion

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// line is a small command line, with a quote and a colon in its words.
var line = []Place{
	{Path: "pellucid", Verbs: []Choice{{Word: "say", Help: "It's said."}}, Flags: []Choice{{Word: "--help", Help: "Show: help."}}},
	{Path: "pellucid say", Files: true, Flags: []Choice{{Word: "--how", Help: "How.", Takes: true, Values: []string{"loud", "low"}}, {Word: "--to", Takes: true}}},
}

// TestWrite: every word of every place stands in the script, quoted as the shell wants it.
func TestWrite(t *testing.T) {
	for shell, want := range map[string][]string{
		"bash": {"'pellucid say') path='pellucid say' ;;", `'pellucid say --how') COMPREPLY=($(compgen -W 'loud low' -- "$cur")); return ;;`,
			`'pellucid say --to') COMPREPLY=($(compgen -W '' -- "$cur")); return ;;`, "'pellucid') words='say'; [[ $cur == -* ]] && words='--help' ;;"},
		"zsh":        {"#compdef pellucid\n", "'pellucid say --how') compadd -- loud low; return ;;", "'pellucid say --to') _files; return ;;", `'say:It'\''s said.'`, "'--help:Show: help.'", "      _files\n"},
		"fish":       {"case 'pellucid say'\n                set path 'pellucid say'\n", `-n '__pellucid_at '\''pellucid'\''' -f` + "\n", `-a 'say' -d 'It'\''s said.'`, "-l how -d 'How.' -x -a 'loud low'\n", "-l to -d '' -r\n"},
		"powershell": {"'pellucid' = @('say', '--help')\n", "'pellucid say --how' = @('loud', 'low')\n"},
	} {
		var b strings.Builder
		if err := Write(&b, shell, line); err != nil {
			t.Errorf("%s: %v", shell, err)
		}
		for _, part := range want {
			if !strings.Contains(b.String(), part) {
				t.Errorf("%s: no %s in\n%s", shell, part, b.String())
			}
		}
		syntax(t, shell, b.String())
	}
	var b strings.Builder
	if err := Write(&b, "tcsh\u202e", line); err == nil || b.Len() > 0 || strings.ContainsRune(err.Error(), '\u202e') {
		t.Errorf("%q, %v", b.String(), err)
	}
}

// syntax has the shell read the script, where it is installed.
func syntax(t *testing.T, shell, script string) {
	t.Helper()
	program, err := exec.LookPath(shell)
	if err != nil || shell == "powershell" {
		return
	}
	path := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(path, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(program, "-n", path).CombinedOutput(); err != nil {
		t.Errorf("%s: %v: %s", shell, err, out)
	}
}
