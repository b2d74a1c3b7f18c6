// SPDX-License-Identifier: Apache-2.0

package app

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"log/slog"

	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/boundary/fleet"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/platform/child"
	"github.com/pellucid-mcp/pellucid/platform/intake"
	"github.com/pellucid-mcp/pellucid/platform/login"
)

// dialer returns the dialer of a server. The standard error of a process goes to the log, and tail keeps its end.
// Requests to a URL carry the tokens of logins; called is what pellucid login calls the server.
func dialer(s *rules.Server, tail *child.Tail, logins *login.Store, called string, room func(owner string) *intake.Room, log *slog.Logger) (fleet.Dialer, error) {
	if s.Command != nil {
		c := command(s)
		if names := c.WithheldProxies(); len(names) > 0 {
			log.Warn("a proxy is not passed on to the server, because its URL holds a user name or a password: name the variable in --env, or in env of the configuration, if the server needs it", "names", names)
		}
		c.Stderr = func(line string) {
			tail.Add(line)
			log.Info("server: " + line)
		}
		c.Stray = func(excerpt string) {
			if tail.AddStray(excerpt) {
				log.Warn("the server writes lines to its standard output that are not JSON-RPC: they are dropped; it should log to its standard error", "line", excerpt)
			}
		}
		return fleet.Command(c, room), nil
	}
	credentials := install.Credentials(logins, s, called, log)
	if credentials != nil {
		of := credentials
		credentials = func(owner string) wire.Credentials { return of(principalID(owner)) }
	}
	return fleet.URL(s.Transport, s.URL.Reveal(), wire.HTTPOptions{Header: s.Header(), Limits: fleet.ServerLimits, Room: room, ProxyFromEnvironment: true, TLS: s.TLS.Config(func(line string) { log.Warn(line) }),
		Notice: func(line string) { log.Warn("server: " + line) }}, credentials)
}

// command is how the process of a server is started.
func command(s *rules.Server) child.Command {
	return child.Command{Args: s.Command, Dir: s.Cwd, Env: s.Environ(), Inherit: s.Inherit}
}

// identity is a digest of all that a connection to the server depends on. It holds
// what secrets stand for, and so never leaves the process.
func identity(s *rules.Server) string {
	type pair struct{ Name, Value string }
	var all []pair
	for _, list := range [][]rules.Variable{s.Env, s.Headers} {
		all = append(all, pair{})
		for _, v := range list {
			all = append(all, pair{v.Name, v.Value.Reveal()})
		}
	}
	b, err := json.Marshal([]any{s.Command, s.Cwd, s.URL.Reveal(), s.Transport, s.Share, s.TLS.Identity(), all})
	if err != nil {
		panic("up: digest of a server: " + err.Error()) // strings and numbers always marshal
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
