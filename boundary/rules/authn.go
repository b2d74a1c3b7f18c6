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

// auth reads who may come in. http.hosts has been read.
func (c *compiler) auth(p place) {
	c.object(p, members{"tokens": c.tokens, "oauth": c.oauth})
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
	c.secret.add(string(c.out.Auth.print[:]))
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

func (c *compiler) oauth(p place) {
	o := &auth.ResourceOptions{Resource: c.out.PublicURL}
	before := len(c.problems)
	c.object(p, members{
		"issuers": func(p place) {
			c.list(p, 16, func(p place) { o.Issuers = append(o.Issuers, c.issuer(p)) })
		},
		"audience": func(p place) {
			if s := c.text(p, 2048); s != "" && s != o.Resource {
				o.Audiences = []string{s}
			}
		},
		"scopes":                       func(p place) { o.Scopes = c.scopes(p) },
		"algorithms":                   func(p place) { o.Algorithms = c.checkedList(p, 8, "EdDSA, ES256, PS256 or RS256", isAlgorithm) },
		"dangerously_http_on_loopback": func(p place) { o.DangerouslyHTTPOnLoopback = c.boolean(p) },
	}, "issuers")
	if o.Resource == "" {
		c.report(p, "needs public_url, which tokens are issued for")
	}
	if len(c.problems) > before {
		return
	}
	if _, err := auth.NewResourceServer(*o); err != nil {
		c.authErrors(p, err)
		return
	}
	c.out.Auth.OAuth = o
}

func isAlgorithm(s string) bool {
	return s == "EdDSA" || s == "ES256" || s == "PS256" || s == "RS256"
}

// issuer reads a URL, or an object with one. Its name is that of the host, unless
// it says so.
func (c *compiler) issuer(p place) (i auth.Issuer) {
	if p.kind == isText {
		i.URL = c.text(p, 2048)
	} else {
		c.object(p, members{
			"url":                 func(p place) { i.URL = c.text(p, 2048) },
			"name":                func(p place) { i.Name = c.text(p, 32) },
			"jwks":                func(p place) { i.JWKS = c.text(p, 2048) },
			"dangerously_untyped": func(p place) { i.DangerouslyUntyped = c.boolean(p) },
		}, "url")
	}
	if u, err := url.Parse(i.URL); err == nil && i.Name == "" {
		i.Name = u.Hostname()
		if len(i.Name) > 32 {
			c.report(p, "the host is longer than the 32 bytes of a name: give the issuer a name")
		}
	}
	return i
}

// scopes reads names that a token may have (RFC 6749 §3.3).
func (c *compiler) scopes(p place) []string {
	return c.checkedList(p, maxNames, "a scope: ASCII without space, \" and \\", func(s string) bool {
		return len(s) <= 128 && strings.IndexFunc(s, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' }) < 0
	})
}
