package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/pellucid-mcp/pellucid/internal/child"
	"github.com/pellucid-mcp/pellucid/internal/fleet"
	"github.com/pellucid-mcp/pellucid/surface"
)

// A target is one thing to check: a command, a URL or a saved surface.
type target struct {
	name      string // that it is pinned under; "" of a saved surface without one
	entry     string // what the file calls it
	client    string // whose file it is, if that was found
	file      string // that names it; "" of a command that was typed
	transport string // descriptor without secrets, for the pin

	command []string // what dial starts; nil otherwise
	detail  []string // what else the person should know of the command, escaped
	dial    fleet.Dialer
	dump    []byte // a saved surface; nil: dial

	problem  error // why it cannot be reached at all
	declined bool  // a person does not want it started
	disabled bool  // the file says that the client does not start it

	mu   sync.Mutex
	tail []string // the last lines of the server's standard error that differ, escaped
}

// commandTarget is a command that was typed. Without a name it is pinned under one
// that the same command has again.
func commandTarget(name string, command, environ []string) *target {
	t := &target{name: name, command: command, transport: descriptor("stdio", command...)}
	if t.name == "" {
		base := command[0][strings.LastIndexAny(command[0], `/\`)+1:]
		t.name = base + "-" + t.transport[len("stdio:"):][:8]
	}
	cmd := child.Command{Args: command}
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
	return &target{name: name, file: path, transport: "dump", dump: b}
}

// unnamed reports whether there is nothing to pin it under.
func (t *target) unnamed() bool { return t.name == "" }

// start makes cmd what is dialled.
func (t *target) start(cmd child.Command) {
	cmd.Stderr = t.hear
	t.dial = fleet.Command(cmd)
}

// maxTail bounds what is kept of a server's standard error, in lines.
const maxTail = 5

func (t *target) hear(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if slices.Contains(t.tail, line) {
		return
	}
	t.tail = append(t.tail, line)
	t.tail = t.tail[max(0, len(t.tail)-maxTail):]
}

func (t *target) said() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.tail)
}

// title names a target for a person.
func (t *target) title() string {
	s := inline(t.name)
	if t.name == "" {
		s = "surface"
	}
	if t.file != "" {
		s += " (" + inline(t.file) + ")"
	}
	return s
}

// shown is the exact command, each argument as it is where it is plain and else quoted.
func (t *target) shown() string {
	words := make([]string, len(t.command))
	for i, w := range t.command {
		words[i] = shellWord(w)
	}
	s := "  " + strings.Join(words, " ") + "\n"
	for _, d := range t.detail {
		s += "  " + d + "\n"
	}
	return s
}

// collect reads what a target says of itself.
func (c *checkCmd) collect(ctx context.Context, t *target) (*surface.Surface, error) {
	switch {
	case t.problem != nil:
		return nil, t.problem
	case t.dump != nil:
		return surface.ParseDump(t.dump, surface.Limits{})
	}
	ctx, stop := context.WithTimeoutCause(ctx, c.Timeout, fmt.Errorf("it has not said all within %s", c.Timeout))
	defer stop()
	s, err := probe(ctx, over(t.dial))
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return s, err
}
