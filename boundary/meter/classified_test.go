// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/boundary/classify"
	"github.com/pellucid-mcp/pellucid/boundary/gateway"
	"github.com/pellucid-mcp/pellucid/boundary/policy"
)

// Labels of verdicts are bounded, whatever a classifier says.
func TestClassified(t *testing.T) {
	m, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	m.Approve(map[string][]string{"web": nil})
	flagged := []classify.Judgement{{Score: classify.Score{P: 1, Flagged: true, Code: "ignore"}}}
	for _, c := range []gateway.Classified{
		{Of: gateway.ID{1}, Server: "web", Assessment: classify.Assessment{Name: "shields", Segments: flagged, Asked: 2, Cached: 1, Latency: time.Millisecond}},
		{Kind: gateway.InDescriptions, Server: "web", Assessment: classify.Assessment{Name: "shields", Segments: flagged, Asked: 2}},
		{Server: "evil", Assessment: classify.Assessment{Name: "shields", Reason: classify.Timeout}},
		{Server: "web", Dropped: true, Assessment: classify.Assessment{Name: "local", Mode: policy.Shadow, Reason: classify.OverBudget}},
		{Server: "web", Assessment: classify.Assessment{Name: "a b", Reason: "made up"}},
	} {
		m.Classified(c)
	}
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	got := w.Body.String()
	for _, want := range []string{
		`pellucid_classifier_verdicts_total{classifier="shields",mode="enforce",server="web",verdict="flagged"} 1`,
		`pellucid_classifier_verdicts_total{classifier="shields",mode="enforce",reason="timeout",server="other",verdict="not_judged"} 1`,
		`pellucid_classifier_verdicts_total{classifier="local",mode="shadow",reason="over-budget",server="web",verdict="dropped"} 1`,
		`pellucid_classifier_verdicts_total{classifier="other",mode="enforce",reason="other",server="web",verdict="not_judged"} 1`,
		`pellucid_classifier_chunks_total{classifier="shields",source="asked"} 2`,
		`pellucid_classifier_duration_seconds_count{classifier="shields",mode="enforce"} 2`,
	} {
		if !strings.Contains(got, want+"\n") {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
}
