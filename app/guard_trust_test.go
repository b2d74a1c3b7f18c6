// SPDX-License-Identifier: Apache-2.0

package app

import (
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/app/local"
	"github.com/pellucid-mcp/pellucid/model/counterfactual"
	"github.com/pellucid-mcp/pellucid/model/guard"
	"github.com/pellucid-mcp/pellucid/text/frame"
)

// TestSourceTrust: a source that took control is trusted less by the guard that reads the log
// afterwards; what no fence proves is not trusted, whatever name it has.
func TestSourceTrust(t *testing.T) {
	stateDir(t)
	db := install.Database(filepath.Join(t.TempDir(), "g.db"))
	log := slog.New(slog.DiscardHandler)
	open := func() (trust func(counterfactual.Source) int, trail guardTrail, done func()) {
		dir, err := local.OpenState()
		if err != nil {
			t.Fatal(err)
		}
		s, err := db.Open(t.Context(), dir, true)
		if err != nil {
			t.Fatal(err)
		}
		g := &Guard{set: &GuardSettings{}, log: log}
		o := &guard.Options{Policy: counterfactual.GuessPrivileges()}
		if trail, err = g.keep(t.Context(), o, dir, s); err != nil {
			t.Fatal(err)
		}
		return o.Trust, trail, func() { g.Close(); s.Close() }
	}
	source := func(server string, verified bool) counterfactual.Source {
		return counterfactual.Source{Verified: verified, Origin: frame.Origin{Server: server, Tool: "fetch"}}
	}
	trust, trail, done := open()
	if got := trust(source("web", true)); got != 700 {
		t.Errorf("at rest: %d", got)
	}
	trail.blame(guard.Source{Server: "web", Tool: "fetch", Evidence: "00000000000000000000000000000001", Severity: 900})
	done()
	trust, _, done = open()
	defer done()
	for _, c := range []struct {
		source counterfactual.Source
		want   int
	}{{source("web", true), 300}, {source("bank", true), 700}, {source("bank", false), 0}, {source("", false), 0}} {
		if got := trust(c.source); got != c.want {
			t.Errorf("%+v: %d, want %d", c.source, got, c.want)
		}
	}
}
