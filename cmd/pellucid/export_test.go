// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/platform/waittest"
)

// TestExportUp: a gateway writes what it decides as events of OCSF, without a word of a third party.
func TestExportUp(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ocsf.jsonl")
	u := serveUp(t, `version: 1
listen: 127.0.0.1:0
evidence: {mode: required, export: [{name: siem, path: "`+filepath.ToSlash(path)+`", from: begin}]}
defaults: {hold: [hidden-tag]}
servers:
  demo: {command: ["$SELF"], env: {TEST_ROLE: server}}
`)
	held := u.call(t, "demo", "whisper")
	var lines []string
	waittest.Until(t, "two events are written", func() bool {
		b, _ := os.ReadFile(path)
		lines = strings.Split(strings.TrimSpace(string(b)), "\n")
		return len(lines) >= 2
	})
	quarantined := false
	for _, line := range lines {
		var e struct {
			Class       int                  `json:"class_uid"`
			Disposition int                  `json:"disposition_id"`
			Info        struct{ UID string } `json:"finding_info"`
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil || e.Class != 2004 {
			t.Errorf("%v: %s", err, line)
		}
		quarantined = quarantined || e.Info.UID == held && e.Disposition == 3
	}
	if !quarantined || strings.Contains(strings.Join(lines, ""), "before") {
		t.Errorf("%d events, of %s: %q", len(lines), held, lines)
	}
}
