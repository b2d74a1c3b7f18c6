// SPDX-License-Identifier: Apache-2.0

package protect

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/pellucid-mcp/pellucid/platform/terminal"
)

// A Job says what Run does with files.
type Job struct {
	DryRun bool // plan, and write nothing
	Undo   bool // take Protect back
}

// A Report says what Run did, file by file, to a person and as JSON. Names and paths in it
// are third-party text.
type Report struct {
	DryRun bool         `json:"dry_run"`
	Undo   bool         `json:"undo"`
	Files  []FileReport `json:"files"`
	Hooks  []HookReport `json:"hooks,omitempty"`
	Bare   []string     `json:"bare,omitempty"` // hosts without hooks
}

// A FileReport says what Run did with one file.
type FileReport struct {
	Client  string   `json:"client,omitempty"`
	Path    string   `json:"path"`
	Changed bool     `json:"changed"` // or would be
	Backup  string   `json:"backup,omitempty"`
	Error   string   `json:"error,omitempty"`
	Servers []Server `json:"servers"`

	project bool
	diff    []string
}

// Run protects each file, or undoes that. A file that fails does not keep it from the
// others: the error joins what failed. Undo passes over a client's file that Pellucid has
// never changed.
func (o Options) Run(files []Target, job Job) (Report, error) {
	report := Report{DryRun: job.DryRun, Undo: job.Undo, Files: []FileReport{}}
	var failures []error
	for _, t := range files {
		f, err := o.run(t, job)
		if job.Undo && t.Client != "" && errors.Is(err, errNoRecord) {
			continue
		}
		if err != nil {
			f.Error = err.Error()
			failures = append(failures, err)
		}
		report.Files = append(report.Files, f)
	}
	return report, errors.Join(failures...)
}

// Unknown returns the first name of Skip that no server of the files has, and "" if each
// has one. A file that cannot be read hides its names: then nothing is unknown, and Run
// says what is wrong with the file.
func (o Options) Unknown(files []Target) string {
	if len(o.Skip) == 0 {
		return ""
	}
	names := map[string]bool{}
	for _, t := range files {
		change, err := o.Protect(t.Path, t.Format)
		if err != nil {
			return ""
		}
		for _, s := range change.Servers {
			names[s.Name] = true
		}
	}
	for _, name := range o.Skip {
		if !names[name] {
			return name
		}
	}
	return ""
}

// attempts is how often a file is planned again that another program writes meanwhile.
const attempts = 3

// run is Run for one file. A client that is running may write its file at any moment.
func (o Options) run(t Target, job Job) (f FileReport, err error) {
	for range attempts {
		if f, err = o.once(t, job); !errors.Is(err, errChanged) {
			break
		}
	}
	return f, err
}

func (o Options) once(t Target, job Job) (FileReport, error) {
	f := FileReport{Client: t.Client, Path: t.Path, project: t.project, Servers: []Server{}}
	var change *Change
	var err error
	if job.Undo {
		change, err = o.undo(t.Path)
	} else {
		change, err = o.Protect(t.Path, t.Format)
	}
	if change == nil {
		return f, err
	}
	f.Servers = append(f.Servers, change.Servers...)
	left := err // what undo cannot take back does not keep it from the rest
	if err != nil && !errors.Is(err, errEdited) {
		return f, err
	}
	f.Changed = change.changes()
	if job.DryRun {
		f.diff = change.diff()
		return f, left
	}
	if err := change.Apply(); err != nil {
		f.Changed = false
		return f, err
	}
	if f.Changed && !job.Undo && len(change.record.Entries) > 0 {
		f.Backup = o.backup(t.Path)
	}
	return f, left
}

// Write shows a person what was done. The error of Run says what failed.
func (r Report) Write(w io.Writer, p terminal.Palette) error {
	out := bufio.NewWriter(w)
	shown, written, changed, project := 0, 0, 0, false
	undo := "pellucid protect --undo"
	for _, f := range r.Files {
		switch {
		case len(f.Servers) > 0 || f.Changed:
		case f.Error != "":
			shown++
			continue
		case f.Client != "":
			continue // an editor's settings without any server
		}
		shown++
		if f.Client == "" { // it was named, and is to be named again
			undo = "pellucid protect --undo --file " + terminal.ShellWord(f.Path)
		}
		f.write(out, p)
		if f.Error == "" {
			written++
		}
		if f.Changed {
			changed++
			project = project || f.project
		}
	}
	switch {
	case shown == 0 && len(r.Files) > 0:
		fmt.Fprintln(out, "No server is configured in any client's file.")
	case r.Undo && len(r.Files)+len(r.Hooks) == 0:
		fmt.Fprintln(out, "Nothing to undo: Pellucid has changed no file that was found.")
	case changed == 0 && written > 0 && r.DryRun:
		fmt.Fprint(out, "\nNothing would be changed.\n")
	case changed == 0 && written > 0:
		fmt.Fprint(out, "\nNothing was changed.\n")
	case changed == 0:
	case r.DryRun:
		fmt.Fprintf(out, "\n%s would be changed. Nothing was.\n", terminal.Plural(changed, "file"))
	case r.Undo:
		fmt.Fprintf(out, "\n%s restored. Restart the clients.\n", terminal.Plural(changed, "file"))
	case !slices.ContainsFunc(r.Files, func(f FileReport) bool { return f.Backup != "" }):
		fmt.Fprintf(out, "\n%s changed. Restart the clients.\n", terminal.Plural(changed, "file"))
	default:
		fmt.Fprintf(out, "\n%s changed. Restart the clients; %s takes %s back.\n", terminal.Plural(changed, "file"), undo,
			map[bool]string{true: "it", false: "them"}[changed == 1])
	}
	for _, h := range r.Hooks {
		fmt.Fprintf(out, "%s  %s\n  %-9s %s\n", p.Bold(h.Host), terminal.Printable(h.Path), h.Action, cmp.Or(terminal.Printable(h.Error), h.Why, "its own tools"))
		for line := range strings.Lines(h.Adds) {
			fmt.Fprintf(out, "  + %s\n", terminal.Printable(strings.TrimRight(line, "\r\n")))
		}
	}
	if len(r.Bare) > 0 && !r.Undo {
		fmt.Fprintf(out, "Shell output, files and pages are not behind the boundary in %s: pellucid protect --hooks covers them.\n", strings.Join(r.Bare, ", "))
	}
	if project && !r.Undo {
		fmt.Fprint(out, "A file of a project names this machine's program now: do not commit it if others share it.\n")
	}
	return out.Flush()
}

// write tells what was done with one file, server by server.
func (f *FileReport) write(out io.Writer, p terminal.Palette) {
	fmt.Fprintf(out, "%s  %s\n", p.Bold(cmp.Or(f.Client, "file")), terminal.Printable(f.Path))
	for _, s := range f.Servers {
		fmt.Fprintf(out, "  %-9s %s", s.Action, terminal.Inline(s.Name))
		if len(s.At) > 2 {
			fmt.Fprintf(out, " (%s)", terminal.Printable(s.At[1]))
		}
		if s.Why != "" && s.Action != Already {
			fmt.Fprintf(out, ": %s", s.Why)
		}
		fmt.Fprintln(out)
		if s.Warning != "" {
			fmt.Fprintf(out, "  %s   %s: %s\n", p.Yellow("warning"), terminal.Inline(s.Name), terminal.Printable(s.Warning))
		}
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
