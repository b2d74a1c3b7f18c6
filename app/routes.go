// SPDX-License-Identifier: Apache-2.0

package app

import (
	"net/http"
	"slices"

	"github.com/pellucid-mcp/pellucid/app/console"
	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/platform/auth"
	"github.com/pellucid-mcp/pellucid/record/ledger"
)

// ServeHTTP answers by the rules in force.
func (b *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	(*b.handler.Load()).ServeHTTP(w, r)
}

// routes are the handlers of one version of the rules.
func (b *Gateway) routes(r *rules.Rules, g *entrance, plugged http.Handler, pages *console.Console) http.Handler {
	known := http.NewServeMux() // for those who may come in
	known.Handle("/mcp", b.union)
	known.Handle("/mcp/{$}", b.union)
	known.HandleFunc("/mcp/", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "no server of this name is served here", http.StatusNotFound)
	})
	for _, s := range r.Servers {
		front := allowed(g.who, s.Scopes, b.fronts[s.Name])
		known.Handle("/mcp/"+s.Name, front)
		known.Handle("/mcp/"+s.Name+"/{$}", front)
	}
	if r.Telemetry.Metrics {
		known.Handle("GET /metrics", ownScope(g.who, scopeMetrics, b.meter.Handler()))
	}
	known.Handle("GET /servers", ownScope(g.who, scopeServers, http.HandlerFunc(b.servers)))
	known.Handle("/v1/", plugged)
	known.Handle("/ground/", formerGround(r))
	if b.records != nil {
		known.Handle("/log/", ownScope(g.who, scopeLog, http.StripPrefix("/log/", ledger.Handler(b.records.Log.Published(install.Stale)))))
	}
	guarded := http.NewServeMux()
	guarded.Handle("/", g.requirePrincipal(known))
	if pages != nil { // it has sessions of its own
		guarded.Handle(console.Base, pages)
	}
	open := http.NewServeMux() // for every caller, without a token: constants only
	open.Handle("/", g.checkOrigin(guarded))
	open.Handle("/healthz", b.health.Live())
	open.Handle("/readyz", b.health.Ready())
	if g.metadata != nil {
		open.Handle("/.well-known/oauth-protected-resource", g.metadata)
		open.Handle("/.well-known/oauth-protected-resource/", g.metadata)
	}
	return open
}

// formerGround answers where an earlier build served the grounding adapter: its MCP endpoint is now that of the server whose
// profile is that of such an adapter.
func formerGround(r *rules.Rules) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		i := slices.IndexFunc(r.Servers, func(s *rules.Server) bool { return s.IsGrounding() })
		if i < 0 || req.URL.Path != "/ground/mcp" {
			http.Error(w, "grounding is a program of its own now: run pellucid-ground serve (docs/attestations.md)", http.StatusGone)
			return
		}
		http.Redirect(w, req, "/mcp/"+r.Servers[i].Name, http.StatusPermanentRedirect)
	})
}

// The scopes of what tells of all servers and of all principals: a token that may call tools
// does not have them by itself.
const (
	scopeMetrics = "metrics:read"
	scopeServers = "servers:read"
	scopeLog     = "log:read"
)

// ownScope demands a scope where callers are known at all.
func ownScope(who auth.Authenticator, scope string, next http.Handler) http.Handler {
	if who == nil {
		return next
	}
	return auth.RequireAlso(who, []string{scope}, next)
}

// allowed lets those through who have all scopes.
func allowed(who auth.Authenticator, scopes []string, next http.Handler) http.Handler {
	if len(scopes) == 0 {
		return next
	}
	return auth.RequireAlso(who, scopes, next)
}
