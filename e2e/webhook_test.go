// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pellucid-mcp/pellucid/platform/programtest"
	"github.com/pellucid-mcp/pellucid/platform/waittest"
)

const (
	hookSecret = "whsec_AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA="
	oldSecret  = "whsec_ISIjJCUmJygpKissLS4vMDEyMzQ1Njc4OTo7PD0+P0A="
)

// A hookMessage is a message that a receiver has verified.
type hookMessage struct {
	ID   string `json:"id"`
	Body struct {
		Type string         `json:"type"`
		Data map[string]any `json:"data"`
	} `json:"body"`
}

func toldAt(t testing.TB, url string) (all []hookMessage) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&all); err != nil {
		t.Fatal(err)
	}
	return all
}

// TestWebhooks: receivers with the libraries of Standard Webhooks verify what a gateway tells,
// whichever of two secrets they know, and a gateway that was killed before the receiver was
// there loses no message.
func TestWebhooks(t *testing.T) {
	t.Parallel()
	programtest.Need(t)
	python := filepath.Join("..", ".tools", "python", "bin", "python")
	if err := exec.Command(python, "-c", "import standardwebhooks").Run(); err != nil {
		t.Skip("the library of Standard Webhooks is not installed; `make python` installs it")
	}
	node, modules := filepath.Join("..", ".tools", "e2e", "node_modules"), ""
	if modules, _ = filepath.Abs(node); !exists(filepath.Join(node, "standardwebhooks")) {
		t.Skip("the packages from npm are not installed; `make peers` installs them")
	}
	// A port that is free, and that nothing listens on until the gateway is dead.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, late, _ := net.SplitHostPort(l.Addr().String())
	l.Close()
	early := startListening(t, exec.Command("node", filepath.Join("node", "webhook.mjs"), modules, oldSecret, "0"))
	in := newInstall(t)
	secrets := t.TempDir()
	for name, text := range map[string]string{"new": hookSecret, "old": oldSecret} {
		if err := os.WriteFile(filepath.Join(secrets, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	both := "secrets: ['file:" + secrets + "/new', 'file:" + secrets + "/old']"
	server, _ := json.Marshal(helperServer(t, "plain", t.Name()))
	config := "version: 1\nservers: {files: {command: " + string(server) + "}}\n" +
		"policy: {rules: [{name: all-calls, on: call, when: 'true', then: hold}]}\n" +
		"webhooks:\n  late: {url: 'http://127.0.0.1:" + late + "/', " + both + "}\n" +
		"  early: {url: 'http://127.0.0.1:" + early + "/', " + both + ", events: [call.held]}\n"
	base, cmd := in.serveUp(t, config)
	client := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1"}, nil)
	session, err := client.Connect(soon(t), &mcp.StreamableClientTransport{Endpoint: base + "/mcp/files"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	r, err := session.CallTool(soon(t), &mcp.CallToolParams{Name: "size", Arguments: map[string]any{"n": 10}})
	if err != nil || !r.IsError && !strings.Contains(strings.Join(contents(*r), ""), "pellucid") {
		t.Fatalf("the call was not held: %v, %+v", err, r)
	}
	// A message that is being sent when its process dies is tried again only after minutes.
	waittest.Until(t, "late was tried", func() bool {
		out, _, _ := in.run(t, "webhooks", "--json")
		return strings.Contains(out, `"failure"`)
	})
	cmd.Process.Kill()
	cmd.Wait()
	receiver := startListening(t, exec.Command(python, "-B", filepath.Join("python", "webhook.py"), hookSecret, late))
	if receiver != late {
		t.Fatalf("port %s", receiver)
	}
	file := filepath.Join(t.TempDir(), "pellucid.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, said, code := in.run(t, "webhooks", "--test", "late", "-c", file); code != 0 {
		t.Errorf("webhooks test: %d: %s%s", code, out, said)
	}
	in.serveUp(t, config)
	held := func(all []hookMessage) (n int) {
		for _, m := range all {
			if m.Body.Type != "call.held" {
				continue
			}
			n++
			d := m.Body.Data
			if d["server"] != "files" || d["tool"] != "size" || d["rule"] != "policy-call:all-calls" || len(d["id"].(string)) != 32 {
				t.Errorf("%v", d)
			}
		}
		return n
	}
	for name, port := range map[string]string{"late": late, "early": early} {
		waittest.Until(t, name+" is told", func() bool { return held(toldAt(t, "http://127.0.0.1:"+port+"/")) > 0 })
	}
	if all := toldAt(t, "http://127.0.0.1:"+late+"/"); len(all) == 0 || all[0].Body.Type != "test" {
		t.Errorf("%+v", all)
	}
	waittest.Until(t, "nothing waits", func() bool { out, _, code := in.run(t, "webhooks", "--json"); return code == 0 && out == "" })
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
