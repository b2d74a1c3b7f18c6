// SPDX-License-Identifier: Apache-2.0

package validator

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/grounding/attest"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

var at = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func key(t testing.TB, b byte) attest.Key {
	t.Helper()
	k, err := attest.GenerateKey(bytes.NewReader(bytes.Repeat([]byte{b}, 32)))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// TestKeyFile: a key comes back from its file, which only its owner reads and which is never
// overwritten.
func TestKeyFile(t *testing.T) {
	name, k := filepath.Join(t.TempDir(), "key.json"), key(t, 1)
	if err := CreateKey(name, k); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(name); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	got, err := ReadKey(name)
	if err != nil || got.Secret() != k.Secret() {
		t.Errorf("another key, %v", err)
	}
	before, _ := os.ReadFile(name)
	if err := CreateKey(name, key(t, 2)); !errors.Is(err, fs.ErrExist) || !strings.HasPrefix(err.Error(), "attest: create ") {
		t.Errorf("a second key: %v", err)
	}
	if after, _ := os.ReadFile(name); !bytes.Equal(before, after) {
		t.Error("the key was overwritten")
	}
	var f map[string]string
	if err := json.Unmarshal(before, &f); err != nil || f["type"] != "Multikey" || f["controller"] != k.DID() || f["id"] != k.Method() {
		t.Errorf("%s, %v", before, err)
	}
}

// TestKeyFileHostile: what is no key file is refused without a word of what it holds.
func TestKeyFileHostile(t *testing.T) {
	const secret = "z3u2hunter2"
	name := filepath.Join(t.TempDir(), "k\u202e.json")
	for what, text := range map[string]string{
		"empty": "", "no JSON": secret, "another member": `{"secretKeyMultibase":"` + key(t, 1).Secret() + `","x":"` + secret + `"}`,
		"no secret": `{"type":"Multikey"}`, "not a key": `{"secretKeyMultibase":"` + secret + `"}`,
		"twice": `{"secretKeyMultibase":"` + key(t, 1).Secret() + `","secretKeyMultibase":"` + secret + `"}`,
		"long":  `{"type":"` + strings.Repeat(" ", maxKeyFile) + `"}`,
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadKey(name); err == nil || strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), "\u202e") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := ReadKey(name + ".none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

// document is an attestation that lacks what Sign adds.
const document = `{"@context": "` + attest.Context + `", "@type": "veritas:Attestation", "id": "urn:veritas:1", "canonicalisation_version": "0.3",
 "claim": {"text": "Snow is cold."}, "verdict": "SUPPORTED", "consensus_domain": "scientific-default",
 "rationale": "Measured.", "qualifications": "None.", "evidence": [], "cited_works": [], "issued": "2026-01-01T00:00:00Z"}`

// TestSign: what is signed is accepted, under the did:key and under another method.
func TestSign(t *testing.T) {
	k := key(t, 1)
	signed, err := Sign([]byte(document), k, SignOptions(k, "", at))
	if err != nil {
		t.Fatal(err)
	}
	r, err := Check(signed, at, attest.Options{})
	if err != nil || !r.Accepted || r.Validator != k.DID() || r.Verdict != "SUPPORTED" || r.Version != "0.3" || r.ID != "urn:veritas:1" {
		t.Errorf("%+v, %v", r, err)
	}
	var out strings.Builder
	if err := r.WriteText(&out); err != nil || out.String() != "accepted: "+r.Hash+"\nSUPPORTED by "+k.DID()+"\n" {
		t.Errorf("says %q, %v", out.String(), err)
	}
	const web = "did:web:lab.example#key-1"
	if signed, err = Sign([]byte(document), k, SignOptions(k, web, at)); err != nil {
		t.Fatal(err)
	}
	a, err := attest.Parse(signed, attest.Options{})
	if err != nil || a.Validator != "did:web:lab.example" {
		t.Fatalf("%+v, %v", a, err)
	}
	if err := a.Verify(t.Context(), at, OwnKey{k, web}); err != nil {
		t.Error(err)
	}
	if err := a.Verify(t.Context(), at, OwnKey{key(t, 2), web}); err == nil {
		t.Error("another key verifies")
	}
	if r, err = Check(signed, at, attest.Options{}); err != nil || r.Code != string(finding.KeyUnavailable) {
		t.Errorf("a key that is not known offline: %+v, %v", r, err)
	}
	if o := SignOptions(k, "", time.Time{}); time.Since(o.Created) > time.Minute || o.Method != k.Method() {
		t.Errorf("%+v", o)
	}
}

// TestSignRefuses: what Check would refuse is not signed.
func TestSignRefuses(t *testing.T) {
	k := key(t, 1)
	for _, c := range []struct {
		name, old, new string // what is changed in the document
		code           finding.Code
	}{
		{"no JSON", document, "{", finding.NotJSON},
		{"no verdict", `"verdict": "SUPPORTED",`, "", finding.MissingMember},
		{"markup", "Measured.", "<b>Measured.</b>", finding.TypedTag},
		{"another's", `"claim"`, `"validator_did": "` + key(t, 2).DID() + `", "claim"`, finding.ProofKey},
		{"issued later", "2026-01-01", "2027-01-01", finding.ProofTime},
	} {
		doc := strings.Replace(document, c.old, c.new, 1)
		signed, err := Sign([]byte(doc), k, SignOptions(k, "", at))
		if r, ok := errors.AsType[*attest.Refusal](err); !ok || r.Code != c.code || signed != nil {
			t.Errorf("%s: %s, %v", c.name, signed, err)
		}
	}
}

// TestCheck: what a report says of a refusal, and of text that was let through.
func TestCheck(t *testing.T) {
	k := key(t, 1)
	good, err := Sign([]byte(document), k, SignOptions(k, "", at))
	if err != nil {
		t.Fatal(err)
	}
	markup := bytes.Replace([]byte(document), []byte("Measured."), []byte("<b>Measured.</b>"), 1)
	if markup, err = attest.Complete(markup, k.DID()); err != nil {
		t.Fatal(err)
	}
	if markup, err = attest.Sign(markup, k, attest.SignOptions{Created: at}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		doc   []byte
		o     attest.Options
		at    time.Time
		code  finding.Code
		text  string
		typed bool
	}{
		{"no JSON", []byte(`{"`), attest.Options{}, at, finding.NotJSON, `refused: not-json at "", byte `, true},
		{"changed", bytes.Replace(good, []byte("Measured."), []byte("Measured!"), 1), attest.Options{}, at, finding.ProofInvalid, `refused: proof-invalid at "/proof`, true},
		{"before it was signed", good, attest.Options{}, at.AddDate(-1, 0, 0), finding.ProofTime, "refused: proof-time at ", true},
		{"markup", markup, attest.Options{}, at, finding.TypedTag, `refused: typed-tag at "/rationale", byte of the text `, true},
		{"markup that is let through", markup, attest.Options{DangerouslyIngestUntyped: true}, at, "", "accepted: sha256:", false},
	} {
		r, err := Check(c.doc, c.at, c.o)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		var out strings.Builder
		if err := r.WriteText(&out); err != nil || !strings.HasPrefix(out.String(), c.text) {
			t.Errorf("%s: says %q, %v", c.name, out.String(), err)
		}
		if r.Code != string(c.code) || r.Accepted != (c.code == "") || (r.Untyped == "") != c.typed ||
			strings.Contains(out.String(), "\nnot plain text: ") == c.typed || r.InText != strings.Contains(out.String(), "of the text") {
			t.Errorf("%s: %+v", c.name, r)
		}
	}
}

// TestHash: by the version that is asked for, or the document's own; and the two keys of
// duplicates, which differ where only the skeleton is the same.
func TestHash(t *testing.T) {
	v02 := strings.Replace(document, `"canonicalisation_version": "0.3",`, "", 1)
	for _, c := range []struct {
		doc     string
		v, same attest.Version
	}{{document, "", attest.V03}, {v02, "", attest.V02}, {document, attest.V02, attest.V02}} {
		got, err := Hash([]byte(c.doc), c.v)
		want, werr := attest.CanonicalHash([]byte(c.doc), c.same)
		if err != nil || werr != nil || got != want.String() {
			t.Errorf("%q: %s, %v; want %s", c.v, got, err, want)
		}
	}
	k := key(t, 1)
	keys := func(rationale string) []string {
		doc, err := Sign([]byte(strings.Replace(document, "Measured.", rationale, 1)), k, SignOptions(k, "", at))
		if err != nil {
			t.Fatal(err)
		}
		said, err := DedupKeys(doc)
		lines := strings.Split(said, "\n")
		if err != nil || len(lines) != 2 || !strings.HasPrefix(lines[0], "text sha256:") || !strings.HasPrefix(lines[1], "skeleton sha256:") {
			t.Fatalf("%q, %v", said, err)
		}
		return lines
	}
	plain, lookalike := keys("Ice melts."), keys("\u0406ce melts.")
	if plain[0] == lookalike[0] || plain[1] != lookalike[1] {
		t.Errorf("%q and %q", plain, lookalike)
	}
	for _, f := range []func([]byte) (string, error){DedupKeys, func(b []byte) (string, error) { return Hash(b, "") }} {
		if said, err := f([]byte("{")); err == nil || said != "" {
			t.Errorf("no JSON: %q", said)
		}
	}
}
