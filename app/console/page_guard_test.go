// SPDX-License-Identifier: Apache-2.0

package console

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
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
const guardStatement = `{"act":"waiting","audit":false,"calls":[{"arguments":[{"form":"iban","label":"recipient","segments":"01"},{"form":"number","label":"amount","segments":"01"}],"digest":"sha256:8fbaaa73625c6ca529334e7485e900221bfb92607c325343429db722434542ad","plan":{"request":"sha256:c60c4d1d66bb7450ee905069c7700aecfa5ab3b0ed6e1be83e958a2708e70a59","response":"sha256:ade8a574b4b777dc450f1af0f23f31bafaa5e2f8cd6b68fba7de05719d79e43e","unreadable":true},"response":"hold","tool":"send_money","verdict":"cannot-tell"}],"context":"sha256:89fba8bcce82f6a6610168d5543c862c995ac89c7498c95678c3cebe362ec24a","format":"openai-chat","id":"251e7b561370aba45aa77555f1d7bf11","principal":"","reason":"found-out","response":"hold","sources":[{"segment":0,"source":"?/read_file"}],"version":"guard-evidence/3"}`

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
		{name: "guarded-context", path: "guard/" + guardID, change: withContext, fill: contextFill},
		{name: "guarded-unknown", path: "guard/" + strings.Repeat("0", 32), change: withGuard, status: http.StatusNotFound},
	}
}

// TestGuardDecisions: the page lists the latest decisions of the guard, and no other records about runs.
func TestGuardDecisions(t *testing.T) {
	t.Parallel()
	g := newTest(t, withGuard)
	var list []ledger.Event
	for i := range maxGuarded + 30 {
		e := ledger.Event{ID: ledger.ID{1, byte(i)}, Time: time.Now().Add(time.Duration(i) * time.Second), Kind: ledger.Counterfactual, Verdict: string(guard.Acts[i%len(guard.Acts)]), Reason: "found-out"}
		if i%10 == 0 {
			e.Verdict = "hijack" // about an origin
		}
		list = append(list, e)
	}
	g.recorded(t, list...)
	_, body := g.get("guard")
	for i := range list {
		want := i >= len(list)-maxGuarded-len(list)/10 && i%10 != 0
		if i == len(list)-maxGuarded-11 || i == len(list)-maxGuarded-12 || i == len(list)-maxGuarded-13 { // the end of the list
			continue
		}
		if strings.Contains(body, list[i].ID.String()) != want {
			t.Errorf("decision %d: shown %v", i, !want)
		}
	}
	if n := strings.Count(body, `<a class="id" href="/console/guard/`); n != maxGuarded {
		t.Errorf("%d decisions", n)
	}
	g.as(Person{ID: "v", Role: Viewer, Servers: []string{"mail"}})
	if _, body := g.get("guard"); strings.Contains(body, `href="/console/guard/`) {
		t.Error("who may not see the guard sees its decisions")
	}
}

// TestGuarded: the page shows the call and what was found out, and a decision counts once.
func TestGuarded(t *testing.T) {
	t.Parallel()
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
	t.Parallel()
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
	t.Parallel()
	r := &counterfactual.Result{Spent: counterfactual.Spent{Calls: 13, Tokens: 9000, Millis: 4200},
		Influence: []counterfactual.Influence{{}, {Shown: 3, ShownRecurs: 1, Hidden: 4, HiddenRecurs: 2, Effect: -100}, {Shown: 2, ShownRecurs: 2, Hidden: 5, HiddenRecurs: 1, Effect: 470}, {Shown: 1, Effect: 5000}}}
	v := newRun(r, map[int]string{2: "mail/read_file"})
	if len(v.Segments) != 3 || v.Segments[0].Hint != "m1" || v.Segments[0].Effect != "-0.10" || v.Segments[1].Hint != "p3" || !v.Segments[1].Known || v.Segments[1].X != "48.0" || v.Segments[1].W != "22.6" || v.Segments[2].W != "48.0" || v.Took != lasts(4200*time.Millisecond) {
		t.Errorf("%+v", v)
	}
}

// TestProbesView: each probe says what was left out, what came and what it cost; what is not known is no number.
func TestProbesView(t *testing.T) {
	t.Parallel()
	list := []counterfactual.Observation{
		{Variant: counterfactual.Variant{Kind: counterfactual.KindRemove, Kept: counterfactual.SetOf(0)}, Recurrences: []counterfactual.Recurrence{{}, {Recurs: true}}, Tokens: 1200, Elapsed: 900},
		{Variant: counterfactual.Variant{Kind: counterfactual.KindRemove, Kept: counterfactual.SetOf(0, 1, 2)}, Recurrences: []counterfactual.Recurrence{{}}, Elapsed: 1500},
		{Variant: counterfactual.KeepOnly(counterfactual.SetOf(0)), Failure: counterfactual.FailTimeout, Tokens: 10},
		{Variant: counterfactual.Variant{Kind: counterfactual.KindRemove, Kept: counterfactual.SetOf(1, 2)}, Refused: true},
	}
	got, more := newProbes(list, 3)
	var all []string
	for _, p := range got {
		all = append(all, fmt.Sprintf("%s %s: %s, %s", p.N, p.Without, p.Came, p.Tokens))
	}
	want := "1 s1 s2: the call recurs, 1,200|2 nothing: the call does not recur, \u2013|3 s1 s2: no answer: timeout, 10|4 s0: the model refused, \u2013"
	if strings.Join(all, "|") != want || more {
		t.Errorf("%q, %v", strings.Join(all, "|"), more)
	}
	long, more := newProbes(make([]counterfactual.Observation, maxProbes+1), 5000)
	if len(long) != maxProbes || !more || len(long[0].Without) > 100 || !strings.HasSuffix(string(long[0].Without), "\u2026") {
		t.Errorf("%d probes, %v, %q", len(long), more, long[0].Without)
	}
}

// withContext gives the pages a desk that keeps what the model has read.
func withContext(g *testConsole, o *Options) {
	withGuard(g, o)
	o.Sealer = testSealer()
	o.Queue = hold.New(g.store, hold.Options{SealQuestion: o.Sealer.Seal})
}

// contextFill is a held call with what the model has read: two segments, of which one is hostile.
func contextFill(t testing.TB, g *testConsole) {
	t.Helper()
	b, err := json.Marshal([]guard.ContextSegment{{ID: "a", Source: "user", Bytes: 13, Text: "Pay the rent."}, {ID: "b", Source: "mail/read", Bytes: 90_000, Text: strings.Join(hostile, "\n")}})
	if err != nil {
		t.Fatal(err)
	}
	if err := g.opt.Queue.Hold(context.Background(), hold.Item{ID: guardID, Server: guard.DeskServer, Tool: "send_money", Principal: "ann", Rule: hold.GuardCall,
		Code: finding.Denied, Call: hold.Digest{1}, Body: []byte("[]"), Question: hold.Question{ID: guardID, Context: b}.Document()}); err != nil {
		t.Fatal(err)
	}
}

// TestGuardContext: a person who decides sees what the model has read, escaped, and coloured only where it was tested. Others
// do not.
func TestGuardContext(t *testing.T) {
	t.Parallel()
	r := newTest(t, withContext)
	contextFill(t, r)
	_, page := r.get("guard/" + guardID)
	for _, want := range []string{"What the model has read, 2 segments", "Pay the rent.", "mail/read", "The beginning of", "&lt;script&gt;"} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q in the page", want)
		}
	}
	if at := hiddenInPage(page); at != "" {
		t.Errorf("the page has a hidden character: %s", at)
	}
	if found := foreignMarkup(page); found != nil {
		t.Errorf("the page has %q", found)
	}
	r.as(Person{ID: "v", Role: Viewer, AllServers: true})
	if _, page := r.get("guard/" + guardID); strings.Contains(page, "Pay the rent.") {
		t.Error("a viewer sees what the model has read")
	}
	v := guardedView{Read: make([]readView, 3)}
	for i := range v.Read {
		v.Read[i].Effect = unknown
	}
	v.weigh([]*counterfactual.Result{
		{Influence: []counterfactual.Influence{{Shown: 2, Hidden: 2, Effect: 100}, {Shown: 3}, {Shown: 1, Hidden: 1, Effect: -300}, {Shown: 1, Hidden: 1}}},
		{Influence: []counterfactual.Influence{{Shown: 2, Hidden: 2, Effect: 500}, {}, {Shown: 1, Hidden: 1, Effect: 20}}},
	})
	if v.Read[0].Hint != "p3" || v.Read[0].Effect != "+0.50" || v.Read[1].Hint != "" || v.Read[1].Effect != unknown || v.Read[2].Hint != "m1" {
		t.Errorf("%+v", v.Read)
	}
}

// TestGuardContextUnkept: where the context is not kept, the page says how to keep it.
func TestGuardContextUnkept(t *testing.T) {
	t.Parallel()
	r := &reviewed{}
	r.testConsole = newTest(t, withGuard, withQueue(t, r))
	heldCall(t, r.testConsole, guardID, []byte("[]"), hold.Options{})
	if _, page := r.get("guard/" + guardID); !strings.Contains(page, "guard: {context: true}") {
		t.Error("the page does not say how to keep the context")
	}
}

// TestGuardedTwoPersons: where two persons are needed the page says so, the first proposes, and a second release of the
// same person is refused and told.
func TestGuardedTwoPersons(t *testing.T) {
	t.Parallel()
	two := hold.Options{TwoPersons: func() bool { return true }}
	g := newTest(t, withGuard)
	heldCall(t, g, guardID, []byte("a call"), two)
	release := func() *http.Response {
		t.Helper()
		r, _ := g.post("guard/"+guardID+"/decide", url.Values{"verb": {"release"}})
		return r
	}
	if _, body := g.get("guard/" + guardID); !strings.Contains(body, "needs two persons") {
		t.Error("the page does not say that two persons are needed")
	}
	r := release()
	if r.StatusCode != http.StatusSeeOther {
		t.Fatalf("propose: %d", r.StatusCode)
	}
	if _, body := g.get(strings.TrimPrefix(r.Header.Get("Location"), Base)); !strings.Contains(body, "another person has to confirm") || !strings.Contains(body, "has proposed the release") {
		t.Error("the page does not say that it was proposed")
	}
	if r := release(); r.StatusCode != http.StatusConflict {
		t.Errorf("the same person again: %d", r.StatusCode)
	}
	if _, body := g.post("guard/"+guardID+"/decide", url.Values{"verb": {"release"}}); !strings.Contains(body, "you have proposed the release already") {
		t.Error("the page does not say why")
	}
	g.as(Person{ID: "bob", Role: Reviewer, AllServers: true})
	if r := release(); r.StatusCode != http.StatusSeeOther {
		t.Errorf("another person: %d", r.StatusCode)
	}
	if it, err := hold.New(g.store, hold.Options{}).Get(t.Context(), guardID); err != nil || it.State != hold.Released || it.By != "bob" {
		t.Errorf("%s by %q, %v", it.State, it.By, err)
	}
}

// TestGuardPrincipal: for whom a call is, is told to those who decide about it.
func TestGuardPrincipal(t *testing.T) {
	t.Parallel()
	g := newTest(t, withGuard)
	err := hold.New(g.store, hold.Options{}).Hold(t.Context(), hold.Item{ID: guardID, Server: guard.DeskServer, Tool: "send_money", Principal: "carol", Rule: hold.GuardCall,
		Code: finding.Denied, Call: hold.Digest{1}, Body: []byte("x")})
	if err != nil {
		t.Fatal(err)
	}
	for role, sees := range map[Role]bool{Viewer: false, Reviewer: true} {
		g.as(Person{ID: "p", Role: role, AllServers: true})
		if _, body := g.get("guard"); strings.Contains(body, "carol") != sees || !strings.Contains(body, "send_money") {
			t.Errorf("%s: the principal is shown: %v", role.Name(), !sees)
		}
	}
}
