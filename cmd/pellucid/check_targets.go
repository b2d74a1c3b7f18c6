// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"io"

	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/app/local"
	"github.com/pellucid-mcp/pellucid/boundary/preflight"
	"github.com/pellucid-mcp/pellucid/boundary/protect"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/boundary/surface"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/platform/login"
)

// targets finds what is to be checked.
func (c *checkCmd) targets(e *env) ([]*preflight.Target, error) {
	find := &preflight.Finder{Getenv: e.Getenv, Stdin: e.Stdin, Server: c.Server, ParseWrap: parseWrap}
	if dir, err := local.OpenState(); err == nil { // where it is needed, its error is told there
		logins := login.OpenStore(dir)
		find.Credentials = func(s *rules.Server) func(string) wire.Credentials { return install.Credentials(logins, s, "", nil) }
	}
	switch {
	case len(c.command) > 0:
		t, err := find.Command(c.command, c.Env)
		return []*preflight.Target{t}, err
	case c.Files != "":
		t, err := find.Directory(c.Files)
		return []*preflight.Target{t}, err
	case c.Surface != "":
		t, err := find.Dump(c.Surface)
		return []*preflight.Target{t}, err
	}
	all, err := c.configured(e, find)
	if err != nil {
		return nil, err
	}
	targets, err := find.Select(all)
	switch {
	case err != nil || len(targets) > 0:
		return targets, err
	case len(c.files) > 0 || c.configuration != nil:
		return nil, errors.New("check: no server is configured there: nothing was checked")
	}
	return nil, errors.New("check: no server is configured in any client's file: nothing was checked; name a file, or a command behind --")
}

// configured reads the files that are named, the configuration of up, or the files of all
// clients.
func (c *checkCmd) configured(e *env, find *preflight.Finder) ([]*preflight.Target, error) {
	switch {
	case len(c.files) > 0:
		return find.Files(c.files)
	case c.configuration != nil:
		return find.Configured(c.Config, c.configuration), nil
	}
	m, err := protect.ThisMachine(e.Getenv)
	if err != nil {
		return nil, err
	}
	return find.Clients(m)
}

// parseWrap reads a command line of pellucid wrap in a client's file with the parser of
// pellucid wrap.
func parseWrap(args []string) (*preflight.Wrapped, error) {
	var c cli
	k, err := newParser(&c, &env{Stdout: io.Discard, Stderr: io.Discard, Getenv: func(string) string { return "" }})
	if err != nil {
		return nil, err
	}
	k.Exit = func(int) {}
	if _, err := k.Parse(args); err != nil {
		return nil, err
	}
	w := &c.Wrap
	if err := w.command(); err != nil {
		return nil, err
	}
	if len(w.Command) == 0 && w.URL == "" {
		return nil, errors.New("check: wrap: its command or URL stands in your configuration: check that with --config")
	}
	file := w.Config
	if file == "" {
		file = install.ConfigFile()
	}
	r, _, err := rules.LoadOne(file, rules.Options{}, rules.One{Name: w.Name, Command: w.Command, URL: w.URL, Dir: w.Cwd, Settings: w.settings()})
	if err != nil {
		return nil, w.refused(file, err)
	}
	s := r.Servers[0]
	name := w.Name
	if name == surface.DefaultName {
		name = surface.NameOf(w.Command, "")
	}
	return &preflight.Wrapped{TLS: s.TLS, Name: name, Pin: s.Pin, URL: w.URL, SSE: s.Transport == wire.HTTPWithSSE, Header: w.Header, Bearer: w.Bearer, Command: w.Command, Env: w.Env, Cwd: cmp.Or(w.Cwd, s.Cwd)}, nil
}
