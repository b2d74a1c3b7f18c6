// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/pellucid-mcp/pellucid/model/counterfactual"
	"github.com/pellucid-mcp/pellucid/model/llm"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
)

// meaningMetric is the id of the metric that compares embeddings.
const meaningMetric = "cosine-embedding/1"

// An Embedding is what came of comparing meanings by an endpoint for embeddings.
type Embedding struct {
	Metric string   `json:"metric"` // that was measured: where the first text failed, the built-in one
	Texts  int      `json:"texts"`
	Failed int      `json:"failed"`
	Why    llm.Code `json:"why,omitempty"` // of the last failure
}

// meaning compares texts for the metric. ctx is that of the analysis, since a metric has none.
type meaning struct {
	ctx context.Context
	by  *llm.Embedder

	mu sync.Mutex
	e  Embedding
}

// Compare has the metrics of q compare meanings by m. The answer to be explained has to be known.
// Where it cannot be embedded, the built-in metric stays.
func (q *Question) Compare(ctx context.Context, m *llm.Embedder) {
	q.meaning = &meaning{ctx: ctx, by: m, e: Embedding{Metric: meaningMetric}}
	if q.meaning.measure(nil, q.answer, q.answer) < 0 {
		q.meaning.e.Metric = builtInCosine().ID
	}
}

func builtInCosine() counterfactual.Metric {
	all := counterfactual.Metrics()
	return all[slices.IndexFunc(all, func(m counterfactual.Metric) bool { return strings.HasPrefix(m.ID, "cosine-") })]
}

// metrics are those by which answers are compared.
func (q *Question) metrics() []counterfactual.Metric {
	all := counterfactual.Metrics()
	if q.meaning == nil || q.meaning.e.Metric != meaningMetric {
		return all
	}
	for i := range all {
		if all[i].ID == builtInCosine().ID {
			all[i] = counterfactual.Metric{ID: meaningMetric, Measure: q.meaning.measure}
		}
	}
	return all
}

// measure is one less the cosine, in thousandths; -1 if there is none.
func (m *meaning) measure(_ *counterfactual.Privileges, base, variant *counterfactual.Answer) int {
	x, y := strings.TrimSpace(base.Text), strings.TrimSpace(variant.Text)
	switch {
	case x == "" && y == "": // nothing to ask about
		return 0
	case x == "" || y == "":
		return 1000
	}
	cos, err := m.by.Similarity(m.ctx, x, y)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.e.Texts++
	if err != nil {
		m.e.Failed++
		if e, ok := errors.AsType[*llm.Error](err); ok {
			m.e.Why = e.Code
		}
		return -1
	}
	return min(max(int(math.Round(1000*(1-cos))), 0), 1000)
}

// embedding is what the report says; nil if meanings are not compared.
func (q *Question) embedding() *Embedding {
	if q.meaning == nil {
		return nil
	}
	q.meaning.mu.Lock()
	defer q.meaning.mu.Unlock()
	e := q.meaning.e
	return &e
}

// words say what failed.
func (e *Embedding) words() string {
	if e.Metric != meaningMetric {
		return fmt.Sprintf("the embeddings endpoint failed (%s): %s was measured", e.Why, e.Metric)
	}
	return fmt.Sprintf("the embeddings endpoint failed for %d of %s (%s): %s was not measured there", e.Failed, terminal.Plural(e.Texts, "text"), e.Why, e.Metric)
}
