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
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/platform/auth"
	"github.com/pellucid-mcp/pellucid/platform/intake"
)

// sessionOwner names the owner of a session: a principal with certain scopes, so
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

// claimsOf are the claims of the token with which a request came.
func claimsOf(r *http.Request) []byte {
	p, _ := auth.FromContext(r.Context())
	return p.Claims
}

// roomOf is memory for the messages of a session's owner.
func (b *boundary) roomOf(owner string) *intake.Room { return b.memory.Room(principalID(owner)) }

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

// front makes the client's end of sessions with a server, or with all ("").
func (b *Gateway) front(r *rules.Rules, server string, accept func(context.Context, *wire.FrontSession, func(error))) *wire.Front {
	return wire.NewFront(wire.FrontOptions{
		Accept: func(ctx context.Context, s *wire.FrontSession, ended func(error)) {
			accept(ctx, s, func(err error) {
				if errors.Is(err, context.Canceled) || errors.Is(err, fleet.ErrNoServer) {
					err = nil // ours
				}
				ended(err)
			})
		},
		Principal: sessionOwner, Claims: claimsOf, MaxBody: r.HTTP.MaxBody, Sessions: r.HTTP.Sessions, Idle: r.HTTP.SessionIdle,
		Room: b.roomOf, Registry: b.registry(server), Forwarder: b.forwarder(),
		Notice: func(line string) { b.log.Warn("client: " + line) },
	})
}

// client is who has the session, of one server or of all (""). What servers want to
// get back from it, which only the modern era knows, goes to it sealed.
func (b *Gateway) client(s *wire.FrontSession, server string) fleet.Client {
	conn := wire.Conn(s)
	if s.Era == wire.Modern {
		conn = b.sealer.Client(s, server, principalID(s.Principal))
	}
	return fleet.Client{Conn: conn, Era: s.Era, Principal: s.Principal}
}

// serveAll begins to serve a session with all servers that its owner may see.
func (b *Gateway) serveAll(ctx context.Context, s *wire.FrontSession, ended func(error)) {
	c := b.client(s, "")
	c.May = b.may(s.Principal)
	b.fleet.StartAll(ctx, c, ended)
}

// keepFronts makes fronts for new servers, and ends those of servers that are no
// more. b.mu is held.
func (b *Gateway) keepFronts(r *rules.Rules) {
	for _, s := range r.Servers {
		if b.fronts[s.Name] == nil {
			b.fronts[s.Name] = b.front(r, s.Name, func(ctx context.Context, fs *wire.FrontSession, ended func(error)) {
				b.fleet.Start(ctx, s.Name, b.client(fs, s.Name), ended)
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

// allFronts are those of every server and of all servers as one.
func (b *Gateway) allFronts() []*wire.Front {
	b.mu.Lock()
	defer b.mu.Unlock()
	list := []*wire.Front{b.union}
	for _, f := range b.fronts {
		list = append(list, f)
	}
	return list
}

// sessions is the number of sessions of clients.
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
