// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/boundary/gateway"
	"github.com/pellucid-mcp/pellucid/boundary/policy/expr"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/boundary/surface"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/frame"
)

// compile turns the flags into rules of one server.
func (c *wrapCmd) compile(o rules.Options, log *slog.Logger) (*rules.Rules, error) {
	var review *rules.Review
	var err error
	if c.Review.given() {
		if review, err = c.Review.rules("wrap", o); err != nil {
			return nil, err
		}
	}
	base, err := c.policy()
	if err != nil {
		return nil, err
	}
	tool, err := c.tool()
	if err != nil {
		return nil, err
	}
	s, err := c.server(o, log)
	if err != nil {
		return nil, err
	}
	r := rules.Sole(base, s, tool)
	r.Review, r.Evidence = review, rules.Evidence{Mode: rules.Recordings.Of(c.Evidence)}
	if r.Tokens, err = c.tokenFlags.read("wrap"); err != nil {
		return nil, err
	}
	if r.Reviewers, err = c.holdFlags.recipients(); err != nil {
		return nil, exit.With(exit.Usage, err)
	}
	return r, nil
}

// tool is what applies to every tool of the server.
func (c *wrapCmd) tool() (t rules.Tool, err error) {
	t.Rule = gateway.Rule{Profile: rules.Profiles.Of(c.Profile), Frame: rules.Frames.Of(c.Frame), Framing: c.framingFlags.read(), Timeout: c.Timeout, MaxChars: c.MaxChars,
		Validation: gateway.Validation{Mode: rules.Modes.Of(c.Validate), PassUnverifiable: true}}
	if t.Rule.Frame == frame.KindLLM {
		if t.Rule.LLM, err = c.LLM.compile(); err != nil {
			return t, exit.With(exit.Usage, err)
		}
	}
	if t.Rule.Hold, err = c.holdFlags.codes(); err != nil {
		return t, exit.With(exit.Usage, fmt.Errorf("wrap: %w", err))
	}
	t.Rule.Capture = rules.NewCapture(c.Capture, c.CaptureOf)
	if c.Classify {
		t.Classifiers = []string{rules.Local}
	}
	return t, nil
}

// server is the server that is wrapped.
func (c *wrapCmd) server(o rules.Options, log *slog.Logger) (s rules.Server, err error) {
	s = rules.Server{Name: c.Name, Command: c.Command, Cwd: c.Cwd, Pin: c.Pin, DangerouslyAllowSampling: c.Sampling,
		Admission: rules.Admission{Pins: rules.Modes.Of(c.Pins), Wide: c.Wide}}
	if c.URL == "" {
		c.environment(&s, log)
		return s, nil
	}
	s.Command, s.Transport = nil, wire.Transport(slices.Index(wire.TransportWords, c.Transport))
	if s.URL = rules.Literal(c.URL); strings.HasPrefix(c.URL, "env:") || strings.HasPrefix(c.URL, "file:") { // a key in its query is a secret
		if s.URL, err = o.Reference(c.URL); err != nil {
			return s, fmt.Errorf("wrap: --url: %w", err)
		}
	}
	if s.TLS, err = c.tls(); err != nil {
		return s, fmt.Errorf("wrap: --client-cert, --client-key, --ca: %w", err)
	}
	for _, spec := range c.Header {
		name, ref, _ := strings.Cut(spec, "=")
		value, err := o.Reference(ref)
		if err != nil {
			return s, fmt.Errorf("wrap: --header %s: %w", finding.Quote(name), err)
		}
		s.Headers = append(s.Headers, rules.Variable{Name: name, Value: value})
	}
	if c.Bearer != "" {
		token, err := o.Reference(c.Bearer)
		if err != nil {
			return s, fmt.Errorf("wrap: --bearer: %w", err)
		}
		s.Headers = append(s.Headers, rules.Variable{Name: "Authorization", Value: token.Behind("Bearer ")})
	}
	return s, nil
}

// environment is what --env says.
func (c *wrapCmd) environment(s *rules.Server, log *slog.Logger) {
	for _, spec := range c.Env {
		if name, value, given := strings.Cut(spec, "="); given {
			s.Env = append(s.Env, rules.Variable{Name: name, Value: rules.Literal(value)})
			continue
		}
		if _, set := os.LookupEnv(spec); !set {
			log.Warn("a variable of --env is not set in this process: the server does not get it", "name", finding.Quote(spec))
		}
		s.Inherit = append(s.Inherit, spec)
	}
}

// policy is what --policy names: a preset, or the policy of a configuration; nil: no policy.
func (c *wrapCmd) policy() (r *rules.Rules, err error) {
	switch {
	case c.Policy == "":
		return nil, nil
	case slices.Contains(expr.Presets, c.Policy):
		r, err = rules.Parse([]byte("version: 1\npolicy: {preset: "+c.Policy+"}\n"), rules.Options{})
	default:
		r, err = rules.LoadPolicy(c.Policy)
	}
	if err != nil {
		return nil, fmt.Errorf("wrap: --policy: %w", err)
	}
	return r, nil
}

// tlsFlags secure the connections to a server at a URL beside what the system says.
type tlsFlags struct {
	ClientCert string `completion:"files" placeholder:"FILE" help:"Client certificate for the server at the URL, with its chain, as PEM; read again for each new connection."`
	ClientKey  string `completion:"files" placeholder:"FILE" help:"Key of the client certificate, as PEM."`
	CA         string `name:"ca" completion:"files" placeholder:"FILE" help:"Certificates of the authorities that the certificate of the server at the URL may come from, as PEM, in place of those of the system."`
}

func (f *tlsFlags) tls() (*rules.ClientTLS, error) {
	return rules.NewClientTLS(f.ClientCert, f.ClientKey, f.CA)
}

// loginName is what pellucid login calls the server, as a word of a shell: its URL, which finds it
// wherever the command line stands, unless that is a secret.
func (c *wrapCmd) loginName() string {
	if strings.HasPrefix(c.URL, "env:") || strings.HasPrefix(c.URL, "file:") || strings.Contains(c.URL, "?") {
		return terminal.ShellWord(c.called(""))
	}
	return terminal.ShellWord(c.URL)
}

// called is what people call the server: the name that it was given, or that of its program
// or host.
func (c *wrapCmd) called(address string) string {
	if c.Name != surface.DefaultName {
		return c.Name
	}
	return surface.NameOf(c.Command, address)
}
