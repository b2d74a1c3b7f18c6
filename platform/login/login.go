// SPDX-License-Identifier: Apache-2.0

// Package login logs in to remote MCP servers by OAuth 2.1, and keeps and renews the tokens.
//
// It follows the authorization pages of MCP 2025-11-25 and 2026-07-28: the server answers 401; its
// protected resource metadata (RFC 9728) name the authorization server; that server's metadata
// (RFC 8414, OpenID Connect Discovery) name its endpoints; the client identifies itself by a client
// ID metadata document, by an ID that the operator has, or by dynamic registration (RFC 7591); the
// user agrees in a browser (authorization code with PKCE, RFC 7636, on a loopback redirect, RFC
// 8252) or on another device (RFC 8628). Each token is for one resource (RFC 8707).
//
// Everything that comes from the two servers is hostile. Documents and answers have a bound of
// size and time; no redirect is followed; only https is spoken, but for servers on this machine;
// and no error, log line or page repeats what they say.
package login

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/auth"
	"github.com/pellucid-mcp/pellucid/platform/egress"
	"github.com/pellucid-mcp/pellucid/platform/loopback"
)

// Options say where to log in, and how. The zero value of each field but Server is usable.
type Options struct {
	Server    string // the URL of the MCP server
	Name      string // what the operator calls it
	Principal string // whose login this is; "": that of every session that has none of its own

	Issuer       string // which authorization server, if the server names several
	ClientID     string // "": dynamic registration; an https URL: that of a client ID metadata document
	ClientSecret string
	Scopes       []string // "": those that the server asks for
	Before       *Login   // the login that this one replaces: its scopes are asked for again

	Device bool           // by another device; else by a browser on this machine
	Port   int            // of the loopback redirect; 0: any
	Show   func(Prompt)   // shows the user where to go
	Wait   time.Duration  // for the user; 0: 5 minutes
	Roots  *x509.CertPool // certificate authorities of the authorization server; nil: those of the system
	TLS    *tls.Config    // for the server; nil: Roots
	Header http.Header    // that the first request to the server carries besides
	now    func() time.Time
}

// A Prompt is what the user has to be told. All of it can be printed.
type Prompt struct {
	URL    string   // where to go
	Code   string   // what to enter or compare there; "" in a browser on this machine
	Issuer string   // who asks
	Scopes []string // what is asked for
}

const defaultWait = 5 * time.Minute

// Run logs in.
func Run(ctx context.Context, o Options) (*Login, error) {
	o.Wait = cmp.Or(o.Wait, defaultWait)
	if o.now == nil {
		o.now = time.Now
	}
	f, err := begin(ctx, o)
	if err != nil {
		return nil, err
	}
	if err := f.discover(ctx); err != nil {
		return nil, err
	}
	if o.Device {
		return f.device(ctx)
	}
	return f.browser(ctx)
}

// A flow is one login under way.
type flow struct {
	Options
	server   *url.URL
	local    bool         // the server is on this machine, so what it names may be http there too
	http     *http.Client // for the authorization server
	own      *http.Client // for the server
	resource string
	as       *authServer
	scopes   []string // to ask for; nil: the authorization server decides
	client   client
}

func begin(ctx context.Context, o Options) (*flow, error) {
	u, err := ParseServer(o.Server)
	if err != nil {
		return nil, err
	}
	f := &flow{Options: o, server: u, local: loopback.Host(u.Hostname())}
	to := egress.Options{Roots: o.Roots, PublicOnly: !f.local && publicHost(ctx, u)}
	t, own := egress.Transport(to), egress.Transport(to)
	t.Proxy, own.Proxy = http.ProxyFromEnvironment, http.ProxyFromEnvironment
	if o.TLS != nil {
		own.TLSClientConfig = o.TLS
	}
	f.http, f.own = auth.NoRedirects(t), auth.NoRedirects(own)
	return f, nil
}

// ParseServer parses the URL of a server that can be logged in to: https, or http on this machine.
func ParseServer(server string) (*url.URL, error) {
	u, err := url.Parse(server)
	switch {
	case err != nil:
		return nil, errors.New("login: the server's URL cannot be parsed")
	case u.Hostname() == "" || u.Opaque != "":
		return nil, errors.New("login: the server's URL has no host")
	case u.User != nil || u.Fragment != "":
		return nil, errors.New("login: the server's URL: holds credentials or a fragment")
	case u.Scheme != "https" && !(u.Scheme == "http" && loopback.Host(u.Hostname())):
		return nil, errors.New("login: the server's URL: is not https, so a token for it could be read on the way")
	}
	return u, nil
}

// publicHost reports whether the host of a server is on the public network and reached without a
// proxy. What such a server names must be public too: else its metadata could have this machine
// ask the hosts of a private network.
func publicHost(ctx context.Context, u *url.URL) bool {
	if p, err := http.ProxyFromEnvironment(&http.Request{URL: u}); err != nil || p != nil {
		return false
	}
	ctx, stop := context.WithTimeout(ctx, requestWait)
	defer stop()
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", u.Hostname())
	return err == nil && len(addrs) > 0 && !slices.ContainsFunc(addrs, func(a netip.Addr) bool { return !egress.Public(a) })
}

// discover finds out who authorizes for the server, and what to ask for.
func (f *flow) discover(ctx context.Context) error {
	c, err := f.probe(ctx)
	if err != nil {
		return err
	}
	meta, err := f.findResource(ctx, c)
	if err != nil {
		return err
	}
	f.resource = meta.resource
	if f.as, err = f.findServer(ctx, meta); err != nil {
		return err
	}
	f.scopes = f.wanted(c, meta)
	return nil
}

// wanted are the scopes to ask for: the operator's, else those of the challenge, else those of the
// metadata; those of the login that is replaced, so that none is lost; and offline_access where
// the authorization server gives refresh tokens for it.
func (f *flow) wanted(c challenge, meta *resourceMetadata) []string {
	list := slices.Clone(f.Scopes)
	if len(list) == 0 {
		list = slices.Clone(c.scopes)
	}
	if len(list) == 0 {
		list = slices.Clone(meta.scopes)
	}
	if f.Before != nil && auth.IssuerKey(f.Before.Issuer) == auth.IssuerKey(f.as.issuer) {
		list = append(list, f.Before.Scopes...)
	}
	if slices.Contains(f.as.scopes, offlineAccess) {
		list = append(list, offlineAccess)
	}
	var out []string
	for _, s := range list {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

const offlineAccess = "offline_access"

// login is what the token answer makes of the flow.
func (f *flow) login(t *tokens) *Login {
	now := f.now()
	l := &Login{
		Name: f.Name, Server: f.Server, Principal: f.Principal,
		Resource: f.resource, Issuer: f.as.issuer,
		TokenEndpoint: f.as.token, RevocationEndpoint: f.as.revocation,
		ClientID: f.client.id, ClientSecret: f.client.secret, ClientMethod: f.client.method,
		Scopes: f.scopes,
	}
	l.renew(t, now)
	return l
}

// failed makes an error of the package, of constant text and perhaps a cause that is one.
func failed(what string, cause error) error {
	if cause == nil {
		return errors.New("login: " + what)
	}
	return fmt.Errorf("login: %s: %w", what, cause)
}

// form is the query of a request, without what is empty.
func form(pairs ...string) url.Values {
	v := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			v.Set(pairs[i], pairs[i+1])
		}
	}
	return v
}

func joined(scopes []string) string { return strings.Join(scopes, " ") }
