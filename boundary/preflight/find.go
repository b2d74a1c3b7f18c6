// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/pellucid-mcp/pellucid/boundary/protect"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/boundary/surface"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// A Finder finds what is to be checked.
type Finder struct {
	Getenv func(string) string
	Stdin  io.Reader // that the file - is read from
	// Server is the name that the person has given; "": none. It names a command or a saved
	// surface, and selects among the servers of files.
	Server string
	// ParseWrap reads a command line of pellucid wrap, which begins with "wrap".
	ParseWrap func(args []string) (*Wrapped, error)
	// Credentials are those of a server at a URL, by principal; nil: those of its headers only.
	Credentials func(*rules.Server) func(principal string) wire.Credentials
}

// The kinds of errors of a Finder and a Checker, to be compared with errors.Is. Other errors
// say that a file cannot be read, a server not be found, or pins not be used.
var (
	ErrUsage  = errors.New("preflight: the request cannot be fulfilled as it stands")
	ErrFormat = errors.New("preflight: the file is neither a configuration nor a saved surface")
)

// invalid makes an error of that kind. It reads as err does.
func invalid(kind, err error) error { return &invalidError{kind, err} }

type invalidError struct{ kind, err error }

func (e *invalidError) Error() string   { return e.err.Error() }
func (e *invalidError) Unwrap() []error { return []error{e.kind, e.err} }

// Command is a target of the command that was typed. Of one that runs behind the
// boundary it is the server behind it, as in a client's file.
func (f *Finder) Command(command, environ []string) (*Target, error) {
	var doc strictjson.Doc
	entry, err := json.Marshal(map[string]any{"command": command[0], "args": append([]string{}, command[1:]...)})
	if err == nil {
		err = doc.Reset(entry, strictjson.Limits{MendSurrogates: true})
	}
	if err != nil {
		return nil, fmt.Errorf("check: %w", err)
	}
	wrap, behind, err := f.unwrapped(doc.Root())
	switch {
	case err != nil:
		return nil, invalid(ErrUsage, fmt.Errorf("check: %w", err))
	case behind == nil:
		return commandTarget(f.Server, command, environ, ""), nil
	case wrap.URL != "":
		return nil, invalid(ErrUsage, errors.New("check: this wraps a URL: name the client's file that has it"))
	}
	t := commandTarget(cmp.Or(f.Server, wrap.Name), wrap.Command, append(wrap.Env, environ...), wrap.Cwd)
	t.pin = wrap.Pin
	return t, nil
}

// Select keeps the servers that are called Server, in their file or by the person. It is an
// error if there are others only.
func (f *Finder) Select(all []*Target) ([]*Target, error) {
	if f.Server == "" || len(all) == 0 {
		return all, nil
	}
	found := slices.DeleteFunc(slices.Clone(all), func(t *Target) bool { return !t.Called(f.Server) })
	if len(found) == 0 {
		return nil, fmt.Errorf("check: no server is called %s: there is %s", finding.Quote(f.Server), namesOf(all))
	}
	return found, nil
}

// namesOf lists what could have been meant, for a person.
func namesOf(targets []*Target) string {
	const most = 12
	var names []string
	for _, t := range targets[:min(len(targets), most)] {
		names = append(names, terminal.ShellWord(t.Name))
	}
	s := strings.Join(names, ", ")
	if len(targets) > most {
		s += ", …"
	}
	return s
}

// Dump is a target of a saved surface.
func (f *Finder) Dump(path string) (*Target, error) {
	b, err := terminal.ReadInput(path, f.Stdin)
	if errors.Is(err, terminal.ErrTooLarge) { // as a server would be that says so much
		t := dumpTarget(f.Server, path, nil)
		t.problem = &surface.RefusedError{Reason: surface.TooLarge}
		return t, nil
	} else if err != nil {
		return nil, fmt.Errorf("check: %w", err)
	}
	if !surface.Dumped(b) {
		return nil, invalid(ErrFormat, fmt.Errorf("check: %s is no saved surface: check --dump writes one", terminal.InputName(path)))
	}
	return dumpTarget(f.Server, path, b), nil
}

// Files are the targets of files that the person has named: clients' configurations and
// saved surfaces.
func (f *Finder) Files(paths []string) ([]*Target, error) {
	var all []*Target
	for _, path := range paths {
		b, err := terminal.ReadInput(path, f.Stdin)
		if err != nil && strings.Contains(path, "://") {
			return nil, invalid(ErrUsage, errors.New(`check: takes files, not URLs: write the URL into a file: {"mcpServers": {"NAME": {"url": "https://example.com/mcp"}}}`))
		}
		if err != nil {
			return nil, fmt.Errorf("check: %w", err)
		}
		if surface.Dumped(b) {
			all = append(all, dumpTarget(f.Server, path, b))
			continue
		}
		some, err := f.parse("", path, protect.Generic, b)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}
