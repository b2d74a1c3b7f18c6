// SPDX-License-Identifier: Apache-2.0

// Package completion writes the scripts by which shells complete the command line of this program.
package completion

import (
	"fmt"
	"io"
	"strings"

	"github.com/pellucid-mcp/pellucid/text/finding"
)

// A Place is a point of the command line, and what can follow there.
type Place struct {
	Path  string // "pellucid ccr analyze"
	Verbs []Choice
	Flags []Choice
	Files bool // takes names of files
}

// A Choice is one word of the command line.
type Choice struct {
	Word   string // verb, or flag with its dashes
	Help   string // one line
	Takes  bool   // a flag that takes a value
	Values []string
}

// Write writes the script for a shell: bash, zsh, fish or powershell. The first place is the
// program's.
func Write(w io.Writer, shell string, places []Place) error {
	var b strings.Builder
	switch shell {
	case "bash":
		bash(&b, places)
	case "zsh":
		zsh(&b, places)
	case "fish":
		fish(&b, places)
	case "powershell":
		powershell(&b, places)
	default:
		return fmt.Errorf("completion: no such shell: %s", finding.Quote(shell))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// single quotes s for a POSIX shell.
func single(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

func words(cs []Choice) string {
	var ws []string
	for _, c := range cs {
		ws = append(ws, c.Word)
	}
	return strings.Join(ws, " ")
}

// walkPaths prints the cases by which bash and zsh follow the verbs that
// stand on the line, from `place` with one word `w` more.
func walkPaths(b *strings.Builder, places []Place) {
	fmt.Fprint(b, "    case \"$place $w\" in\n")
	for _, p := range places[1:] {
		fmt.Fprintf(b, "      %s) place=%[1]s ;;\n", single(p.Path))
	}
	fmt.Fprint(b, "    esac\n")
}

func bash(b *strings.Builder, places []Place) {
	fmt.Fprint(b, `# bash completion for pellucid
_pellucid() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}
  local place=pellucid words= i w
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    w=${COMP_WORDS[i]}
    [[ $w == -- ]] && return
`)
	walkPaths(b, places)
	fmt.Fprint(b, "  done\n  case \"$place $prev\" in\n")
	for _, p := range places {
		for _, f := range p.Flags {
			if f.Takes {
				fmt.Fprintf(b, "    %s) COMPREPLY=($(compgen -W %s -- \"$cur\")); return ;;\n",
					single(p.Path+" "+f.Word), single(strings.Join(f.Values, " ")))
			}
		}
	}
	fmt.Fprint(b, "  esac\n  case \"$place\" in\n")
	for _, p := range places {
		fmt.Fprintf(b, "    %s) words=%s; [[ $cur == -* ]] && words=%s ;;\n", single(p.Path), single(words(p.Verbs)), single(words(p.Flags)))
	}
	fmt.Fprint(b, `  esac
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -o default -F _pellucid pellucid
`)
}

func zsh(b *strings.Builder, places []Place) {
	fmt.Fprint(b, `#compdef pellucid
_pellucid() {
  local place=pellucid prev=${words[CURRENT-1]} i w
  local -a found
  for ((i = 2; i < CURRENT; i++)); do
    w=${words[i]}
    [[ $w == -- ]] && { _files; return; }
`)
	walkPaths(b, places)
	fmt.Fprint(b, "  done\n  case \"$place $prev\" in\n")
	for _, p := range places {
		for _, f := range p.Flags {
			switch {
			case len(f.Values) > 0:
				fmt.Fprintf(b, "    %s) compadd -- %s; return ;;\n", single(p.Path+" "+f.Word), strings.Join(f.Values, " "))
			case f.Takes:
				fmt.Fprintf(b, "    %s) _files; return ;;\n", single(p.Path+" "+f.Word))
			}
		}
	}
	fmt.Fprint(b, "  esac\n  case \"$place\" in\n")
	for _, p := range places {
		fmt.Fprintf(b, "    %s)\n      found=(", single(p.Path))
		for _, c := range append(p.Verbs[:len(p.Verbs):len(p.Verbs)], p.Flags...) {
			entry := strings.ReplaceAll(c.Word, ":", `\:`)
			if c.Help != "" {
				entry += ":" + c.Help
			}
			fmt.Fprintf(b, "\n        %s", single(entry))
		}
		fmt.Fprint(b, ")\n")
		if p.Files {
			fmt.Fprint(b, "      _files\n")
		}
		fmt.Fprint(b, "      ;;\n")
	}
	fmt.Fprint(b, `  esac
  _describe pellucid found
}
# Zsh loads this from a folder of $fpath when the first word is completed, and then the file is
# itself the body of the function. Elsewhere it is sourced.
if [[ ${funcstack[1]-} == _pellucid ]]; then
  _pellucid
else
  compdef _pellucid pellucid
fi
`)
}

func fish(b *strings.Builder, places []Place) {
	fmt.Fprint(b, `# fish completion for pellucid
function __pellucid_at
    set -l place pellucid
    for w in (commandline -opc)[2..-1]
        test "$w" = --; and return 1
        switch "$place $w"
`)
	for _, p := range places[1:] {
		fmt.Fprintf(b, "            case %s\n                set place %[1]s\n", single(p.Path))
	}
	fmt.Fprint(b, `        end
    end
    test "$place" = "$argv[1]"
end
`)
	for _, p := range places {
		at := fmt.Sprintf("complete -c pellucid -n %s", single("__pellucid_at "+single(p.Path)))
		if !p.Files {
			fmt.Fprintf(b, "%s -f\n", at)
		}
		for _, c := range p.Verbs {
			fmt.Fprintf(b, "%s -a %s -d %s\n", at, single(c.Word), single(c.Help))
		}
		for _, f := range p.Flags {
			fmt.Fprintf(b, "%s -l %s -d %s", at, strings.TrimPrefix(f.Word, "--"), single(f.Help))
			switch {
			case len(f.Values) > 0:
				fmt.Fprintf(b, " -x -a %s", single(strings.Join(f.Values, " ")))
			case f.Takes:
				fmt.Fprint(b, " -r")
			}
			fmt.Fprintln(b)
		}
	}
}

func powershell(b *strings.Builder, places []Place) {
	quote := func(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
	list := func(ws []string) string {
		var q []string
		for _, w := range ws {
			q = append(q, quote(w))
		}
		return "@(" + strings.Join(q, ", ") + ")"
	}
	fmt.Fprint(b, `# PowerShell completion for pellucid
Register-ArgumentCompleter -Native -CommandName pellucid -ScriptBlock {
  param($wordToComplete, $commandAst, $cursorPosition)
  $places = @{
`)
	for _, p := range places {
		fmt.Fprintf(b, "    %s = %s\n", quote(p.Path), list(strings.Fields(words(p.Verbs)+" "+words(p.Flags))))
	}
	fmt.Fprint(b, "  }\n  $values = @{\n")
	for _, p := range places {
		for _, f := range p.Flags {
			if len(f.Values) > 0 {
				fmt.Fprintf(b, "    %s = %s\n", quote(p.Path+" "+f.Word), list(f.Values))
			}
		}
	}
	fmt.Fprint(b, `  }
  $said = @($commandAst.CommandElements | ForEach-Object { "$_" } | Select-Object -Skip 1)
  if ($wordToComplete -and $said.Count) { $said = @($said | Select-Object -SkipLast 1) }
  $place = 'pellucid'
  foreach ($w in $said) { if ($places.ContainsKey("$place $w")) { $place = "$place $w" } }
  $last = if ($said.Count) { $said[-1] } else { '' }
  $words = if ($values.ContainsKey("$place $last")) { $values["$place $last"] } else { $places[$place] }
  $words | Where-Object { $_ -like "$wordToComplete*" } |
    ForEach-Object { [System.Management.Automation.CompletionResult]::new($_) }
}
`)
}
