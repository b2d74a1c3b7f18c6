// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/app"
	"github.com/pellucid-mcp/pellucid/app/apptest"
	"github.com/pellucid-mcp/pellucid/app/audit"
	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/platform/programtest"
	"github.com/pellucid-mcp/pellucid/record/ledger"
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
			t.Skipf("%s is not there: make publish-peers builds it", name)
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

// TestUpPublishes: a gateway has a real witness cosign its log and mirrors it, and a reader of the
// mirror proves both with the public keys alone.
func TestUpPublishes(t *testing.T) {
	const origin = "log.example/published"
	private, public, err := audit.NewKey(origin)
	if err != nil {
		t.Fatal(err)
	}
	witness, url := omniwitness(t, origin, public)
	copied := t.TempDir()
	g := apptest.Start(t, "version: 1\nevidence:\n  key: env:LOGKEY\n  witnesses: {every: 1s, list: [{key: \""+witness+"\", url: \""+url+"\"}]}\n  mirror: {path: "+copied+", every: 1s}\n"+
		"servers:\n  one: {url: \""+apptest.Upstream(t, "one", nil)+"\"}\n", map[string]string{"LOGKEY": private, "PELLUCID_DB": filepath.Join(t.TempDir(), "a.db")})
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
	}
	g.Eventually("the mirror has it", func() bool {
		b, _ := os.ReadFile(filepath.Join(copied, "checkpoint"))
		return string(b) == g.Body("/log/checkpoint")
	})
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

// TestUpKeyFromKMS: the key of the log comes from a service once, at the start. The service is a fake of
// the documented API of AWS KMS on this machine.
func TestUpKeyFromKMS(t *testing.T) {
	private, public, err := audit.NewKey("log.example/kms")
	if err != nil {
		t.Fatal(err)
	}
	asked, refuse := 0, ""
	fake := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		if body, _ := io.ReadAll(r.Body); r.Header.Get("X-Amz-Target") != "TrentService.Decrypt" || string(body) != `{"CiphertextBlob":"d3JhcHBlZA=="}` {
			t.Errorf("%v %s", r.Header, body)
		}
		w.Header().Set("Content-Type", "application/x-amz-json-1.1")
		if refuse != "" {
			w.WriteHeader(400)
			_ = json.NewEncoder(w).Encode(map[string]string{"__type": refuse})
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"Plaintext": []byte(private + "\n")})
	}))
	t.Cleanup(fake.Close)
	config := "version: 1\nevidence: {kms: {key: env:WRAPPED, url: \"" + fake.URL + "\", region: eu-central-1, access_key: env:A, secret_key: env:S}}\nservers:\n  one: {url: \"" + apptest.Upstream(t, "one", nil) + "\"}\n"
	environ := map[string]string{"WRAPPED": base64.StdEncoding.EncodeToString([]byte("wrapped")), "A": "AKID", "S": "secret", "PELLUCID_DB": filepath.Join(t.TempDir(), "a.db")}
	g := apptest.Start(t, config, environ)
	c := g.Must("/mcp/one", "", "2025-11-25")
	for range 5 {
		if _, err := g.Say(c, "echo", "hello"); err != nil {
			t.Fatal(err)
		}
	}
	key, err := ledger.ParseKey(public)
	if err != nil {
		t.Fatal(err)
	}
	g.Eventually("the log is signed", func() bool {
		_, err := ledger.OpenCheckpoint([]byte(g.Body("/log/checkpoint")), []*ledger.Key{key}, nil)
		return err == nil
	})
	if asked != 1 {
		t.Errorf("the service was asked %d times", asked)
	}
	refuse = "AccessDeniedException"
	t.Setenv("PELLUCID_STATE", t.TempDir())
	file := filepath.Join(t.TempDir(), "p.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	src, err := app.FileSource(file)
	if err != nil {
		t.Fatal(err)
	}
	_, err = app.OpenGateway(app.GatewayOptions{Listen: "127.0.0.1:0", Stderr: io.Discard, Database: environ["PELLUCID_DB"],
		References: rules.Options{Getenv: func(name string) (string, bool) { v := environ[name]; return v, v != "" }}}, src)
	var coded *exit.Error
	if !errors.As(err, &coded) || coded.Code != exit.Config || !strings.Contains(err.Error(), "kms:Decrypt") {
		t.Errorf("denied: %v", err)
	}
}
