// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestProtectedServers starts what a client would start from a protected file: the
// server's variables, headers and URL must have arrived where they belong.
func TestProtectedServers(t *testing.T) {
	got := make(chan *http.Request, 16)
	remote := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case got <- r:
		default:
		}
		var m struct {
			ID     json.RawMessage
			Method string
		}
		_ = json.NewDecoder(r.Body).Decode(&m)
		w.Header().Set("Content-Type", "application/json")
		switch {
		case m.ID == nil:
			w.WriteHeader(http.StatusAccepted)
		case m.Method == "initialize":
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"remote","version":"1"}}}`, m.ID)
		default:
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}`, m.ID)
		}
	}))
	defer remote.Close()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "mcp.json")
	config, err := json.Marshal(map[string]any{"mcpServers": map[string]any{
		"local": map[string]any{"command": self, "args": []string{"demo", "serve"}, "env": map[string]string{roleVariable: "pellucid"}},
		"remote": map[string]any{"type": "http", "url": remote.URL + "/mcp?key=s3cret",
			"headers": map[string]string{"Authorization": "Bearer s3cret", "X-Trace": "a b"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, config, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PELLUCID_STATE", filepath.Join(dir, "state"))
	if err := (&protectCmd{File: path}).Run(&env{Stdout: io.Discard, Stderr: io.Discard, Getenv: os.Getenv}); err != nil {
		t.Fatal(err)
	}
	protected, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		MCPServers map[string]struct {
			Command string
			Args    []string
			Env     map[string]string
		}
	}
	if err := json.Unmarshal(protected, &file); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"local": `"name":"weather"`, "remote": `"remote"`} {
		s := file.MCPServers[name]
		if s.Command != self || s.Args[0] != "wrap" || strings.Contains(strings.Join(s.Args, " "), "s3cret") {
			t.Fatalf("%s: %q %q", name, s.Command, s.Args)
		}
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		cmd := exec.CommandContext(ctx, s.Command, s.Args...)
		cmd.Env = append(os.Environ(), roleVariable+"=pellucid")
		for k, v := range s.Env {
			cmd.Env = append(cmd.Env, k+"="+v)
		}
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		io.WriteString(in, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`+"\n")
		lines := bufio.NewReader(out)
		line, err := lines.ReadString('\n')
		if err == nil && name == "local" {
			io.WriteString(in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n"+`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`+"\n")
			line, err = lines.ReadString('\n')
		}
		if err != nil || !strings.Contains(line, want) {
			t.Errorf("%s: %q, %v", name, line, err)
		}
		// A description of the demonstration hides text: its tool waits for a reviewer, the others are listed.
		if strings.Contains(line, "calculate") {
			t.Errorf("%s: the tool that hides text is listed: %q", name, line)
		}
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	select {
	case r := <-got:
		if r.Header.Get("Authorization") != "Bearer s3cret" || r.Header.Get("X-Trace") != "a b" || r.URL.RawQuery != "key=s3cret" {
			t.Errorf("the request: %v %v", r.URL, r.Header)
		}
	default:
		t.Error("nothing arrived at the remote server")
	}
}
