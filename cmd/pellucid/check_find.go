// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/boundary/protect"
	"github.com/pellucid-mcp/pellucid/boundary/surface"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// targets finds what is to be checked.
func (c *checkCmd) targets(e *env) ([]*target, error) {
	switch {
	case len(c.command) > 0:
		t, err := c.commanded()
		return []*target{t}, err
	case c.Surface != "":
		t, err := c.dumped(e, c.Surface)
		return []*target{t}, err
	}
	targets, err := c.configured(e)
	if err != nil {
		return nil, err
	}
	there := targets
	if c.Server != "" {
		there = slices.Clone(targets)
		targets = slices.DeleteFunc(targets, func(t *target) bool { return t.entry != c.Server && t.name != c.Server })
	}
	switch {
	case len(targets) > 0:
		return targets, nil
	case c.Server != "" && len(there) > 0:
		return nil, fmt.Errorf("check: no server is called %s: there is %s", finding.Quote(c.Server), namesOf(there))
	case len(c.files) > 0 || c.configuration != nil:
		return nil, errors.New("check: no server is configured there: nothing was checked")
	}
	return nil, errors.New("check: no server is configured in any client's file: nothing was checked; name a file, or a command behind --")
}

// commanded is a target of the command that was typed. Of one that runs behind the
// boundary it is the server behind it, as in a client's file.
func (c *checkCmd) commanded() (*target, error) {
	var doc strictjson.Doc
	entry, err := json.Marshal(map[string]any{"command": c.command[0], "args": append([]string{}, c.command[1:]...)})
	if err == nil {
		err = doc.Reset(entry, strictjson.Limits{MendSurrogates: true})
	}
	if err != nil {
		return nil, fmt.Errorf("check: %w", err)
	}
	wrap, behind, err := unwrapped(doc.Root())
	switch {
	case err != nil:
		return nil, exit.With(exit.Usage, fmt.Errorf("check: %w", err))
	case behind == nil:
		return commandTarget(c.Server, c.command, c.Env, ""), nil
	case wrap.URL != "":
		return nil, exit.With(exit.Usage, errors.New("check: this wraps a URL: name the client's file that has it"))
	}
	if wrap.Command[0] == "--" {
		wrap.Command = wrap.Command[1:]
	}
	t := commandTarget(cmp.Or(c.Server, wrap.called("")), wrap.Command, append(wrap.Env, c.Env...), wrap.Cwd)
	t.pin = wrap.Pin
	return t, nil
}

// namesOf lists what could have been meant, for a person.
func namesOf(targets []*target) string {
	const most = 12
	var names []string
	for _, t := range targets[:min(len(targets), most)] {
		names = append(names, terminal.ShellWord(t.name))
	}
	s := strings.Join(names, ", ")
	if len(targets) > most {
		s += ", …"
	}
	return s
}

// dumped is a target of a saved surface.
func (c *checkCmd) dumped(e *env, path string) (*target, error) {
	b, err := terminal.ReadInput(path, e.Stdin)
	if errors.Is(err, terminal.ErrTooLarge) { // as a server would be that says so much
		t := dumpTarget(c.Server, path, nil)
		t.problem = &surface.RefusedError{Reason: surface.TooLarge}
		return t, nil
	} else if err != nil {
		return nil, fmt.Errorf("check: %w", err)
	}
	if !surface.Dumped(b) {
		return nil, exit.With(exit.Config, fmt.Errorf("check: %s is no saved surface: check --dump writes one", terminal.InputName(path)))
	}
	return dumpTarget(c.Server, path, b), nil
}

func (c *checkCmd) configured(e *env) ([]*target, error) {
	read := &configReader{getenv: e.Getenv}
	if len(c.files) == 0 && c.configuration != nil {
		return configuredTargets(c.Config, c.configuration), nil
	}
	if len(c.files) == 0 {
		m, err := protect.ThisMachine(e.Getenv)
		if err != nil {
			return nil, err
		}
		return read.clients(m)
	}
	var all []*target
	for _, path := range c.files {
		b, err := terminal.ReadInput(path, e.Stdin)
		if err != nil && strings.Contains(path, "://") {
			return nil, exit.With(exit.Usage, errors.New(`check: a URL is no file: name the server in one, {"mcpServers": {"NAME": {"url": "https://…"}}}`))
		}
		if err != nil {
			return nil, fmt.Errorf("check: %w", err)
		}
		if surface.Dumped(b) {
			all = append(all, dumpTarget(c.Server, path, b))
			continue
		}
		some, err := read.file("", path, b)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}
