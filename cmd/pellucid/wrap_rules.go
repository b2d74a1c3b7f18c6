// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/boundary/policy/expr"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/boundary/surface"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// wrapRules are the rules of the server that is wrapped.
type wrapRules struct {
	*rules.Rules
	file      string         // the configuration that they are from; "" without one
	elsewhere rules.Problems // in that file, on which the server does not depend
}

// compile makes the rules of the configuration, if there is one, and of the flags, which go before it.
func (c *wrapCmd) compile(o rules.Options) (*wrapRules, error) {
	policy, err := c.policy()
	if err != nil {
		return nil, exit.With(exit.Config, err)
	}
	r := &wrapRules{file: c.Config}
	if r.file == "" {
		r.file = install.ConfigFile()
	}
	at := rules.Literal(c.URL)
	if strings.HasPrefix(c.URL, "env:") || strings.HasPrefix(c.URL, "file:") { // a key in its query is a secret
		if at, err = o.Reference(c.URL); err != nil {
			return nil, exit.With(exit.Config, fmt.Errorf("wrap: --url: %w", err))
		}
	}
	one := rules.One{Name: c.Name, Command: c.Command, URL: at.Reveal(), Dir: c.Cwd, Settings: c.settings(), Policy: policy}
	if r.Rules, r.elsewhere, err = rules.LoadOne(r.file, o, one); err != nil {
		return nil, c.refused(r.file, err)
	}
	if err := c.upstream(r.Servers[0], at, o); err != nil {
		return nil, err
	}
	return r, nil
}

// settings are what the flags say that stands in the configuration too.
func (c *wrapCmd) settings() (all []rules.Setting) {
	for _, of := range [][3]string{
		{"--timeout", "timeout", c.Timeout}, {"--profile", "profile", c.Profile}, {"--frame", "frame", c.Frame},
		{"--transport", "transport", c.Transport}, {"--evidence", "evidence.mode", c.Evidence}, {"--log-level", "telemetry.log", c.LogLevel},
	} {
		if of[2] != "" {
			all = append(all, rules.Setting{Flag: of[0], Path: of[1], Value: of[2]})
		}
	}
	for _, spec := range c.Set {
		path, value, _ := strings.Cut(spec, "=")
		all = append(all, rules.Setting{Flag: "--set", Path: path, Value: value})
	}
	return all
}

// refused says what is wrong with the configuration or the flags.
func (c *wrapCmd) refused(file string, err error) error {
	var problems rules.Problems
	switch {
	case errors.Is(err, rules.ErrNoServer) && file != "":
		return exit.With(exit.Usage, fmt.Errorf("wrap: say what to wrap: -- COMMAND ARG… or --url URL, or by --name a server of %s, which has no %s", terminal.Inline(file), finding.Quote(c.Name)))
	case errors.Is(err, rules.ErrNoServer):
		return exit.With(exit.Usage, errors.New("wrap: say what to wrap: -- COMMAND ARG… or --url URL"))
	case errors.As(err, &problems) && problems.OfCommandLine():
		lines := make([]string, len(problems))
		for i, p := range problems {
			lines[i] = "wrap: " + p.String()
		}
		return exit.With(exit.Usage, errors.New(strings.Join(lines, "\n")))
	}
	return exit.With(exit.Config, fmt.Errorf("wrap: %w", err))
}

// warn says what is wrong although the server can be wrapped.
func (c *wrapCmd) warn(e *env, r *wrapRules, log *slog.Logger) {
	if len(r.elsewhere) > 0 {
		log.Warn("the configuration has mistakes that do not concern this server: pellucid doctor lists them", "file", terminal.Inline(r.file), "first", r.elsewhere[0].String())
	}
	if r.Foreign {
		log.Warn("the configuration has another command or URL for a server of this name: nothing that it says of that server counts here", "file", terminal.Inline(r.file), "name", finding.Quote(c.Name))
	}
	for _, name := range r.Servers[0].Inherit {
		if e.Getenv(name) == "" {
			log.Warn("a variable of --env is not set in this process: the server does not get it", "name", finding.Quote(name))
		}
	}
}

// upstream is the command or the URL that the flags say.
func (c *wrapCmd) upstream(s *rules.Server, at rules.Value, o rules.Options) error {
	if len(c.Command) > 0 {
		s.Command = c.Command
	}
	if c.URL != "" {
		s.URL = at
	}
	if s.Command == nil && (c.Cwd != "" || len(c.Env) > 0) || s.Command != nil && (len(c.Header) > 0 || c.Bearer != "") {
		return exit.With(exit.Usage, errors.New("wrap: --cwd and --env are for a command, --header and --bearer for a URL"))
	}
	if c.Cwd != "" {
		s.Cwd = c.Cwd
	}
	for _, spec := range c.Env {
		name, value, given := strings.Cut(spec, "=")
		s.Env = slices.DeleteFunc(s.Env, func(v rules.Variable) bool { return v.Name == name })
		if given {
			s.Env = append(s.Env, rules.Variable{Name: name, Value: rules.Literal(value)})
		} else {
			s.Inherit = append(s.Inherit, name)
		}
	}
	return c.headers(s, o)
}

// headers adds what --header and --bearer say.
func (c *wrapCmd) headers(s *rules.Server, o rules.Options) error {
	set := func(name string, value rules.Value) {
		s.Headers = slices.DeleteFunc(s.Headers, func(v rules.Variable) bool { return strings.EqualFold(v.Name, name) })
		s.Headers = append(s.Headers, rules.Variable{Name: name, Value: value})
	}
	for _, spec := range c.Header {
		name, ref, _ := strings.Cut(spec, "=")
		value, err := o.Reference(ref)
		if err != nil {
			return exit.With(exit.Config, fmt.Errorf("wrap: --header %s: %w", finding.Quote(name), err))
		}
		set(name, value)
	}
	if c.Bearer != "" {
		token, err := o.Reference(c.Bearer)
		if err != nil {
			return exit.With(exit.Config, fmt.Errorf("wrap: --bearer: %w", err))
		}
		set("Authorization", token.Behind("Bearer "))
	}
	if s.TLS != nil && strings.HasPrefix(s.URL.Reveal(), "http:") {
		return exit.With(exit.Usage, errors.New("wrap: tls is for https, and the URL is http"))
	}
	return nil
}

// policy is what --policy names: a preset, or the policy of a configuration; nil: no policy.
func (c *wrapCmd) policy() (*rules.Policy, error) {
	if c.Policy == "" {
		return nil, nil
	}
	r, err := (*rules.Rules)(nil), error(nil)
	if slices.Contains(expr.Presets, c.Policy) {
		r, err = rules.Parse([]byte("version: 1\npolicy: {preset: "+c.Policy+"}\n"), rules.Options{})
	} else {
		r, err = rules.LoadPolicy(c.Policy)
	}
	if err != nil {
		return nil, fmt.Errorf("wrap: --policy: %w", err)
	}
	return r.Policy, nil
}

// loginName is what pellucid login calls the server, as a word of a shell: its URL, which finds it
// wherever the command line stands, unless that is a secret.
func (c *wrapCmd) loginName(s *rules.Server) string {
	at := s.URL.String()
	if s.URL.String() != s.URL.Reveal() || strings.Contains(at, "?") {
		at = surface.NameOf(s.Command, "")
		if c.Name != surface.DefaultName {
			at = c.Name
		}
	}
	return terminal.ShellWord(at)
}

// called is what people call the server: the name that it was given, or that of its program
// or host.
func (c *wrapCmd) called(s *rules.Server) string {
	if c.Name != surface.DefaultName {
		return c.Name
	}
	return surface.NameOf(s.Command, s.URL.Reveal())
}
