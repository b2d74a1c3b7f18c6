// SPDX-License-Identifier: Apache-2.0

package completion

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/platform/programtest"
)

// line is a small command line, with a quote and a colon in its words.
var line = []Place{
	{Path: "pellucid", Verbs: []Choice{{Word: "say", Help: "It's said."}}, Flags: []Choice{{Word: "--help", Help: "Show: help."}}},
	{Path: "pellucid say", Files: true, Flags: []Choice{{Word: "--how", Help: "How.", Takes: true, Values: []string{"loud", "low"}}, {Word: "--to", Takes: true}}},
}

// TestWrite: every word of every place stands in the script, quoted as the shell wants it.
func TestWrite(t *testing.T) {
	for shell, want := range map[string][]string{
		"bash": {"'pellucid say') place='pellucid say' ;;", `'pellucid say --how') COMPREPLY=($(compgen -W 'loud low' -- "$cur")); return ;;`,
			`'pellucid say --to') COMPREPLY=($(compgen -W '' -- "$cur")); return ;;`, "'pellucid') words='say'; [[ $cur == -* ]] && words='--help' ;;"},
		"zsh":        {"#compdef pellucid\n", "'pellucid say --how') compadd -- loud low; return ;;", "'pellucid say --to') _files; return ;;", `'say:It'\''s said.'`, "'--help:Show: help.'", "      _files\n"},
		"fish":       {"case 'pellucid say'\n                set place 'pellucid say'\n", `-n '__pellucid_at '\''pellucid'\''' -f` + "\n", `-a 'say' -d 'It'\''s said.'`, "-l how -d 'How.' -x -a 'loud low'\n", "-l to -d '' -r\n"},
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

// TestZshAutoload: zsh reads an installed script when the first word is completed, and that first
// time has to offer words already. What the script calls still finds the programs of the machine.
func TestZshAutoload(t *testing.T) {
	zshell := programtest.Find(t, "zsh")
	var b strings.Builder
	if err := Write(&b, "zsh", line); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "_pellucid"), []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	const try = `fpath=($1) words=(pellucid s) CURRENT=2
_describe() { print -r -- "offers ${(P)2}"; command -v ls >/dev/null && print found }
compdef() { print "defined $*" }
autoload -Uz _pellucid
_pellucid
source $1/_pellucid`
	out, err := exec.Command(zshell, "-f", "-c", try, "zsh", dir).CombinedOutput()
	if want := "offers say:It's said. --help:Show: help.\nfound\ndefined _pellucid pellucid\n"; err != nil || string(out) != want {
		t.Errorf("zsh printed (%v)\n%s\nwant\n%s", err, out, want)
	}
}
