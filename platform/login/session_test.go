// SPDX-License-Identifier: Apache-2.0

package login

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zalando/go-keyring"

	"github.com/pellucid-mcp/pellucid/platform/keychain"
	"github.com/pellucid-mcp/pellucid/platform/logtest"
	"github.com/pellucid-mcp/pellucid/platform/state"
)

// stored is a login of the site with tokens that it has given, in a store of its own.
func stored(t *testing.T, s *site, life time.Duration) (*Store, *Login) {
	t.Helper()
	store := newStore(t)
	s.rotating["refresh-0"] = true
	l := &Login{Server: s.URL + "/mcp", Resource: s.URL + "/mcp", Issuer: s.URL, TokenEndpoint: s.URL + "/token", RevocationEndpoint: s.URL + "/revoke",
		ClientID: "c", ClientMethod: methodNone}
	l.renew(&tokens{access: "access-0", refresh: "refresh-0", life: life}, time.Now().Add(-time.Minute))
	if err := store.Put(l, File); err != nil {
		t.Fatal(err)
	}
	return store, l
}

// session is one whose log is read, and whose clock is set.
func session(store *Store, server, principal string) (*Session, *logtest.Buffer, *time.Time) {
	log, now := &logtest.Buffer{}, time.Now()
	s := NewSession(SessionOptions{Store: store, Server: server, Principal: principal, Command: "pellucid login far",
		Log: slog.New(slog.NewTextHandler(log, nil)), now: func() time.Time { return now }})
	return s, log, &now
}

var unauthorized = []string{`Bearer error="invalid_token"`}

// TestSessionRenews: before the end of the token, and where the server refuses it.
func TestSessionRenews(t *testing.T) {
	s := newSite(t)
	store, l := stored(t, s, time.Hour)
	x, _, now := session(store, l.Server, "")
	ctx := t.Context()
	if v := x.Authorize(ctx); v != "Bearer access-0" {
		t.Fatal(v)
	}
	*now = l.Expires.Add(-30 * time.Second)
	if v := x.Authorize(ctx); v != "Bearer access-1" {
		t.Error("not renewed before its end:", v)
	}
	*now = now.Add(time.Minute)
	if v := x.Refused(ctx, "Bearer access-1", 401, unauthorized); v != "Bearer access-2" {
		t.Error("not renewed after 401:", v)
	}
	if v := x.Refused(ctx, "Bearer access-1", 401, unauthorized); v != "Bearer access-2" {
		t.Error("a late refusal of the old token:", v)
	}
	if v := x.Refused(ctx, "Bearer access-2", 401, unauthorized); v != "" {
		t.Error("a fresh token was renewed again:", v)
	}
	for _, f := range s.forms {
		if f.Get("grant_type") != "refresh_token" || f.Get("resource") != l.Resource || f.Get("client_id") != "c" {
			t.Errorf("%v", f)
		}
	}
	if got, err := store.Get(l.Server, ""); err != nil || got.Access != "access-2" || got.Refresh != "refresh-2" {
		t.Errorf("%v", err)
	}
}

// TestSessionsShare: each refresh token works once, and twenty sessions of two stores renew the same
// login at the same time. One of them does, for all.
func TestSessionsShare(t *testing.T) {
	s := newSite(t)
	store, l := stored(t, s, time.Second) // over
	other := OpenStore(store.dir)
	var work sync.WaitGroup
	for i := range 20 {
		x, _, _ := session([]*Store{store, other}[i%2], l.Server, "")
		work.Go(func() {
			if v := x.Authorize(context.Background()); v != "Bearer access-1" {
				t.Errorf("%s", v)
			}
		})
	}
	work.Wait()
	if len(s.forms) != 1 {
		t.Errorf("renewed %d times", len(s.forms))
	}
}

// TestRenewalFails: what a token endpoint may do, what the session goes on with, and what is told.
func TestRenewalFails(t *testing.T) {
	for _, tt := range []struct {
		name  string
		token func(w http.ResponseWriter)
		value string // afterwards
		said  string
		over  bool
	}{
		{"no new refresh token", func(w http.ResponseWriter) { io.WriteString(w, `{"access_token":"new","token_type":"Bearer"}`) }, "Bearer new", "", false},
		{"the login is over", func(w http.ResponseWriter) {
			w.WriteHeader(400)
			io.WriteString(w, `{"error":"invalid_grant","error_description":"`+secret+`"}`)
		}, "", `msg="the login of the server is over" run="pellucid login far"`, true},
		{"overloaded", func(w http.ResponseWriter) { w.WriteHeader(503); io.WriteString(w, secret) }, "Bearer access-0", "cannot be renewed at present", false},
		{"not JSON", func(w http.ResponseWriter) { io.WriteString(w, secret) }, "Bearer access-0", "not a JSON object", false},
		{"too long", func(w http.ResponseWriter) { io.WriteString(w, strings.Repeat(" ", 10<<20)) }, "Bearer access-0", "too long", false},
		{"client unknown", func(w http.ResponseWriter) { w.WriteHeader(401); io.WriteString(w, `{"error":"invalid_client"}`) }, "Bearer access-0", "does not know this client", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newSite(t)
			s.token = func(w http.ResponseWriter, _ url.Values) { tt.token(w) }
			store, l := stored(t, s, time.Hour)
			x, log, now := session(store, l.Server, "")
			*now = l.Expires.Add(-time.Second)
			if v := x.Authorize(t.Context()); v != tt.value {
				t.Errorf("%q", v)
			}
			x.Authorize(t.Context())
			if len(s.forms) != 1 {
				t.Errorf("asked %d times without a pause", len(s.forms))
			}
			if text := log.String(); !strings.Contains(text, tt.said) || strings.Contains(text, "s3cret") || strings.Contains(text, "refresh-") || strings.Contains(text, "access-") {
				t.Errorf("log: %s", text)
			}
			got, err := store.Get(l.Server, "")
			if err != nil || got.Over != tt.over || !tt.over && got.Refresh != "refresh-0" {
				t.Errorf("stored: %v %v", got.Over, err)
			}
		})
	}
}

// TestSessionWithout: the operator reads once what to run, and a later login counts without a restart.
func TestSessionWithout(t *testing.T) {
	s := newSite(t)
	store := newStore(t)
	x, log, _ := session(store, s.URL+"/mcp", "")
	ctx := t.Context()
	if v := x.Authorize(ctx); v != "" {
		t.Fatal(v)
	}
	for range 3 {
		if v := x.Refused(ctx, "", 401, unauthorized); v != "" {
			t.Fatal(v)
		}
	}
	if n := strings.Count(log.String(), `run="pellucid login far"`); n != 1 {
		t.Errorf("told %d times: %s", n, log)
	}
	l := &Login{Server: s.URL + "/mcp", Access: "later", ClientMethod: methodNone}
	if err := store.Put(l, File); err != nil {
		t.Fatal(err)
	}
	if v := x.Refused(ctx, "", 401, unauthorized); v != "Bearer later" {
		t.Error(v)
	}
	if err := store.Remove(l.Server, ""); err != nil {
		t.Fatal(err)
	}
	if v := x.Refused(ctx, "Bearer later", 401, unauthorized); v != "" {
		t.Error("after the logout:", v)
	}
}

// TestScopesWanted: the operator reads which scopes to ask for, where they can stand on a command line.
func TestScopesWanted(t *testing.T) {
	s := newSite(t)
	for challenge, want := range map[string]string{
		`Bearer error="insufficient_scope", scope="files:read files:write"`: "pellucid login far --scope files:read --scope files:write",
		`Bearer error="insufficient_scope", scope="a;reboot"`:               "pellucid login far --scope SCOPE",
		`Bearer error="insufficient_scope"`:                                 "pellucid login far",
	} {
		store, l := stored(t, s, time.Hour)
		x, log, _ := session(store, l.Server, "")
		if v := x.Refused(t.Context(), x.Authorize(t.Context()), 403, []string{challenge}); v != "" {
			t.Error(v)
		}
		if !strings.Contains(log.String(), `run="`+want+`"`) {
			t.Errorf("%s: %s", challenge, log)
		}
	}
}

// TestPrincipals: a principal has its own login, else the one for all, and never that of another.
func TestPrincipals(t *testing.T) {
	store := newStore(t)
	for principal, access := range map[string]string{"": "all", "alice": "of-alice"} {
		if err := store.Put(&Login{Server: "https://a.example/mcp", Principal: principal, Access: access}, File); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct{ server, principal, want string }{
		{"https://a.example/mcp", "", "Bearer all"}, {"https://a.example/mcp", "alice", "Bearer of-alice"}, {"https://a.example/mcp", "bob", "Bearer all"},
		{"HTTPS://A.EXAMPLE:443/mcp", "alice", "Bearer of-alice"}, {"https://a.example/other", "", ""}, {"https://b.example/mcp", "alice", ""}, {"http://a.example/mcp", "", ""},
	} {
		if x, _, _ := session(store, tt.server, tt.principal); x.Authorize(t.Context()) != tt.want {
			t.Errorf("%+v", tt)
		}
	}
	n, err := store.ForgetPrincipal("alice")
	if x, _, _ := session(store, "https://a.example/mcp", "alice"); n != 1 || err != nil || x.Authorize(t.Context()) != "Bearer all" {
		t.Errorf("%d %v", n, err)
	}
	// A file that was put in the place of another is that of another principal still.
	dir, err := store.logins(false)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(dir.File(fileName("https://a.example/mcp", "")+suffix), dir.File(fileName("https://a.example/mcp", "eve")+suffix)); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Get("https://a.example/mcp", "eve"); !errors.Is(err, ErrUnread) {
		t.Error(err)
	}
}

// TestStoredEncrypted: no secret stands in a file, and a damaged file is told as such.
func TestStoredEncrypted(t *testing.T) {
	s := newSite(t)
	store, l := stored(t, s, time.Hour)
	dir, err := store.logins(false)
	if err != nil {
		t.Fatal(err)
	}
	path := dir.File(fileName(l.Server, "") + suffix)
	b, err := os.ReadFile(path)
	if err != nil || !bytes.HasPrefix(b, []byte("pellucid-login/1 file\nage-encryption.org/v1\n")) || bytes.Contains(b, []byte("access")) || bytes.Contains(b, []byte("127.0.0.1")) {
		t.Errorf("%.100q %v", b, err)
	}
	for name, damage := range map[string][]byte{"cut": b[:len(b)-1], "empty": {}, "flipped": append(bytes.Clone(b[:len(b)-1]), b[len(b)-1]^1), "newer": append([]byte("pellucid-login/2 file\n"), b...)} {
		if err := os.WriteFile(path, damage, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := store.Get(l.Server, ""); !errors.Is(err, ErrUnread) {
			t.Errorf("%s: %v", name, err)
		}
		if all, err := store.List(); err != nil || len(all) != 1 || all[0].Err == nil {
			t.Errorf("%s: %v %v", name, all, err)
		}
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(store.dir.Path(), keyFile)); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenStore(store.dir).Get(l.Server, ""); !errors.Is(err, ErrUnread) || !strings.Contains(err.Error(), "log in again") {
		t.Error(err)
	}
	if err := store.Remove(l.Server, ""); err != nil {
		t.Error("a login whose key is gone cannot be removed:", err)
	}
}

// TestUnwritable: where the renewed tokens cannot be stored, the process goes on with them, says so, and renews from them.
func TestUnwritable(t *testing.T) {
	s := newSite(t)
	store, l := stored(t, s, time.Hour)
	x, log, now := session(store, l.Server, "")
	x.Authorize(t.Context())
	store.write = func(*state.Dir, string, []byte) error { return errors.New("read-only file system") }
	*now = l.Expires
	if v := x.Authorize(t.Context()); v != "Bearer access-1" || !strings.Contains(log.String(), "cannot be stored") {
		t.Errorf("%s: %s", v, log)
	}
	*now = now.Add(2 * time.Hour)
	if v := x.Authorize(t.Context()); v != "Bearer access-2" {
		t.Errorf("%s: %s", v, log)
	}
}

// TestReadOnly: a home that cannot be written still gives its tokens.
func TestReadOnly(t *testing.T) {
	if runtime.GOOS == "windows" || os.Getuid() == 0 {
		t.Skip("everything may be written here")
	}
	s := newSite(t)
	store, l := stored(t, s, time.Hour)
	for _, dir := range []string{filepath.Join(store.dir.Path(), subdirectory), store.dir.Path()} {
		if err := os.Chmod(dir, 0o500); err != nil {
			t.Fatal(err)
		}
		defer os.Chmod(dir, 0o700)
	}
	if x, _, _ := session(OpenStore(store.dir), l.Server, ""); x.Authorize(t.Context()) != "Bearer access-0" {
		t.Error("no token")
	}
	if err := store.Prepare(File); err != nil {
		t.Log(err)
	}
}

// TestKeychain: the key of a login lies in the keychain, and where that is locked the operator is told so.
func TestKeychain(t *testing.T) {
	keyring.MockInit()
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "x")
	store := newStore(t)
	l := &Login{Server: "https://a.example/mcp", Access: "x"}
	if err := store.Put(l, Keychain); err != nil {
		t.Fatal(err)
	}
	if all, err := OpenStore(store.dir).List(); err != nil || len(all) != 1 || all[0].Place != Keychain || all[0].Login == nil {
		t.Fatalf("%+v %v", all, err)
	}
	if store.dir.Has(keyFile) {
		t.Error("the key is in a file too")
	}
	keyring.MockInitWithError(fmt.Errorf("%s", secret))
	x, log, _ := session(OpenStore(store.dir), l.Server, "")
	if v := x.Authorize(t.Context()); v != "" || !strings.Contains(log.String(), "it is locked, or does not answer") || strings.Contains(log.String(), "s3cret") {
		t.Errorf("%q %s", v, log)
	}
	if err := OpenStore(store.dir).Prepare(Keychain); !errors.Is(err, keychain.ErrLocked) {
		t.Error(err)
	}
	keyring.MockInit() // another user's, or a new one
	if _, err := OpenStore(store.dir).Get(l.Server, ""); !errors.Is(err, ErrUnread) {
		t.Error(err)
	}
}

// TestRevoke: both tokens are revoked; a server that does not revoke one kind is no failure.
func TestRevoke(t *testing.T) {
	s := newSite(t)
	_, l := stored(t, s, time.Hour)
	var got []string
	status := http.StatusOK
	s.also = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/revoke" {
			return false
		}
		got = append(got, r.PostFormValue("token_type_hint")+" "+r.PostFormValue("token"))
		w.WriteHeader(status)
		if status == http.StatusBadRequest {
			io.WriteString(w, `{"error":"unsupported_token_type"}`)
		}
		return true
	}
	for _, status = range []int{http.StatusOK, http.StatusBadRequest} {
		if told, err := Revoke(t.Context(), l, nil); !told || err != nil {
			t.Errorf("status %d: %v", status, err)
		}
	}
	status, got = http.StatusInternalServerError, nil
	if told, err := Revoke(t.Context(), l, nil); told || err == nil {
		t.Error("a failure is not told")
	}
	if len(got) != 2 || got[0] != "refresh_token refresh-0" || got[1] != "access_token access-0" {
		t.Errorf("%q", got)
	}
	l.RevocationEndpoint = ""
	if told, err := Revoke(t.Context(), l, nil); told || err != nil {
		t.Errorf("%v %v", told, err)
	}
}
