// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/pellucid-mcp/pellucid/boundary/fleet"
	"github.com/pellucid-mcp/pellucid/boundary/surface"
	"github.com/pellucid-mcp/pellucid/platform/build"
	"github.com/pellucid-mcp/pellucid/platform/child"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
)

// A target is one thing to check: a command, a URL or a saved surface.
type target struct {
	name     string // what the person calls it; "" of a saved surface without one
	entry    string // what the file calls it
	client   string // whose file it is, if that was found
	file     string // that names it; "" of a command that was typed
	identity string // as package surface computes it; "" of a saved surface
	pin      string // the name that the operator gave its pin; "": it is pinned by identity

	command []string // what dial starts; nil otherwise
	detail  []string // what else the person should know of the command, escaped
	dial    fleet.Dialer
	dump    []byte // a saved surface; nil: dial

	problem  error // why it cannot be reached at all
	declined bool  // a person does not want it started
	disabled bool  // the file says that the client does not start it

	stderr child.Tail // of a server that is a process
}

// commandTarget is a command that was typed.
func commandTarget(name string, command, environ []string, dir string) *target {
	t := &target{name: name, command: command, identity: surface.LocalIdentity(command, dir)}
	if t.name == "" {
		t.name = surface.NameOf(command, "")
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

func dumpTarget(name, path string, b []byte) *target {
	return &target{name: name, file: path, dump: b}
}

// pinnedAs is what the server is pinned under; "" if there is nothing to pin it under.
func (t *target) pinnedAs() string { return cmp.Or(t.pin, t.identity) }

// start makes cmd what is dialled.
func (t *target) start(cmd child.Command) {
	cmd.Stderr = t.stderr.Add
	t.dial = fleet.Command(cmd)
}

// title names a target for a person.
func (t *target) title() string {
	s := terminal.Inline(t.name)
	if t.name == "" {
		s = "surface"
	}
	if t.file != "" {
		s += " (" + terminal.Inline(t.file) + ")"
	}
	return s
}

// shown is the exact command, each argument as it is where it is plain and else quoted.
func (t *target) shown() string {
	words := make([]string, len(t.command))
	for i, w := range t.command {
		words[i] = terminal.ShellWord(w)
	}
	s := "  " + strings.Join(words, " ") + "\n"
	for _, d := range t.detail {
		s += "  " + d + "\n"
	}
	return s
}

// collect reads what a target says of itself.
func (c *checkCmd) collect(ctx context.Context, t *target, bare bool) (*surface.Surface, error) {
	switch {
	case t.problem != nil:
		return nil, t.problem
	case t.dump != nil:
		return surface.ParseDump(t.dump, surface.Limits{})
	}
	ctx, stop := context.WithTimeoutCause(ctx, c.Timeout, fmt.Errorf("it has not said all within %s", c.Timeout))
	defer stop()
	s, err := surface.CollectWhole(ctx, surface.CollectOptions{Version: build.Read().Version, Bare: bare}, t.dial.Talk)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return s, err
}
