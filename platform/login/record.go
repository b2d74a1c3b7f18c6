// SPDX-License-Identifier: Apache-2.0

package login

import (
	"cmp"
	"log/slog"
	"slices"
	"strings"
	"time"
)

// A Login is what a server has given one principal: tokens, and what renews them. Its String and
// its form in a log hold no secret.
type Login struct {
	Name      string `json:"name,omitempty"`      // what the operator calls the server
	Server    string `json:"server"`              // URL of the server: nothing else gets the token
	Principal string `json:"principal,omitempty"` // "": every session that has no login of its own
	Resource  string `json:"resource"`            // what the token is for (RFC 8707)
	Issuer    string `json:"issuer"`              // who has given it

	TokenEndpoint      string `json:"token_endpoint"`
	RevocationEndpoint string `json:"revocation_endpoint,omitempty"`
	ClientID           string `json:"client_id"`
	ClientSecret       string `json:"client_secret,omitempty"`
	ClientMethod       string `json:"client_method"`

	Access  string    `json:"access_token,omitempty"`
	Refresh string    `json:"refresh_token,omitempty"`
	Scopes  []string  `json:"scopes,omitempty"`
	Renewed time.Time `json:"renewed"`          // when Access was given
	Expires time.Time `json:"expires,omitzero"` // of Access; zero: not told
	Over    bool      `json:"over,omitempty"`   // the authorization server no longer accepts it
}

// String is safe in a log.
func (l *Login) String() string { return "login.Login" }

// GoString is safe in a log.
func (l *Login) GoString() string { return l.String() }

// LogValue is safe in a log.
func (l *Login) LogValue() slog.Value { return slog.StringValue(l.String()) }

// Called is how a person knows the server: its name, else its URL without a query, which may hold a key.
func (l *Login) Called() string {
	at, _, _ := strings.Cut(l.Server, "?")
	return cmp.Or(l.Name, at)
}

// renew takes new tokens. A server that gives no new refresh token goes on with the old one
// (RFC 6749, section 6).
func (l *Login) renew(t *tokens, now time.Time) {
	l.Access, l.Renewed, l.Expires, l.Over = t.access, now, time.Time{}, false
	if t.refresh != "" {
		l.Refresh = t.refresh
	}
	if t.life > 0 {
		l.Expires = now.Add(t.life)
	}
	if t.scopes != nil {
		l.Scopes = slices.Clone(t.scopes)
	}
}

// maxAhead is how long before its end a token is renewed at the most.
const maxAhead = time.Minute

// due reports whether the token is to be renewed before it is used. That is before its end, by a tenth
// of its life, since the clocks of servers differ and a request takes time. A clock that was set
// back makes the token look younger than it is: then the server's 401 renews it.
func (l *Login) due(now time.Time) bool {
	if l.Expires.IsZero() {
		return false
	}
	ahead := min(l.Expires.Sub(l.Renewed)/10, maxAhead)
	return !now.Before(l.Expires.Add(-ahead))
}

// Expired reports whether the access token is at its end.
func (l *Login) Expired(now time.Time) bool { return !l.Expires.IsZero() && !now.Before(l.Expires) }

// Usable reports whether the login can still give tokens, as far as is known here.
func (l *Login) Usable(now time.Time) bool {
	return !l.Over && (l.Refresh != "" || l.Access != "" && !l.Expired(now))
}

// client is who this program is to the authorization server of the login.
func (l *Login) client() client {
	return client{id: l.ClientID, secret: l.ClientSecret, method: l.ClientMethod}
}
