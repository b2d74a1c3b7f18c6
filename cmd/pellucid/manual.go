// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/pellucid-mcp/pellucid/platform/manual"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
)

// manualCmd writes what a package installs for the program man.
type manualCmd struct {
	Date time.Time `required:"" placeholder:"TIME" help:"When the release was made (RFC 3339)."`
	Dir  string    `arg:"" help:"The folder, which is made where it is missing."`
}

func (c *manualCmd) Run(e *env, k *kong.Context) error {
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return err
	}
	for _, p := range manualPages(k.Model.Node) {
		err := terminal.WriteWhole(filepath.Join(c.Dir, p.Name+".1"), func(w io.Writer) error { return manual.Write(w, p, c.Date) })
		if err != nil {
			return err
		}
	}
	return nil
}

// manualPages returns the page of the program, then one for each verb with the verbs below it.
// They are made of the model that kong parses by.
func manualPages(app *kong.Node) []manual.Page {
	main := manual.Page{Name: app.Name, Short: "trust boundary for the Model Context Protocol"}
	verbs := manual.Section{Heading: "COMMANDS"}
	var pages []manual.Page
	for _, n := range app.Children {
		if n.Hidden {
			continue
		}
		page := manual.Page{Name: app.Name + "-" + n.Name, Short: strings.TrimSuffix(n.Help, ".")}
		page.Sections = append(verbSections(n), manual.Section{Heading: "SEE ALSO", Text: app.Name + "(1)"})
		pages = append(pages, page)
		verbs.Items = append(verbs.Items, manual.Item{Term: page.Name + "(1)", Text: n.Help})
	}
	main.Sections = []manual.Section{
		{Heading: "SYNOPSIS", Usage: []string{app.Name + " <command> [flags]"}},
		{Heading: "DESCRIPTION", Text: app.Help},
		verbs,
		{Heading: "ENVIRONMENT", Items: []manual.Item{
			{Term: "PELLUCID_STATE", Text: "The state directory. Without it: $XDG_STATE_HOME/pellucid, or the place that the system has for such files."},
			{Term: "PELLUCID_DB", Text: "The store, where a command has the flag --db and it is not given."},
		}},
		{Heading: "FILES", Items: []manual.Item{
			{Term: "/etc/pellucid/pellucid.yaml", Text: "The configuration of the service. Otherwise pellucid.yaml in the working directory is read, or else that of the user (~/.config/pellucid/pellucid.yaml), which is the one that pellucid wrap reads."},
			{Term: "/var/lib/pellucid", Text: "The state directory of the service."},
		}},
		{Heading: "EXIT STATUS", Items: []manual.Item{
			{Term: "0", Text: "Done."},
			{Term: "1", Text: "Failed: it was tried and not done, or the answer to the question is no."},
			{Term: "2", Text: "Wrong usage."},
			{Term: "3", Text: "A configuration, or a file that it names, cannot be read or is wrong."},
			{Term: "4", Text: "The server or the store cannot be reached."},
		}, Text: "A command that has further codes says so in its page."},
		{Heading: "SEE ALSO", Text: "The documents by task: https://github.com/pellucid-mcp/pellucid/blob/main/docs/README.md"},
	}
	return append([]manual.Page{main}, pages...)
}

// verbSections returns what the page of a verb says of it, and of the verbs below it.
func verbSections(n *kong.Node) []manual.Section {
	sections := []manual.Section{
		{Heading: "SYNOPSIS", Usage: usages(n)},
		{Heading: "DESCRIPTION", Text: n.Help + "\n\n" + n.Detail},
	}
	if len(n.Children) == 0 {
		return append(sections, choices(n)...)
	}
	sections = append(sections, manual.Section{Heading: "COMMANDS"})
	return append(sections, below(n)...)
}

func below(n *kong.Node) (sections []manual.Section) {
	for _, child := range n.Children {
		if child.Hidden {
			continue
		}
		s := manual.Section{Heading: child.FullPath(), Below: true, Usage: usages(child), Text: child.Help + "\n\n" + child.Detail}
		for _, more := range choices(child) {
			s.Items = append(s.Items, more.Items...)
		}
		sections = append(append(sections, s), below(child)...)
	}
	return sections
}

// usages returns one line for each way to call a verb.
func usages(n *kong.Node) (lines []string) {
	if len(n.Children) == 0 {
		return []string{strings.TrimSuffix(n.FullPath(), n.Path()) + n.Summary()}
	}
	for _, child := range n.Children {
		if !child.Hidden {
			lines = append(lines, usages(child)...)
		}
	}
	return lines
}

// choices returns the arguments and the flags of a verb.
func choices(n *kong.Node) (sections []manual.Section) {
	args := manual.Section{Heading: "ARGUMENTS"}
	for _, a := range n.Positional {
		args.Items = append(args.Items, manual.Item{Term: a.Summary(), Text: helpOf(a)})
	}
	flags := manual.Section{Heading: "OPTIONS"}
	for _, group := range n.AllFlags(true) {
		for _, f := range group {
			flags.Items = append(flags.Items, manual.Item{Term: flagTerm(f), Text: helpOf(f.Value)})
		}
	}
	for _, s := range []manual.Section{args, flags} {
		if len(s.Items) > 0 {
			sections = append(sections, s)
		}
	}
	return sections
}

// flagTerm shows a flag as --help does.
func flagTerm(f *kong.Flag) string {
	term := "--" + f.Name
	if f.Tag.Negatable != "" {
		term = "--[no-]" + f.Name
	}
	if !f.IsBool() && !f.IsCounter() {
		term += "=" + f.FormatPlaceHolder()
	}
	if f.Short != 0 {
		term = "-" + string(f.Short) + ", " + term
	}
	return term
}
