// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// newPair makes a certificate of that name and its key, as PEM, which signs itself.
func newPair(t *testing.T, name string) (cert, key []byte) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	x := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, x, x, k.Public(), k)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})
}

// TestClientTLS: a server behind a private authority that wants a client certificate is reached; a new pair in
// the same files counts for the next connection, and one that does not fit together leaves the last.
func TestClientTLS(t *testing.T) {
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, r.TLS.PeerCertificates[0].Subject.CommonName)
	}))
	srv.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	srv.StartTLS()
	defer srv.Close()
	dir := t.TempDir()
	write := func(name string, b []byte) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cert, key := newPair(t, "first")
	write("cert.pem", cert)
	write("key.pem", key)
	write("ca.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw}))
	config := "version: 1\nservers:\n  far:\n    url: " + srv.URL + "\n    tls: {cert: 'file:cert.pem', key: 'file:key.pem', ca: 'file:ca.pem'}\n"
	r, err := Parse([]byte(config), Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	c := r.Server("far").TLS.Config(func(line string) { told = append(told, line) })
	shown := func() string {
		t.Helper()
		resp, err := (&http.Client{Transport: &http.Transport{TLSClientConfig: c, DisableKeepAlives: true}}).Get(srv.URL)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		return string(b)
	}
	if got := shown(); got != "first" {
		t.Errorf("shown: %s", got)
	}
	cert, key = newPair(t, "second")
	write("cert.pem", cert) // not yet its key
	if got := shown(); got != "first" || len(told) != 1 {
		t.Errorf("shown: %s, told: %q", got, told)
	}
	write("key.pem", key)
	if got := shown(); got != "second" {
		t.Errorf("shown: %s", got)
	}
	if _, err := http.Get(srv.URL); err == nil {
		t.Error("the server takes every client")
	}
	dump := string(r.Effective())
	if strings.Contains(dump, "BEGIN") || !strings.Contains(dump, "file:key.pem") {
		t.Errorf("dump: %s", dump)
	}
	for config, want := range map[string]string{
		"{cert: 'file:cert.pem'}": "cert and key go together",
		"{}":                      "says nothing",
		"{ca: ca.pem}":            "want file:PATH",
		"{ca: 'file:absent.pem'}": "there is no such file",
		"{ca: 'file:key.pem'}":    "holds no PEM certificate",
		"{cert: 'file:ca.pem', key: 'file:key.pem'}":               "not a PEM certificate and its key",
		"{cert: 'file:cert.pem', key: 'file:key.pem', min: '1.0'}": "there is no such member",
	} {
		_, err := Parse([]byte("version: 1\nservers:\n  far:\n    url: "+srv.URL+"\n    tls: "+config+"\n"), Options{Dir: dir})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "BEGIN") {
			t.Errorf("%s: %v", config, err)
		}
	}
	if _, err := Parse([]byte("version: 1\nservers:\n  far: {url: 'http://example.com', tls: {ca: 'file:ca.pem'}}\n"), Options{Dir: dir}); err == nil || !strings.Contains(err.Error(), "is for https") {
		t.Error(err)
	}
	if x, err := NewClientTLS("", "", filepath.Join(dir, "ca.pem")); err != nil || x.Authorities() == nil || x.Config(nil).RootCAs == nil {
		t.Error(err)
	}
	if x, err := NewClientTLS("", "", ""); x != nil || err != nil || x.Config(nil) != nil || x.Authorities() != nil {
		t.Error(x, err)
	}
}
