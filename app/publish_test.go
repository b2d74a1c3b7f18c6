// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/app/apptest"
	"github.com/pellucid-mcp/pellucid/app/audit"
	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/platform/programtest"
	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/storage"
)

// omniwitness starts the witness of transparency-dev for one log, and returns its key and its URL.
func omniwitness(t *testing.T, origin, vkey string) (key, url string) {
	t.Helper()
	programtest.Need(t)
	tool := func(name string) string {
		path, err := filepath.Abs(filepath.Join("../.tools/publish", name))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(path); err != nil {
			t.Skipf("%s is not there: make witness builds it", name)
		}
		return path
	}
	dir := t.TempDir()
	private, public, logs := filepath.Join(dir, "w.key"), filepath.Join(dir, "w.pub"), filepath.Join(dir, "logs.yaml")
	if out, err := exec.Command(tool("generate_keys"), "--origin", "witness.example/real", "--out_priv", private, "--out_pub", public).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := os.WriteFile(logs, fmt.Appendf(nil, "Logs:\n  - Origin: %s\n    URL: http://127.0.0.1:1/\n    PublicKey: %s\n    Feeder: none\n", origin, vkey), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	cmd := exec.Command(tool("omniwitness"), "--listen", addr, "--metrics_listen", "", "--private_key_path", private, "--additional_logs", logs, "--db_file", filepath.Join(dir, "w.db"))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	b, err := os.ReadFile(public)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(b)), "http://" + addr
}

// copyOver copies the files of an export over those of an older one, as a scheduled job does that deletes none.
func copyOver(to, from string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name := filepath.Join(to, strings.TrimPrefix(path, from))
		return errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, b, 0o600))
	})
}

// TestUpPublishes: a gateway has a real witness cosign its log, and a reader of exports that were copied over one
// another proves both with the public keys alone.
func TestUpPublishes(t *testing.T) {
	const origin = "log.example/published"
	private, public, err := audit.NewKey(origin)
	if err != nil {
		t.Fatal(err)
	}
	witness, url := omniwitness(t, origin, public)
	copied, where := t.TempDir(), filepath.Join(t.TempDir(), "a.db")
	g := apptest.Start(t, "version: 1\nevidence:\n  key: env:LOGKEY\n  witnesses: {every: 1s, list: [{key: \""+witness+"\", url: \""+url+"\"}]}\n"+
		"servers:\n  one: {url: \""+apptest.Upstream(t, "one", nil)+"\"}\n", map[string]string{"LOGKEY": private, "PELLUCID_DB": where})
	c := g.Must("/mcp/one", "", "2025-11-25")
	o, err := audit.ParseOptions([]string{public}, []string{witness}, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	cosigned := func(msg []byte, least int64) bool {
		got, err := ledger.OpenCheckpoint(msg, o.Keys, o.Witnesses)
		return err == nil && len(got.Cosigned) == 1 && got.Size >= least
	}
	for range 3 {
		before := ledger.CheckpointSize([]byte(g.Body("/log/checkpoint")))
		if _, err := g.Say(c, "echo", "hello"); err != nil {
			t.Fatal(err)
		}
		g.Eventually("a cosigned checkpoint", func() bool { return cosigned([]byte(g.Body("/log/checkpoint")), before+1) })
		if err := install.Database(where).WithLog(func(ctx context.Context, l *storage.Ledger, _ *state.Dir) error {
			next := filepath.Join(t.TempDir(), "log")
			if _, err := audit.Export(ctx, l, next, false); err != nil {
				return err
			}
			return copyOver(copied, next)
		}); err != nil {
			t.Fatal(err)
		}
	}
	r, err := audit.VerifyExport(copied, o)
	if err != nil {
		t.Fatal(err)
	}
	if !r.OK() { // although it has narrower tiles, of older checkpoints
		t.Errorf("%+v", r.Problems)
	}
	narrow, err := filepath.Glob(filepath.Join(copied, "tile/0/000.p/*"))
	if err != nil || len(narrow) < 2 {
		t.Fatalf("%v, %v", narrow, err)
	}
	if err := os.WriteFile(narrow[0], make([]byte, 32), 0o600); err != nil {
		t.Fatal(err)
	}
	if r, err := audit.VerifyExport(copied, o); err != nil || r.OK() {
		t.Errorf("a narrower tile with other bytes: %+v, %v", r, err)
	}
}
