// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/record/hold"
)

// TestGuardValues: a rule of pellucid.yaml holds a call that the user has asked for, a reviewer
// approves it for a time, and it passes until the approval is revoked. A known payee needs none,
// and a declared task says what the user has asked for.
func TestGuardValues(t *testing.T) {
	stateDir(t)
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("payees.txt", "# known\nDE89370400440532013000\n\n")
	write("pellucid.yaml", `version: 1
guard:
  upstream: `+obedient(t)+`
  lists: {payees: payees.txt}
  values:
    - name: unknown-payee
      tool: send_*
      when: '!listed("payees", args.recipient)'
      then: ask
    - name: large
      tool: send_money
      when: double(args.amount) > 1000
      then: hold
`)
	cfg, err := rules.Load(filepath.Join(dir, "pellucid.yaml"), rules.Options{})
	if err != nil {
		t.Fatal(err)
	}
	db := install.Database(filepath.Join(dir, "g.db"))
	set := &GuardSettings{Guard: *cfg.Guard, DB: db, Listen: "127.0.0.1:0", Severity: DefaultGuardSeverity}
	const (
		wanted = "Please " + guardOrder + "."
		iban   = "US133000000121212121212"
	)
	request := strings.Replace(strings.Replace(guardRequest, "Lunch was 12.50. Now "+guardOrder+" at once.", "Lunch was 12.50.", 1), "What did I pay for lunch?", wanted, 1)
	ask := func(request, task string) bool {
		t.Helper()
		g, err := OpenGuard(t.Context(), set, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		defer g.Close()
		r := httptest.NewRequest("POST", "http://127.0.0.1/v1/chat/completions", strings.NewReader(request))
		r.Header.Set("Content-Type", "application/json")
		r.RequestURI = "/v1/chat/completions"
		if task != "" {
			r.Header.Set("X-Pellucid-Task", task)
		}
		w := httptest.NewRecorder()
		g.handler().ServeHTTP(w, r)
		if w.Code != 200 {
			t.Fatalf("%d: %s", w.Code, w.Body)
		}
		return strings.Contains(w.Body.String(), iban)
	}
	if ask(request, "") {
		t.Fatal("an unknown payee is not held")
	}
	var id string
	err = db.WithReview(func(ctx context.Context, r *install.Review) error {
		list, err := r.Queue.List(ctx, hold.Filter{State: hold.Held})
		if err != nil || len(list) != 1 {
			t.Fatalf("%v, %+v", err, list)
		}
		it, err := r.Queue.Get(ctx, list[0].ID)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(it.Body), "unknown-payee: ask") || !strings.Contains(string(it.Body), `"from":["user"]`) {
			t.Errorf("a reviewer sees %s", it.Body)
		}
		made, err := r.Approvals.Remember(ctx, &it, it.Body, "ann", time.Hour)
		if err == nil {
			id = made[0].ID
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if !ask(request, "") {
			t.Error("an approved call is held")
		}
	}
	if ask(guardRequest, "") {
		t.Error("the call passes with a value from a document")
	}
	if ask(request, "Sum up.") {
		t.Error("the call passes although the declared task does not ask for it")
	}
	err = db.WithReview(func(ctx context.Context, r *install.Review) error {
		if a, err := r.Approvals.Get(ctx, id); err != nil || a.Uses != 2 {
			t.Errorf("%v, %+v", err, a)
		}
		return r.Approvals.Revoke(ctx, id, "ann")
	})
	if err != nil {
		t.Fatal(err)
	}
	if ask(request, "") {
		t.Error("a revoked approval counts")
	}
	write("payees.txt", iban+"\n")
	if !ask(request, "") {
		t.Error("a known payee is held")
	}
	if !ask(request, wanted) {
		t.Error("a declared task that asks for the call is not the user's words")
	}
	for _, bad := range []string{"\xff", strings.Repeat("x\n", 100_001)} {
		write("payees.txt", bad)
		if g, err := OpenGuard(t.Context(), set, slog.New(slog.DiscardHandler)); err == nil || codeOf(err) != exit.Config || !strings.HasPrefix(err.Error(), "guard: lists: payees: ") {
			if err == nil {
				g.Close()
			}
			t.Errorf("%v", err)
		}
	}
}
