// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write docs/spec/evidence/vectors.json anew")

const vectorsPath = "../../docs/spec/evidence/vectors.json"

// A vectors is the file of test vectors of docs/spec/evidence.md.
type vectors struct {
	Version string            `json:"version"`
	Seeds   map[string]string `json:"seeds"` // private keys, of these vectors only
	Keys    []string          `json:"keys"`  // in the order of their rotation
	Witness string            `json:"witness"`
	Records []vector          `json:"records"`
	Tiles   map[string]string `json:"tiles"`
	Root    string            `json:"root"`
	Log     string            `json:"checkpoint"`
	Earlier string            `json:"earlierCheckpoint"`
	Proof   string            `json:"proof"`
	Extends []string          `json:"consistency"` // of the earlier checkpoint with this one
}

type vector struct {
	Statement string `json:"statement"`
	Opening   string `json:"opening"`
	Envelope  string `json:"envelope"`
	Leaf      string `json:"leaf"`
}

// vectorLog is the log of the vectors: five records, a rotated key, a witness.
func vectorLog(t *testing.T) (l *memLog, earlier []byte, w *cosigner) {
	l = newLog(t)
	l.add(t, message(1))
	l.add(t, Event{Kind: ResultHeld, Of: ID{0: 7}, Server: "files", Tool: "read_file", Rule: "finding", Reason: "control-token",
		Subjects: []Subject{{Held, Digest{1}}, {Principal, Digest{2}}}})
	l.integrate(t)
	earlier = l.checkpoint
	l.rotate(t, "second")
	l.add(t, Event{Kind: TrustChanged, Server: "files", Numbers: []Number{{"before", 900_000}, {"after", 850_000}}, Time: time.Unix(1767323046, 0)})
	l.integrate(t)
	w = testWitness(t, "witness.example/w1")
	c, err := readCheckpoint(l.checkpoint)
	if err != nil {
		t.Fatal(err)
	}
	line, err := w.Cosign(c, time.Unix(1767323047, 0))
	if err != nil {
		t.Fatal(err)
	}
	if l.checkpoint, err = AddCosignature(l.checkpoint, line, []*Key{l.signer.Key()}, []*Witness{w.Witness()}); err != nil {
		t.Fatal(err)
	}
	return l, earlier, w
}

func TestVectors(t *testing.T) {
	l, earlier, w := vectorLog(t)
	v := vectors{Version: "0.1", Seeds: map[string]string{}, Witness: w.Witness().String(), Tiles: map[string]string{},
		Root: l.tree.Root().String(), Log: string(l.checkpoint), Earlier: string(earlier)}
	for _, name := range []string{"first", "second"} {
		s := testSigner(t, name)
		v.Keys = append(v.Keys, s.Key().String())
		v.Seeds[name] = hex.EncodeToString(s.private.(interface{ Seed() []byte }).Seed())
	}
	for i, e := range l.entries {
		env, err := ParseEnvelope(e)
		if err != nil {
			t.Fatal(err)
		}
		leaf := LeafHash(e)
		v.Records = append(v.Records, vector{string(env.Statement), string(l.openings[i]), string(e), hex.EncodeToString(leaf[:])})
	}
	for path, f := range l.export(t, false) {
		if strings.HasPrefix(path, "tile/") {
			v.Tiles[path] = hex.EncodeToString(f.Data)
		}
	}
	p, err := Prove(t.Context(), l, 2)
	if err != nil {
		t.Fatal(err)
	}
	v.Proof = string(p.Bytes())
	c, _ := readCheckpoint(l.checkpoint)
	path, err := ProveConsistency(t.Context(), l, 3, c)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range path {
		v.Extends = append(v.Extends, h.String())
	}
	var got bytes.Buffer
	enc := json.NewEncoder(&got)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(vectorsPath, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(vectorsPath)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("the vectors have changed, which is a new version of the format (-want +got):\n%s", diff)
	}
}

// TestSpecification holds docs/spec/evidence.md against the vectors and the code.
func TestSpecification(t *testing.T) {
	page, err := os.ReadFile("../../docs/spec/evidence.md")
	if err != nil {
		t.Fatal(err)
	}
	says := func(s string) {
		t.Helper()
		if !bytes.Contains(page, []byte(s)) {
			t.Errorf("docs/spec/evidence.md does not say %q", s)
		}
	}
	l, _, _ := vectorLog(t)
	for i, e := range l.entries {
		leaf := LeafHash(e)
		says(fmt.Sprintf("leaf %d  %s", i, hex.EncodeToString(leaf[:])))
	}
	for line := range bytes.Lines(l.checkpoint) {
		says(strings.TrimSpace(string(line)))
	}
	says(fmt.Sprintf("`tile/entries/000.p/5` has %d bytes", len(l.export(t, false)["tile/entries/000.p/5"].Data)))
	for _, k := range kinds {
		says("`" + string(k) + "`")
	}
	for _, r := range roles {
		says("`" + string(r) + "`")
	}
	says("most 16,384 bytes")
	says("at most 32,768 bytes")
	if maxStatement != 16384 || maxEnvelope != 32768 {
		t.Error("the bounds have changed")
	}
}
