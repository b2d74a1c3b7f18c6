// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/record/sequence"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// A memLog is a log in memory.
type memLog []sequence.Entry

func (l memLog) Get(_ context.Context, id ledger.ID) (sequence.Entry, error) {
	for _, e := range l {
		if e.ID == id {
			return e, nil
		}
	}
	return sequence.Entry{}, ledger.ErrNotFound
}

func (l memLog) At(_ context.Context, i int64) (sequence.Entry, error) {
	if i >= int64(len(l)) {
		return sequence.Entry{}, ledger.ErrNotFound
	}
	return l[i], nil
}

func (l memLog) About(_ context.Context, of ledger.ID, _ string, _ time.Time) (out []sequence.Entry, more bool, err error) {
	for _, e := range l {
		if st, err := ledger.UnverifiedStatement(e.Envelope); err == nil && st.Of == of {
			out = append(out, e)
		}
	}
	return out, true, nil
}

func (l *memLog) add(t *testing.T, e ledger.Event) ledger.ID {
	t.Helper()
	i := len(*l)
	if e.ID == (ledger.ID{}) {
		e.ID = ledger.ID{1, byte(i)}
	}
	e.Time = now.Add(time.Duration(i) * time.Minute)
	sealed, err := e.Seal(ledger.Salt{})
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ledger.NewSigner("log.example/x", ed25519.NewKeyFromSeed(make([]byte, 32)))
	if err != nil {
		t.Fatal(err)
	}
	envelope, err := ledger.Sign(sealed.Statement, signer)
	if err != nil {
		t.Fatal(err)
	}
	*l = append(*l, sequence.Entry{Index: int64(i), ID: e.ID, Envelope: envelope})
	return e.ID
}

type items map[string]hold.Item

func (q items) Get(_ context.Context, id string) (hold.Item, error) {
	if it, ok := q[id]; ok {
		return it, nil
	}
	return hold.Item{}, hold.ErrNotFound
}

type blocks []hold.Block

func (b blocks) List(context.Context, bool) ([]hold.Block, error) { return b, nil }

type approvals []hold.Approval

func (a approvals) List(context.Context, bool) ([]hold.Approval, error) { return a, nil }

func TestOf(t *testing.T) {
	var log memLog
	first := log.add(t, ledger.Event{Kind: ledger.RulesLoaded})
	flagged := log.add(t, ledger.Event{Kind: ledger.Message, Server: "files", Tool: "read", Method: "tools/call", Shape: "result", Verdict: "withheld",
		Reason: "suspected-injection", Withheld: []ledger.Count{{Code: finding.Suspected, N: 1}}, Versions: []ledger.Version{{Of: "rules", Version: "sha256:ab"}}})
	log.add(t, ledger.Event{Kind: ledger.Classified, Of: flagged, Server: "files", Rule: "classifier:shields", Verdict: "injection", Numbers: []ledger.Number{{Name: "score", N: 970_000}}})
	log.add(t, ledger.Event{Kind: ledger.ResultHeld, Of: flagged, Server: "files", Tool: "read", Rule: "classifier:shields", Reason: "suspected-injection"})
	denied := log.add(t, ledger.Event{Kind: ledger.ResultDenied, Of: flagged, Server: "files", Tool: "read", Actor: "person"})
	guarded := log.add(t, ledger.Event{Kind: ledger.Counterfactual, Verdict: "waiting", Reason: "found-out", Rule: "ask"})
	hijack := log.add(t, ledger.Event{Kind: ledger.Counterfactual, Of: guarded, Verdict: "hijack", Server: "files", Tool: "read", Rule: "guard"})
	log.add(t, ledger.Event{Kind: ledger.Counterfactual, Of: guarded, Verdict: "approved", Rule: "approval", Actor: "person"})
	blocked := log.add(t, ledger.Event{Kind: ledger.Message, Server: "files", Tool: "read", Method: "tools/call", Shape: "result", Verdict: "withheld",
		Reason: "denied", Rule: "policy:quarantine-tool", Withheld: []ledger.Count{{Code: finding.Denied, N: 1}}})
	unapproved := log.add(t, ledger.Event{Kind: ledger.Message, Server: "files", Tool: "read", Method: "tools/call", Shape: "error", Verdict: "withheld",
		Reason: "unapproved", Withheld: []ledger.Count{{Code: finding.Unapproved, N: 1}}})
	orphan := log.add(t, ledger.Event{Kind: ledger.ResultExpired, Of: ledger.ID{9}, Server: "files", Tool: "read", Actor: "expiry"})
	call := log.add(t, ledger.Event{Kind: ledger.Message, Server: "files", Tool: "write", Method: "tools/call", Shape: "call", Verdict: "dropped", Reason: "denied", Rule: "policy:no-writes",
		Withheld: []ledger.Count{{Code: finding.Denied, N: 1}}})
	heldTool := log.add(t, ledger.Event{Kind: ledger.Message, Server: "files", Tool: "read", Method: "tools/call", Shape: "call", Verdict: "dropped", Reason: "unapproved",
		Withheld: []ledger.Count{{Code: finding.Unapproved, N: 1}}})
	heldPrompt := log.add(t, ledger.Event{Kind: ledger.Message, Server: "files", Method: "prompts/get", Shape: "call", Verdict: "dropped", Reason: "unapproved",
		Withheld: []ledger.Count{{Code: finding.Unapproved, N: 1}}})
	list := log.add(t, ledger.Event{Kind: ledger.Message, Server: "files", Method: "tools/list", Shape: "result", Verdict: "changed", Profile: "faithful",
		Withheld: []ledger.Count{{Code: finding.Unapproved, N: 2}}})
	both := log.add(t, ledger.Event{Kind: ledger.Message, Server: "files", Method: "tools/list", Shape: "result", Verdict: "changed", Profile: "faithful",
		Findings: []ledger.Count{{Code: finding.HiddenTag, N: 2}}, Withheld: []ledger.Count{{Code: finding.Unapproved, N: 1}}})
	rejected := log.add(t, ledger.Event{Kind: ledger.SurfaceRejected, Server: "files", Tool: "read"})
	refused := log.add(t, ledger.Event{Kind: ledger.Message, Server: "files", Tool: "read", Method: "tools/call", Shape: "result", Verdict: "withheld", Reason: "schema-invalid",
		Rule: "schema", Withheld: []ledger.Count{{Code: finding.SchemaInvalid, N: 1}}})
	kept := log.add(t, ledger.Event{Kind: ledger.Message, Server: "files", Tool: "read", Method: "tools/call", Shape: "result", Verdict: "withheld", Reason: "schema-invalid",
		Rule: "schema", Withheld: []ledger.Count{{Code: finding.SchemaInvalid, N: 1}}})
	dropped := log.add(t, ledger.Event{Kind: ledger.Message, Server: "files", Method: "other", Shape: "notification", Verdict: "dropped", Reason: "violation",
		Withheld: []ledger.Count{{Code: finding.Violation, N: 1}}})
	sanitised := log.add(t, ledger.Event{Kind: ledger.Message, Server: "files", Tool: "read", Method: "tools/call", Shape: "result", Verdict: "changed", Profile: "faithful",
		Reason: "policy:sanitise", Rule: "policy:distrusted", Findings: []ledger.Count{{Code: finding.HiddenFiller, N: 1}}})
	blamed := log.add(t, ledger.Event{Kind: ledger.Message, Server: "files", Tool: "read", Method: "tools/call", Shape: "result", Verdict: "withheld",
		Reason: "denied", Rule: "policy:payee", Withheld: []ledger.Count{{Code: finding.Denied, N: 1}}, Numbers: []ledger.Number{{Name: "policy-failed", N: 1}, {Name: "trust:hidden-message", N: 7}}})
	hooked := log.add(t, ledger.Event{Kind: ledger.Message, Server: "claude-code", Tool: "Bash", Method: "tools/call", Shape: "result", Verdict: "withheld",
		Reason: "hidden-tag", Findings: []ledger.Count{{Code: finding.HiddenTag, N: 1}}, Withheld: []ledger.Count{{Code: finding.HiddenTag, N: 1}}})

	src := Sources{
		Log: log, Guard: "/state/guard", Flag: " --db x.db", Now: func() time.Time { return now }, Looked: []string{"here"},
		Queue: items{
			flagged.String(): {ID: flagged.String(), Server: "files", Tool: "read", Rule: "classifier:shields", Code: finding.Suspected, State: hold.Denied, By: "ann\u202e", Held: now, Until: now.Add(time.Hour), Decided: now},
			guarded.String(): {ID: guarded.String(), Server: "guard", Tool: "send", Rule: hold.GuardCall, Code: finding.Denied, State: hold.Held, Held: now, Until: now.Add(time.Hour), Body: []byte("age-encryption.org/v1\nx")},
		},
		Captured:  func(_ context.Context, id string) bool { return id == kept.String() },
		Blocks:    blocks{{ID: hold.NewID(), Server: "files", Tool: "read", Evidence: guarded.String(), Since: now, Until: now.Add(time.Hour)}},
		Approvals: approvals{{ID: hold.NewID(), Item: guarded.String(), Tool: "send", Since: now, Until: now.Add(time.Hour), By: "ann"}},
		Pin: func(context.Context, string, string) (Pin, bool) {
			return Pin{State: "pending", By: "bob", At: now, Name: "files"}, true
		},
	}
	for name, c := range map[string]struct {
		ref  string
		id   ledger.ID
		want []string // of the printed text
		not  []string
	}{
		"a classifier":            {flagged.String(), flagged, []string{"Classifier shields", "was denied", "By ann", "configuration in force was sha256:ab", "not every record"}, []string{"quarantine release", "quarantine deny"}},
		"a decision":              {denied.String(), flagged, []string{"A reviewer denied the held item; its content was destroyed.", "<- asked for"}, nil},
		"an index":                {"4", flagged, []string{"<- asked for"}, nil},
		"the guard":               {guarded.String(), guarded, []string{"A model proposed a call", "wait for a reviewer", "asked the model again", "quarantine release --remember 30d", "--identity file:KEY --db x.db", "quarantine revoke", "It led to block", "ccr replay " + filepath.FromSlash("/state/guard/")}, nil},
		"a hijack":                {hijack.String(), guarded, []string{"took control of a model", "<- asked for"}, nil},
		"a block":                 {blocked.String(), blocked, []string{"A block of this tool is in force", "quarantine revoke", "names this evidence id"}, nil},
		"no queue":                {hooked.String(), hooked, []string{"The configuration holds results in which hidden-tag is found, and nothing could keep this one", "an agent's own tools are never kept"}, []string{"never delivered", "quarantine release"}},
		"a pin":                   {unapproved.String(), unapproved, []string{"The pin of it is pending now, decided by \"bob\"", "pellucid pins diff files"}, nil},
		"an orphan":               {orphan.String(), orphan, []string{"The held item expired", "of which nothing is kept"}, nil},
		"a refused call":          {call.String(), call, []string{"The client called tool write", "refused this call", "Rule no-writes"}, []string{"Nothing of the message was kept"}},
		"a held tool":             {heldTool.String(), heldTool, []string{"The client called tool read of server files.", "waits for a reviewer: the server did not get it", "[pellucid holds this tool until a person has looked at it; run: pellucid explain " + heldTool.String() + "]", "The pin of it is pending now", "pellucid pins diff files"}, []string{"sent a request to the client", "name the code under hold", "--set hold", "got nothing of it"}},
		"a held prompt":           {heldPrompt.String(), heldPrompt, []string{"The client sent a request (prompts/get) for server files.", "waits for a reviewer", "an error with a constant text"}, []string{"called", "to the client", "--set hold"}},
		"a list":                  {list.String(), list, []string{"2 items were left out of it: a reviewer has not approved this version.", "the list without what was left out", "pellucid pins diff files"}, []string{"Text was removed", "profile faithful", "hold such results"}},
		"a scrubbed list":         {both.String(), both, []string{"1 item was left out of it", "Text was removed", "profile faithful"}, nil},
		"a rejection":             {rejected.String(), rejected, []string{"The check refused what", "pellucid pins list --items files"}, []string{"pins diff"}},
		"what a schema refuses":   {refused.String(), refused, []string{"Nothing of the message was kept", "set capture: [received] for the tool"}, []string{"--set hold", "name the code under hold", "quarantine show --", "quarantine show " + refused.String()}},
		"what was captured of it": {kept.String(), kept, []string{"pellucid quarantine show " + kept.String()}, []string{"Nothing of the message was kept", "--set hold"}},
		"a dropped notice":        {dropped.String(), dropped, []string{"Server files sent a notification", "got nothing of it", "not acceptable MCP"}, nil},
		"a configuration":         {first.String(), first, []string{"A configuration took effect."}, nil},
		"a stricter pass":         {sanitised.String(), sanitised, []string{"treated more strictly: any invisible characters", "Nothing visible was changed", "Rule distrusted of the policy asks to sanitise", "pellucid trust --db x.db"}, []string{"lowers the trust"}},
		"a failed rule":           {blamed.String(), blamed, []string{"The rule could not be evaluated", "lowers the trust score of tool read of server files, once for this content (hidden-message): invisible characters in it were decoded"}, []string{"more strictly"}},
	} {
		x, err := Of(t.Context(), src, c.ref)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var b bytes.Buffer
		if err := x.Write(&b, terminal.Palette{}); err != nil {
			t.Fatal(err)
		}
		if x.ID != c.id.String() || strings.ContainsRune(b.String(), 0x202e) {
			t.Errorf("%s: it is about %s: %s", name, x.ID, b.String())
		}
		for _, s := range c.want {
			if !strings.Contains(b.String(), s) {
				t.Errorf("%s: no %q in\n%s", name, s, b.String())
			}
		}
		for _, s := range c.not {
			if strings.Contains(b.String(), s) {
				t.Errorf("%s: %q in\n%s", name, s, b.String())
			}
		}
	}
	for _, ref := range []string{"", "-1", "x", strings.Repeat("9", 20), strings.Repeat("AB", 16), "+1"} {
		if _, err := Of(t.Context(), src, ref); !errors.Is(err, ErrRef) {
			t.Errorf("%q: %v", ref, err)
		}
	}
	for _, ref := range []string{"999", ledger.ID{7}.String()} {
		_, err := Of(t.Context(), src, ref)
		if u, ok := errors.AsType[*UnknownError](err); !ok || !slices.Equal(u.Looked, src.Looked) {
			t.Errorf("%s: %v", ref, err)
		}
	}
	if _, err := Of(t.Context(), Sources{}, ledger.ID{7}.String()); !errors.Is(err, ErrUnknown) {
		t.Errorf("without sources: %v", err)
	}
}

// TestFirstKey: the key of the first record follows no other.
func TestFirstKey(t *testing.T) {
	for index, want := range []string{"from its first record on", "Another key signs the log"} {
		x := &teller{out: &Explanation{}, index: int64(index), st: &ledger.Statement{Event: ledger.Event{Kind: ledger.KeyInstalled}}}
		if x.other(); len(x.out.Happened) != 1 || !strings.Contains(x.out.Happened[0], want) {
			t.Errorf("record %d: %q", index, x.out.Happened)
		}
	}
}

// TestWords has every kind of record say something of its own.
func TestWords(t *testing.T) {
	seen := map[string]ledger.Kind{}
	for _, k := range []ledger.Kind{ledger.ResultHeld, ledger.ResultReleased, ledger.ResultTaken, ledger.ResultDenied, ledger.ResultExpired,
		ledger.SurfaceVerified, ledger.SurfaceChanged, ledger.SurfaceRejected, ledger.SurfaceApproved, ledger.SurfaceBlocked, ledger.SurfaceDropped,
		ledger.AttestationAccepted, ledger.AttestationRefused, ledger.AttestationEvent, ledger.RulesLoaded, ledger.Classified, ledger.Counterfactual,
		ledger.TrustChanged, ledger.PolicyDecided, ledger.KeyInstalled, ledger.PrincipalForgotten, ledger.ConsoleUsed, ledger.RecordsLost} {
		s := sentence(&ledger.Statement{Event: ledger.Event{Kind: k}}, "server files")
		if len(s) < 20 || seen[s] != "" || strings.Contains(s, " S ") || strings.Contains(s, " S.") {
			t.Errorf("%s: %q", k, s)
		}
		seen[s] = k
	}
}
