// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/pellucid-mcp/pellucid/boundary/fleet"
	"github.com/pellucid-mcp/pellucid/boundary/surface"
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

	heard
}

// heard keeps the end of what a server writes to its standard error, for a failure.
type heard struct {
	mu   sync.Mutex
	tail []string // the last lines that differ, escaped
}

// commandTarget is a command that was typed.
func commandTarget(name string, command, environ []string, dir string) *target {
	t := &target{name: name, command: command, identity: commandIdentity(command, dir)}
	if t.name == "" {
		t.name = nameOf(command, "")
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

// commandIdentity is surface.CommandIdentity of a command of this machine; dir is "" where
// none is stated for it.
func commandIdentity(command []string, dir string) string {
	given := dir != ""
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	return surface.CommandIdentity(command, dir, given)
}

// nameOf names a server that the operator has given no name: by its program, or by the
// host of its URL. Several servers may have the same name.
func nameOf(command []string, address string) string {
	if len(command) > 0 {
		return command[0][strings.LastIndexAny(command[0], `/\`)+1:]
	}
	if u, err := url.Parse(address); err == nil && u.Hostname() != "" {
		return u.Hostname()
	}
	return defaultName
}

// start makes cmd what is dialled.
func (t *target) start(cmd child.Command) {
	cmd.Stderr = t.hear
	t.dial = fleet.Command(cmd)
}

// maxTail bounds what is kept of a server's standard error, in lines.
const maxTail = 5

func (t *heard) hear(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if slices.Contains(t.tail, line) {
		return
	}
	t.tail = append(t.tail, line)
	t.tail = t.tail[max(0, len(t.tail)-maxTail):]
}

func (t *heard) said() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.tail)
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
	s, err := probe(ctx, bare, over(t.dial))
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return s, err
}
