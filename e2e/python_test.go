// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pellucid-mcp/pellucid/platform/programtest"
)

// pythonServer runs a server of the Python SDK over a transport, streamable or sse, behind a
// proxy that counts the requests refused with a status of 400 to 499.
func pythonServer(t *testing.T, transport, path string) (at string, refused *atomic.Int64) {
	t.Helper()
	programtest.Need(t)
	python := os.Getenv("PELLUCID_E2E_PYTHON")
	if python == "" {
		python = filepath.Join("..", ".tools", "python", "bin", "python")
	}
	if _, err := os.Stat(python); err != nil {
		t.Skip("the Python SDK is not installed; `make python` installs it")
	}
	cmd := exec.Command(python, "-B", filepath.Join("python", "server.py"), transport)
	port := startListening(t, cmd)
	refused = new(atomic.Int64)
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: "127.0.0.1:" + port})
	proxy.FlushInterval = -1
	proxy.ModifyResponse = func(r *http.Response) error {
		if r.StatusCode/100 == 4 {
			refused.Add(1)
		}
		return nil
	}
	srv := httptest.NewServer(buffered(proxy))
	t.Cleanup(func() {
		srv.CloseClientConnections()
		srv.Close()
	})
	return srv.URL + path, refused
}

// adds is a session of a client of 2026-07-28 that calls a tool.
func adds(t *testing.T, session *mcp.ClientSession, tool string) {
	t.Helper()
	if v := session.InitializeResult().ProtocolVersion; v != "2026-07-28" {
		t.Errorf("protocol version %s", v)
	}
	list, err := session.ListTools(soon(t), nil)
	if err != nil || len(list.Tools) != 1 || list.Tools[0].Name != tool {
		t.Fatalf("tools: %v, %v", list, err)
	}
	r, err := session.CallTool(soon(t), &mcp.CallToolParams{Name: tool, Arguments: map[string]any{"a": 20, "b": 22}})
	if err != nil {
		t.Fatal(err)
	}
	if text := strings.Join(contents(*r), "\n"); r.IsError || !strings.Contains(text, "\n42\n") {
		t.Errorf("%s: %+q", tool, text)
	}
}

// TestPythonServer: a client of 2026-07-28 reaches a server of the Python SDK, which answers
// 400 or 405 to server/discover, over either transport, alone, as one of all and wrapped. The
// server is asked once for the modern era in the life of a gateway, and of a check.
func TestPythonServer(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		transport, path string
		refused         int64 // server/discover and, by the new transport, initialize
	}{{"streamable", "/mcp", 1}, {"sse", "/sse", 2}} {
		t.Run(tt.transport, func(t *testing.T) {
			t.Parallel()
			at, refused := pythonServer(t, tt.transport, tt.path)
			in := newInstall(t)
			base, _ := in.serveUp(t, "version: 1\nservers:\n  py: {url: "+at+"}\n")
			for range 2 {
				for path, tool := range map[string]string{"/mcp/py": "add", "/mcp": "py_add"} {
					client := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1"}, nil)
					session, err := client.Connect(soon(t), &mcp.StreamableClientTransport{Endpoint: base + path}, nil)
					if err != nil {
						t.Fatalf("%s: %v", path, err)
					}
					adds(t, session, tool)
					session.Close()
				}
			}
			if n := refused.Swap(0); n != tt.refused {
				t.Errorf("the gateway was refused %d times, want %d", n, tt.refused)
			}
			file := filepath.Join(t.TempDir(), "mcp.json")
			if err := os.WriteFile(file, []byte(`{"mcpServers":{"py":{"url":`+quote(at)+`}}}`), 0o600); err != nil {
				t.Fatal(err)
			}
			check := exec.Command(in.bin, "check", file)
			check.Env = newInstall(t).env()
			if out, err := check.CombinedOutput(); err != nil {
				t.Errorf("check: %v: %+q", err, out)
			}
			if n := refused.Swap(0); n != tt.refused {
				t.Errorf("the check was refused %d times, want %d", n, tt.refused)
			}
			for _, pins := range []string{"enforce", "off"} {
				adds(t, connect(t, in.command("--name", "py", "--set", "admission.pins="+pins, "--url", at)).ClientSession, "add")
			}
		})
	}
}
