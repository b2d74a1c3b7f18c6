// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/platform/waittest"
)

// TestFollowKilled kills a process that follows the log of a gateway, again and again, while calls come. The file has
// each record once, in order, and no word of a third party.
func TestFollowKilled(t *testing.T) {
	u := serveUp(t, `version: 1
listen: 127.0.0.1:0
evidence: {mode: required}
defaults: {hold: [hidden-tag]}
servers:
  demo: {command: ["$SELF"], env: {TEST_ROLE: server}}
`)
	path := filepath.Join(t.TempDir(), "records.jsonl")
	follow := func() *exec.Cmd {
		cmd := exec.Command(os.Args[0], "ledger", "export", "--follow", path)
		cmd.Env, cmd.Stderr = u.env, os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	written := func() string { b, _ := os.ReadFile(path); return string(b) }
	var held []string
	for range 4 {
		cmd := follow()
		held = append(held, u.call(t, "demo", "whisper"))
		waittest.Until(t, "the record of the held result is written", func() bool { return strings.Contains(written(), held[len(held)-1]) })
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		half := strings.TrimSuffix(written(), "\n")
		if err := os.Truncate(path, int64(len(half)-20)); err != nil { // as a write that was cut short
			t.Fatal(err)
		}
	}
	held = append(held, u.call(t, "demo", "whisper"))
	cmd := follow()
	waittest.Until(t, "the last record is written", func() bool {
		return strings.Contains(written(), held[len(held)-1]) && strings.HasSuffix(written(), "\n")
	})
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	for i, line := range strings.Split(strings.TrimSpace(written()), "\n") {
		var row struct {
			Index     int             `json:"index"`
			Statement json.RawMessage `json:"statement"`
		}
		if err := json.Unmarshal([]byte(line), &row); err != nil || row.Index != i || row.Statement == nil {
			t.Errorf("line %d: %v: %s", i, err, line)
		}
	}
	for _, id := range held {
		if !strings.Contains(written(), id) {
			t.Errorf("the record of %s is missing", id)
		}
	}
	if strings.Contains(written(), "before") {
		t.Error("a word of a server stands in the file")
	}
}
