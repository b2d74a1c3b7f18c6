// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"net/url"

	"github.com/pellucid-mcp/pellucid/platform/egress"
	"github.com/pellucid-mcp/pellucid/platform/loopback"
)

// Console is the web console that the gateway serves.
type Console struct {
	Grants []ConsoleGrant
	OpenID *ConsoleOpenID // nil: no provider signs people in
	Links  bool           // one-time links sign in: the listener and the public URL are on loopback
}

// A ConsoleGrant gives a role to those who have a scope or are in a group.
type ConsoleGrant struct {
	Role    string
	Scope   string
	Servers []string // nil: all
}

// ConsoleRoles are the roles, the least first.
var ConsoleRoles = []string{"viewer", "reviewer", "admin"}

// ConsoleOpenID is a provider of OpenID Connect.
type ConsoleOpenID struct {
	Issuer       string
	ClientID     string
	ClientSecret Value
	Scopes       []string
	Name, Groups string // claims

	plain bool // dangerously_http_on_loopback
}

func (x *Console) members() []member {
	return []member{
		{"grants", live, objects(&x.Grants, maxNames, (*ConsoleGrant).members, nil), "who has which role; anyone else is refused"},
		{"openid", live, optional(&x.OpenID, (*ConsoleOpenID).members, (*compiler).consoleOpenID), "the provider of OpenID Connect that signs people in; it needs `public_url`. It leads back to `PUBLIC_URL/console/login/return`"},
	}
}

func (g *ConsoleGrant) members() []member {
	return []member{
		{"role", needed, word(&g.Role, "", ConsoleRoles, ConsoleRoles), "`viewer` sees what was decided, `reviewer` decides about what waits, `admin` changes rules and exceptions too"},
		{"scope", needed, text(&g.Scope, 256), "a scope of bearer tokens, or a group that the provider names"},
		{"servers", live, list(&g.Servers, nil, maxServers, "the name of a server", isName), "the servers for which; default: all"},
	}
}

func (o *ConsoleOpenID) members() []member {
	return []member{
		{"issuer", needed, text(&o.Issuer, 2048), "URL of the provider: its metadata are at `/.well-known/openid-configuration` below it"},
		{"client_id", needed, text(&o.ClientID, 256), "the client that the provider knows this gateway by"},
		{"client_secret", live, reference(&o.ClientSecret), "secret of that client; default: a public client, which PKCE protects"},
		{"scopes", live, list(&o.Scopes, []string{"email", "groups"}, 16, "a scope", func(s string) bool { return s != "" && len(s) <= 128 }), "asked for beside `openid`"},
		{"name", live, checked(&o.Name, "email", "the name of a claim", isClaim), "the claim that names the person in records; `email` has to be verified"},
		{"groups", live, checked(&o.Groups, "groups", "the name of a claim", isClaim), "the claim with the groups of the person"},
		{"dangerously_http_on_loopback", live, boolean(&o.plain, false), "let a provider on loopback have an http URL"},
	}
}

func isClaim(s string) bool { return s != "" && len(s) <= 256 }

// consoleOpenID checks the address of the provider.
func (c *compiler) consoleOpenID(p place, o *ConsoleOpenID, sound bool) bool {
	if !sound {
		return false
	}
	if _, plain, err := egress.Base(o.Issuer, false); err != nil || plain && !o.plain {
		c.report(p.at("issuer"), "want an https URL; http is for tests on loopback, with dangerously_http_on_loopback")
		sound = false
	}
	if c.out.PublicURL == "" {
		c.report(p, "needs public_url, to which the provider leads the browser back")
		sound = false
	}
	return sound
}

// console checks the section once it has been read.
func (c *compiler) console(p place, x *Console, sound bool) bool {
	public, err := url.Parse(c.out.PublicURL)
	x.Links = loopback.Listener(c.out.Listen) && (c.out.PublicURL == "" || err == nil && loopback.Host(public.Hostname()))
	if sound && !x.Links && len(x.Grants) == 0 {
		c.report(p, "needs grants: beyond loopback, only people with a grant may come in")
		return false
	}
	if sound && !x.Links && x.OpenID == nil && !c.out.Auth.Set() {
		c.report(p, "needs openid here or auth above, so that people can sign in")
		return false
	}
	return sound
}
