// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/pellucid-mcp/pellucid/boundary/fleet"
	"github.com/pellucid-mcp/pellucid/boundary/protect"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/boundary/surface"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/platform/child"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// Clients reads the files of all clients that are known. One that cannot be read is
// an error: a server in it would go unseen.
func (f *Finder) Clients(m protect.Machine) (all []*Target, err error) {
	for _, file := range protect.Locate(m, "") {
		b, err := terminal.ReadInput(file.Path, nil)
		if err != nil {
			return nil, fmt.Errorf("check: %w", err)
		}
		some, err := f.parse(file.Client, file.Path, file.Format, b)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

// parse reads a client's file. One that the person has named, and no client has, must have a
// place for servers.
func (f *Finder) parse(client, path string, format protect.Format, b []byte) (all []*Target, err error) {
	servers, found, err := format.Servers(path, b)
	if err != nil {
		return nil, invalid(ErrFormat, fmt.Errorf("check: %s is no configuration of a client, nor a saved surface (one of pellucid up is given by --config): %w", finding.Quote(path), err))
	}
	for _, s := range servers {
		t := &Target{client: client, File: path, entry: s.Name, Name: s.Name, disabled: s.Disabled}
		if client != "" { // two clients may have two servers of one name
			names := []string{client}
			if len(s.At) > 2 { // of a project
				names = append(names, s.At[1])
			}
			t.Name = strings.Join(append(names, s.Name), "/")
		}
		f.read(t, s.Entry)
		all = append(all, t)
	}
	if !found && client == "" {
		return nil, invalid(ErrFormat, fmt.Errorf("check: %s is neither a client's configuration nor a saved surface (one of pellucid up is given by --config)", finding.Quote(path)))
	}
	return all, nil
}

// read makes a target of an entry, the way the gateway would, and of one that runs
// behind the boundary already, of the server behind it.
func (f *Finder) read(t *Target, raw []byte) {
	var doc strictjson.Doc
	if err := doc.Reset(raw, strictjson.Limits{MendSurrogates: true}); err != nil {
		t.problem = err
		return
	}
	wrap, behind, err := f.unwrapped(doc.Root())
	if err != nil {
		t.problem = err
		return
	}
	if behind != nil {
		raw, t.pin = behind, wrap.Pin
	}
	const name = "entry.json"
	file := append(append([]byte(`{"mcpServers":{"s":`), raw...), "}}"...)
	cfg, err := rules.Parse([]byte("version: 1\nservers: {s: {mcp_json: "+name+"}}"), rules.Options{
		Dir:      filepath.Dir(t.File),
		Getenv:   func(name string) (string, bool) { v := f.Getenv(name); return v, v != "" },
		ReadFile: func(string) ([]byte, error) { return file, nil },
	})
	if err != nil {
		t.problem = entryError(err)
		return
	}
	s := cfg.Server("s")
	if wrap != nil {
		s.TLS = wrap.TLS
	}
	t.reach(s, f.Credentials)
}

// entryError is what is wrong with an entry, without the file that it was put into.
func entryError(err error) error {
	var all rules.Problems
	if !errors.As(err, &all) || len(all) == 0 {
		return err
	}
	fault := all[0].Fault
	if i := strings.Index(fault, "its entry"); i >= 0 { // "file …: command of its entry …"
		if j := strings.LastIndex(fault[:i], ": "); j >= 0 {
			fault = fault[j+len(": "):]
		}
	}
	return errors.New(fault)
}

// Configured are the servers of a configuration of pellucid up, under the names that they
// have there.
func (f *Finder) Configured(path string, r *rules.Rules) []*Target {
	all := make([]*Target, len(r.Servers))
	for i, s := range r.Servers {
		all[i] = &Target{File: path, entry: s.Name, Name: s.Name, pin: s.Pin}
		all[i].reach(s, f.Credentials)
	}
	return all
}

// reach says how a server is started or dialled.
func (t *Target) reach(s *rules.Server, credentials func(*rules.Server) func(string) wire.Credentials) {
	if s.Command != nil {
		t.Command, t.identity = s.Command, surface.LocalIdentity(s.Command, s.Cwd)
		cmd := child.Command{Args: s.Command, Dir: s.Cwd, Env: s.Environ()}
		var names []string
		for _, v := range s.Env {
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
	t.Remote = s
	address := s.URL.Reveal()
	t.identity = surface.URLIdentity(address)
	o := wire.HTTPOptions{Header: s.Header(), Limits: fleet.ServerLimits, ProxyFromEnvironment: true, TLS: s.TLS.Config(nil), Notice: t.stderr.Add}
	var of func(string) wire.Credentials
	if credentials != nil {
		of = credentials(s)
	}
	t.dial, t.problem = fleet.URL(s.Transport, address, o, of)
}
