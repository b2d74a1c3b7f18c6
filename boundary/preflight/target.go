// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/boundary/fleet"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/boundary/surface"
	"github.com/pellucid-mcp/pellucid/platform/build"
	"github.com/pellucid-mcp/pellucid/platform/child"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
)

// A Target is one thing to check: a command, a URL or a saved surface.
type Target struct {
	Name     string        // what the person calls it; "" of a saved surface without one
	File     string        // that names it; "" of a command that was typed
	Command  []string      // that starts it; nil of a URL or a saved surface
	Remote   *rules.Server // at a URL; nil: it is not, or its entry cannot be read
	Declined bool          // the person does not want it started

	entry    string   // what the file calls it
	client   string   // whose file it is, if that was found
	disabled bool     // the file says that the client does not start it
	identity string   // as package surface computes it; "" of a saved surface
	pin      string   // the name that the operator gave its pin; "": it is pinned by identity
	detail   []string // what else the person should know of the command, escaped

	dump    []byte // a saved surface; nil: dial
	dial    fleet.Dialer
	problem error          // why it cannot be reached at all
	stderr  child.Tail     // of a server that is a process
	started *child.Command // that starts it; nil: it is at a URL, or saved
}

// commandTarget is a command that was typed.
func commandTarget(name string, command, environ []string, dir string) *Target {
	t := &Target{Name: name, Command: command, identity: surface.LocalIdentity(command, dir)}
	if t.Name == "" {
		t.Name = surface.NameOf(command, "")
	}
	cmd := child.Command{Args: command, Dir: dir}
	for _, spec := range environ {
		if strings.Contains(spec, "=") {
			cmd.Env = append(cmd.Env, spec)
		} else {
			cmd.Inherit = append(cmd.Inherit, spec)
		}
	}
	t.start(cmd)
	return t
}

func dumpTarget(name, path string, b []byte) *Target {
	return &Target{Name: name, File: path, dump: b}
}

// Called reports whether the target is what a person calls name: by its name, or by that of its
// entry in its file.
func (t *Target) Called(name string) bool { return t.entry == name || t.Name == name }

// pinnedAs is what the server is pinned under; "" if there is nothing to pin it under.
func (t *Target) pinnedAs() string { return cmp.Or(t.pin, t.identity) }

// start makes cmd what is dialled.
func (t *Target) start(cmd child.Command) {
	cmd.Stderr = t.stderr.Add
	cmd.Stray = func(excerpt string) { t.stderr.AddStray(excerpt) }
	t.started, t.dial = &cmd, fleet.Command(cmd, nil)
}

// Title names a target for a person.
func (t *Target) Title() string {
	s := terminal.Inline(t.Name)
	if t.Name == "" {
		s = "surface"
	}
	if t.File != "" {
		s += " (" + terminal.Inline(t.File) + ")"
	}
	return s
}

// Asks reports whether a person is to be asked before the target is started: it is a command
// that a file names. disabled says that what a file has disabled is checked all the same.
func (t *Target) Asks(disabled bool) bool {
	return t.File != "" && t.Command != nil && t.problem == nil && (!t.disabled || disabled)
}

// CommandLine is the exact command for a person, in lines: each argument as it is where it
// is plain, and else quoted.
func (t *Target) CommandLine() string {
	words := make([]string, len(t.Command))
	for i, w := range t.Command {
		words[i] = terminal.ShellWord(w)
	}
	s := "  " + strings.Join(words, " ") + "\n"
	for _, d := range t.detail {
		s += "  " + d + "\n"
	}
	return s
}

// collect reads what a target says of itself, within the time.
func (t *Target) collect(ctx context.Context, timeout time.Duration, bare bool) (*surface.Surface, error) {
	switch {
	case t.problem != nil:
		return nil, t.problem
	case t.dump != nil:
		return surface.ParseDump(t.dump, surface.Limits{})
	}
	ctx, stop := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("it has not said all within %s", timeout))
	defer stop()
	s, err := surface.CollectWhole(ctx, surface.CollectOptions{Version: build.Read().Version, Bare: bare}, t.dial.Talk)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return s, err
}
