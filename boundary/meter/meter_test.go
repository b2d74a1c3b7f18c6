// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/pellucid-mcp/pellucid/boundary/gateway"
	"github.com/pellucid-mcp/pellucid/boundary/policy"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newMeter(t testing.TB, opt Options) *Meter {
	t.Helper()
	m, err := New(opt)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// scrape returns the lines of /metrics that begin with prefix.
func scrape(t testing.TB, m *Meter, prefix string) (lines []string) {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusOK {
		t.Fatalf("/metrics: %d %s", w.Code, w.Body)
	}
	for line := range strings.Lines(w.Body.String()) {
		if strings.HasPrefix(line, prefix) {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

func wantLine(t testing.TB, m *Meter, want string) {
	t.Helper()
	name, _, _ := strings.Cut(want, "{")
	lines := scrape(t, m, name)
	for _, l := range lines {
		if l == want {
			return
		}
	}
	t.Errorf("no line %s among\n%s", want, strings.Join(lines, "\n"))
}

func TestDecisions(t *testing.T) {
	m := newMeter(t, Options{})
	m.Approve(map[string][]string{"files": {"read"}})
	for _, d := range []gateway.Decision{
		{Server: "files", Tool: "read", Method: "tools/call", Kind: "result", Verdict: gateway.Changed,
			Findings:     []policy.Count{{Code: finding.HiddenTag, N: 12}, {Code: finding.ControlToken, N: 2}, {Code: finding.AmbiguousToken, N: 4}},
			NotInspected: []policy.Count{{Code: finding.BlobNotInspected, N: 1}}},
		{Server: "files", Tool: "invented", Method: "tools/call", Kind: "result", Verdict: gateway.Withheld,
			Findings: []policy.Count{{Code: finding.SchemaInvalid, N: 1}, {Code: finding.SplitAcrossBlocks, N: 3}},
			Withheld: []policy.Count{{Code: finding.SchemaInvalid, N: 1}, {Code: finding.SplitAcrossBlocks, N: 2}}},
		{Server: "stranger", Method: "tools/call", Kind: "result", Verdict: gateway.Withheld,
			Withheld: []policy.Count{{Code: finding.Denied, N: 1}}},
		{Server: "files", Method: "tools/call", Kind: "result", Verdict: gateway.Passed, Released: strings.Repeat("0", 32)},
	} {
		if err := m.Record(d); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{
		`pellucid_decisions_total{kind="result",method="tools/call",server="files",verdict="changed"} 1`,
		`pellucid_decisions_total{kind="result",method="tools/call",server="other",verdict="withheld"} 1`,
		`pellucid_findings_total{code="hidden-tag",server="files",state="treated"} 12`,
		`pellucid_findings_total{code="binary",server="files",state="not_inspected"} 1`,
		`pellucid_findings_total{code="schema-invalid",server="files",state="withheld"} 1`,
		`pellucid_findings_total{code="split-token",server="files",state="treated"} 1`,
		`pellucid_findings_total{code="split-token",server="files",state="withheld"} 2`,
		`pellucid_control_token_hits_total{code="split-token",server="files",state="treated",tool="other"} 1`,
		`pellucid_control_token_hits_total{code="split-token",server="files",state="withheld",tool="other"} 2`,
		`pellucid_control_token_hits_total{code="control-token",server="files",state="treated",tool="read"} 2`,
		`pellucid_control_token_hits_total{code="ambiguous-token",server="files",state="left",tool="read"} 4`,
		`pellucid_schema_rejections_total{code="schema-invalid",server="files",tool="other"} 1`,
		`pellucid_released_total{server="files"} 1`,
	} {
		wantLine(t, m, want)
	}
	if lines := scrape(t, m, `pellucid_findings_total{code="schema-invalid"`); len(lines) != 1 {
		t.Errorf("what was withheld counts as treated: %q", lines)
	}
	if lines := scrape(t, m, "pellucid_schema_rejections_total"); len(lines) != 1 {
		t.Errorf("a refusal by policy counts as one of shape: %q", lines)
	}
}

// TestLabelsAreBounded: whatever a server calls itself, its tools and its codes,
// the number of time series stays the same and none of it is shown.
func TestLabelsAreBounded(t *testing.T) {
	m := newMeter(t, Options{Version: "bad\nversion", Commit: `"}`})
	m.Rules("evil\u202e")
	var many []string
	for i := range 3 * maxTools {
		many = append(many, fmt.Sprint("tool", i))
	}
	m.Approve(map[string][]string{"files": append(many, "bad name"), "bad\nname": nil})
	for i := range 5000 {
		evil := fmt.Sprintf("evil%d\n", i)
		m.Record(gateway.Decision{Server: evil, Tool: evil, Method: evil, Kind: evil, Verdict: gateway.Verdict(evil),
			Findings: []policy.Count{{Code: finding.Code(evil), N: 1}}})
		m.Record(gateway.Decision{Server: "files", Tool: fmt.Sprint("tool", i), Method: "tools/call", Kind: "result",
			Verdict: gateway.Passed, Findings: []policy.Count{{Code: finding.ControlToken, N: 1}}})
		x := m.Request(gateway.Request{Server: evil, Method: "tools/call"})
		x.Sent(evil)
		x.Answered(1)
		x.Done(gateway.OutcomeOK, 1)
	}
	all := scrape(t, m, "")
	if n := len(all); n > 1500 {
		t.Errorf("%d lines", n)
	}
	if text := strings.Join(all, "\n"); strings.Contains(text, "evil") || strings.Contains(text, "bad") {
		t.Error("a name that nobody approved is shown")
	}
	if n := len(scrape(t, m, "pellucid_control_token_hits_total")); n != maxTools+1 {
		t.Errorf("%d tools, want %d and other", n, maxTools)
	}
}

// On synctest's clock nothing but a sleep takes time, so the bounds are exact.
func TestExchange(t *testing.T) { synctest.Test(t, testExchange) }

func testExchange(t *testing.T) {
	m := newMeter(t, Options{})
	m.Approve(map[string][]string{"files": {"read"}})
	ended := m.Session("files")
	x := m.Request(gateway.Request{Server: "files", Method: "tools/call", Bytes: 10})
	wantLine(t, m, `pellucid_requests_active{server="files"} 1`)
	wantLine(t, m, `pellucid_sessions_active{server="files"} 1`)
	x.Sent("read")
	time.Sleep(time.Minute)
	x.Answered(20)
	x.Done(gateway.OutcomeToolError, 30)
	refused := m.Request(gateway.Request{Server: "files", Method: "ping"})
	refused.Done(gateway.OutcomeRefused, 5)
	ended(fmt.Errorf("x: %w", gateway.ErrUpstreamGone))
	for _, want := range []string{
		`pellucid_requests_active{server="files"} 0`,
		`pellucid_sessions_active{server="files"} 0`,
		`pellucid_bytes_total{flow="client",server="files"} 10`,
		`pellucid_bytes_total{flow="server",server="files"} 20`,
		`pellucid_bytes_total{flow="delivered",server="files"} 35`,
		`mcp_server_operation_duration_seconds_count{error_type="tool_error",gen_ai_operation_name="execute_tool",gen_ai_tool_name="read",mcp_method_name="tools/call",server="files"} 1`,
		`mcp_client_operation_duration_seconds_count{error_type="tool_error",gen_ai_operation_name="execute_tool",gen_ai_tool_name="read",mcp_method_name="tools/call",server="files"} 1`,
		`mcp_server_operation_duration_seconds_count{error_type="refused",mcp_method_name="ping",server="files"} 1`,
		`mcp_server_session_duration_seconds_count{error_type="server_gone",server="files"} 1`,
		`pellucid_added_duration_seconds_count{mcp_method_name="tools/call",server="files"} 1`,
		// What the server took is not ours.
		`pellucid_added_duration_seconds_bucket{mcp_method_name="tools/call",server="files",le="5e-05"} 1`,
	} {
		wantLine(t, m, want)
	}
}

func TestGaugesAndInfo(t *testing.T) {
	m := newMeter(t, Options{Version: "1.2.3", Commit: "abc"})
	if err := m.Watch(Gauges{Sessions: func() int64 { return 3 }, Held: func() int64 { return 4 }}); err != nil {
		t.Fatal(err)
	}
	m.Rules("0123abcd")
	wantLine(t, m, `pellucid_front_sessions 3`)
	wantLine(t, m, `pellucid_held_items 4`)
	wantLine(t, m, `pellucid_rules_info{version="0123abcd"} 1`)
	if lines := scrape(t, m, "pellucid_build_info"); len(lines) != 1 || !strings.Contains(lines[0], `version="1.2.3"`) {
		t.Errorf("build: %q", lines)
	}
	if lines := scrape(t, m, "pellucid_children"); lines != nil {
		t.Errorf("a gauge that nobody gave: %q", lines)
	}
}

func TestGate(t *testing.T) {
	m := newMeter(t, Options{})
	refuse := 0
	gate := m.Gate("auth", func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if refuse != 0 {
				w.WriteHeader(refuse)
				return
			}
			next.ServeHTTP(w, r)
		})
	})
	inner := gate(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, is := w.(*recorder); is {
			t.Error("the handler got our writer")
		}
		w.WriteHeader(http.StatusForbidden) // its own refusal is none of the gate
	}))
	for _, status := range []int{0, 401, 401, 503, 418} {
		refuse = status
		inner.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
	}
	for _, want := range []string{
		`pellucid_gate_requests_total{gate="auth",outcome="passed"} 1`,
		`pellucid_gate_requests_total{gate="auth",outcome="401"} 2`,
		`pellucid_gate_requests_total{gate="auth",outcome="503"} 1`,
		`pellucid_gate_requests_total{gate="auth",outcome="4xx"} 1`,
	} {
		wantLine(t, m, want)
	}
	if n := len(scrape(t, m, "pellucid_gate_requests_total")); n != 4 {
		t.Errorf("%d outcomes", n)
	}
}

func TestHealth(t *testing.T) {
	var h Health
	var broken bool
	calls := 0
	h.Add("store", func(context.Context) error {
		if calls++; broken {
			return errors.New("postgres://user:secret@host")
		}
		return nil
	})
	h.Add("upstreams", func(context.Context) error { return nil })
	ask := func(handler http.Handler, method string) (int, string) {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(method, "/", nil))
		body, _ := io.ReadAll(w.Body)
		return w.Code, strings.TrimSpace(string(body))
	}
	check := func(handler http.Handler, code int, body string) {
		t.Helper()
		if c, b := ask(handler, http.MethodGet); c != code || b != body {
			t.Errorf("%d %s, want %d %s", c, b, code, body)
		}
	}
	check(h.Live(), 200, `{"status":"ok"}`)
	check(h.Ready(), 200, `{"status":"ok","checks":{"store":"ok","upstreams":"ok"}}`)
	broken = true
	check(h.Ready(), 200, `{"status":"ok","checks":{"store":"ok","upstreams":"ok"}}`)
	if calls != 1 {
		t.Errorf("%d checks within a second", calls)
	}
	h.at = time.Time{}
	check(h.Ready(), 503, `{"status":"failing","checks":{"store":"failing","upstreams":"ok"}}`)
	h.Drain()
	check(h.Ready(), 503, `{"status":"draining","checks":{"store":"failing","upstreams":"ok"}}`)
	check(h.Live(), 200, `{"status":"ok"}`)
	if c, _ := ask(h.Live(), http.MethodPost); c != 405 {
		t.Errorf("POST: %d", c)
	}
}

func TestConcurrently(t *testing.T) {
	m := newMeter(t, Options{})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 200 {
				end := m.Session("s")
				x := m.Request(gateway.Request{Server: "s", Method: "ping"})
				m.Approve(map[string][]string{"s": {fmt.Sprint(i)}})
				x.Sent("")
				x.Done(gateway.OutcomeGone, 0)
				end(nil)
			}
		})
	}
	wg.Wait()
	total := 0
	for _, l := range scrape(t, m, "pellucid_requests_active{") {
		if !strings.HasSuffix(l, " 0") {
			t.Error(l)
		}
		total++
	}
	if total == 0 {
		t.Error("nothing was counted")
	}
}

func BenchmarkRequest(b *testing.B) {
	m := newMeter(b, Options{})
	m.Approve(map[string][]string{"files": {"read"}})
	d := gateway.Decision{Server: "files", Tool: "read", Method: "tools/call", Kind: "result", Verdict: gateway.Passed}
	b.ReportAllocs()
	for b.Loop() {
		x := m.Request(gateway.Request{Server: "files", Method: "tools/call", Bytes: 100})
		x.Sent("read")
		x.Answered(1000)
		m.Record(d)
		x.Done(gateway.OutcomeOK, 1100)
	}
}
