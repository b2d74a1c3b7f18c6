// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/boundary/protect"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

type protectCmd struct {
	Client string   `enum:",claude-desktop,claude-code,cursor,vscode,windsurf,zed,opencode" default:"" placeholder:"NAME" help:"Only the files of this client: claude-desktop, claude-code, cursor, vscode, windsurf or zed."`
	File   string   `xor:"what" completion:"files" placeholder:"FILE" help:"This file, of whatever client, instead of those that are found."`
	DryRun bool     `help:"Show what would be done, secrets masked, and do nothing."`
	Undo   bool     `help:"Restore what the files were."`
	Force  bool     `help:"With --undo: restore also what was edited since, which is lost then."`
	Skip   []string `sep:"none" placeholder:"SERVER" help:"Leave the server of this name alone; may be repeated."`
	JSON   bool     `name:"json" help:"Print what was done as JSON."`
}

func (protectCmd) Help() string {
	return `Rewrites the configuration of MCP clients so that every server is started through
"pellucid wrap": in the user's own files, and in those of the project in the
working directory. Nothing else in a file changes, values of variables and headers
stay where they stand, and what each entry was is kept in the state directory for
--undo. A server that the client logs in to by itself (OAuth) cannot be reached
through wrap: name it with --skip. Restart the client afterwards. Exit codes: 0 done,
or nothing to do; 1 failed, or a file has changed so that --undo would lose work; 2
wrong usage; 3 a file is not a configuration that can be edited.`
}

// Validate is called by kong; its error is one of usage.
func (c *protectCmd) Validate() error {
	switch {
	case c.Client == "opencode":
		return fmt.Errorf("--client opencode: %w", protect.ErrOpenCode)
	case c.Client != "" && c.File != "":
		return errors.New("--client and --file exclude each other")
	case c.Force && !c.Undo:
		return errors.New("--force is for --undo")
	case c.Undo && len(c.Skip) > 0:
		return errors.New("--skip is not for --undo")
	}
	return nil
}

// A protectReport is what --json prints.
type protectReport struct {
	DryRun bool          `json:"dry_run"`
	Undo   bool          `json:"undo"`
	Files  []protectFile `json:"files"`
}

type protectFile struct {
	Client  string          `json:"client,omitempty"`
	Path    string          `json:"path"`
	Changed bool            `json:"changed"` // or would be
	Backup  string          `json:"backup,omitempty"`
	Error   string          `json:"error,omitempty"`
	Servers []protectServer `json:"servers"`

	project bool
	diff    []string
}

type protectServer struct {
	At       []string `json:"at"`
	Name     string   `json:"name"`
	Action   string   `json:"action"`
	Why      string   `json:"why,omitempty"`
	Disabled bool     `json:"disabled,omitempty"`
}

func (c *protectCmd) Run(e *env) error {
	opt, err := protectOptions(c.Skip, c.Force)
	if err != nil {
		return err
	}
	targets, err := c.targets(e)
	if err != nil {
		return err
	}
	if err := c.known(opt, targets); err != nil {
		return err
	}
	report := protectReport{DryRun: c.DryRun, Undo: c.Undo, Files: []protectFile{}}
	var failures []error
	for _, t := range targets {
		f, err := c.one(opt, t)
		if c.Undo && c.File == "" && errors.Is(err, protect.ErrNoRecord) {
			continue // this one was never changed
		}
		if err != nil {
			f.Error = err.Error()
			failures = append(failures, err)
		}
		report.Files = append(report.Files, f)
	}
	if len(report.Files) == 0 {
		failures = append(failures, errors.New("protect: "+c.nothing()))
	}
	if c.JSON {
		err = terminal.WriteJSON(e.Stdout, report)
	} else {
		err = report.write(e.Stdout, terminal.PaletteFor(e.Stdout, e.Getenv))
	}
	if err != nil {
		return fmt.Errorf("protect: write: %w", err)
	}
	failed := errors.Join(failures...)
	if errors.Is(failed, protect.ErrFormat) {
		return exit.With(exit.Config, failed)
	}
	return failed
}

// known refuses a --skip that no server is called: it would be put behind the boundary
// under the name that it has.
func (c *protectCmd) known(opt protect.Options, targets []protect.Target) error {
	if len(c.Skip) == 0 {
		return nil
	}
	names := map[string]bool{}
	for _, t := range targets {
		change, err := opt.Protect(t.Path, t.Format)
		if err != nil {
			return nil // which is told when it is its turn
		}
		for _, s := range change.Servers {
			names[s.Name] = true
		}
	}
	for _, name := range c.Skip {
		if !names[name] {
			return exit.With(exit.Usage, fmt.Errorf("protect: --skip: no server is called %s: nothing was changed", finding.Quote(name)))
		}
	}
	return nil
}

func (c *protectCmd) nothing() string {
	if c.Undo {
		return "nothing to undo: no file that was found has been changed by pellucid"
	}
	return "no client's configuration was found: name it with --file"
}

// protectOptions are those of every use of the package.
func protectOptions(skip []string, force bool) (protect.Options, error) {
	self, err := os.Executable()
	if err != nil {
		return protect.Options{}, fmt.Errorf("protect: find this program: %w", err)
	}
	dir, err := install.Open()
	if err != nil {
		return protect.Options{}, err
	}
	return protect.Options{Binary: self, Records: filepath.Join(dir.Path(), "protect"), Skip: skip, DangerouslyForce: force}, nil
}

func (c *protectCmd) targets(e *env) ([]protect.Target, error) {
	if c.File != "" {
		return []protect.Target{{Path: c.File, Format: protect.Generic}}, nil
	}
	m, err := machine(e)
	if err != nil {
		return nil, err
	}
	return protect.Locate(m, c.Client), nil
}

// machine is this one, as clients see it.
func machine(e *env) (protect.Machine, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return protect.Machine{}, fmt.Errorf("protect: %w", err)
	}
	dir, err := os.Getwd()
	if err != nil {
		return protect.Machine{}, fmt.Errorf("protect: %w", err)
	}
	return protect.Machine{OS: runtime.GOOS, Home: home, Dir: dir, Getenv: e.Getenv}, nil
}

func (c *protectCmd) one(opt protect.Options, t protect.Target) (protectFile, error) {
	f := protectFile{Client: t.Client, Path: t.Path, project: t.Project, Servers: []protectServer{}}
	var change *protect.Change
	var err error
	if c.Undo {
		change, err = opt.Undo(t.Path)
	} else {
		change, err = opt.Protect(t.Path, t.Format)
	}
	if change == nil {
		return f, err
	}
	for _, s := range change.Servers {
		f.Servers = append(f.Servers, protectServer{s.At, s.Name, string(s.Action), s.Why, s.Disabled})
	}
	left := err // what undo cannot take back does not keep it from the rest
	if err != nil && !errors.Is(err, protect.ErrEdited) {
		return f, err
	}
	f.Changed = change.Changes()
	if c.DryRun {
		f.diff = change.Diff()
		return f, left
	}
	if err := change.Apply(); err != nil {
		f.Changed = false
		return f, err
	}
	if f.Changed && !c.Undo {
		f.Backup = opt.Backup(t.Path)
	}
	return f, left
}

// write tells a person what was done; what failed is told as any other error. Names and
// paths are other people's words.
func (r protectReport) write(w io.Writer, p terminal.Palette) error {
	out := bufio.NewWriter(w)
	shown, changed, project := 0, 0, false
	undo := "pellucid protect --undo"
	for _, f := range r.Files {
		switch {
		case len(f.Servers) > 0 || f.Changed:
		case f.Error != "":
			shown++
			continue
		case f.Client != "":
			continue // an editor's settings, in which nobody has configured any
		}
		shown++
		if f.Client == "" { // it was named, and is to be named again
			undo = "pellucid protect --undo --file " + terminal.ShellWord(f.Path)
		}
		f.write(out, p)
		if f.Changed {
			changed++
			project = project || f.project
		}
	}
	switch {
	case shown == 0 && len(r.Files) > 0:
		fmt.Fprintln(out, "No server is configured in any client's file.")
	case changed == 0:
	case r.DryRun:
		fmt.Fprintf(out, "\n%s would be changed. Nothing was.\n", terminal.Plural(changed, "file"))
	case r.Undo:
		fmt.Fprintf(out, "\n%s restored. Restart the clients.\n", terminal.Plural(changed, "file"))
	default:
		fmt.Fprintf(out, "\n%s changed. Restart the clients; %s takes it back.\n", terminal.Plural(changed, "file"), undo)
	}
	if project && !r.Undo {
		fmt.Fprint(out, "A file of a project names this machine's program now: do not commit it if others share it.\n")
	}
	return out.Flush()
}

// write tells what was done with one file, server by server.
func (f *protectFile) write(out io.Writer, p terminal.Palette) {
	fmt.Fprintf(out, "%s  %s\n", p.Bold(cmp.Or(f.Client, "file")), terminal.Printable(f.Path))
	for _, s := range f.Servers {
		fmt.Fprintf(out, "  %-9s %s", s.Action, terminal.Inline(s.Name))
		if len(s.At) > 2 {
			fmt.Fprintf(out, " (%s)", terminal.Printable(s.At[1]))
		}
		if s.Why != "" && s.Action != string(protect.Already) {
			fmt.Fprintf(out, ": %s", s.Why)
		}
		fmt.Fprintln(out)
	}
	for _, line := range f.diff {
		fmt.Fprintln(out, "    "+paintDiff(p, terminal.Printable(line)))
	}
	switch {
	case f.Error != "" && !f.Changed:
		fmt.Fprintln(out, "  "+p.Red("nothing was changed"))
	case len(f.Servers) == 0 && !f.Changed:
		fmt.Fprintln(out, "  no servers")
	case f.Backup != "":
		fmt.Fprintln(out, "  back-up   "+terminal.Printable(f.Backup))
	}
}

func paintDiff(p terminal.Palette, line string) string {
	switch {
	case strings.HasPrefix(line, "-"):
		return p.Red(line)
	case strings.HasPrefix(line, "+"):
		return p.Green(line)
	}
	return p.Dim(line)
}
