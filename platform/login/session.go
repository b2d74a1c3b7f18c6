// SPDX-License-Identifier: Apache-2.0

package login

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/auth"
	"github.com/pellucid-mcp/pellucid/platform/egress"
)

// A Session gives the requests of one principal to one server their token. It renews the token
// before its end, and once where the server refuses it; processes and sessions that share a login
// renew it one at a time, so that a refresh token that works once is not used twice.
type Session struct {
	o SessionOptions

	mu     sync.Mutex
	looked bool
	login  *Login // nil: none was found
	stored string // the access token of its file
	tried  time.Time
	said   string // to the operator last
}

// SessionOptions of a Session.
type SessionOptions struct {
	Store     *Store
	Server    string
	Principal string // its own login counts, else the one without a principal
	Command   string // what the operator runs to log in
	Roots     *x509.CertPool
	Log       *slog.Logger
	now       func() time.Time
}

// NewSession returns a Session. It reads nothing yet.
func NewSession(o SessionOptions) *Session {
	if o.now == nil {
		o.now = time.Now
	}
	return &Session{o: o}
}

const (
	// tryPause is the time between attempts to renew a token that did not succeed.
	tryPause = 15 * time.Second
	// freshTime is how long a token is not renewed again, whatever the server says.
	freshTime = 10 * time.Second
)

// Authorize returns the value of the Authorization header; "": there is no login.
func (s *Session) Authorize(ctx context.Context) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.looked {
		s.look()
	}
	if l := s.login; l != nil && l.due(s.o.now()) && s.o.now().Sub(s.tried) >= tryPause {
		s.renew(ctx, l.Access)
	}
	return s.value()
}

func (s *Session) value() string {
	if s.login == nil || s.login.Access == "" || s.login.Over {
		return ""
	}
	return "Bearer " + s.login.Access
}

// Refused hears that the server has answered a request that carried value with 401 or 403, and the
// challenges of the answer. It returns the value with which to ask once more; "": asking again is useless.
func (s *Session) Refused(ctx context.Context, value string, status int, challenges []string) string {
	c := parseChallenge(challenges)
	s.mu.Lock()
	defer s.mu.Unlock()
	if status == http.StatusForbidden {
		if c.err == "insufficient_scope" && value != "" {
			s.say("the server wants more scopes than the login has: log in again with them", "run", s.o.Command+scopeFlags(c.scopes))
		}
		return ""
	}
	switch {
	case s.value() != value: // another request has renewed it
	case s.login == nil || s.login.Over || s.login.Refresh == "":
		s.look() // the operator may have logged in meanwhile
	case s.o.now().Sub(s.login.Renewed) < freshTime || s.o.now().Sub(s.tried) < tryPause:
	default:
		s.renew(ctx, s.login.Access)
	}
	if now := s.value(); now != value && now != "" {
		return now
	}
	if value == "" && !c.bearer && s.login == nil {
		s.say("the server wants credentials: give it a header, or log in where it offers that", "run", s.o.Command)
	} else {
		s.say("the server wants a login", "run", s.o.Command)
	}
	return ""
}

// look reads the login. The principal's own counts before the one for all.
func (s *Session) look() {
	s.looked = true
	l, err := s.o.Store.Get(s.o.Server, s.o.Principal)
	if errors.Is(err, ErrNone) && s.o.Principal != "" {
		l, err = s.o.Store.Get(s.o.Server, "")
	}
	switch {
	case err == nil:
		s.login, s.stored = l, l.Access
	case errors.Is(err, ErrNone):
		s.login = nil
	default:
		s.say("the login of the server cannot be used", "why", err.Error(), "run", s.o.Command)
	}
}

// renew gets a new token in place of the access token, unless another process has done so. It is not
// interrupted: the refresh token may work once only.
func (s *Session) renew(ctx context.Context, access string) {
	ctx = context.WithoutCancel(ctx)
	now := s.o.now()
	s.tried = now
	l, err := s.o.Store.Update(s.login.Server, s.login.Principal, func(l *Login) (bool, error) {
		if l.Access != s.stored || l.Over {
			return false, nil // another process was faster
		}
		*l = *s.login // newer than its file, where that could not be written
		if l.Refresh == "" {
			return false, errGrant
		}
		t, err := ask(ctx, httpClient(s.o.Roots), l.TokenEndpoint, l.client(), form("grant_type", grantRefresh, "refresh_token", l.Refresh, "resource", l.Resource))
		if errors.Is(err, errGrant) {
			l.Over, l.Access, l.Refresh = true, "", ""
			return true, nil
		}
		if err != nil {
			return false, err
		}
		l.renew(t, s.o.now())
		return true, nil
	})
	switch {
	case l != nil && l.Access != access:
		if s.login = l; err == nil {
			s.stored = l.Access
		}
		if err != nil { // it works as long as this process does
			s.say("the renewed login cannot be stored", "why", err.Error(), "run", s.o.Command)
		} else if !l.Over {
			s.tried, s.said = time.Time{}, ""
		}
	case errors.Is(err, ErrNone): // logged out meanwhile
		s.login = nil
	case errors.Is(err, errGrant):
		if s.login.Expired(now) {
			s.say("the login of the server is over", "run", s.o.Command)
		}
	case err != nil:
		s.say("the login of the server cannot be renewed at present", "why", err.Error())
	}
	if s.login != nil && s.login.Over {
		s.say("the login of the server is over", "run", s.o.Command)
	}
}

// say tells the operator, unless that was the last that it told.
func (s *Session) say(what string, args ...any) {
	key := fmt.Sprint(what, args)
	if s.said == key || s.o.Log == nil {
		return
	}
	s.said = key
	s.o.Log.Warn(what, args...)
}

// scopeFlags repeat scopes on a command line, if they can stand there without quotes.
func scopeFlags(scopes []string) string {
	var b strings.Builder
	for _, sc := range scopes[:min(len(scopes), 10)] {
		if !plainWord(sc) {
			return " --scope SCOPE"
		}
		b.WriteString(" --scope " + sc)
	}
	return b.String()
}

func plainWord(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !('a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9' || strings.IndexByte("._:/-", c) >= 0) {
			return false
		}
	}
	return s != "" && len(s) <= 64 && s[0] != '-'
}

// httpClient asks the authorization server of a login, which was checked when it was made.
func httpClient(roots *x509.CertPool) *http.Client {
	t := egress.Transport(egress.Options{Roots: roots})
	t.Proxy, t.DisableKeepAlives = http.ProxyFromEnvironment, true
	return auth.NoRedirects(t)
}

// Revoke tells the authorization server that the tokens of a login are no longer used. A server
// without such an endpoint is not asked: told is false.
func Revoke(ctx context.Context, l *Login, roots *x509.CertPool) (told bool, err error) {
	if l.RevocationEndpoint == "" {
		return false, nil
	}
	h := httpClient(roots)
	if l.Refresh != "" {
		err = revoke(ctx, h, l.RevocationEndpoint, l.client(), l.Refresh, grantRefresh)
	}
	if l.Access != "" {
		err = errors.Join(err, revoke(ctx, h, l.RevocationEndpoint, l.client(), l.Access, "access_token"))
	}
	if err != nil {
		return false, failed("the authorization server did not revoke the tokens", err)
	}
	return true, nil
}
