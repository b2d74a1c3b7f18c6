// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"crypto/ed25519"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/app"
	"github.com/pellucid-mcp/pellucid/app/apptest"
	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/app/local"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/platform/pgtest"
	"github.com/pellucid-mcp/pellucid/platform/programtest"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/record/sequence"
	"github.com/pellucid-mcp/pellucid/storage"
)

// openRefused opens a gateway that is refused, on a state directory of its own.
func openRefused(t *testing.T, config string) error {
	t.Helper()
	t.Setenv("PELLUCID_STATE", t.TempDir())
	g := filepath.Join(t.TempDir(), "p.yaml")
	if err := os.WriteFile(g, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	src, err := app.FileSource(g)
	if err != nil {
		t.Fatal(err)
	}
	up, err := app.OpenGateway(app.GatewayOptions{Listen: "127.0.0.1:0", Stderr: io.Discard, References: rules.Options{}}, src)
	if err == nil {
		up.Close()
	}
	return err
}

// TestUpSecondReplica: a replica that could not carry the log on does not start, and one that shares
// the key of the installation does.
func TestUpSecondReplica(t *testing.T) {
	programtest.Need(t)
	var server pgtest.Server
	t.Cleanup(server.Stop)
	const servers = "servers:\n  one: {url: \"http://127.0.0.1:9/\"}\n"
	config := func() string { return "version: 1\nstore: \"" + server.Database(t) + "\"\n" + servers }
	t.Run("keys of their own", func(t *testing.T) {
		c := config()
		first := apptest.Start(t, c, nil) // begins the log
		err := openRefused(t, c)
		var coded *exit.Error
		if !errors.As(err, &coded) || coded.Code != exit.Config || !strings.Contains(err.Error(), local.KeyVar) || !strings.Contains(err.Error(), "evidence.key") {
			t.Errorf("the second replica: %v", err)
		}
		if first.Get("/readyz", "") != http.StatusOK {
			t.Error("the first replica is not ready")
		}
	})
	t.Run("one key", func(t *testing.T) {
		t.Setenv("REPLICA_KEY", strings.Repeat("0a", 32))
		t.Setenv(local.KeyVar, "env:REPLICA_KEY")
		c := config()
		apptest.Start(t, c, nil)
		if err := openRefused(t, c); err != nil {
			t.Errorf("the second replica: %v", err)
		}
	})
	t.Run("the same state directory", func(t *testing.T) { // one machine that starts again
		c := config()
		first := apptest.Start(t, c, nil)
		first.Stop()
		if err := <-first.Done; err != nil {
			t.Fatal(err)
		}
		first.Done <- nil
		dir, err := local.OpenState()
		if err != nil {
			t.Fatal(err)
		}
		s, err := install.Database(strings.Split(strings.SplitN(c, "store: \"", 2)[1], "\"")[0]).Open(t.Context(), dir, true)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		kept := install.OpenRecords(s, dir, &rules.Evidence{}, time.Hour, slog.New(slog.DiscardHandler))
		defer kept.Close()
		if err := kept.Replica(t.Context()); err != nil {
			t.Errorf("the machine that began the log: %v", err)
		}
	})
}

// TestUpLogStandsStill: where no process has the key any more, /readyz and the metrics say within
// seconds that the log stands still, and the replica stays ready.
func TestUpLogStandsStill(t *testing.T) {
	db := filepath.Join(t.TempDir(), "a.db")
	g := apptest.Start(t, "version: 1\nservers:\n  one: {url: \""+apptest.Upstream(t, "one", nil)+"\"}\n", map[string]string{"PELLUCID_DB": db})
	c := g.Must("/mcp/one", "", "2025-11-25")
	say := func() {
		if _, err := g.Say(c, "echo", "hello"); err != nil {
			t.Fatal(err)
		}
	}
	say()
	dir, err := local.OpenState()
	if err != nil {
		t.Fatal(err)
	}
	s, err := storage.Open(t.Context(), db, storage.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var head sequence.Head
	g.Eventually("the log has begun", func() bool {
		head, err = s.Ledger().Head(t.Context())
		return err == nil && head.Size > 0
	})
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	elsewhere, err := ledger.NewSigner(head.Origin, private)
	if err != nil {
		t.Fatal(err)
	}
	seq, err := local.Carrier(s.Ledger(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := seq.Rotate(t.Context(), elsewhere); err != nil {
		t.Fatal(err)
	}
	g.Eventually("the key is missing", func() bool {
		return strings.Contains(g.Body("/readyz"), `"warnings":{"log":"no-key"}`) && strings.Contains(g.Body("/metrics"), "pellucid_ledger_key 0")
	})
	say()
	g.Eventually("the log stands still", func() bool { return strings.Contains(g.Body("/readyz"), `"warnings":{"log":"standing-still"}`) })
	if status := g.Get("/readyz", ""); status != http.StatusOK {
		t.Errorf("the replica is not ready: %d", status)
	}
	g.Eventually("the log of the process says so", func() bool {
		return strings.Contains(g.Log.String(), "records cannot be added to the ledger") && strings.Contains(g.Log.String(), "set evidence.key at every replica")
	})
	if strings.Contains(g.Body("/metrics"), "pellucid_ledger_still_seconds 0") {
		t.Error("the metric says that the log moves")
	}
}
