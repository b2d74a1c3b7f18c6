// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"
)

type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish,powershell" help:"One of ${enum}."`
}

func (completionCmd) Help() string {
	return `Load it into the shell that runs:

    bash        source <(pellucid completion bash)
    zsh         source <(pellucid completion zsh)
    fish        pellucid completion fish | source
    powershell  pellucid completion powershell | Out-String | Invoke-Expression`
}

func (c *completionCmd) Run(e *env, k *kong.Context) error {
	return writeCompletion(e.Stdout, c.Shell, completionPlaces(k.Model.Node))
}

// A place is a point of the command line, with what can be said there.
type place struct {
	path  string // "pellucid bench scrub"
	verbs []choice
	flags []choice
	files bool // takes files by name
}

// A choice is one word of the command line.
type choice struct {
	word   string // verb, or flag with its dashes
	help   string // one line
	takes  bool   // a flag that takes a value
	values []string
}

// completionPlaces walks the model that kong parses by, so that a completion
// cannot differ from what is accepted.
func completionPlaces(n *kong.Node) []place {
	p := place{path: n.FullPath()}
	for _, group := range n.AllFlags(true) {
		for _, f := range group {
			ch := choice{word: "--" + f.Name, help: oneLine(f.Help), takes: !f.IsBool() && !f.IsCounter()}
			if f.Enum != "" {
				ch.values = f.EnumSlice()
			}
			p.flags = append(p.flags, ch)
		}
	}
	for _, arg := range n.Positional {
		if arg.Enum != "" {
			for _, v := range arg.EnumSlice() {
				p.verbs = append(p.verbs, choice{word: v})
			}
		}
		p.files = p.files || arg.Tag.Get("completion") == "files"
	}
	var below []place
	for _, child := range n.Children {
		if child.Hidden {
			continue
		}
		p.verbs = append(p.verbs, choice{word: child.Name, help: oneLine(child.Help)})
		below = append(below, completionPlaces(child)...)
	}
	return append([]place{p}, below...)
}

func oneLine(help string) string {
	first, _, _ := strings.Cut(help, "\n")
	return strings.TrimSpace(first)
}

func writeCompletion(w io.Writer, shell string, places []place) error {
	var b strings.Builder
	switch shell {
	case "bash":
		bashCompletion(&b, places)
	case "zsh":
		zshCompletion(&b, places)
	case "fish":
		fishCompletion(&b, places)
	case "powershell":
		powershellCompletion(&b, places)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// single quotes s for a POSIX shell.
func single(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

func words(cs []choice) string {
	var ws []string
	for _, c := range cs {
		ws = append(ws, c.word)
	}
	return strings.Join(ws, " ")
}

// walkPaths prints the cases by which bash and zsh follow the verbs that
// stand on the line, from `path` with one word `w` more.
func walkPaths(b *strings.Builder, places []place) {
	fmt.Fprint(b, "    case \"$path $w\" in\n")
	for _, p := range places[1:] {
		fmt.Fprintf(b, "      %s) path=%[1]s ;;\n", single(p.path))
	}
	fmt.Fprint(b, "    esac\n")
}

func bashCompletion(b *strings.Builder, places []place) {
	fmt.Fprint(b, `# bash completion for pellucid
_pellucid() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}
  local path=pellucid words= i w
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    w=${COMP_WORDS[i]}
    [[ $w == -- ]] && return
`)
	walkPaths(b, places)
	fmt.Fprint(b, "  done\n  case \"$path $prev\" in\n")
	for _, p := range places {
		for _, f := range p.flags {
			if f.takes {
				fmt.Fprintf(b, "    %s) COMPREPLY=($(compgen -W %s -- \"$cur\")); return ;;\n",
					single(p.path+" "+f.word), single(strings.Join(f.values, " ")))
			}
		}
	}
	fmt.Fprint(b, "  esac\n  case \"$path\" in\n")
	for _, p := range places {
		fmt.Fprintf(b, "    %s) words=%s; [[ $cur == -* ]] && words=%s ;;\n", single(p.path), single(words(p.verbs)), single(words(p.flags)))
	}
	fmt.Fprint(b, `  esac
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -o default -F _pellucid pellucid
`)
}

func zshCompletion(b *strings.Builder, places []place) {
	fmt.Fprint(b, `#compdef pellucid
_pellucid() {
  local path=pellucid prev=${words[CURRENT-1]} i w
  local -a found
  for ((i = 2; i < CURRENT; i++)); do
    w=${words[i]}
    [[ $w == -- ]] && { _files; return; }
`)
	walkPaths(b, places)
	fmt.Fprint(b, "  done\n  case \"$path $prev\" in\n")
	for _, p := range places {
		for _, f := range p.flags {
			switch {
			case len(f.values) > 0:
				fmt.Fprintf(b, "    %s) compadd -- %s; return ;;\n", single(p.path+" "+f.word), strings.Join(f.values, " "))
			case f.takes:
				fmt.Fprintf(b, "    %s) _files; return ;;\n", single(p.path+" "+f.word))
			}
		}
	}
	fmt.Fprint(b, "  esac\n  case \"$path\" in\n")
	for _, p := range places {
		fmt.Fprintf(b, "    %s)\n      found=(", single(p.path))
		for _, c := range append(p.verbs[:len(p.verbs):len(p.verbs)], p.flags...) {
			entry := strings.ReplaceAll(c.word, ":", `\:`)
			if c.help != "" {
				entry += ":" + c.help
			}
			fmt.Fprintf(b, "\n        %s", single(entry))
		}
		fmt.Fprint(b, ")\n")
		if p.files {
			fmt.Fprint(b, "      _files\n")
		}
		fmt.Fprint(b, "      ;;\n")
	}
	fmt.Fprint(b, `  esac
  _describe pellucid found
}
compdef _pellucid pellucid
`)
}

func fishCompletion(b *strings.Builder, places []place) {
	fmt.Fprint(b, `# fish completion for pellucid
function __pellucid_at
    set -l path pellucid
    for w in (commandline -opc)[2..-1]
        test "$w" = --; and return 1
        switch "$path $w"
`)
	for _, p := range places[1:] {
		fmt.Fprintf(b, "            case %s\n                set path %[1]s\n", single(p.path))
	}
	fmt.Fprint(b, `        end
    end
    test "$path" = "$argv[1]"
end
`)
	for _, p := range places {
		at := fmt.Sprintf("complete -c pellucid -n %s", single("__pellucid_at "+single(p.path)))
		if !p.files {
			fmt.Fprintf(b, "%s -f\n", at)
		}
		for _, c := range p.verbs {
			fmt.Fprintf(b, "%s -a %s -d %s\n", at, single(c.word), single(c.help))
		}
		for _, f := range p.flags {
			fmt.Fprintf(b, "%s -l %s -d %s", at, strings.TrimPrefix(f.word, "--"), single(f.help))
			switch {
			case len(f.values) > 0:
				fmt.Fprintf(b, " -x -a %s", single(strings.Join(f.values, " ")))
			case f.takes:
				fmt.Fprint(b, " -r")
			}
			fmt.Fprintln(b)
		}
	}
}

func powershellCompletion(b *strings.Builder, places []place) {
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
		fmt.Fprintf(b, "    %s = %s\n", quote(p.path), list(strings.Fields(words(p.verbs)+" "+words(p.flags))))
	}
	fmt.Fprint(b, "  }\n  $values = @{\n")
	for _, p := range places {
		for _, f := range p.flags {
			if len(f.values) > 0 {
				fmt.Fprintf(b, "    %s = %s\n", quote(p.path+" "+f.word), list(f.values))
			}
		}
	}
	fmt.Fprint(b, `  }
  $said = @($commandAst.CommandElements | ForEach-Object { "$_" } | Select-Object -Skip 1)
  if ($wordToComplete -and $said.Count) { $said = @($said | Select-Object -SkipLast 1) }
  $path = 'pellucid'
  foreach ($w in $said) { if ($places.ContainsKey("$path $w")) { $path = "$path $w" } }
  $last = if ($said.Count) { $said[-1] } else { '' }
  $words = if ($values.ContainsKey("$path $last")) { $values["$path $last"] } else { $places[$path] }
  $words | Where-Object { $_ -like "$wordToComplete*" } |
    ForEach-Object { [System.Management.Automation.CompletionResult]::new($_) }
}
`)
}
