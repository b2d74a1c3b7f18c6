// SPDX-License-Identifier: Apache-2.0

package witness_test

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/platform/programtest"
)

// peer is a program of others that make witness has built.
func peer(t testing.TB, name string) string {
	t.Helper()
	programtest.Need(t)
	path, err := filepath.Abs(filepath.Join("../../.tools/publish", name))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Skipf("%s is not there: make witness builds it", name)
	}
	return path
}

// generateWitness makes the keys of a witness with its own tool: the file of the private key, and the
// verifier key.
func generateWitness(t testing.TB, dir string) (file, vkey string) {
	t.Helper()
	file, public := filepath.Join(dir, "w.key"), filepath.Join(dir, "w.pub")
	out, err := exec.Command(peer(t, "generate_keys"), "--origin", "witness.example/real", "--out_priv", file, "--out_pub", public).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	b, err := os.ReadFile(public)
	if err != nil {
		t.Fatal(err)
	}
	return file, strings.TrimSpace(string(b))
}

// witnessKey is the verifier key of type 0x04 (C2SP signed-note).
func witnessKey(name string, public ed25519.PublicKey) string {
	material := append([]byte{4}, public...)
	sum := sha256.Sum256(append([]byte(name+"\n"), material...))
	return name + "+" + hex.EncodeToString(sum[:4]) + "+" + base64.StdEncoding.EncodeToString(material)
}
