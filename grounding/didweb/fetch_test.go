// SPDX-License-Identifier: Apache-2.0

package didweb

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func gzipped(s string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	io.WriteString(z, s)
	z.Close()
	return b.String()
}

// endless writes until nobody listens.
func endless(chunk string, pause time.Duration) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for {
			if _, err := io.WriteString(w, chunk); err != nil {
				return
			}
			if pause > 0 {
				http.NewResponseController(w).Flush()
			}
			select {
			case <-r.Context().Done():
				return
			case <-time.After(pause):
			}
		}
	}
}

// raw answers with bytes that need not be HTTP.
func raw(size func(io.Writer)) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		c, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer c.Close()
		size(c)
	}
}

func TestHostileServer(t *testing.T) {
	k := key(t, 1)
	good := documentOf(did, 1, k)
	header := func(name, value string, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Add(name, value)
			serve("application/json", body)(w, r)
		}
	}
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(code)
			io.WriteString(w, good)
		}
	}
	for _, tt := range []struct {
		name   string
		handle http.HandlerFunc
		want   Reason
	}{
		{"redirect", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://example.com/"+marker, http.StatusFound)
		}, redirected},
		{"300", status(300), redirected},
		{"404", status(404), absent},
		{"410", status(410), absent},
		{"500", status(500), Status},
		{"204", status(204), Status},
		{"206", status(206), Status},
		{"html", serve("text/html", good), wrongType},
		{"vc+json", serve("application/vc+json", good), wrongType},
		{"a type with the marker", serve(marker, good), wrongType},
		{"two types", header("Content-Type", "text/html", good), ""}, // Set replaces: a control
		{"gzip bomb", header("Content-Encoding", "gzip", gzipped(strings.Repeat(" ", 10<<20))), encoded},
		{"gzip unasked", serve("application/json", gzipped(good)), notADocument},
		{"endless body", endless(strings.Repeat(" ", 4096), 0), tooLarge},
		{"a slow body", endless(" ", 20*time.Millisecond), timeout},
		{"slow header", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, timeout},
		{"declared too large", serve("application/json", strings.Repeat(" ", maxDocument+1)), tooLarge},
		{"large enough", serve("application/json", good+strings.Repeat(" ", maxDocument-len(good))), ""},
		{"a header of 32 KiB", header("X-A", strings.Repeat("a", 32<<10), good), exchange},
		{"a header of 8 KiB", header("X-A", strings.Repeat("a", 8<<10), good), ""},
		{"100 MB of header", raw(func(w io.Writer) {
			io.WriteString(w, "HTTP/1.1 200 OK\r\n")
			line := "X-A: " + strings.Repeat("a", 4096) + "\r\n"
			for range 100 << 20 / len(line) {
				if _, err := io.WriteString(w, line); err != nil {
					return
				}
			}
		}), exchange},
		{"100 MB of one header", raw(func(w io.Writer) {
			io.WriteString(w, "HTTP/1.1 200 OK\r\nX-A: ")
			for range 100 << 20 / 4096 {
				if _, err := io.WriteString(w, strings.Repeat("a", 4096)); err != nil {
					return
				}
			}
		}), exchange},
		{"no HTTP", raw(func(w io.Writer) { io.WriteString(w, marker+"\r\n\r\n") }), exchange},
		{"closes", raw(func(io.Writer) {}), exchange},
		{"closes in the body", raw(func(w io.Writer) {
			io.WriteString(w, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 999\r\n\r\n{")
		}), exchange},
		{"no type", raw(func(w io.Writer) { io.WriteString(w, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}") }), wrongType},
		{"a type twice", raw(func(w io.Writer) {
			io.WriteString(w, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Type: text/html\r\nContent-Length: 2\r\n\r\n{}")
		}), wrongType},
		{"HTTP/2 unasked", raw(func(w io.Writer) { io.WriteString(w, "\x00\x00\x00\x04\x00\x00\x00\x00\x00") }), exchange},
		{"another's id", serve("application/json", documentOf("did:web:other.example", 1, k)), notAuthorised},
		{"another key", serve("application/json", documentOf(did, 2, k)), notAuthorised},
		{"no id", serve("application/json", "{}"), notAuthorised},
		{"a list", serve("application/json", "[]"), notAuthorised},
		{"not JSON", serve("application/json", marker), notADocument},
		{"empty", serve("application/json", ""), notADocument},
		{"two ids", serve("application/json", `{"id":"`+did+`","ID":"x"}`), notADocument},
		{"deep", serve("application/json", strings.Repeat("[", 30000)), notADocument},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, tt.handle, func(_ *world, o *Options) {
				if tt.want == timeout {
					o.timeout = 600 * time.Millisecond
				}
			})
			start := time.Now()
			_, err := w.ResolveKey(t.Context(), method)
			want(t, err, tt.want)
			if d := time.Since(start); d > 20*time.Second {
				t.Errorf("took %v", d)
			}
			if n := len(w.dialled); n != 1 {
				t.Errorf("%d connections, want 1", n)
			}
		})
	}
}

func TestTLS(t *testing.T) {
	h := serve("application/json", documentOf(did, 1, key(t, 1)))
	t.Run("unknown authority", func(t *testing.T) {
		w := newWorld(t, h, func(_ *world, o *Options) { o.dangerouslyRoots = x509.NewCertPool() })
		_, err := w.ResolveKey(t.Context(), method)
		want(t, err, certificate)
	})
	t.Run("the system's authorities", func(t *testing.T) {
		w := newWorld(t, h, func(_ *world, o *Options) { o.dangerouslyRoots = nil })
		_, err := w.ResolveKey(t.Context(), method)
		want(t, err, certificate)
	})
	t.Run("another name", func(t *testing.T) {
		w := newWorld(t, h)
		_, err := w.ResolveKey(t.Context(), "did:web:other.example.net#key-1")
		want(t, err, certificate)
	})
	old := func(c func(*tls.Config)) *world {
		w := newWorld(t, h)
		s := httptest.NewUnstartedServer(h)
		s.Config.ErrorLog = log.New(io.Discard, "", 0)
		s.TLS = new(tls.Config)
		c(s.TLS)
		s.StartTLS()
		t.Cleanup(s.Close)
		w.server.Close()
		w.server = s
		return w
	}
	t.Run("TLS 1.1", func(t *testing.T) {
		w := old(func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS10, tls.VersionTLS11 })
		_, err := w.ResolveKey(t.Context(), method)
		want(t, err, insecure)
	})
	t.Run("HTTP/2 offered", func(t *testing.T) {
		w := newWorld(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.ProtoMajor != 1 {
				w.WriteHeader(http.StatusTeapot)
			}
			h(w, r)
		}))
		s := httptest.NewUnstartedServer(w.server.Config.Handler)
		s.EnableHTTP2 = true
		s.StartTLS()
		t.Cleanup(s.Close)
		w.server.Close()
		w.server = s
		if _, err := w.ResolveKey(t.Context(), method); err != nil {
			t.Error(err)
		}
	})
	t.Run("no TLS", func(t *testing.T) {
		w := newWorld(t, h)
		s := httptest.NewServer(h)
		t.Cleanup(s.Close)
		w.server.Close()
		w.server = s
		_, err := w.ResolveKey(t.Context(), method)
		want(t, err, insecure)
	})
}

func TestAddresses(t *testing.T) {
	for _, a := range []string{
		"127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0",
		"224.0.0.1", "255.255.255.255", "198.18.0.1", "192.0.0.1", "192.88.99.1", "::1", "::", "fe80::1", "fe80::1%eth0",
		"fc00::1", "fd12::1", "ff02::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "64:ff9b:1::a00:1",
		"2002:7f00:1::1", "2001::1", "::127.0.0.1", "fec0::1", "2606:2800:220:1::1%eth0",
	} {
		for _, list := range [][]netip.Addr{
			{netip.MustParseAddr(a)},
			{public1, netip.MustParseAddr(a)},
			{netip.MustParseAddr(a), public1},
		} {
			w := newWorld(t, http.NotFoundHandler(), func(_ *world, o *Options) {
				o.lookup = func(context.Context, string) ([]netip.Addr, error) { return list, nil }
			})
			_, err := w.ResolveKey(t.Context(), method)
			want(t, err, notPublic)
			if len(w.dialled) > 0 {
				t.Errorf("%s was connected to", a)
			}
		}
	}
	for name, list := range map[string][]netip.Addr{
		"none": nil, "invalid": {{}}, "many": make([]netip.Addr, maxAddresses+1),
	} {
		w := newWorld(t, http.NotFoundHandler(), func(_ *world, o *Options) {
			o.lookup = func(context.Context, string) ([]netip.Addr, error) { return list, nil }
		})
		if _, err := w.ResolveKey(t.Context(), method); reason(err) != noAddress && reason(err) != notPublic {
			t.Errorf("%s: %v", name, err)
		}
	}
	w := newWorld(t, serve("application/json", documentOf(did, 1, key(t, 1))), func(_ *world, o *Options) {
		o.lookup = func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("::ffff:93.184.216.34")}, nil
		}
	})
	if _, err := w.ResolveKey(t.Context(), method); err != nil || w.dialled[0] != "93.184.216.34:443" {
		t.Errorf("a mapped address: %v, %v", w.dialled, err)
	}
	for _, a := range []string{"93.184.216.34", "2606:2800:220:1:248:1893:25c8:1946", "::ffff:93.184.216.34"} {
		if !public(netip.MustParseAddr(a).Unmap()) {
			t.Errorf("%s is public", a)
		}
	}
}

// TestRebinding lets the name lead elsewhere the second time that it is asked for.
func TestRebinding(t *testing.T) {
	var asked atomic.Int32
	w := newWorld(t, serve("application/json", documentOf(did, 1, key(t, 1))), func(_ *world, o *Options) {
		o.lookup = func(context.Context, string) ([]netip.Addr, error) {
			if asked.Add(1) == 1 {
				return []netip.Addr{public1}, nil
			}
			return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
		}
	})
	if _, err := w.ResolveKey(t.Context(), method); err != nil {
		t.Fatal(err)
	}
	if asked.Load() != 1 || w.dialled[0] != "93.184.216.34:443" {
		t.Errorf("asked %d times, dialled %v", asked.Load(), w.dialled)
	}
	w.advance(time.Hour)
	_, err := w.ResolveKey(t.Context(), method)
	want(t, err, notPublic)
	if len(w.dialled) != 1 {
		t.Errorf("dialled %v", w.dialled)
	}
}

func TestUnreachable(t *testing.T) {
	second := netip.MustParseAddr("93.184.216.35")
	w := newWorld(t, serve("application/json", documentOf(did, 1, key(t, 1))), func(w *world, o *Options) {
		o.lookup = func(_ context.Context, host string) ([]netip.Addr, error) {
			if host == "example.com" {
				return []netip.Addr{public1, second}, nil
			}
			return nil, errors.New(marker)
		}
		dial := o.dangerouslyDial
		o.dangerouslyDial = func(ctx context.Context, network, address string) (net.Conn, error) {
			if strings.HasPrefix(address, public1.String()+":") {
				return nil, errors.New(marker)
			}
			return dial(ctx, network, address)
		}
	})
	if _, err := w.ResolveKey(t.Context(), method); err != nil {
		t.Errorf("the second address answers: %v", err)
	}
	_, err := w.ResolveKey(t.Context(), "did:web:www.example.com#key-1")
	want(t, err, noAddress)
	w = newWorld(t, http.NotFoundHandler(), func(_ *world, o *Options) {
		o.dangerouslyDial = func(context.Context, string, string) (net.Conn, error) { return nil, errors.New(marker) }
	})
	_, err = w.ResolveKey(t.Context(), method)
	want(t, err, unreachable)
}
