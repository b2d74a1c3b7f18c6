// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"encoding/base64"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// A joseHeader is what counts of the header of a token.
type joseHeader struct {
	alg      jose.SignatureAlgorithm
	typ, kid string
}

// claims are what counts of a token's claims.
type claims struct {
	iss, sub      string
	aud           []string
	scopes        []string
	exp, nbf, iat *float64 // seconds since 1970 (RFC 7519 §2)
	raw           []byte   // all of them
}

// parseJWT reads the header and the claims of a token in the JWS Compact
// Serialization. Nothing of them has been verified. Only one spelling of the
// base64url of a byte sequence is accepted, and the JSON is read strictly, so
// that nobody can read the token in another way.
func parseJWT(token string) (h joseHeader, c claims, err error) {
	parts := strings.SplitN(token, ".", 4)
	if len(parts) != 3 || len(token) > maxToken {
		return h, c, invalid("the token is not a signed JWT")
	}
	var docs [2]strictjson.Doc
	for i, part := range parts {
		decoded, err := base64url.DecodeString(part)
		if err != nil || len(decoded) == 0 || strings.ContainsAny(part, "\r\n") {
			return h, c, invalid("the token is not base64url")
		}
		if i == 2 {
			break
		}
		if docs[i].Reset(decoded, strictjson.Limits{Depth: 16}) != nil || docs[i].Root().Kind() != '{' {
			return h, c, invalid("the token is not a JSON object")
		}
	}
	if h, err = parseHeader(docs[0].Root()); err != nil {
		return h, c, err
	}
	c, err = parseClaims(docs[1].Root())
	c.raw = docs[1].Root().Raw()
	return h, c, err
}

var base64url = base64.RawURLEncoding.Strict()

func parseHeader(v strictjson.Value) (h joseHeader, err error) {
	var alg string
	for _, m := range []struct {
		name string
		dst  *string
	}{{"alg", &alg}, {"typ", &h.typ}, {"kid", &h.kid}} {
		if !text(v, m.name, m.dst) {
			return h, invalid("the token's header is ill-formed")
		}
	}
	h.alg = jose.SignatureAlgorithm(alg)
	// RFC 7515 §4.1.11: an extension that must be understood is not. A token that
	// brings its own key, or is not what it says (RFC 7797), is nobody's.
	for _, name := range []string{"crit", "b64", "jwk", "x5c"} {
		if v.Get(name).Exists() {
			return h, invalid("the token's header holds what is not accepted")
		}
	}
	return h, nil
}

// isAccessToken reports whether typ is that of RFC 9068 §2.1, or the one that
// most issuers use in its place. Media types are compared without case.
func isAccessToken(typ string) bool {
	switch strings.TrimPrefix(strings.ToLower(typ), "application/") {
	case "at+jwt", "jwt":
		return true
	}
	return false
}

func parseClaims(v strictjson.Value) (c claims, err error) {
	var scope string
	ok := text(v, "iss", &c.iss) && text(v, "sub", &c.sub) && texts(v.Get("aud"), &c.aud) &&
		number(v.Get("exp"), &c.exp) && number(v.Get("nbf"), &c.nbf) && number(v.Get("iat"), &c.iat) &&
		text(v, "scope", &scope)
	// "scope" is RFC 9068's; "scp" is what some issuers call it, as a text or a list.
	var scp []string
	ok = ok && texts(v.Get("scp"), &scp)
	c.scopes = strings.FieldsFunc(strings.Join(append(scp, scope), " "), func(r rune) bool { return r == ' ' })
	slices.Sort(c.scopes)
	c.scopes = slices.Compact(c.scopes)
	switch {
	case !ok || len(c.scopes) > maxScopes || slices.ContainsFunc(c.scopes, func(s string) bool { return !ValidScope(s) }):
		return c, invalid("the token's claims are ill-formed")
	case c.sub == "":
		return c, invalid("the token has no subject")
	case v.Get("at_hash").Exists(): // OpenID Connect Core 2
		return c, invalid("the token is an ID token")
	case v.Get("cnf").Exists():
		// RFC 7800: it is good only together with a key, and nothing here checks
		// that whoever shows it has that key.
		return c, invalid("the token is bound to a key")
	}
	return c, nil
}

// maxScopes is the number of scopes that a token may have.
const maxScopes = 256

// checkTimes refuses a token before and after its time, and one that is older
// than itself.
func (c *claims) checkTimes(now time.Time, skew time.Duration) error {
	at, s := float64(now.UnixMilli())/1000, skew.Seconds()
	switch {
	case c.exp == nil:
		return invalid("the token never expires")
	case at >= *c.exp+s:
		return invalid("the token has expired")
	case c.nbf != nil && at < *c.nbf-s, c.iat != nil && at < *c.iat-s:
		return invalid("the token is not valid yet")
	}
	return nil
}

// until is when checkTimes begins to refuse the token.
func (c *claims) until(skew time.Duration) time.Time {
	const most = 253402300799 // the last second that RFC 3339 can write
	seconds := math.Min(*c.exp, most)
	whole := math.Floor(seconds)
	return time.Unix(int64(whole), int64((seconds-whole)*1e9)).Add(skew)
}

// text reads the member of that name. Like those below it leaves dst alone where
// there is no value and reports false for one of another kind.
func text(v strictjson.Value, name string, dst *string) bool {
	m := v.Get(name)
	if m.Exists() {
		*dst = m.Text()
	}
	return !m.Exists() || m.Kind() == '"'
}

// texts reads a string, or an array of strings.
func texts(v strictjson.Value, dst *[]string) bool {
	switch v.Kind() {
	case 0:
	case '"':
		*dst = []string{v.Text()}
	case '[':
		for e := range v.Elements() {
			if e.Kind() != '"' {
				return false
			}
			*dst = append(*dst, e.Text())
		}
	default:
		return false
	}
	return true
}

func number(v strictjson.Value, dst **float64) bool {
	if !v.Exists() {
		return true
	}
	f, err := strconv.ParseFloat(string(v.Raw()), 64)
	*dst = &f
	return v.Kind() == '0' && err == nil
}
