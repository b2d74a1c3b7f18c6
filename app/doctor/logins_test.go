// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/platform/login"
	"github.com/pellucid-mcp/pellucid/platform/state"
)

// TestLogins: a login that is over is told with its server, and nothing of its tokens.
func TestLogins(t *testing.T) {
	dir, err := state.OpenAt(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	look := func() string {
		x := &examiner{}
		x.logins(dir)
		var all []string
		for _, c := range x.report.Checks {
			all = append(all, c.Status+" "+c.Says)
		}
		return strings.Join(all, "\n")
	}
	if got := look(); got != "" {
		t.Errorf("without a login: %s", got)
	}
	store := login.OpenStore(dir)
	if err := store.Put(&login.Login{Server: "https://a.example/mcp?key=hunter2", Access: "hunter2"}, login.File); err != nil {
		t.Fatal(err)
	}
	if got := look(); got != "ok 1 login at remote servers" {
		t.Error(got)
	}
	if err := store.Put(&login.Login{Server: "https://b.example/mcp?key=hunter2", Refresh: "hunter2", Over: true}, login.File); err != nil {
		t.Fatal(err)
	}
	if got := look(); !strings.Contains(got, "warning the login to https://b.example/mcp is over") || strings.Contains(got, "hunter2") {
		t.Error(got)
	}
}
