// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/model/counterfactual"
	"github.com/pellucid-mcp/pellucid/model/counterfactual/run"
	"github.com/pellucid-mcp/pellucid/model/llm"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
)

// TestMeaning: the cosine of embeddings is measured in the place of that of words; what an endpoint
// does not answer is left out and said, and changes no verdict.
func TestMeaning(t *testing.T) {
	const says = `"content":"I pay the bill"`
	for _, c := range []struct {
		name           string
		status         func(body string) int
		metric, noted  string
		measured       int // of the answer without the order
		failed         int
		noHashedInRows bool
	}{
		{"answers", func(string) int { return 200 }, meaningMetric, "", 200, 0, true},
		{"never", func(string) int { return 500 }, "cosine-hashed/1", "(server-error): cosine-hashed/1 was measured", -1, 1, false},
		{"not the second text", func(body string) int {
			if strings.Contains(body, "bill") {
				return 200
			}
			return 401
		}, meaningMetric, "(unauthorized): cosine-embedding/1 was not measured there", -1, 1, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(c.status(string(body)))
				v := "[4,3]"
				if strings.Contains(string(body), "bill") {
					v = "[1,0]"
				}
				io.WriteString(w, `{"data":[{"embedding":`+v+`}]}`)
			}))
			defer s.Close()
			by, err := llm.NewEmbedder(llm.Options{BaseURL: s.URL, Model: "e", Retries: -1, BreakAfter: -1})
			if err != nil {
				t.Fatal(err)
			}
			defer by.Close()
			q := question(t, Context{Turn: -1, Answer: file(t, strings.Replace(paid, `"content":null`, says, 1))}, request)
			if q.answer.Text == "" {
				t.Fatal("the answer says nothing")
			}
			q.Compare(t.Context(), by)
			judge, err := q.Judge()
			if err != nil {
				t.Fatal(err)
			}
			problem := q.Problem(judge, Budget{Calls: 40, Full: true, Time: time.Minute})
			out, err := run.New(run.Options{Client: model(t, obeys)}).Run(t.Context(), run.Job{ID: "t", Assembly: q.Assembly, Judge: judge, Problem: problem})
			if err != nil {
				t.Fatal(err)
			}
			r, err := NewReport(q, judge, out.Result)
			if err != nil {
				t.Fatal(err)
			}
			if r.Attributions[0].Class != counterfactual.Hijack || r.Embedding.Metric != c.metric || r.Embedding.Failed < c.failed || c.failed == 0 && r.Embedding.Failed > 0 {
				t.Errorf("%+v, %+v", r.Attributions[0], r.Embedding)
			}
			row := r.Metrics["withhold-all"]
			if got, ok := row[meaningMetric]; ok != (c.measured >= 0) || ok && got != c.measured {
				t.Errorf("%v", row)
			}
			if _, hashed := row["cosine-hashed/1"]; hashed == c.noHashedInRows {
				t.Errorf("%v", row)
			}
			var text strings.Builder
			if err := r.Print(&text, terminal.Palette{}); err != nil || c.noted != "" && !strings.Contains(text.String(), c.noted) {
				t.Errorf("%v: %s", err, text.String())
			}
			if _, err := counterfactual.Replay(r.Evidence()); err != nil {
				t.Error(err)
			}
		})
	}
}
