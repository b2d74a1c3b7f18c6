// SPDX-License-Identifier: Apache-2.0

package install

import (
	"log/slog"

	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/platform/login"
)

// Credentials are the logins at a server, by principal: its own, else the one that is for all. A
// server whose configuration has an Authorization header gets that and no other. called is what
// pellucid login calls the server.
func Credentials(store *login.Store, s *rules.Server, called string, log *slog.Logger) func(principal string) wire.Credentials {
	if s.Header().Get("Authorization") != "" {
		return nil
	}
	if _, err := login.ParseServer(s.URL.Reveal()); err != nil {
		return nil // http over the network: it gets no token
	}
	return func(principal string) wire.Credentials {
		return login.NewSession(login.SessionOptions{Store: store, Server: s.URL.Reveal(), Principal: principal,
			Roots: s.TLS.Authorities(), Command: "pellucid login " + called, Log: log})
	}
}
