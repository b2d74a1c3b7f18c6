// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pellucid-mcp/pellucid/text/frame"
)

// A published server is one from npm, as its users start it.
type published struct {
	name    string
	module  string // what is run, in node_modules
	args    []string
	env     []string
	tool    string // called with arguments that always have the same answer
	with    string
	answers string // is in it
}

// publishedServers are ten of different authors and SDK releases that start without
// an account. backend stands for the services of two of them.
func publishedServers(t testing.TB, backend string) []published {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "note.txt"), []byte("A note."), 0o600); err != nil {
		t.Fatal(err)
	}
	return []published{
		{name: "everything", module: "@modelcontextprotocol/server-everything/dist/index.js", args: []string{"stdio"},
			tool: "get-sum", with: `{"a":20,"b":22}`, answers: "42"},
		{name: "filesystem", module: "@modelcontextprotocol/server-filesystem/dist/index.js", args: []string{dir},
			tool: "read_text_file", with: `{"path":` + quote(filepath.Join(dir, "note.txt")) + `}`, answers: "A note."},
		{name: "memory", module: "@modelcontextprotocol/server-memory/dist/index.js", env: []string{"MEMORY_FILE_PATH=" + filepath.Join(t.TempDir(), "g.jsonl")},
			tool: "search_nodes", with: `{"query":"x"}`, answers: "entities"},
		{name: "thinking", module: "@modelcontextprotocol/server-sequential-thinking/dist/index.js",
			tool: "sequentialthinking", with: `{"thought":"x","nextThoughtNeeded":false,"thoughtNumber":1,"totalThoughts":1}`, answers: "thoughtNumber"},
		{name: "budget", module: "@modelcontextprotocol/server-budget-allocator/dist/index.js", args: []string{"--stdio"},
			tool: "get-budget-data", with: `{}`, answers: "Default Budget"},
		{name: "music", module: "@modelcontextprotocol/server-sheet-music/dist/index.js", args: []string{"--stdio"},
			tool: "play-sheet-music", with: `{"abcNotation":"X:1\nT:x\nK:C\nCDEF|"}`, answers: "parsed"},
		{name: "runner", module: "mcp-server-code-runner/dist/cli.js", // it greets on its standard output
			tool: "run-code", with: `{"languageId":"javascript","code":"console.log(6*7)"}`, answers: "42"},
		{name: "calc", module: "@coo-quack/calc-mcp/dist/index.js",
			tool: "math", with: `{"expression":"6*7"}`, answers: "42"},
		{name: "chart", module: "@antv/mcp-server-chart/build/index.js", env: []string{"VIS_REQUEST_SERVER=" + backend + "/chart"},
			tool: "generate_pie_chart", with: `{"data":[{"category":"a","value":1}]}`, answers: "https://chart.example/1.png"},
		{name: "notion", module: "@notionhq/notion-mcp-server/bin/cli.mjs", env: []string{"BASE_URL=" + backend, "NO_PROXY=127.0.0.1"},
			tool: "API-get-self", with: `{}`, answers: "Ada"},
	}
}

// fakeBackend is a FAKE of the services that two of the servers call.
func fakeBackend(t testing.TB) string {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/chart" {
			fmt.Fprint(w, `{"success":true,"resultObj":"https://chart.example/1.png"}`)
			return
		}
		fmt.Fprint(w, `{"object":"user","id":"1","name":"Ada"}`)
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// argv is the server's command, mark in it.
func (p published) argv(modules, mark string) []string {
	argv := append([]string{"env", "E2E_MARK=" + mark}, p.env...)
	return append(append(argv, nodeBinary(modules), filepath.Join(modules, p.module)), p.args...)
}

// direct are a server's own definitions and answer.
type direct struct {
	tools  map[string]string
	answer mcp.CallToolResult
}

func (p published) ask(t testing.TB, argv []string) (d direct) {
	t.Helper()
	s := start(t, bare(argv...))
	s.initializeWith(`{}`)
	d.tools = named(t, s.result("tools/list", `{}`), "")
	if err := json.Unmarshal(s.result("tools/call", p.call(p.tool)), &d.answer); err != nil {
		t.Fatal(err)
	}
	if text := contents(d.answer); len(text) == 0 || !strings.Contains(strings.Join(text, "\n"), p.answers) {
		t.Fatalf("%s: %s answers %q", p.name, p.tool, text)
	}
	s.exit()
	return d
}

func (p published) call(tool string) string {
	return `{"name":"` + tool + `","arguments":` + p.with + `}`
}

// contents are the texts of a result.
func contents(r mcp.CallToolResult) (list []string) {
	for _, c := range r.Content {
		if text, isText := c.(*mcp.TextContent); isText {
			list = append(list, text.Text)
		}
	}
	return list
}

// TestUpPublished: ten servers from npm behind one gateway. Every definition has the
// bytes that it has directly; each server is called alone and as one of all, and
// answers what it does directly, within a fence.
func TestUpPublished(t *testing.T) {
	t.Parallel()
	modules := nodeModules(t)
	in, m, backend := newInstall(t), mark(), fakeBackend(t)
	config, directly, all := "version: 1\nservers:\n", map[string]direct{}, 0
	servers := publishedServers(t, backend)
	for _, p := range servers {
		if _, err := os.Stat(filepath.Join(modules, p.module)); err != nil {
			t.Skipf("%s is not installed; `make peers` installs it", p.module)
		}
		argv := p.argv(modules, m)
		d := p.ask(t, argv)
		directly[p.name], all = d, all+len(d.tools)
		config += "  " + p.name + ": {command: " + yamlCommand(argv) + "}\n"
	}
	base, _ := in.serveUp(t, config)
	union := openHTTP(t, base+"/mcp")
	list := union.result("tools/list", `{}`)
	for end := time.Now().Add(patience); len(named(t, list, "")) < all && time.Now().Before(end); {
		list = union.result("tools/list", `{}`) // a server that is long in starting is left out at first
	}
	key := in.key(t)
	for _, p := range servers {
		want := directly[p.name]
		alone := openHTTP(t, base+"/mcp/"+p.name)
		for which, got := range map[string]map[string]string{
			"as one of all": named(t, list, p.name+"_"), "alone": named(t, alone.result("tools/list", `{}`), ""),
		} {
			if d := cmp.Diff(want.tools, got); d != "" {
				t.Errorf("%s, %s: the definitions differ (-directly +gateway): %s", p.name, which, d)
			}
		}
		for which, raw := range map[string]json.RawMessage{
			"as one of all": union.result("tools/call", p.call(p.name+"_"+p.tool)), "alone": alone.result("tools/call", p.call(p.tool)),
		} {
			var got mcp.CallToolResult
			if err := json.Unmarshal(raw, &got); err != nil {
				t.Fatal(err)
			}
			if note, _ := got.Meta[frame.MetaKey].(map[string]any); note["untrusted"] != true || note["server"] != p.name || note["tool"] != p.tool {
				t.Errorf("%s, %s: provenance %v", p.name, which, note)
			}
			var bodies []string
			var first frame.Origin
			for _, text := range contents(got) {
				o, body, err := key.Open(text, first)
				if first = o; err != nil {
					t.Errorf("%s, %s: no fence of ours: %q", p.name, which, text)
				}
				bodies = append(bodies, body)
			}
			if d := cmp.Diff(contents(want.answer), bodies); d != "" {
				t.Errorf("%s, %s: the answer differs (-directly +gateway): %s", p.name, which, d)
			}
			if d := cmp.Diff(want.answer.StructuredContent, got.StructuredContent); d != "" {
				t.Errorf("%s, %s: the value differs (-directly +gateway): %s", p.name, which, d)
			}
		}
	}
	i := newInspector(t, in, nil)
	for _, era := range []string{"legacy", "auto", "modern"} {
		ask := func(args ...string) []byte {
			out, err := i.command(soon(t), append([]string{base + "/mcp", "--transport", "http", "--protocol-era", era}, args...)...).Output()
			if err != nil {
				t.Errorf("Inspector, %s: %v", era, err)
			}
			return out
		}
		offered := named(t, ask("--method", "tools/list"), "") // more than ours, as its client has more capabilities
		for _, p := range servers {
			for tool := range directly[p.name].tools {
				if offered[p.name+"_"+tool] == "" {
					t.Errorf("Inspector, %s: no %s of %s", era, tool, p.name)
				}
			}
		}
		if out := ask("--method", "tools/call", "--tool-name", "calc_math", "--tool-arg", "expression=6*7"); !strings.Contains(string(out), `\n42\n`) {
			t.Errorf("Inspector, %s: %s", era, out)
		}
	}
	t.Logf("%d servers, %d tools", len(servers), all)
}
