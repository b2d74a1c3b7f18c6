// SPDX-License-Identifier: Apache-2.0

package didweb

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/grounding/attest"
	"github.com/pellucid-mcp/pellucid/text/href"
)

var locations = []struct{ did, url string }{
	{"did:web:w3c-ccg.github.io", "https://w3c-ccg.github.io/.well-known/did.json"},
	{"did:web:w3c-ccg.github.io:user:alice", "https://w3c-ccg.github.io/user/alice/did.json"},
	{"did:web:example.com%3A3000", "https://example.com:3000/.well-known/did.json"},
	{"did:web:example.com%3a3000:user:alice", "https://example.com:3000/user/alice/did.json"},
	{"did:web:example.com%3A443", "https://example.com:443/.well-known/did.json"},
	{"did:web:EXAMPLE.com", "https://example.com/.well-known/did.json"},
	{"did:web:example.com:a%20b", "https://example.com/a%20b/did.json"},
	{"did:web:example.com:.well-known", "https://example.com/.well-known/did.json"},
	{"did:web:xn--mnchen-3ya.de", "https://xn--mnchen-3ya.de/.well-known/did.json"},

	{"did:web:", ""},
	{"did:web:localhost", ""},
	{"did:web:intranet", ""},
	{"did:web:printer.local", ""},
	{"did:web:metadata.google.internal", ""},
	{"did:web:127.0.0.1", ""},
	{"did:web:8.8.8.8", ""},
	{"did:web:0x7f.1", ""},
	{"did:web:2130706433", ""},
	{"did:web:%5B%3A%3A1%5D", ""},
	{"did:web:example.com.", ""},
	{"did:web:example.com%3A22", ""},
	{"did:web:example.com%3A80", ""},
	{"did:web:example.com%3A0", ""},
	{"did:web:example.com%3A65536", ""},
	{"did:web:example.com%3A", ""},
	{"did:web:example.com%2Fadmin", ""},
	{"did:web:user%40example.com", ""},
	{"did:web:example.com:..:admin", ""},
	{"did:web:example.com:%2e%2e:admin", ""},
	{"did:web:example.com:%2E", ""},
	{"did:web:example.com:%252e.:admin", ""},
	{"did:web:example.com:a%2Fb", ""},
	{"did:web:example.com:a%252Fb", ""},
	{"did:web:example.com:a%3Fb", ""},
	{"did:web:example.com:a%0d%0ab", ""},
	{"did:web:example.com::a", ""},
	{"did:web:example.com:a:", ""},
	{"did:web:example.com/a", ""},
	{"did:web:example.com?a", ""},
	{"did:web:ex\u0430mple.com", ""},
	{"did:web:exam\u200bple.com", ""},
	{"did:key:z6Mk", ""},
}

func TestLocate(t *testing.T) {
	for _, tt := range locations {
		at, err := locate(tt.did)
		if at.url != tt.url {
			t.Errorf("%+q: %q (%v), want %q", tt.did, at.url, err, tt.url)
		}
		if (err != nil) != (tt.url == "") || err != nil && !errors.Is(err, attest.ErrNotAuthorised) {
			t.Errorf("%+q: error %v", tt.did, err)
		}
	}
}

func FuzzLocate(f *testing.F) {
	for _, tt := range locations {
		f.Add(tt.did)
	}
	f.Fuzz(func(t *testing.T, did string) {
		at, err := locate(did)
		if err != nil {
			if !errors.Is(err, attest.ErrNotAuthorised) || len(err.Error()) > 128 {
				t.Fatalf("%+q: error %v", did, err)
			}
			return
		}
		u, err := url.Parse(at.url)
		if err != nil {
			t.Fatalf("%+q: %v", did, err)
		}
		// The path is what every reader takes it for: it does not climb, and does not
		// become another by decoding.
		if u.Scheme != "https" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Hostname() != at.host ||
			!strings.HasSuffix(u.Path, "/did.json") || u.JoinPath().Path != u.Path {
			t.Fatalf("%+q: %q", did, at.url)
		}
		if parsed, err := href.Parse(at.url); err != nil || parsed.Host() != at.host || !strings.Contains(at.host, ".") {
			t.Fatalf("%+q: %q is not allowed", did, at.url)
		}
		if _, err := netip.ParseAddr(u.Hostname()); err == nil {
			t.Fatalf("%+q: an address", did)
		}
	})
}

// FuzzExchange lets a host answer anything at all, document included.
func FuzzExchange(f *testing.F) {
	good := documentOf(did, 1, key(f, 1))
	for _, s := range []string{
		"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n" + good,
		"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
		"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1/\r\n\r\n",
		"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n",
		"HTTP/1.0 200\r\n\r\n", "", "\x00",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, answer []byte) {
		g := newGetter(&Options{
			lookup: func(context.Context, string) ([]netip.Addr, error) { return []netip.Addr{public1}, nil },
			dangerouslyDial: func(context.Context, string, string) (net.Conn, error) {
				c, s := net.Pipe()
				go func() {
					defer s.Close()
					s.Read(make([]byte, 4096))
					s.Write(answer)
				}()
				return c, nil
			},
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		body, e := g.document(ctx, "http://example.com/.well-known/did.json") // no TLS: its own tests have it
		if e != nil {
			if e.reason == timeout {
				t.Fatalf("no end of %q", answer)
			}
			return
		}
		if len(body) > maxDocument {
			t.Fatalf("%d bytes", len(body))
		}
		if k, err := attest.DocumentKey(body, method); (k == nil) == (err == nil) {
			t.Fatalf("key %v, error %v", k, err)
		}
	})
}
