// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/pelletier/go-toml/v2"
	"go.yaml.in/yaml/v3"
)

// TestProtectedClients protects a file of each syntax and dialect, reads it as the client does,
// and starts what it says: a real server behind the boundary, and a real remote one that wants a
// token. Paths have spaces, quotes and letters that are not ASCII.
func TestProtectedClients(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the server is started through sh")
	}
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return poisonedServer() }, nil)
	remote := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer t0p s3cret" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	defer remote.Close()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "a \"d\u00efr\" of 'mine'")
	server := filepath.Join(dir, "my s\u00e9rver")
	if err := errors.Join(os.MkdirAll(dir, 0o700), os.Symlink(self, server)); err != nil {
		t.Fatal(err)
	}
	q := func(s string) string { b, _ := json.Marshal(s); return string(b) }
	const script = `TEST_ROLE=server exec "$0"`
	for _, x := range []struct{ file, content, servers, command, args, env string }{
		{"config.toml", "[mcp_servers.local]\ncommand = \"sh\" # c\nargs = ['-c', " + q(script) + ", " + q(server) + "]\n[mcp_servers.local.env]\nA = '1'\n" +
			"[mcp_servers.remote]\nurl = '" + remote.URL + "'\nbearer_token_env_var = 'TEST_TOKEN'\n", "mcp_servers", "command", "args", "env"},
		{"headers.toml", "mcp_servers.local = {command='sh',args=['-c'," + q(script) + "," + q(server) + "]}\n" +
			"mcp_servers.remote.url = \"" + remote.URL + "\"\nmcp_servers.remote.http_headers.Authorization = 'Bearer t0p s3cret'\n", "mcp_servers", "command", "args", "env"},
		{"goose.yaml", "extensions:\n  local:\n    type: stdio\n    cmd: sh # c\n    args:\n    - -c\n    - '" + script + "'\n    - " + q(server) + "\n    envs: {}\n" +
			"  remote:\n    type: streamable_http\n    uri: " + remote.URL + "\n    headers: {Authorization: Bearer t0p s3cret}\n    envs: {}\n", "extensions", "cmd", "args", "envs"},
		{"continue.yaml", "mcpServers:\n  - name: local\n    command: sh\n    args: [-c, '" + script + "', " + q(server) + "]\n" +
			"  - name: remote\n    url: " + remote.URL + "\n    requestOptions: {headers: {Authorization: 'Bearer t0p s3cret'}}\n", "mcpServers", "command", "args", "env"},
		{"opencode.json", `{"mcp":{"local":{"type":"local","command":["sh","-c",` + q(script) + `,` + q(server) + `]},` +
			`"remote":{"type":"remote","url":"` + remote.URL + `","headers":{"Authorization":"Bearer t0p s3cret"}}}}`, "mcp", "command", "", "environment"},
		{"mcp.json", `{"mcpServers":{"local":{"command":"sh","args":["-c",` + q(script) + `,` + q(server) + `]},` +
			`"remote":{"url":"` + remote.URL + `","headers":{"Authorization":"Bearer t0p s3cret"}}}}`, "mcpServers", "command", "args", "env"},
	} {
		t.Run(x.file, func(t *testing.T) {
			state := filepath.Join(t.TempDir(), "state")
			t.Setenv("PELLUCID_STATE", state)
			path := filepath.Join(dir, x.file)
			if err := os.WriteFile(path, []byte(x.content), 0o600); err != nil {
				t.Fatal(err)
			}
			quiet := &env{Stdout: io.Discard, Stderr: io.Discard, Getenv: os.Getenv}
			if err := (&protectCmd{File: path, Profile: "faithful"}).Run(quiet); err != nil {
				t.Fatal(err)
			}
			for name, s := range clientServers(t, path, x.servers) {
				command, words := []string{}, s[x.command]
				if program, is := words.(string); is {
					command, words = append(command, program), s[x.args]
				}
				for _, w := range words.([]any) {
					command = append(command, w.(string))
				}
				if command[0] != self || command[1] != "wrap" || strings.Contains(strings.Join(command, " "), "s3cret") {
					t.Fatalf("%s: %q", name, command)
				}
				cmd := exec.Command(command[0], command[1:]...)
				cmd.Env = append(os.Environ(), roleVariable+"=pellucid", "TEST_TOKEN=t0p s3cret")
				variables, _ := s[x.env].(map[string]any)
				for k, v := range variables {
					cmd.Env = append(cmd.Env, fmt.Sprintf("%s=%s", k, v))
				}
				callPoison(t, cmd, "2025-06-18")
			}
			if err := (&protectCmd{File: path, Undo: true}).Run(quiet); err != nil {
				t.Fatal(err)
			}
			if b, err := os.ReadFile(path); err != nil || string(b) != x.content {
				t.Errorf("undone: %v\n%s", err, b)
			}
		})
	}
}

// clientServers reads the servers of a client's file, with a decoder that is not the one of
// protect.
func clientServers(t *testing.T, path, below string) map[string]map[string]any {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	file := map[string]any{}
	switch filepath.Ext(path) {
	case ".toml":
		err = toml.Unmarshal(b, &file)
	case ".yaml":
		err = yaml.Unmarshal(b, &file)
	default:
		err = json.Unmarshal(b, &file)
	}
	if err != nil {
		t.Fatalf("%v in\n%s", err, b)
	}
	out := map[string]map[string]any{}
	switch servers := file[below].(type) {
	case map[string]any:
		for name, s := range servers {
			out[name] = s.(map[string]any)
		}
	case []any:
		for _, s := range servers {
			out[s.(map[string]any)["name"].(string)] = s.(map[string]any)
		}
	}
	if len(out) != 2 {
		t.Fatalf("%d servers in\n%s", len(out), b)
	}
	return out
}
