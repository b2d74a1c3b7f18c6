// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"
	"net/http"

	"github.com/pellucid-mcp/pellucid/app/local"
	"github.com/pellucid-mcp/pellucid/boundary/gateway"
	"github.com/pellucid-mcp/pellucid/boundary/plug"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/platform/auth"
)

// plug is the handler for other gateways and hosts that carry results themselves. A
// result of a configured server is treated by its rules, any other by the defaults of
// package gateway.
func (b *Gateway) plug(r *rules.Rules, g *entrance) (http.Handler, error) {
	own := make(map[string]*gateway.Inspector, len(r.Servers))
	for _, s := range r.Servers {
		var err error
		if own[s.Name], err = gateway.NewInspector(b.treatment(r, s, b.log.With("server", s.Name))); err != nil {
			return nil, fmt.Errorf("up: server %s: %w", s.Name, err)
		}
	}
	others, err := gateway.NewInspector(gateway.Config{Key: local.FenceOf(b.ring), Sink: b.sink, Log: b.log, Memory: b.memory, Schemas: &b.schemas, Tokens: r.Tokens, Classifiers: b.classifiers("")})
	if err != nil {
		return nil, fmt.Errorf("up: %w", err)
	}
	h, err := plug.New(plug.Options{
		Default: others, Tokens: r.Tokens, MaxBody: int64(r.HTTP.MaxBody), Memory: b.memory,
		Principal: func(r *http.Request) string { return principalID(sessionOwner(r)) },
		Inspector: func(server string) *gateway.Inspector { return own[server] },
	})
	if err != nil || g.who == nil {
		return h, err
	}
	return auth.RequireAlso(g.who, []string{plug.Scope}, h), nil
}
