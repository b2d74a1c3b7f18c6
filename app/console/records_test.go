// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/app/explain"
	statedir "github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/record/index"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/record/sequence"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// withLedger gives a console the log of its store.
func withLedger(g *testConsole, o *Options) { o.Ledger = g.store.Ledger() }

const testOrigin = "log.example/console"

// logged adds events to the log, and indexes them. It returns the keyring.
func (g *testConsole) logged(t testing.TB, events ...*ledger.Event) *sequence.Keyring {
	t.Helper()
	dir, err := statedir.OpenAt(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	keys := &sequence.Keyring{Dir: dir}
	l := g.store.Ledger()
	var records [][]byte
	for _, e := range events {
		s, err := e.Seal(ledger.Salt{1})
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, s.Bytes())
	}
	if err := l.Add(t.Context(), records); err != nil {
		t.Fatal(err)
	}
	if err := sequence.New(sequence.Options{Store: l, Origin: testOrigin, Keys: keys, Chain: l.Chain(), Window: time.Millisecond}).Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := index.NewFollower(l, slog.New(slog.DiscardHandler)).Catch(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	return keys
}

func testID(n int) (id ledger.ID) {
	sum := sha256.Sum256(fmt.Append(nil, "id", n))
	copy(id[:], sum[:])
	return id
}

// manyEvents are n decisions about messages of three servers, the last one a minute ago.
func manyEvents(n int) (out []*ledger.Event) {
	for i := range n {
		e := &ledger.Event{ID: testID(i), Time: time.Now().Add(-time.Duration(n-i) * time.Minute), Kind: ledger.Message, Server: []string{"mail", "files", "web"}[i%3], Tool: "read",
			Method: "tools/call", Shape: "result", Verdict: []string{"passed", "passed", "changed", "passed", "withheld"}[i%5], Inspected: 2,
			Subjects: []ledger.Subject{{Role: ledger.Principal, Digest: sha256.Sum256([]byte(hostile[i%len(hostile)]))}, {Role: ledger.Received, Digest: sha256.Sum256([]byte(hostile[i%len(hostile)]))}}}
		if e.Verdict != "passed" {
			e.Findings = []ledger.Count{{Code: finding.HiddenTag, N: 2}}
		}
		if e.Verdict == "withheld" {
			e.Reason = string(finding.HiddenTag)
		}
		out = append(out, e)
	}
	return out
}

// hostileEvents have each hostile text wherever an event has one: what is not a label is recorded as other.
func hostileEvents() (out []*ledger.Event) {
	for i, s := range hostile {
		out = append(out, &ledger.Event{ID: testID(1000 + i), Time: time.Now(), Kind: ledger.Message, Server: s, Tool: s, Method: s, Shape: s, Verdict: s, Rule: s, Reason: s, Profile: s, Actor: s,
			Versions: []ledger.Version{{Of: s, Version: s}}, Findings: []ledger.Count{{Code: finding.Code(s), N: 1}}, Numbers: []ledger.Number{{Name: s, N: 1}}})
	}
	return out
}

func recordPages() []testPage {
	fill := func(t testing.TB, g *testConsole) { g.logged(t, append(manyEvents(120), hostileEvents()...)...) }
	out := []testPage{
		{name: "records-none", path: "records"},
		{name: "records", path: "records", change: withLedger, fill: fill},
		{name: "records-filter", path: "records?q=" + url.QueryEscape("server:mail code:hidden-tag since:24h"), change: withLedger, fill: fill},
		{name: "records-nothing", path: "records?q=" + url.QueryEscape("server:mail verdict:dropped"), change: withLedger, fill: fill},
		{name: "records-empty", path: "records", change: withLedger},
		{name: "records-wrong", path: "records?q=" + url.QueryEscape("server:"+hostile[10]+" "+hostile[0]), change: withLedger},
		{name: "record", path: "records/" + testID(4).String(), change: withLedger, fill: fill},
		{name: "record-explained", path: "records/" + testID(4).String(), fill: fill, change: func(g *testConsole, o *Options) {
			withLedger(g, o)
			o.Explain = func(context.Context, string) (*explain.Explanation, error) {
				long := "The configuration in force was sha256:" + strings.Repeat("1f", 32) + "."
				return &explain.Explanation{Server: "mail", Happened: []string{long}, Delivered: []string{long}, Notes: []string{long}}, nil
			}
		}},
		{name: "record-hostile", path: "records/" + testID(1003).String(), change: withLedger, fill: fill},
		{name: "record-absent", path: "records/" + testID(7777).String(), change: withLedger, fill: fill, status: http.StatusNotFound},
		{name: "record-not-yours", path: "records/" + testID(1).String(), change: withLedger, fill: fill, who: Person{ID: "rob", Role: Reviewer, Servers: []string{"mail"}}, status: http.StatusForbidden},
	}
	return out
}

// TestRecordsHostileQuery: whatever stands in the filter, the page has none of it.
func TestRecordsHostileQuery(t *testing.T) {
	t.Parallel()
	g := newTest(t, withLedger)
	g.logged(t, manyEvents(3)...)
	for _, s := range hostile {
		for _, q := range []string{s, "server:" + s, "principal:" + s, `principal:"` + s + `"`, s + ":x"} {
			r, body := g.get("records?q=" + url.QueryEscape(q))
			if r.StatusCode != http.StatusOK {
				t.Errorf("%+q: status %d", q, r.StatusCode)
			}
			if at := hiddenInPage(body); at != "" {
				t.Errorf("%+q: %s", q, at)
			}
			if found := foreignMarkup(body); found != nil {
				t.Errorf("%+q: %q", q, found)
			}
		}
	}
	for _, path := range []string{"records?after=x", "records/XYZ", "records/" + testID(1).String() + "0"} {
		if r, _ := g.get(path); r.StatusCode != http.StatusNotFound {
			t.Errorf("%s: status %d", path, r.StatusCode)
		}
	}
}

// TestRecordsPages: the pages of a list have each record once.
func TestRecordsPages(t *testing.T) {
	t.Parallel()
	g := newTest(t, withLedger)
	g.logged(t, manyEvents(130)...)
	for text, want := range map[string]int{"": 131, "server:mail": 44, "server:mail code:hidden-tag": 17, "verdict:withheld": 26, "principal:\"\"": 0, "kind:key-installed": 1} {
		seen, path := map[string]bool{}, "records?q="+url.QueryEscape(text)
		for path != "" {
			_, body := g.get(path)
			rows := strings.Split(body, `<a class="id" href="/console/records/`)[1:]
			if at := between(body, `<h2 id="found">`, " "); text != `principal:""` && at != fmt.Sprint(len(rows)) {
				t.Errorf("%q: the page says %s, and has %d records", text, at, len(rows))
			}
			for _, row := range rows {
				if seen[row[:32]] {
					t.Errorf("%q: %s stands twice", text, row[:32])
				}
				seen[row[:32]] = true
			}
			path = ""
			if next := between(body, `<a class="b" href="/console/`, `" rel="next"`); next != "" {
				path = strings.ReplaceAll(next, "&amp;", "&")
			}
		}
		if text == `principal:""` { // has no value
			continue
		}
		if len(seen) != want {
			t.Errorf("%q: %d records, want %d", text, len(seen), want)
		}
	}
}

func between(s, before, after string) string {
	_, s, ok := strings.Cut(s, before)
	s, _, ok2 := strings.Cut(s, after)
	if !ok || !ok2 || len(s) > 300 {
		return ""
	}
	return s
}

// TestRecordsOfOthers: a person sees records, numbers and proofs of their servers only.
func TestRecordsOfOthers(t *testing.T) {
	t.Parallel()
	g := newTest(t, withLedger)
	g.logged(t, manyEvents(30)...)
	g.as(Person{ID: "rob", Role: Reviewer, Servers: []string{"mail"}})
	_, body := g.get("records")
	if n := between(body, `<h2 id="found">`, " records"); n != "10" || strings.Contains(body, ">files<") || strings.Contains(body, "key-installed") {
		t.Errorf("%s records", n)
	}
	for path, want := range map[string]int{
		"records?q=server:mail": http.StatusOK, "records?q=server:files": http.StatusForbidden, "records?q=server:mail,files": http.StatusForbidden,
		"records/" + testID(0).String(): http.StatusOK, "records/" + testID(1).String(): http.StatusForbidden,
		"records/" + testID(0).String() + "/proof": http.StatusOK, "records/" + testID(1).String() + "/proof": http.StatusForbidden,
	} {
		if r, _ := g.get(path); r.StatusCode != want {
			t.Errorf("%s: status %d, want %d", path, r.StatusCode, want)
		}
	}
	g.as(Person{ID: "nil", Role: Viewer})
	if _, body := g.get("records"); between(body, `<h2 id="found">`, " records") != "0" {
		t.Error("a person without servers sees records")
	}
}

// TestRecordDigests: the plain digests of a record are shown to reviewers only.
func TestRecordDigests(t *testing.T) {
	t.Parallel()
	g := newTest(t, withLedger)
	events := manyEvents(3)
	g.logged(t, events...)
	plain := fmt.Sprintf("%x", sha256.Sum256([]byte(hostile[2])))
	for who, want := range map[Role]bool{Viewer: false, Reviewer: true} {
		g.as(Person{ID: "x", Role: who, AllServers: true})
		if _, body := g.get("records/" + testID(2).String()); strings.Contains(body, plain) != want {
			t.Errorf("role %v: the plain digest is shown: %v", who, !want)
		}
	}
	if _, body := g.get("records?q=digest:" + plain); between(body, `<h2 id="found">`, " records") != "1" {
		t.Error("a record is not found by its digest")
	}
}

// TestProof: what the browser gets is a proof that the verifier of the program accepts.
func TestProof(t *testing.T) {
	t.Parallel()
	g := newTest(t, withLedger)
	g.logged(t, manyEvents(40)...)
	r, body := g.get("records/" + testID(7).String() + "/proof?from=3")
	var got proofFile
	if err := json.Unmarshal([]byte(body), &got); err != nil || r.Header.Get("Content-Type") != "application/json" {
		t.Fatal(err, body)
	}
	p, err := ledger.ParseProof([]byte(got.Proof))
	if err != nil || len(got.Keys) != 1 || len(got.Consistency) == 0 {
		t.Fatal(err, got)
	}
	key, err := ledger.ParseKey(got.Keys[0])
	if err != nil {
		t.Fatal(err)
	}
	if proven, err := p.Verify([]*ledger.Key{key}, nil, 0); err != nil || proven.Statement.ID != testID(7) {
		t.Errorf("%+v, %v", proven, err)
	}
}
