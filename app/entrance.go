// SPDX-License-Identifier: Apache-2.0

package app

import (
	"net/http"

	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/platform/auth"
)

// An entrance is what stands between the network and the handlers.
type entrance struct {
	who      auth.Authenticator // without it every caller may use it
	metadata http.Handler       // of RFC 9728, where there is an issuer

	checkOrigin      func(http.Handler) http.Handler // by Host and Origin
	requirePrincipal func(http.Handler) http.Handler // within the limits of the principal
	identify         func(http.Handler) http.Handler // lets callers without credentials through too
}

// addressFactor is how many clients with bad tokens may share an address, behind one router, or behind a proxy that is not named as trusted.
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
	byAddress.Proxies = r.HTTP.Proxies()
	byAddress.Rate *= addressFactor
	byAddress.Burst *= addressFactor
	byAddress.Concurrent *= addressFactor
	refused, err := auth.NewLimit(byAddress)
	if err != nil {
		return nil, err
	}
	inner, err := auth.NewLimit(r.HTTP.Limits)
	if err != nil {
		return nil, err
	}
	names := auth.LocalOptions{Hosts: r.HTTP.Hosts, Origins: r.HTTP.Origins, Log: b.log, HostsSetting: "http.hosts", OriginsSetting: "http.origins"}
	local := func(h http.Handler) http.Handler { return auth.Local(names, h) }
	require := func(h http.Handler) http.Handler {
		if g.who == nil {
			return h
		}
		return auth.RequireLimited(g.who, "", refused, h)
	}
	identify := func(h http.Handler) http.Handler {
		if g.who == nil {
			return h
		}
		return auth.IdentifyLimited(g.who, refused, h)
	}
	g.checkOrigin = b.meter.Gate("origin", local)
	limit := b.meter.Gate("limit", inner)
	g.requirePrincipal = func(h http.Handler) http.Handler { return b.meter.Gate("auth", require)(limit(h)) }
	g.identify = func(h http.Handler) http.Handler { return b.meter.Gate("auth", identify)(limit(h)) }
	return g, nil
}
