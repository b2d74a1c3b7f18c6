// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"

	"github.com/alecthomas/kong"
	"github.com/pellucid-mcp/pellucid/platform/completion"
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
	return completion.Write(e.Stdout, c.Shell, completionPlaces(k.Model.Node))
}

// completionPlaces walks the model that kong parses by, so that a completion
// cannot differ from what is accepted.
func completionPlaces(n *kong.Node) []completion.Place {
	p := completion.Place{Path: n.FullPath()}
	takes := n // the command whose flags may stand here
	if n.DefaultCmd != nil {
		takes = n.DefaultCmd
	}
	for _, group := range takes.AllFlags(true) {
		for _, f := range group {
			ch := completion.Choice{Word: "--" + f.Name, Help: oneLine(helpOf(f.Value)), Takes: !f.IsBool() && !f.IsCounter()}
			if f.Enum != "" {
				ch.Values = f.EnumSlice()
			}
			p.Flags = append(p.Flags, ch)
		}
	}
	for _, arg := range n.Positional {
		if arg.Enum != "" {
			for _, v := range arg.EnumSlice() {
				p.Verbs = append(p.Verbs, completion.Choice{Word: v})
			}
		}
		p.Files = p.Files || arg.Tag.Get("completion") == "files"
	}
	var below []completion.Place
	for _, child := range n.Children {
		if child.Hidden {
			continue
		}
		p.Verbs = append(p.Verbs, completion.Choice{Word: child.Name, Help: oneLine(child.Help)})
		below = append(below, completionPlaces(child)...)
	}
	return append([]completion.Place{p}, below...)
}

func oneLine(help string) string {
	first, _, _ := strings.Cut(help, "\n")
	return strings.TrimSpace(first)
}
