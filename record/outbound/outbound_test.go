// SPDX-License-Identifier: Apache-2.0

package outbound

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	logspb "go.opentelemetry.io/proto/otlp/logs/v1"
	"google.golang.org/protobuf/proto"

	"github.com/pellucid-mcp/pellucid/platform/waittest"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/record/sequence"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

var signer, _ = ledger.NewSigner("log.example/x", ed25519.NewKeyFromSeed(make([]byte, 32)))

var begin = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

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

// events has a record of every kind, and of every verdict of a message.
func events() []ledger.Event {
	count := func(c finding.Code) []ledger.Count { return []ledger.Count{{Code: c, N: 2}} }
	key := signer.Key().String()
	list := []ledger.Event{
		{Kind: ledger.KeyInstalled, Key: key}, {Kind: ledger.RulesLoaded},
		{Kind: ledger.Message, Verdict: "passed"}, {Kind: ledger.Message, Verdict: "passed", Findings: count(finding.PrivateUse)},
		{Kind: ledger.Message, Verdict: "changed", Findings: count(finding.HiddenTag)}, {Kind: ledger.Message, Verdict: "withheld", Reason: "hidden-tag", Withheld: count(finding.HiddenTag)},
		{Kind: ledger.Message, Verdict: "dropped", Shape: "call", Rule: "policy:no-writes", Withheld: count(finding.Denied)},
		{Kind: ledger.ResultHeld}, {Kind: ledger.ResultReleased, Actor: "person"}, {Kind: ledger.ResultTaken, Verdict: "changed"}, {Kind: ledger.ResultDenied}, {Kind: ledger.ResultExpired},
		{Kind: ledger.SurfaceVerified}, {Kind: ledger.SurfaceChanged}, {Kind: ledger.SurfaceChanged, Reason: "suspended"}, {Kind: ledger.SurfaceRejected}, {Kind: ledger.SurfaceApproved},
		{Kind: ledger.SurfaceBlocked}, {Kind: ledger.SurfaceDropped}, {Kind: ledger.AttestationAccepted}, {Kind: ledger.AttestationRefused, Reason: "proven:proof-invalid"}, {Kind: ledger.AttestationEvent},
		{Kind: ledger.Classified, Verdict: "injection"}, {Kind: ledger.Classified, Verdict: "benign"}, {Kind: ledger.Counterfactual, Verdict: "hijack"}, {Kind: ledger.Counterfactual, Verdict: "quarantined"},
		{Kind: ledger.Counterfactual, Verdict: "waiting"}, {Kind: ledger.Counterfactual, Verdict: "repaired"}, {Kind: ledger.Counterfactual, Verdict: "approved"}, {Kind: ledger.TrustChanged},
		{Kind: ledger.PolicyDecided, Verdict: "hold"}, {Kind: ledger.PrincipalForgotten}, {Kind: ledger.ConsoleUsed}, {Kind: ledger.RecordsLost},
	}
	for i := range list {
		e := &list[i]
		e.ID, e.Time = ledger.ID{1, byte(i)}, begin.Add(time.Duration(i)*time.Second)
		if e.Kind == ledger.KeyInstalled {
			continue
		}
		e.Server, e.Tool, e.Method, e.Of = "files", "read", "tools/call", ledger.ID{9}
		e.Subjects = []ledger.Subject{{Role: ledger.Principal, Digest: ledger.Digest{1}}}
	}
	return list
}

func statement(t testing.TB, e ledger.Event) *ledger.Statement {
	t.Helper()
	st, err := ledger.UnverifiedStatement(envelope(t, e))
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// ocsf is the event of a record as one line of JSON.
func ocsf(index int64, st *ledger.Statement) (line []byte, ok bool) {
	d, ok := detectionOf(index, st)
	if !ok {
		return nil, false
	}
	return d.append(nil)
}

// TestOCSF: what is a finding is one event of the official class, and says what was done.
func TestOCSF(t *testing.T) {
	schema := ocsfSchema(t)
	findings := 0
	for i, e := range events() {
		line, ok := ocsf(int64(i), statement(t, e))
		if !ok {
			if len(line) > 0 {
				t.Errorf("%s %s: no finding, and %s", e.Kind, e.Verdict, line)
			}
			continue
		}
		findings++
		if bytes.Count(line, []byte("\n")) != 1 {
			t.Errorf("%s: not one line", line)
		}
		if schema == nil {
			continue
		}
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(line))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(v); err != nil {
			t.Errorf("%s %s: %v\n%s", e.Kind, e.Verdict, err, line)
		}
	}
	if findings != 18 {
		t.Errorf("%d findings", findings)
	}
	line, _ := ocsf(4, statement(t, events()[4]))
	var d detection
	if err := json.Unmarshal(line, &d); err != nil {
		t.Fatal(err)
	}
	if d.Type != 200401 || d.Action != actionModified || d.Severity != severityHigh || d.Info.UID != (ledger.ID{9}).String() || d.Metadata.UID != (ledger.ID{1, 4}).String() ||
		d.Metadata.Sequence != 4 || d.Time != begin.Add(4*time.Second).UnixMilli() || d.Resources[0].Name != "files/read" || d.Unmapped.Findings["hidden-tag"] != 2 || len(d.Unmapped.Subjects["principal"]) != 64 {
		t.Errorf("%s", line)
	}
	if schema == nil {
		t.Skip("the official schema of OCSF is not there (make python): events were not checked against it")
	}
	// The check can fail.
	for _, change := range []string{`"severity_id":`, `"time":`, `"finding_info":`, `"activity_id":`} {
		bad := strings.Replace(string(line), change, `"other":`, 1)
		if v, err := jsonschema.UnmarshalJSON(strings.NewReader(bad)); err != nil || schema.Validate(v) == nil {
			t.Errorf("without %s it is valid: %v", change, err)
		}
	}
}

// ocsfSchema is the schema of Detection Finding with the profile security_control, made from the official
// one by the package ocsf-json-schema; nil where that is not installed.
func ocsfSchema(t *testing.T) *jsonschema.Schema {
	python, err := filepath.Abs(filepath.Join("..", "..", ".tools", "python", "bin", "python"))
	if err != nil {
		t.Fatal(err)
	}
	if p := os.Getenv("PELLUCID_OCSF_PYTHON"); p != "" {
		python = p
	}
	cmd := exec.CommandContext(t.Context(), python, "-c", `import json
from ocsf_json_schema import get_ocsf_schema, OcsfJsonSchemaEmbedded
print(json.dumps(OcsfJsonSchemaEmbedded(get_ocsf_schema(version='`+OCSFVersion+`')).get_class_schema(class_name='detection_finding', profiles=['security_control'])))`)
	out, err := cmd.Output()
	if err != nil {
		return nil
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(out))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(nothing{})
	if err := c.AddResource("https://ocsf.test/schema", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("https://ocsf.test/schema")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

type nothing struct{}

func (nothing) Load(url string) (any, error) { return nil, errors.New("nothing is loaded") }

// A memStore has a log and positions in memory.
type memStore struct {
	mu      sync.Mutex
	records [][]byte
	at      map[string]int64
	holder  map[string]string
	until   map[string]time.Time
}

func newStore(t testing.TB, n int) *memStore {
	m := &memStore{at: map[string]int64{}, holder: map[string]string{}, until: map[string]time.Time{}}
	for i := range n {
		e := events()[4]
		e.ID = ledger.ID{2, byte(i >> 8), byte(i)}
		m.records = append(m.records, envelope(t, e))
	}
	return m
}

func (m *memStore) Head(context.Context) (sequence.Head, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return sequence.Head{Size: int64(len(m.records))}, nil
}

func (m *memStore) Entries(_ context.Context, first int64, n int) ([][]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.records[first:min(int64(len(m.records)), first+int64(n))], nil
}

func (m *memStore) Get(_ context.Context, id ledger.ID) (sequence.Entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, raw := range m.records {
		if st, err := ledger.UnverifiedStatement(raw); err == nil && st.ID == id {
			return sequence.Entry{Index: int64(i), ID: id, Envelope: raw}, nil
		}
	}
	return sequence.Entry{}, ledger.ErrNotFound
}

func (m *memStore) ClaimExport(_ context.Context, name, holder string, begin int64, now, until time.Time) (int64, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, known := m.at[name]; !known {
		m.at[name] = begin
	}
	if m.holder[name] != "" && m.holder[name] != holder && now.Before(m.until[name]) {
		return 0, false, nil
	}
	m.holder[name], m.until[name] = holder, until
	return m.at[name], true, nil
}

func (m *memStore) SaveExport(_ context.Context, name, holder string, position int64, until time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.holder[name] != holder {
		return ErrLost
	}
	m.at[name], m.until[name] = position, until
	return nil
}

// A receiver takes what is posted, after some failures, and refuses what holds a certain text.
type receiver struct {
	mu     sync.Mutex
	fail   int
	refuse string
	bodies []string
	auth   string
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	b, _ := io.ReadAll(q.Body)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.auth = q.Header.Get("Authorization")
	switch {
	case r.fail > 0:
		r.fail--
		w.WriteHeader(http.StatusServiceUnavailable)
	case r.refuse != "" && strings.Contains(string(b), r.refuse):
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, "\x1b[31mno")
	default:
		r.bodies = append(r.bodies, string(b))
	}
}

// uids are those of the events that came, in the order in which each came first: a batch whose answer
// was lost comes again.
func (r *receiver) uids(t *testing.T) (out []string) {
	t.Helper()
	seen := map[string]bool{}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, b := range r.bodies {
		for lines := bufio.NewScanner(strings.NewReader(b)); lines.Scan(); {
			var d detection
			if err := json.Unmarshal(lines.Bytes(), &d); err != nil {
				t.Fatal(err)
			}
			if !seen[d.Metadata.UID] {
				seen[d.Metadata.UID], out = true, append(out, d.Metadata.UID)
			}
		}
	}
	return out
}

func sender(t *testing.T, o Options) *Sender {
	t.Helper()
	o.look = time.Millisecond
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// until runs a sender until a condition holds.
func until(t *testing.T, s *Sender, done func() bool) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	end := make(chan struct{})
	go func() { defer close(end); s.Run(ctx) }()
	waittest.Until(t, "the sender is done", done)
	stop()
	<-end
}

// TestSender: a receiver that fails for a while gets every record in its order; a restart goes on where it
// stopped; what is refused is left out, counted and told.
func TestSender(t *testing.T) {
	const n = 600
	store, r := newStore(t, n), &receiver{fail: 2, refuse: (ledger.ID{2, 1, 3}).String()}
	srv := httptest.NewServer(r)
	defer srv.Close()
	sink, err := NewHTTP(srv.URL, FormatOCSF, "Bearer x")
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	o := Options{Name: "siem", Format: FormatOCSF, Sink: sink, Store: store, FromBegin: true, Log: slog.New(slog.NewTextHandler(&log, nil))}
	half := sender(t, o)
	until(t, half, func() bool { return len(r.uids(t)) >= 256 })
	rest := sender(t, o) // which need not wait: Run gave the lease up
	until(t, rest, func() bool { f := rest.Figures(); return rest.position.Load() == n && f.Behind == 0 })
	got := r.uids(t)
	if len(got) != n-1 || r.auth != "Bearer x" {
		t.Fatalf("%d events came, auth %q", len(got), r.auth)
	}
	want := 0
	for _, uid := range got {
		if want == 256+3 {
			want++
		}
		if uid != (ledger.ID{2, byte(want >> 8), byte(want)}).String() {
			t.Fatalf("event %d is %s", want, uid)
		}
		want++
	}
	if d := half.Figures().Dropped + rest.Figures().Dropped; d != 1 || !strings.Contains(log.String(), "left out") || !strings.Contains(log.String(), "tried again") || strings.ContainsRune(log.String(), 0x1b) || strings.Contains(log.String(), srv.URL) {
		t.Errorf("%d dropped: %s", d, log.String())
	}
}

// TestFindingOrder: the event that begins a finding comes before those that update it, whatever the order in the log
// and wherever a batch ends.
func TestFindingOrder(t *testing.T) {
	message := ledger.Event{ID: ledger.ID{7}, Time: begin, Kind: ledger.Message, Server: "files", Verdict: "withheld", Shape: "result"}
	held := ledger.Event{ID: ledger.ID{8}, Time: begin, Kind: ledger.ResultHeld, Of: message.ID, Server: "files"}
	judged := ledger.Event{ID: ledger.ID{9}, Time: begin, Kind: ledger.Classified, Of: message.ID, Verdict: "injection"}
	passed := message
	passed.Verdict = "passed"
	fresh := held
	fresh.Time = time.Now()
	for _, c := range []struct {
		name   string
		before int // records before them
		events []ledger.Event
		want   string // activity and first byte of the id of the record
	}{
		{"in order", 0, []ledger.Event{message, held, judged}, "1:7 2:8 2:9"},
		{"held first", 0, []ledger.Event{held, judged, message}, "1:7 2:8 2:9"},
		{"between batches", batch - 1, []ledger.Event{held, message, judged}, "1:7 2:8 1:7 2:9"},
		{"no message", 0, []ledger.Event{held, judged}, "1:8 2:9"},
		{"a message that is no finding", 0, []ledger.Event{judged, passed}, "1:9"},
		{"a message that is not recorded yet", 0, []ledger.Event{message, fresh}[1:], ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			store, r := newStore(t, 0), &receiver{}
			for range c.before {
				store.records = append(store.records, envelope(t, events()[2]))
			}
			for _, e := range c.events {
				store.records = append(store.records, envelope(t, e))
			}
			srv := httptest.NewServer(r)
			defer srv.Close()
			sink, err := NewHTTP(srv.URL, FormatOCSF, "")
			if err != nil {
				t.Fatal(err)
			}
			s, err := New(Options{Name: "siem", Format: FormatOCSF, Sink: sink, Store: store, FromBegin: true})
			if err != nil {
				t.Fatal(err)
			}
			for more := true; more; {
				if more, err = s.step(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			var got []string
			for line := range strings.Lines(strings.Join(r.bodies, "")) {
				var d detection
				if err := json.Unmarshal([]byte(line), &d); err != nil {
					t.Fatal(err)
				}
				got = append(got, fmt.Sprintf("%d:%s", d.Activity, strings.TrimLeft(d.Metadata.UID[:2], "0")))
				if d.Type != 200400+d.Activity || d.Info.UID != message.ID.String() {
					t.Errorf("%s", line)
				}
			}
			if text := strings.Join(got, " "); text != c.want {
				t.Errorf("got %q, want %q", text, c.want)
			}
		})
	}
}

// A picky sink refuses each batch that has an even record, and takes longer for a batch of refused records than a
// lease lasts.
type picky struct {
	mu    sync.Mutex
	times map[string]int // how often each event was accepted
}

func (p *picky) Send(ctx context.Context, body []byte) error {
	select {
	case <-time.After(2 * time.Millisecond):
	case <-ctx.Done():
		return ctx.Err()
	}
	var uids []string
	for lines := bufio.NewScanner(bytes.NewReader(body)); lines.Scan(); {
		var d detection
		if err := json.Unmarshal(lines.Bytes(), &d); err != nil {
			return err
		}
		if uid := d.Metadata.UID; (uid[5]-'0')%2 == 0 && uid[5] <= '9' || uid[5] == 'a' || uid[5] == 'c' || uid[5] == 'e' {
			return ErrRefused
		}
		uids = append(uids, d.Metadata.UID)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, uid := range uids {
		p.times[uid]++
	}
	return nil
}

// TestManyRefused: a slow receiver that refuses every second record gets each of the others once, though the batch
// takes many times as long as the lease.
func TestManyRefused(t *testing.T) {
	const n = 256
	store, sink := newStore(t, n), &picky{times: map[string]int{}}
	s := sender(t, Options{Name: "siem", Format: FormatOCSF, Sink: sink, Store: store, FromBegin: true, lease: 250 * time.Millisecond})
	until(t, s, func() bool { return s.position.Load() == n })
	if len(sink.times) != n/2 || s.Figures().Dropped != n/2 {
		t.Errorf("%d events came, %d were left out", len(sink.times), s.Figures().Dropped)
	}
	for uid, times := range sink.times {
		if times != 1 {
			t.Errorf("event %s came %d times", uid, times)
		}
	}
}

// TestIdle: while the log stands still, a sender writes nothing to the store.
func TestIdle(t *testing.T) {
	store := newStore(t, 3)
	s := sender(t, Options{Name: "siem", Format: FormatOCSF, Sink: &picky{times: map[string]int{}}, Store: store, FromBegin: true})
	for range 3 {
		if _, err := s.step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	before := store.until["siem"]
	s.until = time.Time{}
	if more, err := s.step(t.Context()); more || err != nil || store.until["siem"] != before {
		t.Errorf("%v, %v; the lease was renewed: %v", more, err, store.until["siem"] != before)
	}
}

// TestFileUnfinishedLine: what a power cut has left of a line ends before the next record.
func TestFileUnfinishedLine(t *testing.T) {
	file := filepath.Join(t.TempDir(), "events.jsonl")
	if err := os.WriteFile(file, []byte("{\"a\":1}\n{\"b\":"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"{\"b\":2}\n", "{\"c\":3}\n"} {
		if err := File(file).Send(t.Context(), []byte(line)); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if want := "{\"a\":1}\n{\"b\":\n{\"b\":2}\n{\"c\":3}\n"; err != nil || string(got) != want {
		t.Errorf("%q, %v", got, err)
	}
}

// TestSenders: of two processes one sends.
func TestSenders(t *testing.T) {
	store, r := newStore(t, 300), &receiver{}
	srv := httptest.NewServer(r)
	defer srv.Close()
	sink, err := NewHTTP(srv.URL, FormatOCSF, "")
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Name: "siem", Format: FormatOCSF, Sink: sink, Store: store, FromBegin: true}
	a, b := sender(t, o), sender(t, o)
	ctx, stop := context.WithCancel(t.Context())
	var both sync.WaitGroup
	both.Go(func() { b.Run(ctx) })
	until(t, a, func() bool { return len(r.uids(t)) >= 300 })
	stop()
	both.Wait()
	if n := len(r.uids(t)); n != 300 {
		t.Errorf("%d events came", n)
	}
	// A new export that begins now has nothing to send.
	o.Name, o.FromBegin = "later", false
	c := sender(t, o)
	if more, err := c.step(t.Context()); more || err != nil || c.position.Load() != 300 {
		t.Errorf("%v, %v, at %d", more, err, c.position.Load())
	}
}

// TestOTLP: every record is a log of OpenTelemetry, also what is no finding; a record that cannot be read is left out.
func TestOTLP(t *testing.T) {
	r := &receiver{}
	path := ""
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) { path = q.URL.Path; r.ServeHTTP(w, q) }))
	defer srv.Close()
	sink, err := NewHTTP(srv.URL, FormatOTLP, "")
	if err != nil {
		t.Fatal(err)
	}
	store := newStore(t, 0)
	for _, e := range events() {
		store.records = append(store.records, envelope(t, e))
	}
	store.records = append(store.records, []byte("no record"))
	s := sender(t, Options{Name: "otel", Format: FormatOTLP, Sink: sink, Store: store, FromBegin: true})
	if _, err := s.step(t.Context()); err != nil {
		t.Fatal(err)
	}
	var got logspb.LogsData
	if err := proto.Unmarshal([]byte(r.bodies[0]), &got); err != nil || path != "/v1/logs" {
		t.Fatalf("%v at %s", err, path)
	}
	logs := got.ResourceLogs[0].ScopeLogs[0].LogRecords
	if len(logs) != len(events()) || s.Figures().Dropped != 1 {
		t.Fatalf("%d logs, %d dropped", len(logs), s.Figures().Dropped)
	}
	seen := map[string]string{}
	for _, a := range logs[4].Attributes {
		seen[a.Key] = fmt.Sprint(a.Value.GetStringValue(), a.Value.GetIntValue())
	}
	if logs[4].SeverityText != "ERROR" || seen["pellucid.record.id"] != (ledger.ID{1, 4}).String()+" 0" && !strings.HasPrefix(seen["pellucid.record.id"], (ledger.ID{1, 4}).String()) || seen["pellucid.found.hidden-tag"] != "2" && !strings.HasSuffix(seen["pellucid.found.hidden-tag"], "2") {
		t.Errorf("%v %v", logs[4].SeverityText, seen)
	}
}

func TestSinks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.jsonl")
	for range 2 {
		if err := File(path).Send(t.Context(), []byte("{}\n")); err != nil {
			t.Fatal(err)
		}
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != "{}\n{}\n" {
		t.Errorf("%q, %v", b, err)
	}
	if err := File(t.TempDir()).Send(t.Context(), nil); err == nil || strings.Contains(err.Error(), "/") {
		t.Errorf("a folder: %v", err)
	}
	for _, url := range []string{"http://siem.example/x", "https://user:pass@siem.example", "file:///etc/passwd", ""} {
		if _, err := NewHTTP(url, FormatOCSF, ""); err == nil {
			t.Errorf("%q is taken", url)
		}
	}
	if _, err := New(Options{Format: "xml", Sink: File("x"), Store: newStore(t, 0)}); err == nil {
		t.Error("a format that there is not")
	}
}
