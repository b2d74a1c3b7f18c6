// SPDX-License-Identifier: Apache-2.0

package backtest

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// A memLog makes the record of an index when it is read.
type memLog func(i int64) []byte

func (l memLog) Entries(_ context.Context, first int64, n int) (out [][]byte, err error) {
	for i := range n {
		out = append(out, l(first+int64(i)))
	}
	return out, nil
}

var signer, _ = ledger.NewSigner("log.example/x", ed25519.NewKeyFromSeed(make([]byte, 32)))

func envelope(t testing.TB, e ledger.Event) []byte {
	t.Helper()
	sealed, err := e.Seal(ledger.Salt{})
	if err != nil {
		t.Fatal(err)
	}
	b, err := ledger.Sign(sealed.Statement, signer)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

var begin = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

// call is the answer of a tool, as it is recorded.
func call(i int, tool, verdict string, more func(*ledger.Event)) ledger.Event {
	e := ledger.Event{ID: ledger.ID{1, byte(i >> 8), byte(i)}, Time: begin.Add(time.Duration(i) * time.Hour), Kind: ledger.Message,
		Server: "files", Tool: tool, Method: "tools/call", Shape: "result", Verdict: verdict}
	if more != nil {
		more(&e)
	}
	return e
}

func found(codes ...finding.Code) func(*ledger.Event) {
	return func(e *ledger.Event) {
		for _, c := range codes {
			e.Findings = append(e.Findings, ledger.Count{Code: c, N: 1})
		}
	}
}

// hostile says in a record that a hidden message of that mark was decoded.
func hostile(mark int64) func(*ledger.Event) {
	return func(e *ledger.Event) {
		e.Numbers = append(e.Numbers, ledger.Number{Name: "trust:hidden-message", N: mark})
	}
}

func trial(t testing.TB, text string) *rules.Trial {
	t.Helper()
	x, err := rules.ParseTrial([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func run(t *testing.T, events []ledger.Event, o Options) *Report {
	t.Helper()
	o.Size = int64(len(events))
	r, err := Run(t.Context(), memLog(func(i int64) []byte { return envelope(t, events[i]) }), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRun(t *testing.T) {
	held := func(rule, reason string) func(*ledger.Event) {
		return func(e *ledger.Event) {
			found(finding.HiddenTag)(e)
			hostile(2)(e)
			e.Rule, e.Reason = rule, reason
		}
	}
	flagged := call(5, "read", "passed", nil)
	events := []ledger.Event{
		{ID: ledger.ID{9}, Time: begin, Kind: ledger.RulesLoaded},
		call(1, "read", "changed", func(e *ledger.Event) { found(finding.HiddenTag)(e); hostile(1)(e) }),
		call(2, "read", "withheld", held("", "hidden-tag")),
		call(3, "write", "passed", nil),
		call(4, "write", "dropped", func(e *ledger.Event) { e.Shape, e.Rule, e.Reason = "call", "policy:no-writes", "denied" }),
		flagged,
		{ID: ledger.ID{8}, Time: begin, Kind: ledger.Classified, Of: flagged.ID, Server: "files", Rule: "classifier:shields", Verdict: "suspected", Numbers: []ledger.Number{{Name: "score", N: 900_000}}},
		call(6, "list", "changed", found(finding.HiddenBidi, finding.HiddenTag)),
		call(7, "read", "withheld", func(e *ledger.Event) { e.Rule, e.Reason = "schema", "schema-invalid" }),
		call(8, "read", "passed", func(e *ledger.Event) { e.Method = "resources/read" }),
	}
	for name, c := range map[string]struct {
		file                   string
		held, only, denied     int64
		passes, unknown, watch int64
		rows                   string // SERVER/TOOL BY N/ONLY, …
	}{
		"hold": {file: "defaults: {hold: [hidden-tag]}", held: 3, only: 2, passes: 1,
			rows: "read hold:hidden-tag 2/1, list hold:hidden-tag 1/1"},
		"hold of a tool": {file: "defaults: {hold: [hidden-tag]}\nservers: {files: {tools: {list: {hold: []}}}}", held: 2, only: 1, passes: 1,
			rows: "read hold:hidden-tag 2/1"},
		"a pattern": {file: "servers: {files: {hold: [], tools: {'l*': {hold: [hidden-bidi]}}}}", held: 1, only: 1, passes: 2,
			rows: "list hold:hidden-bidi 1/1"},
		"an exception": {file: "defaults: {hold: [hidden-tag]}\nservers: {files: {}}\nexceptions: [{server: files, tool: read, code: hidden-tag, until: 2027-01-01T00:00:00Z, why: test}]", held: 1, only: 1, passes: 2,
			rows: "list hold:hidden-tag 1/1"},
		"a call": {file: "policy: {rules: [{name: no-writes, on: call, when: tool == \"write\", then: deny}]}", denied: 2, passes: 1,
			rows: "write policy:no-writes 2/1"},
		"a score": {file: "policy: {rules: [{name: sure, on: result, when: scores.of(\"shields\") > 0.5, then: hold}]}", held: 1, only: 1, unknown: 5, passes: 1,
			rows: "read policy:sure 1/1"},
		"size":    {file: "policy: {rules: [{name: big, on: result, when: size > 100 && tool == \"read\", then: hold}]}", unknown: 4, passes: 1},
		"hints":   {file: "policy: {rules: [{name: acts, on: call, when: \"!hints.read_only\", then: ask, question: sure}]}", unknown: 7},
		"args":    {file: "policy: {rules: [{name: payee, on: call, when: \"args['/to'] != 'ann'\", then: hold}]}", unknown: 7},
		"claims":  {file: "policy: {rules: [{name: role, on: result, when: \"'x' in principal.claims\", then: hold}]}", unknown: 6, passes: 1},
		"session": {file: "policy: {rules: [{name: often, on: call, when: \"session.calls > 9 || session.calls_of('files/read') > 3\", then: deny}]}", unknown: 7},
		"acting":  {file: "policy: {privileged: [files/write], rules: [{name: acts, on: call, when: privileged && tool == \"write\", then: hold}]}", held: 2, only: 1, rows: "write policy:acts 2/1", passes: 1},
		"audit":   {file: "policy: {mode: audit, rules: [{name: all, on: result, when: \"true\", then: hold}]}", watch: 6, passes: 2},
		"trust":   {file: "policy: {rules: [{name: low, on: result, when: trust.tool < 0.6, then: hold}]}", held: 2, only: 1, passes: 2, rows: "read policy:low 2/1"},
		"nothing": {file: "defaults: {hold: []}", passes: 2},
	} {
		r := run(t, events, Options{Trial: trial(t, c.file)})
		var rows []string
		for _, row := range r.Rows {
			rows = append(rows, fmt.Sprintf("%s %s %d/%d", row.Tool, row.By, row.N, row.Only))
		}
		if r.Calls != 7 || r.Results != 6 || r.Held != (Count{c.held, c.only}) || r.Denied.N != c.denied || r.Passes != c.passes || r.NotEvaluable != c.unknown || r.Watched != c.watch || strings.Join(rows, ", ") != c.rows {
			t.Errorf("%s: %+v", name, r)
		}
		var b bytes.Buffer
		if err := r.Write(&b); err != nil || !strings.HasPrefix(b.String(), "Of 7 recorded calls of tools the rules would have held ") {
			t.Errorf("%s: %v %s", name, err, b.String())
		}
	}
	r := run(t, events, Options{Trial: trial(t, "defaults: {hold: [hidden-tag]}"), Since: begin.Add(6 * time.Hour)})
	if r.Calls != 2 || r.Held.N != 1 || r.First != "2026-03-01T06:00:00Z" || r.Last != "2026-03-01T07:00:00Z" || r.Rows[0].Examples[0] != events[7].ID.String() {
		t.Errorf("since: %+v", r)
	}
	if r := run(t, nil, Options{Trial: trial(t, "defaults: {hold: []}")}); r.Calls != 0 || r.Sentence() != "No call of a tool is recorded in this time." {
		t.Errorf("nothing: %+v", r)
	}
}

// TestRunLong: memory does not grow with the log, and the same log gives the same report.
func TestRunLong(t *testing.T) {
	n := int64(12_000)
	if testing.Short() {
		n = 3_000
	}
	log := memLog(func(i int64) []byte {
		return envelope(t, call(int(i), fmt.Sprintf("tool%d", i%11_000), "changed", found(finding.HiddenTag)))
	})
	o := Options{Trial: trial(t, "defaults: {hold: [hidden-tag]}"), Size: n}
	var first []byte
	for range 2 {
		r, err := Run(t.Context(), log, o)
		if err != nil {
			t.Fatal(err)
		}
		if r.Held.N != n || int64(len(r.Rows)) > maxRows || n > maxRows && r.More == 0 {
			t.Errorf("%d held in %d rows, %d more", r.Held.N, len(r.Rows), r.More)
		}
		b, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if first != nil && !bytes.Equal(first, b) {
			t.Error("another report of the same log")
		}
		first = b
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := Run(ctx, log, o); err == nil {
		t.Error("it goes on although it was ended")
	}
}

// BenchmarkRun prints what a record costs, and what is held in memory at the end.
func BenchmarkRun(b *testing.B) {
	var raw [][]byte
	for i := range 4096 {
		raw = append(raw, envelope(b, call(i, fmt.Sprintf("tool%d", i%100), "changed", found(finding.HiddenTag))))
	}
	log := memLog(func(i int64) []byte { return raw[i%4096] })
	o := Options{Trial: trial(b, "defaults: {hold: [hidden-tag]}\npolicy: {preset: standard}"), Size: int64(b.N)}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	b.ResetTimer()
	r, err := Run(b.Context(), log, o)
	if err != nil {
		b.Fatal(err)
	}
	b.StopTimer()
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(int64(after.HeapAlloc)-int64(before.HeapAlloc))/(1<<20), "MiB")
	runtime.KeepAlive(r)
}

func TestTrialRefused(t *testing.T) {
	for text, want := range map[string]string{
		"":                             "",
		"version: 1":                   "neither policy, nor hold, nor exceptions",
		"[]":                           "want an object",
		"defaults: {hold: [nonsense]}": "the code of a finding",
		"policy: {rules: [{name: x, on: result, when: sizes > 1, then: hold}]}":            "undeclared reference",
		"exceptions: [{server: x, code: hidden-tag, until: 2027-01-01T00:00:00Z, why: a}]": "the name of a server of this file",
		"servers: {a: {hold: 3}}":  "hold",
		strings.Repeat(" ", 8<<20): "longer than",
	} {
		if _, err := rules.ParseTrial([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v", text, err)
		}
	}
	// A whole configuration: what its servers are, and its secrets, are not read.
	if _, err := rules.ParseTrial([]byte("version: 1\nservers: {a: {url: \"env:NOWHERE\", hold: [hidden-tag]}}\nauth: {tokens: file:none}\n")); err != nil {
		t.Error(err)
	}
}
