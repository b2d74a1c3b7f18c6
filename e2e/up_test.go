// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// serveUp runs `pellucid up` with a configuration and returns where it is.
func (in *install) serveUp(t testing.TB, config string) (base string, cmd *exec.Cmd) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "pellucid.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd = exec.Command(in.bin, "up", "-c", file, "--listen", "127.0.0.1:0")
	cmd.Env = in.env()
	base, said, err := startUp(cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		said.Wait()
		cmd.Wait()
		if line := said.fall(); line != "" {
			t.Errorf("the gateway fell: %s", line)
		}
	})
	return base, cmd
}

// said is what a gateway writes to its standard error, which must not fill up.
type said struct {
	sync.WaitGroup
	mu    sync.Mutex
	lines []string
}

// fall is the line by which the runtime says that the program is at its end.
func (s *said) fall() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, line := range s.lines {
		if strings.HasPrefix(line, "panic") || strings.HasPrefix(line, "fatal error") {
			return line
		}
	}
	return ""
}

// startUp starts `pellucid up` and waits until it says where it is.
func startUp(cmd *exec.Cmd) (base string, _ *said, err error) {
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	s, at := &said{}, make(chan string, 1)
	s.Go(func() {
		defer close(at)
		for in := bufio.NewReader(stderr); ; {
			line, err := in.ReadString('\n')
			if err != nil {
				return
			}
			if _, addr, ok := strings.Cut(strings.TrimSuffix(line, ":\n"), "revision, at "); ok {
				at <- "http://" + addr
			}
			s.mu.Lock()
			s.lines = append(s.lines, line)
			s.mu.Unlock()
		}
	})
	if base = <-at; base == "" {
		cmd.Process.Kill()
		s.Wait()
		cmd.Wait()
		return "", nil, fmt.Errorf("the gateway does not say where it is: %q", s.lines)
	}
	return base, s, nil
}

// yamlCommand is a command in the configuration.
func yamlCommand(argv []string) string {
	b, _ := json.Marshal(argv) // JSON is YAML
	return string(b)
}

// httpSession is a legacy client that sees the bytes of results.
type httpSession struct {
	t       testing.TB
	url, id string
	n       int
}

func (s *httpSession) post(body string) []byte {
	s.t.Helper()
	req, err := http.NewRequestWithContext(soon(s.t), http.MethodPost, s.url, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if s.id != "" {
		req.Header.Set("Mcp-Session-Id", s.id)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	if s.id == "" {
		s.id = resp.Header.Get("Mcp-Session-Id")
	}
	out, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return out
}

// result returns the bytes of the result.
func (s *httpSession) result(method, params string) json.RawMessage {
	s.t.Helper()
	s.n++
	out := s.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, s.n, method, params))
	for line := range strings.Lines(string(out)) {
		line = strings.TrimPrefix(line, "data: ")
		var m struct{ ID, Result, Error json.RawMessage }
		if json.Unmarshal([]byte(line), &m) != nil || string(m.ID) != fmt.Sprint(s.n) {
			continue
		}
		if m.Error != nil {
			s.t.Fatalf("%s: %s", method, m.Error)
		}
		return m.Result
	}
	s.t.Fatalf("%s: no answer in %q", method, out)
	return nil
}

// end ends the session: a principal may have so many only, and a test that polls opens one after
// the other.
func (s *httpSession) end() {
	s.t.Helper()
	req, err := http.NewRequestWithContext(soon(s.t), http.MethodDelete, s.url, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Mcp-Session-Id", s.id)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	resp.Body.Close()
}

func openHTTP(t testing.TB, url string) *httpSession {
	t.Helper()
	s := &httpSession{t: t, url: url}
	s.result("initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"e2e","version":"1"}}`)
	s.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return s
}

// named gives the tools of a raw list by name, without the names.
func named(t testing.TB, list json.RawMessage, prefix string) map[string]string {
	t.Helper()
	var r struct{ Tools []json.RawMessage }
	if err := json.Unmarshal(list, &r); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, raw := range r.Tools {
		var tool struct{ Name string }
		if err := json.Unmarshal(raw, &tool); err != nil {
			t.Fatal(err)
		}
		if own, ok := strings.CutPrefix(tool.Name, prefix); ok {
			out[own] = strings.Replace(string(raw), `"name":"`+tool.Name+`"`, `"name":"`+own+`"`, 1)
		}
	}
	return out
}

// TestUpReference: the reference servers behind one gateway. Their lists have the
// bytes that they have directly, each is called under its own prefix, one that is
// killed comes back, and nothing is left when the gateway ends.
func TestUpReference(t *testing.T) {
	t.Parallel()
	in, m := newInstall(t), mark()
	config, direct := "version: 1\nservers:\n", map[string]map[string]string{}
	for _, ref := range references {
		argv := ref.server(t, m)
		s := start(t, bare(argv...))
		s.initializeWith(`{}`)
		direct[ref.name] = named(t, s.result("tools/list", `{}`), "")
		s.exit()
		config += "  " + ref.name + ": {command: " + yamlCommand(argv) + "}\n"
	}
	base, cmd := in.serveUp(t, config)
	all := openHTTP(t, base+"/mcp")
	list := all.result("tools/list", `{}`)
	for name, want := range direct {
		for which, got := range map[string]map[string]string{
			"as one": named(t, list, name+"_"), "alone": named(t, openHTTP(t, base+"/mcp/"+name).result("tools/list", `{}`), ""),
		} {
			if len(got) != len(want) || len(want) == 0 {
				t.Errorf("%s, %s: %d tools, want %d", name, which, len(got), len(want))
			}
			for tool, direct := range want {
				if got[tool] != direct {
					t.Errorf("%s, %s: %s is\n%s\nand directly\n%s", name, which, tool, got[tool], direct)
				}
			}
		}
	}
	var r mcp.CallToolResult
	if err := json.Unmarshal(all.result("tools/call", `{"name":"everything_echo","arguments":{"message":"hello"}}`), &r); err != nil {
		t.Fatal(err)
	}
	if body := in.opened(t, r.Content[0].(*mcp.TextContent).Text, "everything"); body != "Echo: hello" {
		t.Errorf("%q", body)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the gateway ended with %v", err)
	}
	gone(t, m)
}

// TestUpStubborn: a gateway whose server ignores every request to end does end, and
// the server with it.
func TestUpStubborn(t *testing.T) {
	t.Parallel()
	in, m := newInstall(t), mark()
	base, cmd := in.serveUp(t, "version: 1\nhttp: {drain: 1s}\nservers:\n  s: {command: "+yamlCommand(helperServer(t, "stubborn", m))+"}\n"+
		"  shared: {share: shared, command: "+yamlCommand(helperServer(t, "stubborn", m))+"}\n")
	for _, path := range []string{"/mcp", "/mcp/s", "/mcp/shared"} {
		openHTTP(t, base+path).result("tools/list", `{}`)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the gateway ended with %v", err)
	}
	gone(t, m)
}

// TestUpInspector: the Inspector in each of its modes sees the same tools, at one
// server and at all of them.
func TestUpInspector(t *testing.T) {
	t.Parallel()
	in, m := newInstall(t), mark()
	i := newInspector(t, in, nil)
	base, _ := in.serveUp(t, "version: 1\nservers:\n  memory: {command: "+yamlCommand(withMemory(t.TempDir(), npmServer(t, "memory", m)))+"}\n"+
		"  size: {command: "+yamlCommand(helperServer(t, "size", m))+", share: shared}\n")
	for _, era := range []string{"legacy", "auto", "modern"} {
		for path, want := range map[string]int{"/mcp": 10, "/mcp/memory": 9, "/mcp/size": 1} {
			cmd := exec.CommandContext(soon(t), nodeBinary(i.modules), i.modules+"/.bin/mcp-inspector", "--cli", "--quiet", base+path,
				"--transport", "http", "--protocol-era", era, "--method", "tools/list")
			cmd.Env = append(os.Environ(), "HOME="+i.home, "MCP_INSPECTOR_SECRET_STORE=memory")
			out, err := cmd.Output()
			if err != nil {
				t.Errorf("%s %s: %v", era, path, err)
				continue
			}
			if got := len(named(t, out, "")); got != want {
				t.Errorf("%s %s: %d tools, want %d", era, path, got, want)
			}
		}
	}
}
