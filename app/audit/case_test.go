// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/app/local"
	"github.com/pellucid-mcp/pellucid/platform/capture"
	"github.com/pellucid-mcp/pellucid/platform/programtest"
	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/storage"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// A caseStore is a database with a held item in every state, beside its decisions.
type caseStore struct {
	t    *testing.T
	db   install.Database
	ids  map[string]ledger.ID
	key  string // of the log
	file string // of the case that is checked

	flags []string // of the second verifier
}

const caseBody = `{"content":[{"type":"text","text":"third-party \u202e text"}]}`

// newCaseStore makes an item for each state: "sealed" is encrypted to a reviewer.
func newCaseStore(t *testing.T, states ...string) *caseStore {
	t.Helper()
	t.Setenv("PELLUCID_STATE", t.TempDir())
	dir, err := local.OpenState()
	must(t, err)
	c := &caseStore{t: t, db: install.Database(filepath.Join(t.TempDir(), "p.db")), ids: map[string]ledger.ID{}, file: filepath.Join(t.TempDir(), "case.json")}
	u := &usedLog{t: t, where: string(c.db)}
	u.process(dir, true, func(kept *install.Records, s *storage.Store) {
		ctx, now := context.Background(), time.Now()
		for i, state := range states {
			id := ledger.ID{byte(i + 1), 0xca, 0x5e}
			c.ids[state] = id
			o := hold.Options{Evidence: kept.Held, Keep: time.Hour, Now: func() time.Time { return now }}
			if state == "expired" {
				o.Keep = time.Minute
			}
			if state == "sealed" {
				to, err := capture.ParseRecipients([]string{"age1lrd44xqjr4aqzvllz8eyhzcj8w3rqa8rqfc38cfd653ffan72ukqfzzy0x"})
				must(t, err)
				o.Seal = to.Seal
			}
			q := hold.New(s, o)
			must(t, q.Hold(ctx, hold.Item{ID: id.String(), Server: "files", Tool: "read", Principal: "lab-" + state, Rule: "finding",
				Code: finding.HiddenTag, Call: hold.Digest{byte(i + 1)}, Body: []byte(caseBody)}))
			must(t, kept.Require(&ledger.Event{ID: id, Kind: ledger.Message, Server: "files", Tool: "read", Method: "tools/call", Shape: "result",
				Verdict: "withheld", Reason: "hidden-tag", Subjects: []ledger.Subject{{Role: ledger.Received, Digest: sha256.Sum256([]byte(caseBody))}, {Role: ledger.Principal, Digest: sha256.Sum256([]byte("lab-" + state))}}}))
			switch state {
			case "released":
				must(t, q.Release(ctx, id.String(), "ann"))
			case "taken":
				must(t, q.Release(ctx, id.String(), "ann"))
				if _, ok := q.Take(ctx, hold.Digest{byte(i + 1)}); !ok {
					t.Fatal("nothing was released")
				}
				must(t, kept.Require(&ledger.Event{Kind: ledger.ResultTaken, Of: id, Server: "files", Tool: "read", Verdict: "passed"}))
			case "denied":
				must(t, q.Deny(ctx, id.String(), "ann"))
			case "expired":
				o.Now = func() time.Time { return now.Add(30 * time.Minute) }
				if _, err := hold.New(s, o).Sweep(ctx); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
	must(t, c.db.WithIntegrated(func(ctx context.Context, s *storage.Store) error {
		r, err := Latest(ctx, s.Ledger())
		c.key = r.Keys[0]
		return err
	}))
	return c
}

// made makes the case of a state as a program would read it.
func (c *caseStore) made(state string, o CaseOptions) map[string]any {
	c.t.Helper()
	out, err := o.Case(c.db, c.ids[state])
	if err != nil {
		c.t.Fatalf("%s: %v", state, err)
	}
	var b bytes.Buffer
	must(c.t, terminal.WriteJSON(&b, out))
	var m map[string]any
	must(c.t, json.Unmarshal(b.Bytes(), &m))
	return m
}

// check runs the second verifier.
func (c *caseStore) check(m map[string]any, witnesses ...string) (string, bool) {
	c.t.Helper()
	b, err := json.Marshal(m)
	must(c.t, err)
	return c.checkBytes(b, witnesses...)
}

func (c *caseStore) checkBytes(b []byte, witnesses ...string) (string, bool) {
	c.t.Helper()
	must(c.t, os.WriteFile(c.file, b, 0o600))
	python := programtest.Find(c.t, "python3")
	cmd := exec.CommandContext(c.t.Context(), python, slices.Concat([]string{"-I", "-B", "../../docs/spec/verify/verify.py", "case"}, c.flags, []string{c.file, c.key}, witnesses)...)
	out, err := cmd.CombinedOutput()
	if bytes.Contains(out, []byte("Traceback")) {
		c.t.Fatalf("the second verifier fails: %s", out)
	}
	return string(out), err == nil
}

// TestCase: a case of every state holds for a verifier that shares no code with this program.
func TestCase(t *testing.T) {
	c := newCaseStore(t, "held", "released", "taken", "denied", "expired", "sealed")
	identity := "AGE-SECRET-KEY-1ZFSWTEF75D74RG70MUUJCU9TN76DR9L5QHRHPGGDRKTXMEACCK7S0TRTUJ"
	open := func(it *hold.Item) ([]byte, error) { return capture.Open(it.Body, identity) }
	for _, x := range []struct {
		state    string
		o        CaseOptions
		records  int
		text     bool
		want     []string
		deletion bool
	}{
		{"held", CaseOptions{}, 2, true, []string{"result-held", "message withheld"}, false},
		{"held", CaseOptions{WithoutText: true}, 2, false, nil, false},
		{"held", CaseOptions{WithoutText: true, WithoutOpenings: true}, 2, false, nil, false},
		{"released", CaseOptions{}, 3, true, []string{"result-released"}, false},
		{"taken", CaseOptions{}, 4, false, []string{"taken: record", "content is destroyed"}, true},
		{"denied", CaseOptions{}, 3, false, []string{"denied: record", "content is destroyed"}, true},
		{"expired", CaseOptions{}, 3, false, []string{"expired: record"}, true},
		{"sealed", CaseOptions{}, 2, false, []string{"not checked: the held text, which is encrypted"}, false},
		{"sealed", CaseOptions{Open: open}, 2, true, nil, false},
	} {
		m := c.made(x.state, x.o)
		held := m["held"].(map[string]any)
		state := x.state
		if state == "sealed" {
			state = "held"
		}
		if len(m["records"].([]any)) != x.records || held["state"] != state || (held["text"] != nil) != x.text || (m["deletion"] != nil) != x.deletion {
			t.Errorf("%s: %d records, held %v, deletion %v", x.state, len(m["records"].([]any)), held, m["deletion"])
		}
		if by, _ := m["decided"].(map[string]any); (state == "denied" || state == "released") && by["by"] != "ann" {
			t.Errorf("%s: decided by %v", x.state, by)
		}
		out, ok := c.check(m)
		if !ok || !strings.Contains(out, "signed by the key of the log: all that its first ") {
			t.Errorf("%s: %s", x.state, out)
		}
		for _, want := range x.want {
			if !strings.Contains(out, want) {
				t.Errorf("%s: no %q in %s", x.state, want, out)
			}
		}
	}
	// A reviewer who is forgotten: the item is not destroyed with the name, and the case does not say so.
	dir, err := local.OpenState()
	must(t, err)
	for _, name := range []string{"ann", "lab-sealed", "lab-held"} {
		if _, err := forgetOf(t, dir, c, name); err != nil {
			t.Fatal(err)
		}
	}
	still := c.made("released", CaseOptions{})
	if still["deletion"] != nil || still["decided"] != nil || still["held"].(map[string]any)["text"] == nil {
		t.Errorf("after its reviewer was forgotten: %v", still)
	}
	if out, ok := c.check(still); !ok || strings.Contains(out, "destroyed\n") && !strings.Contains(out, "none of them says that the content is destroyed") || !strings.Contains(out, "its opening was erased or left out") {
		t.Errorf("after its reviewer was forgotten: %s", out)
	}
	// A principal who is forgotten: the record that this item was erased stands in the case, and no digest of the name.
	gone := c.made("held", CaseOptions{})
	if d, _ := gone["deletion"].(map[string]any); d["how"] != "forgotten" || strings.Count(fmt.Sprint(gone), "opening:") != 1 {
		t.Errorf("forgotten: deletion %v, %d openings", d, strings.Count(fmt.Sprint(gone), "opening:"))
	}
	if out, ok := c.check(gone); !ok || !strings.Contains(out, "forgotten: record") || gone["held"].(map[string]any)["state"] != "forgotten" {
		t.Errorf("forgotten: %s", out)
	}
	// The erasure of another item proves nothing about this one, with or without the openings.
	sealed := c.made("sealed", CaseOptions{})
	stolen := sealed["records"].([]any)[2]
	for _, x := range []struct {
		held     string
		deletion any
		want     string
	}{
		{"held", sealed["deletion"], "about something else"}, {"forgotten", sealed["deletion"], "about something else"}, {"held", nil, "about something else"},
	} {
		m := c.made("released", CaseOptions{WithoutText: true, WithoutOpenings: true})
		m["records"], m["held"] = append(m["records"].([]any)[:2:2], stolen), map[string]any{"state": x.held}
		if x.deletion != nil {
			m["deletion"] = x.deletion
		}
		if out, ok := c.check(m); ok || !strings.Contains(out, x.want) {
			t.Errorf("an erasure of another item, as %s: %v %s", x.held, ok, out)
		}
	}
	// The id of a record about it leads to the same case.
	m := c.made("denied", CaseOptions{})
	del, err := ledger.ParseID(m["deletion"].(map[string]any)["record"].(string))
	must(t, err)
	again, err := CaseOptions{}.Case(c.db, del)
	if err != nil || again.ID != c.ids["denied"].String() || len(again.Records) != 3 {
		t.Errorf("by the record of the denial: %+v, %v", again, err)
	}
	if _, err := (CaseOptions{}).Case(c.db, ledger.ID{99}); err == nil {
		t.Error("a case of nothing")
	}
	// Where the key of the log is not on the machine the case has no head, and a reader has to accept that.
	must(t, os.Remove(filepath.Join(dir.Path(), "ledger.key")))
	m = c.made("denied", CaseOptions{})
	if out, ok := c.check(m); ok || m["head"] != nil || !strings.Contains(out, "has no head") {
		t.Errorf("without the key: %v %s", ok, out)
	}
	c.flags = []string{"--unsigned"}
	if out, ok := c.check(m); !ok {
		t.Errorf("without the key, accepted: %s", out)
	}
}

// forgetOf erases a person as app/forget does, which imports more than this package may.
func forgetOf(t *testing.T, dir *state.Dir, c *caseStore, name string) (storage.Forgotten, error) {
	var f storage.Forgotten
	var err error
	(&usedLog{t: t, where: string(c.db)}).process(dir, true, func(kept *install.Records, s *storage.Store) {
		if f, err = s.Forget(context.Background(), name, kept.Forgotten); err == nil {
			err = kept.Require(&ledger.Event{Time: time.Now(), Kind: ledger.PrincipalForgotten, Actor: "person", Numbers: []ledger.Number{{Name: "openings", N: int64(f.Openings)}}})
		}
	})
	return f, err
}

// TestCaseTampered: whatever is changed in a case, the second verifier refuses it.
func TestCaseTampered(t *testing.T) {
	c := newCaseStore(t, "held", "released", "denied", "other", "sealed")
	record := func(m map[string]any, i int) map[string]any { return m["records"].([]any)[i].(map[string]any) }
	held := func(m map[string]any) map[string]any { return m["held"].(map[string]any) }
	b64 := base64.StdEncoding.EncodeToString
	other := c.made("other", CaseOptions{})
	for _, x := range []struct {
		name, state string
		change      func(m map[string]any)
		want        string
	}{
		{"another text", "held", func(m map[string]any) { held(m)["text"] = b64([]byte("harmless")) }, "another text"},
		{"a text of nothing", "denied", func(m map[string]any) { held(m)["text"] = b64([]byte(caseBody)) }, "one that is destroyed"},
		{"a text and another", "held", func(m map[string]any) { held(m)["encrypted"] = b64([]byte("age-encryption.org/v1\n")) }, "a text twice"},
		{"encrypted to no one", "held", func(m map[string]any) { delete(held(m), "text"); held(m)["encrypted"] = b64([]byte("plain")) }, "not encrypted"},
		{"garbage that begins as encrypted", "held", func(m map[string]any) {
			delete(held(m), "text")
			held(m)["encrypted"] = b64([]byte("age-encryption.org/v1\nGARBAGE"))
		}, "not encrypted"},
		{"an encrypted text of another length", "sealed", func(m map[string]any) {
			b, err := base64.StdEncoding.DecodeString(held(m)["encrypted"].(string))
			must(t, err)
			held(m)["encrypted"] = b64(append(b, 0))
		}, "another length"},
		{"another state", "denied", func(m map[string]any) { held(m)["state"] = "held" }, "another state"},
		{"another reviewer", "denied", func(m map[string]any) { m["decided"].(map[string]any)["by"] = "bob" }, "did not decide"},
		{"a decision by another record", "released", func(m map[string]any) { m["decided"].(map[string]any)["record"] = m["id"] }, "did not decide"},
		{"a decision of no record", "released", func(m map[string]any) { m["decided"].(map[string]any)["record"] = strings.Repeat("0", 32) }, "did not decide"},
		{"no deletion", "denied", func(m map[string]any) { delete(m, "deletion") }, "has other members"},
		{"another deletion", "denied", func(m map[string]any) { m["deletion"].(map[string]any)["how"] = "expired" }, "no such deletion"},
		{"a deletion by the decision", "denied", func(m map[string]any) { m["deletion"].(map[string]any)["record"] = m["id"] }, "no such deletion"},
		{"a deletion that was none", "held", func(m map[string]any) { m["deletion"] = map[string]any{"how": "denied", "record": m["id"]} }, "no such deletion"},
		{"the denial left out", "denied", func(m map[string]any) {
			m["records"] = m["records"].([]any)[:2]
		}, "no such deletion"},
		{"another id", "held", func(m map[string]any) { m["id"] = strings.Repeat("a", 32) }, "about something else"},
		{"an id of another form", "held", func(m map[string]any) { m["id"] = "x" }, "not a case"},
		{"another type", "held", func(m map[string]any) { m["type"] = "https://example.com/case" }, "not a case"},
		{"no records", "held", func(m map[string]any) { m["records"] = []any{} }, "not a case"},
		{"a record of another case", "held", func(m map[string]any) {
			m["records"] = append(m["records"].([]any), other["records"].([]any)[1])
		}, "about something else"},
		{"a record twice", "held", func(m map[string]any) { m["records"] = append(m["records"].([]any), m["records"].([]any)[1]) }, "order of the log"},
		{"another order", "held", func(m map[string]any) { r := m["records"].([]any); r[0], r[1] = r[1], r[0] }, "order of the log"},
		{"no state of what was held", "held", func(m map[string]any) { delete(m, "held") }, "no state"},
		{"an opening of another record", "held", func(m map[string]any) { record(m, 0)["opening"] = record(m, 1)["opening"] }, "not the opening"},
		{"another digest in an opening", "held", func(m map[string]any) {
			o := record(m, 0)["opening"].(string)
			at := strings.Index(o, `"held":"`) + 8
			record(m, 0)["opening"] = o[:at] + strings.Repeat("0", 64) + o[at+64:]
		}, "does not open"},
		{"another spelling of an opening", "held", func(m map[string]any) { record(m, 0)["opening"] = record(m, 0)["opening"].(string) + " " }, "not the opening"},
		{"no opening", "held", func(m map[string]any) { delete(record(m, 0), "opening") }, "lacks the opening"},
		{"an opening that is no JSON", "held", func(m map[string]any) { record(m, 0)["opening"] = strings.Repeat("[", 100000) }, ""},
		{"a member more", "held", func(m map[string]any) { m["note"] = "trust me" }, "other members"},
		{"a member of a record more", "held", func(m map[string]any) { record(m, 0)["note"] = "trust me" }, "other members"},
		{"a statement of the guard", "held", func(m map[string]any) { m["guard"] = b64([]byte("{}")) }, "lacks the opening"},
		{"another index", "held", func(m map[string]any) {
			record(m, 0)["proof"] = strings.Replace(record(m, 0)["proof"].(string), "\nindex ", "\nindex 1", 1)
		}, "case: "},
		{"another checkpoint", "held", func(m map[string]any) {
			p := record(m, 0)["proof"].(string)
			at := strings.LastIndex(p, "\n\n")
			record(m, 0)["proof"] = p[:at-4] + "AAA=" + p[at:]
		}, ""},
		{"another record", "held", func(m map[string]any) {
			p := record(m, 1)["proof"].(string)
			head, rest, _ := strings.Cut(p, "\nextra ")
			extra, rest, _ := strings.Cut(rest, "\n")
			e, err := base64.StdEncoding.DecodeString(extra)
			must(t, err)
			var envelope map[string]any
			must(t, json.Unmarshal(e, &envelope))
			st, err := base64.StdEncoding.DecodeString(envelope["payload"].(string))
			must(t, err)
			envelope["payload"] = b64(bytes.Replace(st, []byte(`"verdict":"withheld"`), []byte(`"verdict":"passed"`), 1))
			e, err = json.Marshal(envelope)
			must(t, err)
			record(m, 1)["proof"] = head + "\nextra " + b64(e) + "\n" + rest
		}, "root"},
	} {
		m := c.made(x.state, CaseOptions{})
		x.change(m)
		if out, ok := c.check(m); ok || !strings.Contains(out, x.want) {
			t.Errorf("%s: %v, want %q: %s", x.name, ok, x.want, out)
		}
	}
	// What a file leaves out of the end is missed by its head, with and without the record that decides. Without the head
	// a reader has to accept that.
	for _, x := range []struct {
		name   string
		change func(m map[string]any)
		want   string
	}{
		{"the denial", func(m map[string]any) {
			m["records"], m["held"] = m["records"].([]any)[:2], map[string]any{"state": "held"}
			delete(m, "decided")
			delete(m, "deletion")
		}, "as many records as its head"},
		{"who decided", func(m map[string]any) { delete(m, "decided") }, "something was left out"},
		{"all openings", func(m map[string]any) {
			delete(m, "decided")
			for i := range m["records"].([]any) {
				delete(record(m, i), "opening")
			}
		}, "something was left out"},
		{"nothing, with the head of another case", func(m map[string]any) { m["head"] = other["head"] }, "its head"},
		{"nothing, with another type", func(m map[string]any) { m["type"] = strings.Replace(m["type"].(string), "v0.2", "v0.1", 1) }, "its head says"},
		{"nothing, with a head that was changed", func(m map[string]any) {
			m["head"] = strings.Replace(m["head"].(string), `"payload":"`, `"payload":"A`, 1)
		}, ""},
		{"nothing, with an empty head", func(m map[string]any) { m["head"] = "" }, ""},
		{"nothing, with a head that is no text", func(m map[string]any) { m["head"] = []any{} }, ""},
	} {
		m := c.made("denied", CaseOptions{})
		x.change(m)
		if out, ok := c.check(m); ok || !strings.Contains(out, x.want) {
			t.Errorf("without %s: %v, want %q: %s", x.name, ok, x.want, out)
		}
	}
	short := c.made("denied", CaseOptions{})
	short["records"], short["held"] = short["records"].([]any)[:2], map[string]any{"state": "held"}
	for _, name := range []string{"decided", "deletion", "head"} {
		delete(short, name)
	}
	if out, ok := c.check(short); ok || !strings.Contains(out, "no head, so its end may be cut off") {
		t.Errorf("without its end and its head: %v %s", ok, out)
	}
	c.flags = []string{"--unsigned"}
	if out, ok := c.check(short); !ok || !strings.Contains(out, "held, as far as these records say") || !strings.Contains(out, "not checked: whether the log has other or later records") {
		t.Errorf("without its end, accepted: %v %s", ok, out)
	}
	c.flags = nil
	// A member twice, and a key that signed nothing.
	b, err := json.Marshal(c.made("held", CaseOptions{}))
	must(t, err)
	if out, ok := c.checkBytes(bytes.Replace(b, []byte(`"held":{`), []byte(`"id":"x","held":{`), 1)); ok || !strings.Contains(out, "a member twice") {
		t.Errorf("a member twice: %s", out)
	}
	for _, b := range []string{"", "[]", "null", "{", "\xff", `{"type":NaN}`, strings.Repeat("[", 200_000)} {
		if out, ok := c.checkBytes([]byte(b)); ok {
			t.Errorf("%.20q: %s", b, out)
		}
	}
	_, public, err := NewKey("stranger.example/log")
	must(t, err)
	c.key = public
	if out, ok := c.check(c.made("held", CaseOptions{})); ok {
		t.Errorf("a stranger's key is enough: %s", out)
	}
}

// TestCaseWitnessed: the checkpoint of a case has the cosignatures, also where the log has grown since.
func TestCaseWitnessed(t *testing.T) {
	c := newCaseStore(t, "held")
	private := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, 32))
	public := append([]byte{4}, private.Public().(ed25519.PublicKey)...)
	sum := sha256.Sum256(append([]byte("w.example/one\n"), public...))
	vkey := fmt.Sprintf("w.example/one+%x+%s", sum[:4], base64.StdEncoding.EncodeToString(public))
	witness, err := ledger.ParseWitness(vkey)
	must(t, err)
	must(t, c.db.WithIntegrated(func(ctx context.Context, s *storage.Store) error {
		l := s.Ledger()
		msg, err := l.Checkpoint(ctx)
		must(t, err)
		body, _, _ := bytes.Cut(msg, []byte("\n\n"))
		at := binary.BigEndian.AppendUint64(nil, 1_800_000_000)
		sig := ed25519.Sign(private, []byte("cosignature/v1\ntime 1800000000\n"+string(body)+"\n"))
		line := "\u2014 w.example/one " + base64.StdEncoding.EncodeToString(append(append(sum[:4:4], at...), sig...)) + "\n"
		keys, err := keysOf(ctx, l)
		must(t, err)
		cosigned, err := ledger.AddCosignature(msg, []byte(line), keys, []*ledger.Witness{witness})
		must(t, err)
		return l.SaveCosigned(ctx, cosigned, time.Now().Add(-time.Hour))
	}))
	dir, err := local.OpenState()
	must(t, err)
	(&usedLog{t: t, where: string(c.db)}).process(dir, true, func(kept *install.Records, s *storage.Store) {
		must(t, kept.Require(&ledger.Event{Kind: ledger.Message, Server: "later", Verdict: "passed"}))
	})
	if out, ok := c.check(c.made("held", CaseOptions{}), vkey); !ok {
		t.Error(out)
	}
	later := c.made("held", CaseOptions{})
	later["records"].([]any)[0].(map[string]any)["proof"] = strings.Replace(later["records"].([]any)[0].(map[string]any)["proof"].(string), "w.example/one", "w.example/two", 1)
	if out, ok := c.check(later, vkey); ok {
		t.Errorf("without the cosignature: %s", out)
	}
}
