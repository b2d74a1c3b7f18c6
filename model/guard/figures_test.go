// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/model/counterfactual"
	"github.com/pellucid-mcp/pellucid/model/counterfactual/run"
)

// TestFigures: dashboards read these names and labels, so they stay as they are.
func TestFigures(t *testing.T) {
	c := newCounters()
	c.probe(&run.Step{Purpose: counterfactual.PurposeLocate, Attempts: 2, Tokens: 1234567, Cached: 1000})
	c.probe(&run.Step{Purpose: counterfactual.PurposeLocate, Attempts: 1, Failure: counterfactual.FailTimeout, Tokens: -5, Cached: -1})
	c.decided(&decision{act: refused, reason: reasonFound}, 1500*time.Millisecond)
	for range 3 {
		c.exchanged("forwarded")
	}
	c.exchanged("refused-route")
	w := httptest.NewRecorder()
	c.text.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if got := w.Header().Get("Content-Type"); !strings.HasPrefix(got, "text/plain; version=0.0.4") {
		t.Errorf("Content-Type %q", got)
	}
	got := map[string]float64{}
	for line := range strings.Lines(w.Body.String()) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if name == "#" {
			continue
		}
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			t.Errorf("%q: %v", line, err)
		}
		got[name] = n
	}
	want := map[string]float64{
		`pellucid_guard_decision_milliseconds_total`:                       1500,
		`pellucid_guard_decisions_total{act="refused",reason="found-out"}`: 1,
		`pellucid_guard_probe_attempts_total`:                              3,
		`pellucid_guard_probe_cached_tokens_total`:                         1000,
		`pellucid_guard_probe_tokens_total`:                                1234567,
		`pellucid_guard_probes_total{purpose="locate",result="answered"}`:  1,
		`pellucid_guard_probes_total{purpose="locate",result="timeout"}`:   1,
		`pellucid_guard_requests_total{result="forwarded"}`:                3,
		`pellucid_guard_requests_total{result="refused-route"}`:            1,
	}
	for name, n := range want {
		if got[name] != n {
			t.Errorf("%s is %v, want %v", name, got[name], n)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d lines, want %d:\n%s", len(got), len(want), w.Body)
	}
}
