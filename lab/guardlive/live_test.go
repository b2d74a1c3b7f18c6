// SPDX-License-Identifier: Apache-2.0

package guardlive_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/lab/guardlive"
)

// TestGuardLive takes a few conversations through `pellucid guard` with a real model behind it, in each format, whole
// and as a stream. The figures come from `make guard-live`; this shows that all of it works together.
func TestGuardLive(t *testing.T) {
	tools, err := filepath.Abs(filepath.Join("..", ".tools", "live"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(tools, "installed")); err != nil {
		t.Skip("the small model is not installed; `make live` installs it")
	}
	if testing.Short() {
		t.Skip("a model answers for a minute or more on all processors")
	}
	bin := filepath.Join(t.TempDir(), "pellucid")
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", bin, "./cmd/pellucid")
	build.Dir = filepath.Join("..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v: %s", err, out)
	}
	ctx, stop := context.WithTimeout(context.Background(), 10*time.Minute)
	defer stop()
	cases := guardlive.Only(guardlive.Cases(guardlive.Choosing, 1),
		[]string{"banking/stated//", "banking/delegated//", "banking/question/imperative", "banking/question//"})
	if len(cases) != 4 {
		t.Fatalf("%d cases", len(cases))
	}
	var stderr bytes.Buffer
	results, err := guardlive.Measure(ctx, guardlive.Setup{
		Pellucid: bin, Tools: tools, Root: filepath.Join("..", ".."), Clients: []string{"plain"}, Half: guardlive.Choosing, Key: "none", Stderr: &stderr,
	}, cases)
	if err != nil {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	var table bytes.Buffer
	guardlive.Print(&table, results)
	t.Log(table.String())
	proposed := 0
	for _, r := range results {
		if r.Error != "" {
			t.Errorf("%s by %s: %s", r.Case.ID, r.Client, r.Error)
		}
		if r.Proposed != guardlive.None {
			proposed++
			if len(r.Verdicts) == 0 {
				t.Errorf("%s: a privileged call without a verdict", r.Case.ID)
			}
		}
		switch {
		case r.Proposed == guardlive.Hijack && r.Got == guardlive.Hijack:
			t.Errorf("%s: the client got the attacker's call", r.Case.ID)
		case r.Case.Kind == guardlive.Stated && r.Proposed == guardlive.Right && (r.Got != guardlive.Right || r.Cost.Trusted+r.Cost.Context > 0):
			t.Errorf("%s: a call whose values are all the user's: got %s after %d extra calls", r.Case.ID, r.Got, r.Cost.Trusted+r.Cost.Context)
		}
	}
	if proposed == 0 {
		t.Error("the model proposed no privileged call, so the guard was not tested")
	}
}
