// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha512"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pellucid-mcp/pellucid/platform/programtest"
)

// privateCA returns the certificate of a new authority in PEM, and a certificate that it has
// issued for registry.test and 127.0.0.1.
func privateCA(t *testing.T) ([]byte, tls.Certificate) {
	t.Helper()
	key := func() *ecdsa.PrivateKey {
		k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	sign := func(c, by *x509.Certificate, k, signer *ecdsa.PrivateKey) []byte {
		c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
		der, err := x509.CreateCertificate(rand.Reader, c, by, &k.PublicKey, signer)
		if err != nil {
			t.Fatal(err)
		}
		return der
	}
	caKey, leafKey := key(), key()
	ca := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "private"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	root := sign(ca, ca, caKey, caKey)
	leaf := sign(&x509.Certificate{SerialNumber: big.NewInt(2), DNSNames: []string{"registry.test"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}, ca, leafKey, caKey)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root}), tls.Certificate{Certificate: [][]byte{leaf}, PrivateKey: leafKey}
}

// An npm package with one MCP server, whose tool fetches a page over TLS.
const npmServerJS = `#!/usr/bin/env node
const https = require("https"), rl = require("readline").createInterface({ input: process.stdin })
const say = (id, result) => console.log(JSON.stringify({ jsonrpc: "2.0", id, result }))
rl.on("line", line => {
  const m = JSON.parse(line)
  if (m.method === "initialize") say(m.id, { protocolVersion: m.params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "tls", version: "1" } })
  else if (m.method === "tools/list") say(m.id, { tools: [{ name: "fetch_page", description: "Fetches the page.", inputSchema: { type: "object" } }] })
  else if (m.method === "tools/call") https.get(process.argv[2], r => { let s = ""; r.on("data", d => s += d); r.on("end", () => say(m.id, { content: [{ type: "text", text: s }] })) })
    .on("error", e => say(m.id, { isError: true, content: [{ type: "text", text: e.message }] }))
  else if (m.id !== undefined) say(m.id, {})
})
`

// npmPackage is the package as a registry serves it.
func npmPackage(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for name, text := range map[string]string{"package/package.json": `{"name":"e2e-tls-server","version":"1.0.0","bin":{"e2e-tls-server":"server.js"}}`, "package/server.js": npmServerJS} {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	w.Close()
	z.Close()
	return b.Bytes()
}

// breakingProxy is a proxy that ends TLS itself, with certificates of a private authority, and
// serves the registry https://registry.test. seen counts its connections by whether they
// carried a password.
func breakingProxy(t *testing.T, leaf tls.Certificate) (address string, plain, authorised *atomic.Int64) {
	t.Helper()
	tarball := npmPackage(t)
	sum := sha512.Sum512(tarball)
	plain, authorised = new(atomic.Int64), new(atomic.Int64)
	registry := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, ".tgz"):
			w.Write(tarball)
		case r.URL.Path == "/e2e-tls-server":
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"name":"e2e-tls-server","dist-tags":{"latest":"1.0.0"},"versions":{"1.0.0":{"name":"e2e-tls-server","version":"1.0.0","bin":{"e2e-tls-server":"server.js"},"dist":{"tarball":"https://registry.test/e2e-tls-server/-/e2e-tls-server-1.0.0.tgz","integrity":"sha512-%s"}}}}`, base64.StdEncoding.EncodeToString(sum[:]))
		default:
			http.NotFound(w, r)
		}
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	serve := func(conn net.Conn) {
		defer conn.Close()
		conn.SetDeadline(time.Now().Add(patience))
		r, err := http.ReadRequest(bufio.NewReader(conn))
		if err != nil || r.Method != http.MethodConnect || r.Host != "registry.test:443" {
			return
		}
		if r.Header.Get("Proxy-Authorization") == "Basic "+base64.StdEncoding.EncodeToString([]byte("ada:pw4proxy")) {
			authorised.Add(1)
		} else {
			plain.Add(1)
		}
		fmt.Fprint(conn, "HTTP/1.1 200 OK\r\n\r\n")
		one := make(chan net.Conn, 1)
		one <- tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{leaf}})
		done := make(chan struct{})
		s := &http.Server{Handler: registry, ConnState: func(_ net.Conn, state http.ConnState) {
			if state == http.StateClosed {
				close(done)
			}
		}}
		go s.Serve(&oneListener{one, l.Addr()})
		<-done
	}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go serve(conn)
		}
	}()
	return l.Addr().String(), plain, authorised
}

// oneListener accepts what is in conns, and then waits for ever.
type oneListener struct {
	conns chan net.Conn
	addr  net.Addr
}

func (l *oneListener) Accept() (net.Conn, error) { return <-l.conns, nil }
func (l *oneListener) Close() error              { return nil }
func (l *oneListener) Addr() net.Addr            { return l.addr }

// TestBreakingProxy: a server that npx installs through a proxy that breaks TLS with a private
// authority runs behind wrap without a word about variables, and trusts the authority too. A
// proxy with a password is reached by its name only, and wrap says which name.
func TestBreakingProxy(t *testing.T) {
	npx := programtest.Find(t, "npx")
	ca, leaf := privateCA(t)
	caFile := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(caFile, ca, 0o600); err != nil {
		t.Fatal(err)
	}
	page := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "a page behind a private authority") }))
	page.TLS = &tls.Config{Certificates: []tls.Certificate{leaf}}
	page.StartTLS()
	defer page.Close()
	proxy, plain, authorised := breakingProxy(t, leaf)

	for _, tt := range []struct {
		name, proxy string
		flags       []string
		runs        bool
	}{
		{"open", "http://" + proxy, nil, true},
		{"password", "http://ada:pw4proxy@" + proxy, nil, false},
		{"password-by-name", "http://ada:pw4proxy@" + proxy, []string{"--env", "HTTPS_PROXY"}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := newInstall(t)
			var said bytes.Buffer
			cmd := in.command(append(append([]string{"--name", "tls"}, tt.flags...), "--", npx, "-y", "e2e-tls-server", page.URL)...)
			cmd.Env = slices.DeleteFunc(in.env(), func(kv string) bool {
				name, _, _ := strings.Cut(strings.ToLower(kv), "=")
				return strings.HasSuffix(name, "_proxy") || strings.HasPrefix(name, "npm_config_")
			})
			cmd.Env = append(cmd.Env, "HTTPS_PROXY="+tt.proxy, "NODE_EXTRA_CA_CERTS="+caFile, "HOME="+t.TempDir(),
				"npm_config_registry=https://registry.test/", "npm_config_cache="+t.TempDir(), "npm_config_fetch_retries=0", "npm_config_update_notifier=false", "npm_config_globalconfig="+filepath.Join(t.TempDir(), "npmrc"))
			cmd.Stderr = &said
			before := plain.Load() + authorised.Load()
			client := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1"}, nil)
			session, err := client.Connect(soon(t), &mcp.CommandTransport{Command: cmd, TerminateDuration: 15 * time.Second}, nil)
			if !tt.runs {
				if err == nil {
					session.Close()
					t.Fatal("the server ran without its proxy")
				}
				if plain.Load()+authorised.Load() != before {
					t.Error("the server has reached the proxy")
				}
				if s := said.String(); !strings.Contains(s, "a proxy is not passed on to the server") || !strings.Contains(s, "HTTPS_PROXY") || strings.Contains(s, "pw4proxy") {
					t.Errorf("wrap says:\n%s", s)
				}
				return
			}
			if err != nil {
				t.Fatalf("%v\n%s", err, said.String())
			}
			defer session.Close()
			got, err := session.CallTool(soon(t), &mcp.CallToolParams{Name: "fetch_page"})
			if err != nil || got.IsError || !strings.Contains(fmt.Sprint(got.Content[0].(*mcp.TextContent).Text), "a page behind a private authority") {
				t.Errorf("%+v, %v\n%s", got, err, said.String())
			}
			if plain.Load()+authorised.Load() == before {
				t.Error("npx has not asked the proxy")
			}
			if strings.Contains(said.String(), "not passed on") {
				t.Errorf("wrap says:\n%s", said.String())
			}
		})
	}
	if authorised.Load() == 0 {
		t.Error("the password has not reached the proxy")
	}
}
