// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/boundary/fleet"
	"github.com/pellucid-mcp/pellucid/boundary/protect"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/boundary/surface"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/platform/child"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/jsonc"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// A configReader finds the servers of clients' configurations.
type configReader struct {
	getenv func(string) string
}

// clients reads the files of all clients that are known. One that cannot be read is
// an error: a server in it would go unseen.
func (r *configReader) clients(m protect.Machine) (all []*target, err error) {
	for _, f := range protect.Locate(m, "") {
		b, err := terminal.ReadInput(f.Path, nil)
		if err != nil {
			return nil, fmt.Errorf("check: %w", err)
		}
		some, err := r.parse(f.Client, f.Path, f.Format, b)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

// file reads a file that somebody names: it must have a place for servers.
func (r *configReader) file(client, path string, b []byte) ([]*target, error) {
	return r.parse(client, path, protect.Generic, b)
}

func (r *configReader) parse(client, path string, f protect.Format, b []byte) (all []*target, err error) {
	var doc strictjson.Doc
	if f.Comments {
		b = jsonc.Plain(b)
	}
	if err := doc.Reset(b, strictjson.Limits{MendSurrogates: true}); err != nil {
		return nil, exit.With(exit.Config, fmt.Errorf("check: %s is no configuration of a client, nor a saved surface (one of pellucid up is given by --config): %w", finding.Quote(path), err))
	}
	found := false
	for _, at := range f.Paths {
		serverLists(doc.Root(), at, nil, func(under []string, servers strictjson.Value) {
			found = true
			for name, v := range servers.Members() {
				entry := strings.Clone(name.Text())
				t := &target{client: client, file: path, entry: entry, name: entry}
				if client != "" { // two clients may have two servers of one name
					t.name = strings.Join(append(append([]string{client}, under...), entry), "/")
				}
				t.disabled = protect.Disabled(v)
				r.read(t, v)
				all = append(all, t)
			}
		})
	}
	if !found && client == "" {
		return nil, exit.With(exit.Config, fmt.Errorf("check: %s is neither a client's configuration nor a saved surface", finding.Quote(path)))
	}
	return all, nil
}

// serverLists calls visit for every object at the path; "*" is every member, which under
// then names.
func serverLists(v strictjson.Value, path, under []string, visit func(under []string, servers strictjson.Value)) {
	switch {
	case v.Kind() != '{':
	case len(path) == 0:
		visit(under, v)
	case path[0] == "*":
		for name, m := range v.Members() {
			serverLists(m, path[1:], append(under[:len(under):len(under)], strings.Clone(name.Text())), visit)
		}
	default:
		serverLists(v.Get(path[0]), path[1:], under, visit)
	}
}

// read makes a target of an entry, the way the gateway would, and of one that runs
// behind the boundary already, of the server behind it.
func (r *configReader) read(t *target, v strictjson.Value) {
	raw := v.Raw()
	if wrap, behind, err := unwrapped(v); err != nil {
		t.problem = err
		return
	} else if behind != nil {
		raw, t.pin = behind, wrap.Pin
	}
	const name = "entry.json"
	file := append(append([]byte(`{"mcpServers":{"s":`), raw...), "}}"...)
	cfg, err := rules.Parse([]byte("version: 1\nservers: {s: {mcp_json: "+name+"}}"), rules.Options{
		Dir:      filepath.Dir(t.file),
		Getenv:   func(name string) (string, bool) { v := r.getenv(name); return v, v != "" },
		ReadFile: func(string) ([]byte, error) { return file, nil },
	})
	if err != nil {
		t.problem = entryError(err)
		return
	}
	t.reach(cfg.Server("s"))
}

// entryError is what is wrong with an entry, without the file that it was put into.
func entryError(err error) error {
	var all rules.Problems
	if !errors.As(err, &all) || len(all) == 0 {
		return err
	}
	fault := all[0].Fault
	if i := strings.Index(fault, "its entry "); i >= 0 {
		fault = fault[i:]
	}
	return errors.New(fault)
}

// configuredTargets are the servers of a configuration of pellucid up, under the names
// that they have there.
func configuredTargets(path string, r *rules.Rules) []*target {
	all := make([]*target, len(r.Servers))
	for i, s := range r.Servers {
		all[i] = &target{file: path, entry: s.Name, name: s.Name, pin: s.Pin}
		all[i].reach(s)
	}
	return all
}

// reach says how a server is started or dialled.
func (t *target) reach(s *rules.Server) {
	if s.Command != nil {
		t.command, t.identity = s.Command, surface.LocalIdentity(s.Command, s.Cwd)
		cmd := child.Command{Args: s.Command, Dir: s.Cwd}
		var names []string
		for _, v := range s.Env {
			cmd.Env = append(cmd.Env, v.Name+"="+v.Value.Reveal())
			names = append(names, terminal.Inline(v.Name))
		}
		if len(names) > 0 {
			t.detail = append(t.detail, "with a value of the file in "+strings.Join(names, ", "))
		}
		if s.Cwd != "" {
			t.detail = append(t.detail, "in "+terminal.Inline(s.Cwd))
		}
		t.start(cmd)
		return
	}
	address := s.URL.Reveal()
	t.identity = surface.URLIdentity(address)
	o := wire.HTTPOptions{Header: http.Header{}, Limits: fleet.ServerLimits, ProxyFromEnvironment: true, Notice: t.stderr.Add}
	for _, h := range s.Headers {
		o.Header.Add(h.Name, h.Value.Reveal())
	}
	t.dial, t.problem = fleet.URL(s.Transport, address, o)
}

// unwrapped is the entry as it was before pellucid protect rewrote it, and how it is
// wrapped; nil if it is not. What protect writes is parsed by the parser that reads it.
func unwrapped(v strictjson.Value) (*wrapCmd, []byte, error) {
	from, member := v, "command"
	if v.Get("command").Kind() == '{' { // older Zed
		from, member = v.Get("command"), "path"
	}
	program := from.Get(member).Text()
	base := strings.TrimSuffix(strings.ToLower(program[strings.LastIndexAny(program, `/\`)+1:]), ".exe")
	var args []string
	for a := range from.Get("args").Elements() {
		args = append(args, a.Text())
	}
	if base != "pellucid" || len(args) == 0 || args[0] != "wrap" {
		return nil, nil, nil
	}
	var c cli
	k, err := newParser(&c, &env{Stdout: io.Discard, Stderr: io.Discard, Getenv: func(string) string { return "" }})
	if err != nil {
		return nil, nil, err
	}
	k.Exit = func(int) {}
	if _, err := k.Parse(args); err != nil || len(c.Wrap.Command) > 0 && c.Wrap.Command[0] != "--" && strings.HasPrefix(c.Wrap.Command[0], "-") {
		return nil, nil, errors.New("its entry runs behind pellucid wrap, but in a way that this release does not understand")
	}
	values := map[string]string{}
	for name, val := range from.Get("env").Members() {
		values[name.Text()] = val.Text()
	}
	if cwd := v.Get("cwd"); c.Wrap.Cwd == "" && cwd.Kind() == '"' {
		c.Wrap.Cwd = strings.Clone(cwd.Text())
	}
	raw, err := c.Wrap.entry(values)
	return &c.Wrap, raw, err
}

// entry is what a client's file would say of the server that c wraps.
func (c *wrapCmd) entry(values map[string]string) ([]byte, error) {
	command := c.Command
	if len(command) > 0 && command[0] == "--" {
		command = command[1:]
	}
	given := func(ref string) string {
		if name, ok := strings.CutPrefix(ref, "env:"); ok {
			return values[name]
		}
		return ref
	}
	out := map[string]any{}
	switch {
	case c.URL != "":
		headers := map[string]string{}
		for _, spec := range c.Header {
			name, ref, _ := strings.Cut(spec, "=")
			headers[name] = given(ref)
		}
		out["url"], out["headers"] = given(c.URL), headers
		if c.Transport == "sse" {
			out["type"] = c.Transport
		}
	case len(command) > 0:
		environ := map[string]string{}
		for _, spec := range c.Env {
			name, value, here := strings.Cut(spec, "=")
			if !here {
				value = values[name]
			}
			environ[name] = value
		}
		out["command"], out["args"], out["env"] = command[0], append([]string{}, command[1:]...), environ
		if c.Cwd != "" {
			out["cwd"] = c.Cwd
		}
	default:
		return nil, errors.New("its entry wraps nothing")
	}
	return json.Marshal(out)
}
