// SPDX-License-Identifier: Apache-2.0

package peer

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func secret(b byte) []byte { return bytes.Repeat([]byte{b}, 32) }

func keys(t *testing.T, secrets ...[]byte) *Keys {
	t.Helper()
	k, err := NewKeys(secrets...)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// serve answers requests of replicas with k, and counts them.
func serve(t *testing.T, k *Keys, h http.Handler) (addr string, asked *atomic.Int64) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	asked = &atomic.Int64{}
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { asked.Add(1); h.ServeHTTP(w, r) }),
		ErrorLog: log.New(io.Discard, "", 0)}
	go srv.Serve(k.Listen(l))
	t.Cleanup(func() { srv.Close() })
	return l.Addr().String(), asked
}

func request(t *testing.T, addr string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+addr+"/mcp", strings.NewReader("body"))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

var echo = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.Copy(w, r.Body) })

// TestKeys: replicas with a common key understand each other, also while the key is rotated; others do not.
func TestKeys(t *testing.T) {
	for _, tt := range []struct {
		name           string
		server, client [][]byte
		ok             bool
	}{
		{"same key", [][]byte{secret(1)}, [][]byte{secret(1)}, true},
		{"other key", [][]byte{secret(1)}, [][]byte{secret(2)}, false},
		{"the server has rotated", [][]byte{secret(2), secret(1)}, [][]byte{secret(1)}, true},
		{"the client has rotated", [][]byte{secret(1)}, [][]byte{secret(2), secret(1)}, true},
		{"both have", [][]byte{secret(2), secret(1)}, [][]byte{secret(2), secret(1)}, true},
		{"the old key is no longer accepted", [][]byte{secret(2)}, [][]byte{secret(1)}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, c := keys(t, tt.server...), keys(t, tt.client...)
			addr, asked := serve(t, s, echo)
			tr := c.Transport()
			defer tr.CloseIdleConnections()
			resp, err := tr.RoundTrip(request(t, addr))
			if (err == nil) != tt.ok {
				t.Fatalf("%v", err)
			}
			if err != nil {
				if !errors.Is(err, ErrHandshake) || asked.Load() != 0 {
					t.Errorf("%v, asked %d times", err, asked.Load())
				}
				return
			}
			defer resp.Body.Close()
			if b, err := io.ReadAll(resp.Body); string(b) != "body" || err != nil {
				t.Errorf("%q, %v", b, err)
			}
		})
	}
}

// TestStrangers: a process without the key of the installation gets no request through, whatever it shows.
func TestStrangers(t *testing.T) {
	own := keys(t, secret(1))
	addr, asked := serve(t, own, echo)
	_, strange, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ours := (*own.ring.Load())[0]
	// The certificate is public, the private key is not.
	copied := tls.Certificate{Certificate: ours.cert.Certificate, PrivateKey: strange}
	other := (*keys(t, secret(2)).ring.Load())[0]
	for name, c := range map[string]*tls.Config{
		"no certificate":     {ServerName: ours.id, InsecureSkipVerify: true},
		"another key":        {ServerName: ours.id, InsecureSkipVerify: true, Certificates: []tls.Certificate{other.cert}},
		"a copied one":       {ServerName: ours.id, InsecureSkipVerify: true, Certificates: []tls.Certificate{copied}},
		"another name":       {ServerName: other.id, InsecureSkipVerify: true, Certificates: []tls.Certificate{other.cert}},
		"no name":            {InsecureSkipVerify: true, Certificates: []tls.Certificate{ours.cert}},
		"an older TLS":       {ServerName: ours.id, InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12, Certificates: []tls.Certificate{ours.cert}},
		"checks by the book": {ServerName: ours.id, Certificates: []tls.Certificate{ours.cert}},
	} {
		t.Run(name, func(t *testing.T) {
			client := &http.Client{Transport: &http.Transport{TLSClientConfig: c}, Timeout: 10 * time.Second}
			resp, err := client.Post("https://"+addr+"/mcp", "application/json", strings.NewReader("{}"))
			if err == nil {
				resp.Body.Close()
				t.Errorf("answered: %s", resp.Status)
			}
			client.CloseIdleConnections()
		})
	}
	t.Run("plain HTTP", func(t *testing.T) {
		resp, err := http.Post("http://"+addr+"/mcp", "application/json", strings.NewReader("{}"))
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode < 400 {
				t.Errorf("answered: %s", resp.Status)
			}
		}
	})
	if n := asked.Load(); n != 0 {
		t.Errorf("%d requests came through", n)
	}
}

// TestImpostor: a process that listens at the address of a replica, and does not have the key, gets nothing.
func TestImpostor(t *testing.T) {
	got := &atomic.Int64{}
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { got.Add(1) }))
	srv.TLS = &tls.Config{MinVersion: tls.VersionTLS13, ClientAuth: tls.RequestClientCert}
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.StartTLS()
	defer srv.Close()
	own := keys(t, secret(1))
	if _, err := own.Transport().RoundTrip(request(t, srv.Listener.Addr().String())); !errors.Is(err, ErrHandshake) || got.Load() != 0 {
		t.Errorf("%v, received: %d", err, got.Load())
	}
}

// TestNotSent: a request is known not to have been sent where there was no connection, and only there. Each request has a
// connection of its own, and the transport sends it once.
func TestNotSent(t *testing.T) {
	own := keys(t, secret(1))
	tr := own.Transport()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	if _, err := tr.RoundTrip(request(t, l.Addr().String())); !errors.Is(err, ErrNotSent) {
		t.Errorf("nothing listens: %v", err)
	}
	connections := map[string]bool{}
	addr, asked := serve(t, own, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		connections[r.RemoteAddr] = true
		if r.Header.Get("Break") == "" {
			echo.ServeHTTP(w, r)
			return
		}
		panic(http.ErrAbortHandler)
	}))
	for range 2 {
		resp, err := tr.RoundTrip(request(t, addr))
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		r := request(t, addr)
		r.Header.Set("Break", "yes")
		if _, err := tr.RoundTrip(r); err == nil || errors.Is(err, ErrNotSent) || errors.Is(err, ErrHandshake) {
			t.Errorf("a connection that broke: %v", err)
		}
	}
	if len(connections) != 4 || asked.Load() != 4 {
		t.Errorf("%d connections, received %d times", len(connections), asked.Load())
	}
}
