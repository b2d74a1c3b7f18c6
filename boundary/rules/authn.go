// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"crypto/sha256"
	"fmt"
	"net/url"
	"strings"

	"github.com/pellucid-mcp/pellucid/platform/auth"
)

const maxTokenFile = 1 << 20 // bytes

func (a *Auth) members() []member {
	return []member{
		{"tokens", live, value{
			read: (*compiler).tokens,
			write: func(d *dumper, name string) {
				if a.Tokens != nil {
					d.word(name, quoted(a.tokens))
					d.hidden(name, string(a.print[:]))
				}
			},
			kind: "`file:PATH`, `env:NAME`", schema: schema{"type": "string", "pattern": "^(file|env):"},
		}, "who has which bearer token ([auth](auth.md))"},
		{"oauth", live, optional(&a.OAuth, oauthMembers, (*compiler).oauth), "accept tokens of OAuth issuers (RFC 9728), for `public_url`"},
	}
}

// authSaid refuses a section that lets nobody in.
func (c *compiler) authSaid(p place) {
	if len(p.names) == 0 && p.kind == isObject {
		c.report(p, "says nothing: want tokens, oauth or both")
	}
}

// tokens reads the token file (docs/spec/auth.md), with the secrets that it refers to.
func (c *compiler) tokens(p place) {
	ref := c.text(p, maxText)
	var src []byte
	var err error
	switch path, isFile := strings.CutPrefix(ref, "file:"); {
	case ref == "":
		return
	case isFile:
		src, err = c.opt.read(path, maxTokenFile)
	case strings.HasPrefix(ref, "env:"):
		var v string
		v, err = c.opt.resolve(ref)
		src = []byte(v)
	default:
		err = fmt.Errorf("want file:PATH or env:NAME of a token file")
	}
	if err != nil {
		c.report(p, "%v", err)
		return
	}
	print := fingerprint{sha256.New()}
	print.add(string(src))
	c.out.Auth.Tokens, err = auth.ParseTokens(src, func(ref string) (string, error) {
		v, err := c.opt.resolve(ref)
		print.add(v)
		return v, err
	})
	c.out.Auth.print = print.sum()
	if err != nil {
		c.out.Auth.Tokens = nil
		c.authErrors(p, err)
	}
	c.out.Auth.tokens = ref
}

// authErrors takes over what package auth finds, which shows no secrets.
func (c *compiler) authErrors(p place, err error) {
	for _, e := range each(err) {
		c.report(p, "%s", strings.TrimPrefix(e.Error(), "auth: "))
	}
}

func oauthMembers(o *auth.ResourceOptions) []member {
	return []member{
		{"issuers", needed, issuers(&o.Issuers), "1 to 16 issuers, each an object or its URL"},
		{"audience", live, value{
			read: func(c *compiler, p place) {
				if s := c.text(p, 2048); s != "" && s != c.out.PublicURL {
					o.Audiences = []string{s}
				}
			},
			write: func(d *dumper, name string) {
				for _, audience := range o.Audiences {
					d.word(name, quoted(audience))
				}
			},
			kind: "string", schema: schema{"type": "string", "minLength": 1, "maxLength": 2048},
		}, "a further `aud` that means this gateway and no other; accepted beside `public_url`"},
		{"scopes", live, scopes(&o.Scopes), "that every token of these issuers needs, all of them; the metadata name them (`scopes_supported`)"},
		{"algorithms", live, list(&o.Algorithms, nil, 8, "EdDSA, ES256, PS256 or RS256", isAlgorithm), "of signatures; default: all"},
		{"dangerously_http_on_loopback", live, boolean(&o.DangerouslyHTTPOnLoopback, false), "let an issuer on loopback have an http URL"},
	}
}

// oauth tries whether tokens can be checked.
func (c *compiler) oauth(p place, o *auth.ResourceOptions, sound bool) bool {
	o.Resource = c.out.PublicURL
	if o.Resource == "" {
		c.report(p, "needs public_url, which tokens are issued for")
	}
	if !sound || o.Resource == "" {
		return false
	}
	if _, err := auth.NewResourceServer(*o); err != nil {
		c.authErrors(p, err)
		return false
	}
	return true
}

func isAlgorithm(s string) bool {
	return s == "EdDSA" || s == "ES256" || s == "PS256" || s == "RS256"
}

func issuerMembers(i *auth.Issuer) []member {
	return []member{
		{"url", needed, text(&i.URL, 2048), "the issuer"},
		{"name", live, text(&i.Name, 32), "begins the ids of its principals; default: its host"},
		{"jwks", live, text(&i.JWKS, 2048), "URL of its keys; default: what its metadata name"},
		{"dangerously_untyped", live, boolean(&i.DangerouslyUntyped, false), "accept tokens without `typ`"},
	}
}

// issuers is a list of objects, of which each may be its URL alone. The name of an issuer is
// that of the host, unless the file says it.
func issuers(v *[]auth.Issuer) value {
	x := objects(v, 16, issuerMembers, nil)
	x.read = func(c *compiler, p place) {
		c.list(p, 16, func(p place) {
			var i auth.Issuer
			if p.kind == isText {
				i.URL = c.text(p, 2048)
			} else {
				c.object(p, issuerMembers(&i))
			}
			if u, err := url.Parse(i.URL); err == nil && i.Name == "" {
				i.Name = u.Hostname()
				if len(i.Name) > 32 {
					c.report(p, "the host is longer than the 32 bytes of a name: give the issuer a name")
				}
			}
			*v = append(*v, i)
		})
	}
	x.short = schema{"type": "string", "minLength": 1}
	return x
}

// scopes are names that a token may have (RFC 6749 §3.3).
func scopes(v *[]string) value {
	return list(v, []string{}, maxNames, "a scope: ASCII without space, \" and \\", func(s string) bool {
		return len(s) <= 128 && strings.IndexFunc(s, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' }) < 0
	})
}
