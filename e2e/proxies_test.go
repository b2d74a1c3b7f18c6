// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pellucid-mcp/pellucid/platform/programtest"
)

// proxyName is the host that the files of packaging/proxies serve.
const proxyName = "mcp.example.org"

// A reverseProxy is one of the three whose configuration the repository ships: how it is made to
// run on loopback, before servers of a test.
type reverseProxy struct {
	program, file string
	// config changes addresses and paths. No other member of the file changes.
	config func(text, dir, listen string, servers []string) string
	argv   func(file, dir string) []string
}

// at replaces the addresses of the file by those of servers. What is beyond them is an address at which nothing listens.
func at(text string, servers []string) string {
	for i := range 3 {
		addr := "127.0.0.1:9"
		if i < len(servers) {
			addr = servers[i]
		}
		text = strings.ReplaceAll(text, fmt.Sprintf("pellucid-%d:7420", i+1), addr)
	}
	return text
}

var reverseProxies = map[string]reverseProxy{
	"haproxy": {"haproxy", "haproxy.cfg", func(text, dir, listen string, servers []string) string {
		text = strings.ReplaceAll(at(text, servers), "bind :443", "bind "+listen)
		text = strings.ReplaceAll(text, "abns@pellucid-inside", "abns@inside-"+listen) // one for each proxy of the machine
		text = strings.ReplaceAll(text, "/etc/haproxy/pellucid.pem", filepath.Join(dir, "both.pem"))
		return text
	}, func(file, _ string) []string { return []string{"-db", "-f", file} }},
	"nginx": {"nginx", "nginx.conf", func(text, dir, listen string, servers []string) string {
		text = strings.ReplaceAll(at(text, servers), "listen 443", "listen "+listen)
		text = strings.ReplaceAll(text, "/etc/nginx/pellucid", filepath.Join(dir, "pellucid"))
		paths := ""
		for _, name := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
			paths += name + "_temp_path " + filepath.Join(dir, name) + ";\n"
		}
		return "daemon off;\nmaster_process off;\npid " + filepath.Join(dir, "pid") + ";\nerror_log stderr;\nevents {}\nhttp {\naccess_log off;\n" +
			paths + text + "}\n"
	}, func(file, dir string) []string { return []string{"-p", dir, "-e", "stderr", "-c", file} }},
	"caddy": {"caddy", "Caddyfile", func(text, dir, listen string, servers []string) string {
		_, port, _ := net.SplitHostPort(listen)
		text = strings.ReplaceAll(text, proxyName+" {", proxyName+":"+port+" {\n\tbind 127.0.0.1")
		text = strings.ReplaceAll(text, "/etc/caddy/pellucid", filepath.Join(dir, "pellucid"))
		text = at(text, servers)
		return "{\n\tadmin off\n\tauto_https disable_redirects\n\tstorage file_system " + filepath.Join(dir, "storage") + "\n}\n" + text
	}, func(file, _ string) []string { return []string{"run", "--config", file, "--adapter", "caddyfile"} }},
}

// start runs the proxy over TLS before the servers, and returns a client that finds it under its name.
func (p reverseProxy) start(t *testing.T, servers []string) *http.Client {
	t.Helper()
	program := programtest.Find(t, p.program)
	dir := t.TempDir()
	roots := selfSigned(t, dir)
	listen := freeAddress(t)
	shipped, err := os.ReadFile(filepath.Join("..", "packaging", "proxies", p.file))
	if err != nil {
		t.Fatal(err)
	}
	text := p.config(string(shipped), dir, listen, servers)
	for _, left := range []string{"pellucid-1", "/etc/", ":443", "listen 443"} {
		if lines := regexp.MustCompile(`(?m)^\s*[^#\s].*` + regexp.QuoteMeta(left) + `.*$`).FindString(text); lines != "" && left != ":443" {
			t.Fatalf("the configuration still has %s: %s", left, lines)
		}
	}
	file := filepath.Join(dir, p.file)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	cmd := exec.Command(program, p.argv(file, dir)...)
	cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_CONFIG_HOME="+dir, "XDG_DATA_HOME="+dir)
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &said, &said, time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		if t.Failed() {
			t.Logf("%s said:\n%.4000s", p.program, said.String())
		}
	})
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig:   &tls.Config{RootCAs: roots},
		ForceAttemptHTTP2: true,
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, listen)
		},
	}}
	t.Cleanup(client.CloseIdleConnections)
	for ctx := soon(t); ; time.Sleep(50 * time.Millisecond) { // until its checks have found the server that lives
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+proxyName+"/readyz", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(req)
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return client
			}
		}
		if ctx.Err() != nil {
			t.Fatalf("%s does not serve: %v", p.program, err)
		}
	}
}

// selfSigned writes a certificate of proxyName as each proxy wants it.
func selfSigned(t *testing.T, dir string) *x509.CertPool {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: proxyName}, DNSNames: []string{proxyName},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	private := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})
	for name, b := range map[string][]byte{"pellucid.crt": cert, "pellucid.key": private, "both.pem": append(append([]byte{}, cert...), private...)} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(cert)
	return pool
}

// sessionPad is a header as long as the longest session id, which the gateway of TestProxies adds.
const sessionPad = "Session-Pad"

// TestProxies: a session of the official SDK passes each of the proxies with the file that the
// repository ships, over TLS. Host is kept, progress arrives while the call goes on, a stream that is
// silent for longer than the usual minute lives, and headers of 4 KiB pass in both directions. One of
// the two servers behind the proxy is dead.
func TestProxies(t *testing.T) {
	t.Parallel()
	for name, p := range reverseProxies {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			upstream, seen := streamServer(t)
			in := newInstall(t)
			base, _ := in.serveUp(t, "version: 1\npublic_url: https://"+proxyName+"\nservers:\n  s: {url: "+upstream+"}\n")
			client := p.start(t, []string{padded(t, base), freeAddress(t)})
			throughProxy(t, client, seen)
		})
	}
}

// padded puts a long header on every answer of the gateway.
func padded(t *testing.T, base string) string {
	t.Helper()
	target, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = r.In.Host
	}, ModifyResponse: func(r *http.Response) error {
		r.Header.Set(sessionPad, strings.Repeat("p", 4096))
		return nil
	}}
	srv := httptest.NewServer(buffered(proxy))
	t.Cleanup(srv.Close)
	t.Cleanup(srv.CloseClientConnections)
	return strings.TrimPrefix(srv.URL, "http://")
}

// streamServer is a server whose tool says progress and does not answer until the client has seen it.
func streamServer(t *testing.T) (at string, seen chan struct{}) {
	t.Helper()
	seen = make(chan struct{}, 1)
	s := mcp.NewServer(&mcp.Implementation{Name: "streams", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "wait", Description: "Waits until its progress was seen."},
		func(ctx context.Context, r *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
			err := r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: 1, Total: 2})
			select {
			case <-seen:
			case <-ctx.Done():
				err = ctx.Err()
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "seen"}}}, nil, err
		})
	mcp.AddTool(s, &mcp.Tool{Name: "grow", Description: "Adds a tool."},
		func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			s.AddResource(&mcp.Resource{Name: "new", URI: "new://1"}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
				return nil, errors.New("it is empty")
			})
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "grown"}}}, nil, nil
		})
	s.AddResource(&mcp.Resource{Name: "old", URI: "old://1"}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{}, nil
	})
	srv := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil))
	t.Cleanup(srv.Close)
	t.Cleanup(srv.CloseClientConnections)
	return srv.URL, seen
}

func throughProxy(t *testing.T, client *http.Client, seen chan struct{}) {
	t.Helper()
	grown := make(chan struct{}, 8)
	c := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1"}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(context.Context, *mcp.ProgressNotificationClientRequest) { seen <- struct{}{} },
		ResourceListChangedHandler:  func(context.Context, *mcp.ResourceListChangedRequest) { grown <- struct{}{} },
	})
	ctx, stop := context.WithTimeout(t.Context(), 5*time.Minute)
	defer stop()
	endpoint := "https://" + proxyName + "/mcp/s"
	session, err := c.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: endpoint, HTTPClient: client},
		&mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	for range 4 { // half of them are the dead server's turn
		params := &mcp.CallToolParams{Name: "wait", Arguments: map[string]any{}}
		params.SetProgressToken("p")
		if _, err := session.CallTool(ctx, params); err != nil {
			t.Fatalf("a call with progress: %v", err)
		}
	}
	headersPass(ctx, t, client, endpoint)
	if !testing.Short() {
		time.Sleep(65 * time.Second) // the usual limit of a proxy is 60 s
	}
	if _, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "grow", Arguments: map[string]any{}}); err != nil {
		t.Fatalf("a call after a pause: %v", err)
	}
	select {
	case <-grown:
	case <-time.After(patience):
		t.Error("the stream that was silent for a minute brings nothing")
	}
}

// headersPass sends a session id of 4 KiB, which the gateway does not know, beside a token as long.
func headersPass(ctx context.Context, t *testing.T, client *http.Client, endpoint string) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint, strings.NewReader(`{"jsonrpc":"2.0","id":"a","method":"ping"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("Mcp-Session-Id", strings.Repeat("s", 4096))
	req.Header.Set("Authorization", "Bearer "+strings.Repeat("t", 8000))
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || !strings.Contains(string(body), "pellucid:") || len(resp.Header.Get(sessionPad)) != 4096 {
		t.Errorf("long headers: status %d, %d bytes in the answer's, %.200q, %v", resp.StatusCode, len(resp.Header.Get(sessionPad)), body, err)
	}
}

// TestHAProxyAnswers: where a replica ends while it works on a request, HAProxy answers with an error of
// JSON-RPC that has the id of the request, as a number or a string; where there is no id, with its status.
func TestHAProxyAnswers(t *testing.T) {
	t.Parallel()
	dying := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/readyz" {
			return
		}
		if strings.HasPrefix(r.URL.Path, "/busy") { // an answer of the gateway's own stays as it is
			http.Error(w, "busy", http.StatusServiceUnavailable)
			return
		}
		io.Copy(io.Discard, r.Body)
		panic(http.ErrAbortHandler)
	}))
	t.Cleanup(dying.Close)
	client := reverseProxies["haproxy"].start(t, []string{strings.TrimPrefix(dying.URL, "http://")})
	post := func(path, body string) (int, string) {
		t.Helper()
		resp, err := client.Post("https://"+proxyName+path, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(b)
	}
	for id, want := range map[string]string{
		`7`: `7`, `-1`: `-1`, `0`: `0`, `"a"`: `"a"`, `"req-1:x.y_z"`: `"req-1:x.y_z"`,
	} {
		status, body := post("/mcp", `{"jsonrpc":"2.0","method":"tools/call","params":{"id":"other","name":"x"},"id":`+id+`}`)
		var answer struct {
			ID, Jsonrpc any
			Error       struct{ Message string }
		}
		var wanted any
		if json.Unmarshal([]byte(want), &wanted) != nil || json.Unmarshal([]byte(body), &answer) != nil || status != 200 || answer.ID != wanted ||
			!strings.HasPrefix(answer.Error.Message, "pellucid: ") {
			t.Errorf("id %s: status %d, %s", id, status, body)
		}
	}
	// An id that HAProxy cannot tell apart, or that would have to be escaped, gets the status.
	for path, body := range map[string]string{"/mcp/7": `{"id":"7"}`, "/mcp/q": `{"id":"a\"b"}`, "/mcp/b": `{"id":"{}"}`, "/mcp/u": `{"id":"é"}`, "/mcp": `{"jsonrpc":"2.0","method":"notifications/cancelled"}`, "/mcp/x": `not JSON`, "/mcp/y": ``} {
		if status, answer := post(path, body); status != http.StatusBadGateway {
			t.Errorf("%s: status %d, %s", body, status, answer)
		}
	}
	if status, body := post("/busy", `{"jsonrpc":"2.0","id":1,"method":"ping"}`); status != http.StatusServiceUnavailable || body != "busy\n" {
		t.Errorf("an answer of the gateway's own: status %d, %q", status, body)
	}
}

// buffered reads a request whole before it goes to next: a ReverseProxy that still sends the body may cut the answer
// short.
func buffered(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		next.ServeHTTP(w, r)
	})
}
