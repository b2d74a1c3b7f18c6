// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/boundary/fleet"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/mcp/era"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/platform/auth"
	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/record/ledger"
)

func (b *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	(*b.handler.Load()).ServeHTTP(w, r)
}

// An entrance is what stands between the network and the handlers.
type entrance struct {
	who      auth.Authenticator // nil: everybody is welcome
	metadata http.Handler       // RFC 9728; nil: none
	outer    func(http.Handler) http.Handler
	inner    func(http.Handler) http.Handler
}

// addressFactor is how many principals may share an address, behind one router or
// reverse proxy.
const addressFactor = 16

func (b *Gateway) entrance(r *rules.Rules) (*entrance, error) {
	g := &entrance{}
	var all []auth.Authenticator
	if r.Auth.Tokens != nil {
		all = append(all, r.Auth.Tokens)
	}
	if r.Auth.OAuth != nil {
		o := *r.Auth.OAuth
		o.Log = b.log
		s, err := auth.NewResourceServer(o)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
		g.metadata = s.Metadata()
	}
	if all != nil {
		g.who = auth.Any(all...)
	}
	if err := auth.CheckLocal(r.HTTP.Hosts, r.HTTP.Origins); err != nil {
		return nil, err
	}
	byAddress := r.HTTP.Limits
	byAddress.Rate *= addressFactor
	byAddress.Burst *= addressFactor
	byAddress.Concurrent *= addressFactor
	outer, err := auth.NewLimit(byAddress)
	if err != nil {
		return nil, err
	}
	inner, err := auth.NewLimit(r.HTTP.Limits)
	if err != nil {
		return nil, err
	}
	local := func(h http.Handler) http.Handler { return auth.Local(r.HTTP.Hosts, r.HTTP.Origins, h) }
	require := func(h http.Handler) http.Handler {
		if g.who == nil {
			return h
		}
		return auth.Require(g.who, "", h)
	}
	limit := func(h http.Handler) http.Handler { return b.meter.Gate("address", outer)(h) }
	g.outer = func(h http.Handler) http.Handler { return b.meter.Gate("origin", local)(limit(h)) }
	g.inner = func(h http.Handler) http.Handler {
		return b.meter.Gate("auth", require)(b.meter.Gate("limit", inner)(h))
	}
	return g, nil
}

// routes are the handlers of one version of the rules.
func (b *Gateway) routes(r *rules.Rules, g *entrance, plugged http.Handler) http.Handler {
	known := http.NewServeMux() // for those who may come in
	known.Handle("/mcp", b.union)
	for _, s := range r.Servers {
		known.Handle("/mcp/"+s.Name, allowed(g.who, s.Scopes, b.fronts[s.Name]))
	}
	if r.Telemetry.Metrics {
		known.Handle("GET /metrics", ownScope(g.who, scopeMetrics, b.meter.Handler()))
	}
	known.Handle("GET /servers", ownScope(g.who, scopeServers, http.HandlerFunc(b.servers)))
	known.Handle("/v1/", plugged)
	if b.records != nil {
		known.Handle("/log/", ownScope(g.who, scopeLog, http.StripPrefix("/log/", ledger.Handler(b.records.Log))))
	}
	guarded := http.NewServeMux()
	guarded.Handle("/", g.inner(known))
	if b.ground != nil { // it has scopes of its own, and takes attestations
		guarded.Handle("/ground/", b.ground.Handler(g.who, g.who != nil))
	}
	open := http.NewServeMux() // for everybody: constants only
	open.Handle("/", g.outer(guarded))
	open.Handle("/healthz", b.health.Live())
	open.Handle("/readyz", b.health.Ready())
	if g.metadata != nil {
		open.Handle("/.well-known/oauth-protected-resource", g.metadata)
		open.Handle("/.well-known/oauth-protected-resource/", g.metadata)
	}
	return open
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

// sessionOwner is to whom a session belongs: a principal with certain scopes, so
// that a token with fewer of them cannot use a session that began with more.
func sessionOwner(r *http.Request) string {
	p, ok := auth.FromContext(r.Context())
	if !ok {
		return ""
	}
	scopes := slices.Clone(p.Scopes)
	slices.Sort(scopes)
	return p.ID + " " + strings.Join(slices.Compact(scopes), " ")
}

// principalID is the principal of a session's owner.
func principalID(owner string) string {
	id, _, _ := strings.Cut(owner, " ")
	return id
}

// may says which servers the owner of a session may see.
func (b *Gateway) may(owner string) func(server string) bool {
	has := strings.Fields(owner)
	if len(has) > 0 {
		has = has[1:]
	}
	return func(server string) bool {
		s := b.rules.Load().Server(server)
		return s != nil && !slices.ContainsFunc(s.Scopes, func(scope string) bool { return !slices.Contains(has, scope) })
	}
}

func (b *Gateway) front(r *rules.Rules, accept func(context.Context, *wire.FrontSession) error) *wire.Front {
	return wire.NewFront(wire.FrontOptions{
		Accept: func(ctx context.Context, s *wire.FrontSession) error {
			err := accept(ctx, s)
			if errors.Is(err, context.Canceled) || errors.Is(err, fleet.ErrNoServer) {
				return nil // ours
			}
			return err
		},
		Principal: sessionOwner, MaxBody: r.HTTP.MaxBody, Sessions: r.HTTP.Sessions, Idle: r.HTTP.SessionIdle,
		Notice: func(line string) { b.log.Warn("client: " + line) },
	})
}

// client is who has the session, of one server or of all (""). What servers want to
// get back from it, which only the modern era knows, goes to it sealed.
func (b *Gateway) client(s *wire.FrontSession, server string) fleet.Client {
	c := fleet.Client{Conn: s, Era: s.Era, Principal: s.Principal}
	if s.Era == wire.Modern {
		c.Conn = b.sealer.Client(s, server, principalID(s.Principal))
	}
	return c
}

// stateSealer has a key that comes of the installation's, as that of the fences is.
func stateSealer(dir *state.Dir) (*era.Sealer, error) {
	secret, err := install.Key(dir)
	if err != nil {
		return nil, err
	}
	return era.NewSealer(secret)
}

func (b *Gateway) serveAll(ctx context.Context, s *wire.FrontSession) error {
	c := b.client(s, "")
	c.May = b.may(s.Principal)
	return b.fleet.ServeAll(ctx, c)
}

// keepFronts makes fronts for new servers, and ends those of servers that are no
// more. b.mu is held.
func (b *Gateway) keepFronts(r *rules.Rules) {
	for _, s := range r.Servers {
		if b.fronts[s.Name] == nil {
			b.fronts[s.Name] = b.front(r, func(ctx context.Context, fs *wire.FrontSession) error {
				return b.fleet.Serve(ctx, s.Name, b.client(fs, s.Name))
			})
		}
	}
	for name, f := range b.fronts {
		if r.Server(name) != nil {
			continue
		}
		delete(b.fronts, name)
		b.gone.Go(func() {
			ctx, stop := context.WithTimeout(context.Background(), install.CloseWait)
			defer stop()
			_ = f.Shutdown(ctx) // its sessions have lost their server
		})
	}
}

func (b *Gateway) allFronts() []*wire.Front {
	b.mu.Lock()
	defer b.mu.Unlock()
	list := []*wire.Front{b.union}
	for _, f := range b.fronts {
		list = append(list, f)
	}
	return list
}

func (b *Gateway) sessions() (n int64) {
	for _, f := range b.allFronts() {
		n += int64(f.Sessions())
	}
	return n
}

// shutdownFronts ends every session once it has its answers.
func (b *Gateway) shutdownFronts(ctx context.Context) error {
	list := b.allFronts()
	errs := make(chan error, len(list))
	for _, f := range list {
		go func() { errs <- f.Shutdown(ctx) }()
	}
	var all error
	for range list {
		all = errors.Join(all, <-errs)
	}
	return all
}
