// SPDX-License-Identifier: Apache-2.0

package console

import (
	"bytes"
	"context"
	"crypto/sha256"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/model/counterfactual"
	"github.com/pellucid-mcp/pellucid/model/guard"
	"github.com/pellucid-mcp/pellucid/platform/capture"
	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// guardStatement is a statement of the guard.
const guardStatement = `{"act":"waiting","audit":false,"calls":[{"arguments":[{"form":"iban","label":"recipient","segments":"01"},{"form":"number","label":"amount","segments":"01"}],"digest":"sha256:8fbaaa73625c6ca529334e7485e900221bfb92607c325343429db722434542ad","plan":{"request":"sha256:c60c4d1d66bb7450ee905069c7700aecfa5ab3b0ed6e1be83e958a2708e70a59","response":"sha256:ade8a574b4b777dc450f1af0f23f31bafaa5e2f8cd6b68fba7de05719d79e43e","unreadable":true},"response":"hold","tool":"send_money","verdict":"cannot-tell"}],"context":"sha256:89fba8bcce82f6a6610168d5543c862c995ac89c7498c95678c3cebe362ec24a","format":"openai-chat","id":"251e7b561370aba45aa77555f1d7bf11","principal":"","reason":"found-out","response":"hold","sources":[{"segment":0,"source":"?/read_file"}],"version":"guard-evidence/2"}`

const guardID = "251e7b561370aba45aa77555f1d7bf11"

// withGuard gives the pages a desk, and the statement above.
func withGuard(g *testConsole, o *Options) {
	withServers(g, o)
	o.Queue = hold.New(g.store, hold.Options{})
	o.Statement = func(id ledger.ID) ([]byte, error) {
		if id.String() == guardID {
			return []byte(guardStatement), nil
		}
		return nil, nil
	}
}

// heldCall is a call that the guard holds: its arguments are hostile.
func heldCall(t testing.TB, g *testConsole, id string, body []byte, o hold.Options) {
	t.Helper()
	err := hold.New(g.store, o).Hold(context.Background(), hold.Item{ID: id, Server: guard.DeskServer, Tool: "send_money", Principal: hostile[0], Rule: hold.GuardCall,
		Code: finding.Denied, Call: hold.Digest{1}, Body: body})
	if err != nil {
		t.Fatal(err)
	}
}

func guardFill(t testing.TB, g *testConsole) {
	heldCall(t, g, guardID, []byte(strings.Join(hostile, "\n")), hold.Options{})
	id, err := ledger.ParseID(guardID)
	if err != nil {
		t.Fatal(err)
	}
	g.recorded(t, ledger.Event{ID: id, Kind: ledger.Counterfactual, Verdict: "waiting", Reason: "found-out", Rule: "hold",
		Subjects: []ledger.Subject{{Role: ledger.Output, Digest: sha256.Sum256([]byte(guardStatement))}}})
}

func guardPages() []testPage {
	return []testPage{
		{name: "guard", path: "guard", change: withGuard, fill: guardFill},
		{name: "guard-empty", path: "guard", change: withGuard},
		{name: "guard-none", path: "guard"},
		{name: "guarded", path: "guard/" + guardID, change: withGuard, fill: guardFill},
		{name: "guarded-viewer", path: "guard/" + guardID, change: withGuard, fill: guardFill, who: Person{ID: "v", Role: Viewer, AllServers: true}},
		{name: "guarded-not-yours", path: "guard/" + guardID, change: withGuard, fill: guardFill, who: Person{ID: "v", Role: Reviewer, Servers: []string{"mail"}}, status: http.StatusForbidden},
		{name: "guarded-unknown", path: "guard/" + strings.Repeat("0", 32), change: withGuard, status: http.StatusNotFound},
	}
}

// TestGuarded: the page shows the call and what was found out, and a decision counts once.
func TestGuarded(t *testing.T) {
	g := newTest(t, withGuard)
	guardFill(t, g)
	_, body := g.get("guard/" + guardID)
	for _, want := range []string{"waits for a reviewer", "send_money", "third-party text", "s0 ?/read_file", "the record has the digest of this statement", "Approve the call, once"} {
		if !strings.Contains(body, want) {
			t.Errorf("no %q in the page", want)
		}
	}
	decide := func(id, verb string) int {
		t.Helper()
		r, _ := g.post("guard/"+id+"/decide", url.Values{"verb": {verb}})
		return r.StatusCode
	}
	g.as(Person{ID: "v", Role: Viewer, AllServers: true})
	if _, body := g.get("guard/" + guardID); strings.Contains(body, "evil.example") || strings.Contains(body, "<form method=\"post\" action=\"/console/guard") {
		t.Error("a viewer sees the arguments, or may decide")
	}
	if got := decide(guardID, "release"); got != http.StatusForbidden {
		t.Errorf("a viewer: %d", got)
	}
	g.as(admin)
	if got := decide(guardID, "other"); got != http.StatusNotFound {
		t.Errorf("another verb: %d", got)
	}
	if got := decide(guardID, "release"); got != http.StatusSeeOther {
		t.Errorf("release: %d", got)
	}
	if got := decide(guardID, "deny"); got != http.StatusConflict {
		t.Errorf("decided twice: %d", got)
	}
	it, err := hold.New(g.store, hold.Options{}).Get(t.Context(), guardID)
	if err != nil || it.State != hold.Released || it.By != admin.ID {
		t.Errorf("%s by %s, %v", it.State, it.By, err)
	}
	// An item that is no call of the guard, one that is encrypted, and one that is not there.
	to, err := capture.ParseRecipients([]string{"age1lrd44xqjr4aqzvllz8eyhzcj8w3rqa8rqfc38cfd653ffan72ukqfzzy0x"})
	if err != nil {
		t.Fatal(err)
	}
	sealed := strings.Repeat("5", 32)
	heldCall(t, g, sealed, []byte("secret"), hold.Options{Seal: to.Seal})
	if got := decide(sealed, "release"); got != http.StatusConflict {
		t.Errorf("encrypted: %d", got)
	}
	if _, body := g.get("guard/" + sealed); !strings.Contains(body, "encrypted to its reviewers") || strings.Contains(body, "age-encryption") {
		t.Error("the page of an encrypted call")
	}
	if err := hold.New(g.store, hold.Options{}).Hold(t.Context(), hold.Item{ID: strings.Repeat("6", 32), Server: "files", Rule: "finding", Code: finding.HiddenTag, Body: []byte("x")}); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{strings.Repeat("6", 32), strings.Repeat("7", 32), "x"} {
		if got := decide(id, "deny"); got != http.StatusNotFound {
			t.Errorf("%s: %d", id, got)
		}
	}
}

// TestStatementChanged: a statement that was changed is not shown, and one that the log does not know is told.
func TestStatementChanged(t *testing.T) {
	text := []byte(guardStatement)
	g := newTest(t, withGuard, func(_ *testConsole, o *Options) {
		o.Statement = func(ledger.ID) ([]byte, error) { return text, nil }
	})
	guardFill(t, g)
	text = bytes.Replace(text, []byte(`"act":"waiting"`), []byte(`"act":"forwarded"`), 1)
	if _, body := g.get("guard/" + guardID); !strings.Contains(body, "does not follow from its answers") || strings.Contains(body, "recipient") {
		t.Error("a statement that does not follow is shown")
	}
	text = bytes.Replace([]byte(guardStatement), []byte("89fba8"), []byte("89fba9"), 1)
	if _, body := g.get("guard/" + guardID); !strings.Contains(body, "the record has another digest") {
		t.Error("a statement with another digest is believed")
	}
}

// TestRunView: segments stand in the order of the context, with how much each moved the model.
func TestRunView(t *testing.T) {
	r := &counterfactual.Result{Spent: counterfactual.Spent{Calls: 13, Tokens: 9000, Millis: 4200},
		Influence: []counterfactual.Influence{{}, {Shown: 3, ShownRecurs: 1, Hidden: 4, HiddenRecurs: 2, Effect: -100}, {Shown: 2, ShownRecurs: 2, Hidden: 5, HiddenRecurs: 1, Effect: 470}, {Shown: 1, Effect: 5000}}}
	v := newRun(r, map[int]string{2: "mail/read_file"})
	if len(v.Segments) != 3 || v.Segments[0].Hint != "m1" || v.Segments[0].Effect != "-0.10" || v.Segments[1].Hint != "p3" || !v.Segments[1].Known || v.Segments[1].X != "48.0" || v.Segments[1].W != "22.6" || v.Segments[2].W != "48.0" || v.Took != lasts(4200*time.Millisecond) {
		t.Errorf("%+v", v)
	}
}
