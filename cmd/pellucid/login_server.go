// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/boundary/preflight"
	"github.com/pellucid-mcp/pellucid/boundary/protect"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/platform/login"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// tlsFlags secure the connections to a server at a URL beside what the system says.
type tlsFlags struct {
	ClientCert string `placeholder:"FILE" help:"Client certificate for the server at the URL, with its chain, as PEM; read again for each new connection."`
	ClientKey  string `placeholder:"FILE" help:"Key of the client certificate, as PEM."`
	CA         string `name:"ca" placeholder:"FILE" help:"Certificates of the authorities that the certificate of the server at the URL may come from, as PEM, in place of those of the system."`
}

func (f *tlsFlags) tls() (*rules.ClientTLS, error) {
	return rules.NewClientTLS(f.ClientCert, f.ClientKey, f.CA)
}

// remoteServer is a server to log in to.
type remoteServer struct {
	name, url string
	header    http.Header
	tls       *rules.ClientTLS
}

// called is how a person knows it.
func (s *remoteServer) called() string {
	at, _, _ := strings.Cut(s.url, "?") // a query may hold a key
	return cmp.Or(s.name, at)
}

// find finds the server that a person means: a URL, a server of the configuration of up, or one of
// the clients' files, behind the boundary or not.
func (c *loginServer) find(e *env, name string) (at remoteServer, err error) {
	if strings.Contains(name, "://") {
		if at.url = name; c.tlsFlags != (tlsFlags{}) {
			if at.tls, err = c.tls(); err != nil {
				return at, exit.With(exit.Config, fmt.Errorf("login: --client-cert, --client-key, --ca: %w", err))
			}
		}
		if _, err := login.ParseServer(name); err != nil {
			return at, exit.With(exit.Usage, err)
		}
		return at, nil
	}
	if c.tlsFlags != (tlsFlags{}) {
		return at, exit.With(exit.Usage, errors.New("login: --client-cert, --client-key and --ca go with a URL: those of a server with a name stand where it is configured"))
	}
	s, err := c.configured(e, name)
	if err != nil {
		return at, err
	}
	if s == nil {
		return at, exit.With(exit.Usage, fmt.Errorf("login: no server is called %s in your configuration or in a client's file in your home: give its URL", finding.Quote(name)))
	}
	at = remoteServer{name: name, url: s.URL.Reveal(), header: s.Header(), tls: s.TLS}
	if at.header.Get("Authorization") != "" {
		return at, exit.With(exit.Usage, fmt.Errorf("login: server %s has an Authorization header in its configuration, which is sent instead of a token: remove it first", finding.Quote(name)))
	}
	if _, err := login.ParseServer(at.url); err != nil {
		return at, exit.With(exit.Config, err)
	}
	return at, nil
}

// configured is the server of that name; nil if no server has it.
func (c *loginServer) configured(e *env, name string) (*rules.Server, error) {
	r, err := e.readConfiguration(c.Config)
	if err != nil {
		return nil, exit.With(exit.Config, fmt.Errorf("login: %w", err))
	}
	if r != nil {
		if s := r.Server(name); s != nil && s.Command != nil {
			return nil, errCommand
		} else if s != nil && s.URL.Reveal() != "" {
			return s, nil
		}
	}
	m, err := protect.ThisMachine(e.Getenv)
	if err != nil {
		return nil, err
	}
	m.Dir = "" // a file of a project may send the user's headers to a URL of its own
	find := &preflight.Finder{Getenv: e.Getenv, ParseWrap: parseWrap}
	all, err := find.Clients(m)
	if err != nil {
		return nil, codedPreflight(err)
	}
	return ofClients(all, name)
}

var errCommand = exit.With(exit.Usage, errors.New("login: that server is a command: only a server at a URL is logged in to"))

// ofClients is the server of that name in clients' files. The files may agree about it.
func ofClients(all []*preflight.Target, name string) (found *rules.Server, err error) {
	command := false
	for _, t := range all {
		switch {
		case !t.Called(name):
		case t.Remote == nil:
			command = true
		case found != nil && found.URL.Reveal() != t.Remote.URL.Reveal():
			return nil, exit.With(exit.Usage, fmt.Errorf("login: clients have several servers called %s: give the URL of the one that you mean", finding.Quote(name)))
		default:
			found = t.Remote
		}
	}
	if found == nil && command {
		return nil, errCommand
	}
	return found, nil
}
