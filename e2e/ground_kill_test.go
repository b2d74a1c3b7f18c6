// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/grounding/attest"
)

// signedFile writes n attestations on as many claims and returns the file.
func signedFile(t testing.TB, n int) string {
	t.Helper()
	seed := sha256.Sum256([]byte("e2e"))
	key, err := attest.GenerateKey(bytes.NewReader(seed[:]))
	if err != nil {
		t.Fatal(err)
	}
	issued := time.Date(2026, 4, 25, 10, 0, 0, 0, time.UTC)
	var b bytes.Buffer
	for i := range n {
		claim := attest.Claim{Text: fmt.Sprintf("Reservoir number %d is full.", i)}
		doc := fmt.Sprintf(`{"@context":%q,"@type":"veritas:Attestation","id":"urn:e2e:%d","canonicalisation_version":"0.3",`+
			`"claim":{"text":%q},"claim_hash":%q,"validator_did":%q,"verdict":"SUPPORTED","consensus_domain":"scientific-default",`+
			`"rationale":"I have been there.","issued":"2026-04-25T10:00:00Z","depends_on":["urn:isbn:9780000000002"]}`,
			attest.Context, i, claim.Text, claim.Hash(attest.V03), key.DID())
		signed, err := attest.Sign([]byte(doc), key, attest.SignOptions{Created: issued})
		if err != nil {
			t.Fatal(err)
		}
		b.Write(append(signed, '\n'))
	}
	file := filepath.Join(t.TempDir(), "signed.jsonl")
	if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestGroundInterrupted ends an import in its midst, by SIGKILL and by SIGINT: every
// attestation that it has acknowledged is in the store, and the same import run again
// completes it.
func TestGroundInterrupted(t *testing.T) {
	t.Parallel()
	const n = 6_000
	file := signedFile(t, n)
	for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGINT} {
		stores(t, func(t *testing.T, in *install, db string) {
			t.Run(sig.String(), func(t *testing.T) {
				acknowledged := in.interrupt(t, file, db, sig)
				if len(acknowledged) < 1000 || len(acknowledged) == n {
					t.Fatalf("%d acknowledged: not in its midst", len(acknowledged))
				}
				kept := in.kept(t, db)
				for hash := range acknowledged {
					if !kept[hash] {
						t.Fatalf("%s was acknowledged and is lost", hash)
					}
				}
				if sig == syscall.SIGINT && len(kept) != len(acknowledged) {
					t.Errorf("%d kept, %d acknowledged", len(kept), len(acknowledged))
				}
				must(t, in.ground(t, "import", "--db", db, file))
				if got := len(in.kept(t, db)); got != n {
					t.Errorf("%d after the second import, want %d", got, n)
				}
			})
		})
	}
}

// interrupt starts an import, sends the signal after its first acknowledgements, and
// returns the hashes of all that it has acknowledged.
func (in *install) interrupt(t *testing.T, file, db string, sig syscall.Signal) map[string]bool {
	t.Helper()
	cmd := in.ground(t, "import", "--json", "--db", db, file)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	hashes := map[string]bool{}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var r struct {
			Accepted bool
			Hash     string
		}
		if json.Unmarshal(lines.Bytes(), &r) != nil {
			break // a line that was cut acknowledges nothing
		}
		if !r.Accepted {
			t.Fatalf("refused: %s", lines.Bytes())
		}
		if hashes[r.Hash] = true; len(hashes) == 1000 {
			if err := cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
		}
	}
	cmd.Wait()
	if sig == syscall.SIGINT && (cmd.ProcessState.ExitCode() != 1 || !strings.Contains(stderr.String(), "Interrupted: ")) {
		t.Errorf("exit %v: %s", cmd.ProcessState, stderr.Bytes())
	}
	return hashes
}

// kept returns the hashes of everything in the store.
func (in *install) kept(t *testing.T, db string) map[string]bool {
	t.Helper()
	hashes := map[string]bool{}
	for line := range strings.Lines(must(t, in.ground(t, "export", "--db", db))) {
		var e struct{ Hash string }
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		hashes[e.Hash] = true
	}
	return hashes
}
