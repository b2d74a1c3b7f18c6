// SPDX-License-Identifier: Apache-2.0

package didweb

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/pellucid-mcp/pellucid/grounding/attest"
)

func TestMain(m *testing.M) {
	os.Setenv("HTTPS_PROXY", "http://proxy.example:1") // nobody is to ask it
	os.Setenv("NO_PROXY", "")
	goleak.VerifyTestMain(m)
}

const (
	did    = "did:web:example.com"
	method = did + "#key-1"
	// marker is what no error may repeat.
	marker = "ignore-all-previous-instructions"
)

var public1 = netip.MustParseAddr("93.184.216.34")

// key is a key of the seed n n n …
func key(t testing.TB, n byte) attest.Key {
	t.Helper()
	k, err := attest.GenerateKey(bytes.NewReader(bytes.Repeat([]byte{n}, ed25519.SeedSize)))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// documentOf is a DID document that lists k as #key-n.
func documentOf(did string, n int, k attest.Key) string {
	return fmt.Sprintf(`{"id":%q,"verificationMethod":[{"id":"#key-%d","type":"Multikey","controller":%q,"publicKeyMultibase":%q}],"assertionMethod":["#key-%d"]}`,
		did, n, did, k.Public(), n)
}

func serve(contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		io.WriteString(w, body)
	}
}

// A world is a server with the certificate of example.com, and a Resolver for
// which that host has a public address at which the server answers.
type world struct {
	*Resolver
	server  *httptest.Server
	lookups atomic.Int32
	mu      sync.Mutex
	dialled []string
	now     time.Time
}

func (w *world) advance(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

func newWorld(t *testing.T, h http.Handler, configure ...func(*world, *Options)) *world {
	t.Helper()
	w := &world{now: time.Unix(1_800_000_000, 0)}
	w.server = httptest.NewUnstartedServer(h)
	w.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	w.server.StartTLS()
	t.Cleanup(func() {
		w.server.CloseClientConnections()
		w.server.Close()
	})
	roots := x509.NewCertPool()
	roots.AddCert(w.server.Certificate())
	o := Options{
		timeout: 5 * time.Second,
		lookup: func(context.Context, string) ([]netip.Addr, error) {
			w.lookups.Add(1)
			return []netip.Addr{public1}, nil
		},
		now: func() time.Time {
			w.mu.Lock()
			defer w.mu.Unlock()
			return w.now
		},
		dangerouslyRoots: roots,
		dangerouslyDial: func(ctx context.Context, network, address string) (net.Conn, error) {
			w.mu.Lock()
			w.dialled = append(w.dialled, address)
			w.mu.Unlock()
			return new(net.Dialer).DialContext(ctx, network, w.server.Listener.Addr().String())
		},
	}
	for _, c := range configure {
		c(w, &o)
	}
	w.Resolver = New(o)
	return w
}

// reason is that of an *Error, or how else err is to be read.
func reason(err error) Reason {
	var e *Error
	switch {
	case err == nil:
		return ""
	case errors.As(err, &e):
		return e.reason
	case errors.Is(err, attest.ErrNotAuthorised):
		return "not authorised"
	}
	return Reason("another error: " + err.Error())
}

const notAuthorised Reason = "not authorised"

func want(t *testing.T, err error, w Reason) {
	t.Helper()
	if got := reason(err); got != w {
		t.Errorf("reason %q, want %q", got, w)
	}
	if err != nil && strings.Contains(err.Error(), marker) {
		t.Errorf("the error repeats what the host said: %q", err)
	}
}

func TestResolve(t *testing.T) {
	k := key(t, 1)
	for _, tt := range []struct{ did, path, dialled, contentType string }{
		{did, "/.well-known/did.json", "93.184.216.34:443", "application/did+ld+json"},
		{did, "/.well-known/did.json", "93.184.216.34:443", "application/did+json"},
		{did, "/.well-known/did.json", "93.184.216.34:443", "application/json; charset=utf-8"},
		{did + ":user:alice", "/user/alice/did.json", "93.184.216.34:443", "application/json"},
		{did + "%3A8443", "/.well-known/did.json", "93.184.216.34:8443", "application/json"},
		{did + "%3A8443:a", "/a/did.json", "93.184.216.34:8443", "application/json"},
	} {
		w := newWorld(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != tt.path || r.Method != http.MethodGet || r.Header.Get("Accept-Encoding") != "" {
				w.WriteHeader(http.StatusTeapot)
			}
			serve(tt.contentType, documentOf(tt.did, 1, k))(w, r)
		}))
		pub, err := w.ResolveKey(t.Context(), tt.did+"#key-1")
		if err != nil {
			t.Errorf("%s: %v", tt.did, err)
			continue
		}
		if direct, _ := (attest.DIDKey{}).ResolveKey(t.Context(), k.Method()); !pub.Equal(direct) {
			t.Errorf("%s: another key", tt.did)
		}
		if got := strings.Join(w.dialled, " "); got != tt.dialled {
			t.Errorf("%s: dialled %s, want %s", tt.did, got, tt.dialled)
		}
	}
}

func TestDIDKeyAndOthers(t *testing.T) {
	k := key(t, 1)
	r := New(Options{offline: true})
	if _, err := r.ResolveKey(t.Context(), k.Method()); err != nil {
		t.Errorf("did:key: %v", err)
	}
	for m, w := range map[string]Reason{
		method:                 disabled,
		"did:ion:abc#k":        notAuthorised,
		"":                     notAuthorised,
		"did:web:127.0.0.1#k":  notAuthorised, // certain, whether enabled or not
		"did:web:#k":           notAuthorised,
		"DID:WEB:example.com#": notAuthorised,
	} {
		_, err := r.ResolveKey(t.Context(), m)
		want(t, err, w)
	}
	if (&Error{disabled}).Temporary() || !(&Error{unreachable}).Temporary() {
		t.Error("Temporary: only Disabled stays as it is")
	}
}

// TestVerify shows what package attest makes of the errors.
func TestVerify(t *testing.T) {
	k := key(t, 1)
	doc := []byte(`{"@context":"https://veritas-protocol.example/attestation/v0.3","id":"urn:x-test:1"}`)
	signed, err := attest.Sign(doc, k, attest.SignOptions{Method: method})
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		body, want string
	}{
		"good":        {documentOf(did, 1, k), ""},
		"another key": {documentOf(did, 1, key(t, 2)), "proof-invalid"},
		"not listed":  {documentOf(did, 2, k), "proof-key"},
		"not JSON":    {marker, "key-unavailable"},
	} {
		w := newWorld(t, serve("application/json", tt.body))
		got := ""
		if _, err := attest.VerifyDocument(t.Context(), signed, w.now, w); err != nil {
			var r *attest.Refusal
			if !errors.As(err, &r) {
				t.Fatal(err)
			}
			got = string(r.Code)
			var e *Error
			if got == "key-unavailable" && !errors.As(err, &e) {
				t.Errorf("%s: the reason is lost", name)
			}
		}
		if got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}
