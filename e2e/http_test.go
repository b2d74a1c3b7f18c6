// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"cmp"
	"io"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pellucid-mcp/pellucid/text/frame"
)

// loopbackOnly makes a node program listen on a free port of 127.0.0.1,
// whatever it asks for, and say which.
const loopbackOnly = `data:text/javascript,import net from "node:net";` +
	`const listen = net.Server.prototype.listen;` +
	`net.Server.prototype.listen = function (port, ...rest) {` +
	`this.once("listening", () => console.error("e2e-port " + this.address().port));` +
	`return listen.call(this, {port: 0, host: "127.0.0.1"}, ...rest.filter(f => typeof f === "function"))};`

// httpEverything runs server-everything over streamable HTTP.
func httpEverything(t *testing.T) (url string, server *os.Process) {
	t.Helper()
	return everythingAt(t, "streamableHttp", "/mcp")
}

// everythingAt runs server-everything over one of its transports.
func everythingAt(t *testing.T, transport, path string) (url string, server *os.Process) {
	t.Helper()
	argv := npmServer(t, "everything", transport)
	cmd := exec.Command(argv[0], append([]string{"--import", loopbackOnly}, argv[1:]...)...)
	return "http://127.0.0.1:" + startListening(t, cmd) + path, cmd.Process
}

// startListening runs a server that says at which port it listens, in a line of its standard
// output or standard error, and returns the port. The server ends with the test.
func startListening(t *testing.T, cmd *exec.Cmd) (port string) {
	t.Helper()
	r, w := io.Pipe()
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = w, w, time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.CloseWithError(cmp.Or(cmd.Wait(), io.EOF))
	}()
	t.Cleanup(func() {
		cmd.Process.Kill()
		r.Close()
		<-ended
	})
	timer := time.AfterFunc(patience, func() { cmd.Process.Kill() })
	defer timer.Stop()
	for lines := bufio.NewScanner(r); lines.Scan(); {
		if port, ok := strings.CutPrefix(lines.Text(), "e2e-port "); ok {
			go io.Copy(io.Discard, r) // the server must not wait for a reader
			return port
		}
	}
	t.Fatal("the server does not listen")
	return ""
}

// TestTransparentHTTP is TestTransparent with the wrapped server behind HTTP, and behind
// the older HTTP+SSE, which is found out or said: the bytes are those of the same server
// over stdio.
func TestTransparentHTTP(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ server, path, transport string }{
		{"streamableHttp", "/mcp", "auto"}, {"streamableHttp", "/mcp", "http"},
		{"sse", "/sse", "auto"}, {"sse", "/sse", "sse"},
	} {
		t.Run(tt.server+"/"+tt.transport, func(t *testing.T) {
			t.Parallel()
			in, ref, m := newInstall(t), references[0], mark()
			direct := start(t, bare(ref.server(t, m)...))
			url, _ := everythingAt(t, tt.server, tt.path)
			wrapped := start(t, in.command("--name", ref.name, "--url", url, "--transport", tt.transport))
			handshake(t, direct.initialize(), wrapped.initialize())
			ref.compare(t, in, direct, wrapped)
			if code := wrapped.exit(); code != 0 {
				t.Errorf("exit code %d, want 0", code)
			}
			direct.cmd.Process.Kill()
			direct.code()
		})
	}
}

// TestHostHTTP drives the same with the Go SDK: what a server asks and tells
// comes over the streams of HTTP.
func TestHostHTTP(t *testing.T) {
	t.Parallel()
	in := newInstall(t)
	url, _ := httpEverything(t)
	h := connect(t, in.command("--name", "everything", "--url", url))
	if _, err := h.ListTools(soon(t), nil); err != nil {
		t.Fatal(err)
	}
	p := &mcp.CallToolParams{Name: "trigger-long-running-operation", Arguments: map[string]any{"duration": 0.3, "steps": 3}}
	p.SetProgressToken(1)
	if _, err := h.CallTool(soon(t), p); err != nil {
		t.Fatal(err)
	}
	h.until(t, "progress", func() bool { return len(h.progress) == 3 })
	if text, _ := h.call(t, in, "everything", "trigger-elicitation-request", nil); !strings.Contains(text, "Ada") {
		t.Errorf("elicitation: %+q", text)
	}
	uri := "demo://resource/dynamic/text/1"
	if err := h.Subscribe(soon(t), &mcp.SubscribeParams{URI: uri}); err != nil {
		t.Fatal(err)
	}
	h.call(t, in, "everything", "toggle-subscriber-updates", nil)
	h.until(t, "resources/updated", func() bool { return len(h.updated) > 0 })
}

// TestModern: a server of 2026-07-28, stateless over HTTP and over stdio, and
// a client that speaks it.
func TestModern(t *testing.T) {
	t.Parallel()
	for name, command := range modernServers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := newInstall(t)
			h := connect(t, in.command(command(t)...))
			if v := h.InitializeResult().ProtocolVersion; v != "2026-07-28" {
				t.Errorf("protocol version %s", v)
			}
			if s := h.InitializeResult().Instructions; !strings.Contains(s, "Greets.") || !strings.Contains(s, frame.Instructions) {
				t.Errorf("instructions %+q", s)
			}
			if _, err := h.ListTools(soon(t), nil); err != nil {
				t.Fatal(err)
			}
			text, _ := h.call(t, in, "sdk", "greet", map[string]any{"name": "Ada"})
			if !strings.HasPrefix(text, "Hello, Ada!") {
				t.Errorf("greet: %+q", text)
			}
			isClean(t, "greet", text)
			p := &mcp.CallToolParams{Name: "count", Arguments: map[string]any{}}
			p.SetProgressToken("t")
			if _, err := h.CallTool(soon(t), p); err != nil {
				t.Fatal(err)
			}
			h.until(t, "progress", func() bool { return len(h.progress) == 3 })
			for _, p := range h.progress {
				isClean(t, "progress", p.Message)
			}
			r, err := h.ReadResource(soon(t), &mcp.ReadResourceParams{URI: "note://1"})
			if err != nil || r.Contents[0].Text != "A note." {
				t.Errorf("resources/read: %+v, %v", r, err)
			}
			if _, err := h.GetPrompt(soon(t), &mcp.GetPromptParams{Name: "ask"}); err != nil {
				t.Error(err)
			}
			if _, err := h.CallTool(soon(t), &mcp.CallToolParams{Name: "none"}); err == nil {
				t.Error("a tool that is not there was called")
			}
		})
	}
}

// modernServers are the arguments of wrap for the same server on two transports.
var modernServers = map[string]func(t *testing.T) []string{
	"stdio": func(t *testing.T) []string {
		m := mark()
		t.Cleanup(func() { gone(t, m) })
		return append([]string{"--name", "sdk", "--"}, helperServer(t, "modern", m)...)
	},
	"http": func(t *testing.T) []string {
		server := httptest.NewServer(statelessHandler())
		t.Cleanup(server.Close)
		return []string{"--name", "sdk", "--url", server.URL}
	},
}

// TestModernBytes compares what a raw client of 2026-07-28 gets, directly and
// through Pellucid, and over HTTP.
func TestModernBytes(t *testing.T) {
	t.Parallel()
	in, m := newInstall(t), mark()
	t.Cleanup(func() { gone(t, m) })
	direct := start(t, bare(helperServer(t, "modern", m)...))
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
		`"io.modelcontextprotocol/clientInfo":{"name":"e2e","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`
	for name, command := range modernServers {
		wrapped := start(t, in.command(command(t)...))
		handshake(t, direct.result("server/discover", `{`+meta+`}`), wrapped.result("server/discover", `{`+meta+`}`))
		for _, q := range [][2]string{
			{"tools/list", `{` + meta + `}`},
			{"resources/list", `{` + meta + `}`},
			{"resources/templates/list", `{` + meta + `}`},
			{"prompts/list", `{` + meta + `}`},
		} {
			sameBytes(t, q, direct.call(q[0], q[1]).outcome(), wrapped.call(q[0], q[1]).outcome())
		}
		for _, q := range [][2]string{
			{"resources/read", `{"uri":"note://1",` + meta + `}`},
			{"prompts/get", `{"name":"ask",` + meta + `}`},
		} {
			in.same(t, name+" "+q[0], direct.result(q[0], q[1]), wrapped.result(q[0], q[1]), "sdk")
		}
		if code := wrapped.exit(); code != 0 {
			t.Errorf("%s: exit code %d, want 0", name, code)
		}
	}
}
