// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pellucid-mcp/pellucid/app/explain"
)

// A served is a gateway that runs as a process of its own.
type served struct {
	url, state string
	env        []string
}

// serveUp runs pellucid up with a configuration in which $SELF stands for this binary, until the test ends.
func serveUp(t *testing.T, config string) *served {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "pellucid.yaml")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(config, "$SELF", filepath.ToSlash(os.Args[0]))), 0o600); err != nil {
		t.Fatal(err)
	}
	u := &served{state: filepath.Join(dir, "state")}
	u.env = append(os.Environ(), roleVariable+"=pellucid", "PELLUCID_STATE="+u.state, "PELLUCID_DB=")
	cmd := exec.Command(os.Args[0], "up", "-c", file)
	cmd.Env = u.env
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if cmd.Process.Signal(os.Interrupt) != nil { // as on Windows
			_ = cmd.Process.Kill()
		}
		_ = cmd.Wait()
	})
	address, found := regexp.MustCompile(`127\.0\.0\.1:\d+`), make(chan string, 1)
	go func() {
		for lines := bufio.NewScanner(log); lines.Scan(); {
			if a := address.FindString(lines.Text()); a != "" {
				select {
				case found <- "http://" + a:
				default:
				}
			}
		}
	}()
	select {
	case u.url = <-found:
	case <-time.After(time.Minute):
		t.Fatal("pellucid up does not say where it listens")
	}
	return u
}

// run runs a verb beside the gateway.
func (u *served) run(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = u.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", args, err, out)
	}
	return string(out)
}

// call calls a tool of a server, and returns the evidence id in what comes back.
func (u *served) call(t *testing.T, server, tool string) string {
	t.Helper()
	c := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, nil)
	s, err := c.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: u.url + "/mcp/" + server}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	res, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: tool})
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(res)
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`evidence"?[ :]"?([0-9a-f]{32})`).FindSubmatch(b)
	if m == nil {
		t.Fatalf("no evidence id in %s", b)
	}
	return string(m[1])
}

// TestExplainUp explains decisions of a gateway while it runs.
func TestExplainUp(t *testing.T) {
	u := serveUp(t, `version: 1
listen: 127.0.0.1:0
evidence: {mode: required}
defaults: {hold: [hidden-tag]}
servers:
  demo: {command: ["$SELF"], env: {TEST_ROLE: server}}
`)
	held, changed := u.call(t, "demo", "whisper"), u.call(t, "demo", "poison")
	explained := func(id string) (x explain.Explanation) {
		t.Helper()
		if err := json.Unmarshal([]byte(u.run(t, "explain", "--json", id)), &x); err != nil {
			t.Fatal(err)
		}
		return x
	}
	if x := explained(held); x.Index == nil || x.State != "held" || x.Verdict != "withheld" || len(x.Do) < 3 || fmt.Sprint(x.Found) != "[ledger queue]" {
		t.Errorf("held: %+v", x)
	}
	if x := explained(changed); x.Index == nil || x.State == "held" && len(x.Codes) == 0 {
		t.Errorf("changed: %+v", x)
	}
	u.run(t, "quarantine", "release", "--by", "ann", held)
	taken := u.call(t, "demo", "whisper")
	x := explained(taken)
	var steps []string
	for _, s := range x.Since {
		steps = append(steps, s.Text)
		if s.Asked != (s.ID == taken) {
			t.Errorf("step %+v", s)
		}
	}
	if x.ID != held || x.State != "taken" || len(steps) != 3 || !strings.Contains(steps[2], "was delivered") || x.Since[1].By != "ann" {
		t.Errorf("taken: %q %+v", steps, x)
	}
	if out := u.run(t, "explain", held); !strings.Contains(out, "It was released and taken") || strings.ContainsAny(out, "\u202e\U000e0041") {
		t.Errorf("%+q", out)
	}
}
