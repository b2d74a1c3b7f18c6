// SPDX-License-Identifier: Apache-2.0

package login

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/auth"
)

// callbackPath is where the authorization server sends the browser to.
const callbackPath = "/callback"

// errCancelled is the error where the user did not agree.
var errCancelled = failed("the user has refused the login, or cancelled it", nil)

// browser logs in by a browser on this machine (RFC 8252).
func (f *flow) browser(ctx context.Context) (*Login, error) {
	switch {
	case f.as.authorization == "":
		return nil, failed("the authorization server has no page to log in at: try --device", nil)
	case !f.as.proof:
		return nil, failed("the authorization server does not say that it checks PKCE with S256, so a login could be stolen", nil)
	}
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(f.Port)))
	if err != nil {
		return nil, failed("the redirect cannot be listened for: the port is taken, or not allowed", nil)
	}
	host := l.Addr().String()
	redirect := "http://" + host + callbackPath
	if err := f.identify(ctx, grantCode, redirect); err != nil {
		l.Close()
		return nil, err
	}
	b := &callback{host: host, state: random(), issuer: f.as.issuer, sendsIssuer: f.as.sendsIssuer, done: make(chan answer, 1)}
	stop := b.serve(l)
	defer stop()
	verifier := random()
	f.Show(Prompt{URL: f.authorizeURL(redirect, b.state, verifier), Issuer: f.as.issuer, Scopes: f.scopes})
	code, err := b.wait(ctx, f.Wait)
	if err != nil {
		return nil, err
	}
	t, err := ask(ctx, f.http, f.as.token, f.client, form("grant_type", grantCode, "code", code,
		"redirect_uri", redirect, "code_verifier", verifier, "resource", f.resource))
	if err != nil {
		return nil, failed("the login was not accepted", err)
	}
	return f.login(t), nil
}

// authorizeURL is the page at which the user agrees.
func (f *flow) authorizeURL(redirect, state, verifier string) string {
	digest := sha256.Sum256([]byte(verifier))
	u, err := url.Parse(f.as.authorization) // checked by parseServer
	if err != nil {
		return ""
	}
	q := u.Query()
	values := form("response_type", "code", "client_id", f.client.id, "redirect_uri", redirect, "state", state,
		"code_challenge", base64.RawURLEncoding.EncodeToString(digest[:]), "code_challenge_method", "S256",
		"resource", f.resource, "scope", joined(f.scopes))
	for _, s := range f.scopes {
		if s == offlineAccess {
			values.Set("prompt", "consent") // OpenID Connect Core, section 11
		}
	}
	for name := range values {
		q.Set(name, values.Get(name))
	}
	u.RawQuery = q.Encode()
	return u.String()
}

// random is a string that cannot be guessed, of 43 letters, digits, "-" and "_".
func random() string {
	var b [32]byte
	rand.Read(b[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// callback serves the redirect, once.
type callback struct {
	host, state, issuer string
	sendsIssuer         bool
	done                chan answer
}

type answer struct {
	code string
	err  error
}

// serve answers at l until stop is called. stop waits for the page that the browser is to show.
func (b *callback) serve(l net.Listener) (stop func()) {
	s := &http.Server{Handler: b, ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second, IdleTimeout: 10 * time.Second,
		MaxHeaderBytes: 32 << 10, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
	go s.Serve(l)
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if s.Shutdown(ctx) != nil {
			s.Close()
		}
	}
}

func (b *callback) wait(ctx context.Context, wait time.Duration) (string, error) {
	late := time.NewTimer(wait)
	defer late.Stop()
	select {
	case a := <-b.done:
		return a.code, a.err
	case <-ctx.Done():
		return "", failed("it was interrupted", nil)
	case <-late.C:
		return "", failed("the user has not agreed within "+wait.String(), nil)
	}
}

// ServeHTTP takes the redirect. A request without the state is not the answer, wherever it comes from,
// so it does not end the login.
func (b *callback) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	switch {
	case r.Host != b.host: // a page that has another name for this machine
		page(w, http.StatusForbidden, "This address is not served here.")
		return
	case r.URL.Path != callbackPath:
		page(w, http.StatusNotFound, "There is no such page.")
		return
	case r.Method != http.MethodGet || len(q["state"]) != 1 || subtle.ConstantTimeCompare([]byte(q.Get("state")), []byte(b.state)) != 1:
		page(w, http.StatusBadRequest, "This is not the answer to the login that Pellucid waits for.")
		return
	}
	a := b.read(q)
	if a.err != nil {
		page(w, http.StatusOK, "The login has failed. The terminal says why. You may close this page.")
	} else {
		page(w, http.StatusOK, "You are logged in. You may close this page.")
	}
	select {
	case b.done <- a:
	default: // a second answer
	}
}

// read checks the answer: its issuer first, since the answer of another server means nothing (RFC 9207).
func (b *callback) read(q url.Values) answer {
	iss := q["iss"]
	switch {
	case len(iss) > 1, len(iss) == 1 && auth.IssuerKey(iss[0]) != auth.IssuerKey(b.issuer):
		return answer{err: failed("another authorization server has answered", nil)}
	case len(iss) == 0 && b.sendsIssuer:
		return answer{err: failed("the answer does not say which authorization server it is of", nil)}
	}
	if codes := q["error"]; len(codes) > 0 {
		if codes[0] == "access_denied" {
			return answer{err: errCancelled}
		}
		return answer{err: failed("the login was not accepted", refusal(codes[0]))}
	}
	if code := q["code"]; len(code) == 1 && visible(code[0], maxToken) {
		return answer{code: code[0]}
	}
	return answer{err: failed("the login was not accepted", errors.New("the answer has no acceptable code"))}
}

// page answers a browser with constant text.
func page(w http.ResponseWriter, status int, text string) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("Referrer-Policy", "no-referrer") // the address holds the code
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Connection", "close")
	w.WriteHeader(status)
	io.WriteString(w, fmt.Sprintf("<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Pellucid</title><p>%s</p></html>\n", text))
}
