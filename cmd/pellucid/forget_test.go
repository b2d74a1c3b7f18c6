// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pellucid-mcp/pellucid/app/apptest"
	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/grounding/ingest"
	"github.com/pellucid-mcp/pellucid/platform/logtest"
	"github.com/pellucid-mcp/pellucid/platform/state"
)

// What the test plants: each stands in exactly one role, and none of them is a word that
// the program would write by itself.
const (
	plantedPrincipal = "wilhelmina.t-4711@people.example"
	plantedReviewer  = "ferdinand-reviewer-815"
	plantedToken     = "Kq3wilhelminatokenxW9zLmN4vB7cYp2RtU8"
	plantedUpstream  = "upstream-credential-7d1f"
	plantedArgument  = "argument-of-the-call-93ac"
	plantedResult    = "result-that-was-delivered-51be"
	plantedHeld      = "result-that-was-held-c0d4"
)

var heldIDs = regexp.MustCompile(`\b[0-9a-f]{32}\b`)

// secretive is a server that wants a credential and returns what the argument asks for: with
// "hide" in it a result that has hidden text.
func secretive(t *testing.T) string {
	t.Helper()
	s := mcp.NewServer(&mcp.Implementation{Name: "secretive", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "echo"}, func(_ context.Context, _ *mcp.CallToolRequest, in struct {
		Text string `json:"text"`
	}) (*mcp.CallToolResult, any, error) {
		text := plantedResult
		if strings.Contains(in.Text, "hide") {
			text = plantedHeld + "\U000E0041\U000E0042\U000E0043"
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil, nil
	})
	h := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != plantedUpstream {
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// filesWith names the files below dir that hold the text, in the order of their paths.
func filesWith(t *testing.T, dir, text string) (found []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if bytes.Contains(b, []byte(text)) {
			found = append(found, filepath.Base(path))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestKept uses an installation as a team does, and looks for what was planted in every
// file that it has written: docs/kept.md says where a name stands, and no secret stands
// anywhere. Then it has the person forgotten, and looks again.
func TestKept(t *testing.T) {
	tokens := filepath.ToSlash(filepath.Join(t.TempDir(), "tokens.json"))
	if err := os.WriteFile(tokens, fmt.Appendf(nil, `{"tokens":[{"principal":%q,"scopes":["mcp"],"token":"env:TOKEN"}]}`, plantedPrincipal), 0o600); err != nil {
		t.Fatal(err)
	}
	stateDir := useInstallation(t, tokens)
	if got := filesWith(t, stateDir, plantedPrincipal); !slices.Equal(got, []string{"pellucid.db", "refusals.jsonl"}) {
		t.Errorf("the principal stands in %q", got)
	}
	// Of the reviewer the database alone knows: the second result was denied under this name.
	if got := filesWith(t, stateDir, plantedReviewer); !slices.Equal(got, []string{"pellucid.db"}) {
		t.Errorf("the reviewer stands in %q", got)
	}
	for _, secret := range []string{plantedToken, plantedUpstream, plantedArgument, plantedResult, plantedHeld} {
		if got := filesWith(t, stateDir, secret); got != nil {
			t.Errorf("%s stands in %q", secret, got)
		}
	}
	for _, name := range []string{plantedPrincipal, plantedReviewer} {
		if out, code := pellucid(t, "forget", "--principal", name); code != exit.Usage || !strings.Contains(out, "say --yes") {
			t.Errorf("without --yes: exit code %d: %s", code, out)
		}
		if out, code := pellucid(t, "forget", "--yes", "--principal", name); code != 0 {
			t.Fatalf("forget: exit code %d: %s", code, out)
		}
		digest := sha256.Sum256([]byte(name))
		for _, text := range []string{name, hex.EncodeToString(digest[:])} {
			if got := filesWith(t, stateDir, text); got != nil {
				t.Errorf("after forget %s stands in %q", text, got)
			}
		}
	}
	if out, code := pellucid(t, "ledger", "verify"); code != 0 {
		t.Errorf("the log no longer verifies: exit code %d: %s", code, out)
	}
	if out, code := pellucid(t, "forget", "--yes", "--json", "--principal", plantedPrincipal); code != 0 || strings.Contains(out, `":1`) {
		t.Errorf("a second time something was left: exit code %d: %s", code, out)
	}
}

// useInstallation makes calls, has results held, released and denied, and stops the gateway.
func useInstallation(t *testing.T, tokens string) (stateDir string) {
	t.Helper()
	g := apptest.Start(t, fmt.Sprintf(`version: 1
auth: {tokens: "file:%s"}
evidence: {mode: required}
quarantine: {recipients: [age1lrd44xqjr4aqzvllz8eyhzcj8w3rqa8rqfc38cfd653ffan72ukqfzzy0x]}
defaults: {hold: [hidden-tag]}
servers:
  one: {url: %s, headers: {Authorization: env:UPSTREAM}}
`, tokens, secretive(t)), map[string]string{"TOKEN": plantedToken, "UPSTREAM": plantedUpstream})
	stateDir = os.Getenv("PELLUCID_STATE")
	s := g.Must("/mcp/one", plantedToken, "2025-11-25")
	for _, text := range []string{plantedArgument, plantedArgument + "hide", plantedArgument + "hide more"} {
		if _, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "echo", Arguments: map[string]any{"text": text}}); err != nil {
			t.Fatal(err)
		}
	}
	s.Close()
	g.Stop()
	g.Done <- <-g.Done // the clean-up of the rig reads it again
	out, _ := pellucid(t, "quarantine", "list")
	ids := heldIDs.FindAllString(out, -1)
	if len(ids) != 2 {
		t.Fatalf("%d results are held, want 2:\n%s", len(ids), out)
	}
	// One that is denied for another principal's sake stays, with the reviewer's name in it.
	if out, code := pellucid(t, "quarantine", "deny", "--by", plantedReviewer, ids[0]); code != 0 {
		t.Fatalf("deny: %s", out)
	}
	dir, err := state.OpenAt(stateDir)
	if err != nil {
		t.Fatal(err)
	}
	j, err := dir.Journal(ingest.RefusalsName, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if err := j.Append(fmt.Appendf(nil, `{"at":"2026-01-02T03:04:05.000Z","submitter":%q,"digest":"sha256:00","accepted":false}`, plantedPrincipal)); err != nil {
		t.Fatal(err)
	}
	return stateDir
}

// pellucid runs a verb and returns all that it prints.
func pellucid(t *testing.T, args ...string) (out string, code int) {
	t.Helper()
	var b logtest.Buffer
	code = run(args, &env{Stdin: strings.NewReader(""), Stdout: &b, Stderr: &b, Getenv: os.Getenv})
	return b.String(), code
}
