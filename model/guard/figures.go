// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pellucid-mcp/pellucid/model/counterfactual"
	"github.com/pellucid-mcp/pellucid/model/counterfactual/run"
)

// counters count. Every label is a constant of this module.
type counters struct {
	mu sync.Mutex
	n  map[string]int64
}

func (c *counters) add(name string, n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = map[string]int64{}
	}
	c.n[name] += n
}

func (c *counters) probe(s *run.Step) {
	what := string(s.Failure)
	if s.Failure == counterfactual.FailNone {
		what = "answered"
	}
	c.add(`pellucid_guard_probes_total{purpose="`+string(s.Purpose)+`",result="`+what+`"}`, 1)
	c.add("pellucid_guard_probe_attempts_total", int64(s.Attempts))
	c.add("pellucid_guard_probe_tokens_total", s.Tokens)
	c.add("pellucid_guard_probe_cached_tokens_total", s.Cached)
}

func (c *counters) decided(o *outcome, took time.Duration) {
	c.add(`pellucid_guard_decisions_total{act="`+string(o.act)+`",reason="`+string(o.reason)+`"}`, 1)
	c.add("pellucid_guard_decision_milliseconds_total", took.Milliseconds())
}

// exchanged counts a request by what became of it.
func (c *counters) exchanged(what string) {
	c.add(`pellucid_guard_requests_total{result="`+what+`"}`, 1)
}

// WriteTo writes the counters in the text format of Prometheus.
func (c *counters) WriteTo(w io.Writer) (int64, error) {
	c.mu.Lock()
	var lines []string
	for name, n := range c.n {
		lines = append(lines, fmt.Sprintf("%s %d\n", name, n))
	}
	c.mu.Unlock()
	slices.Sort(lines)
	n, err := io.WriteString(w, strings.Join(lines, ""))
	return int64(n), err
}

func (g *Guard) metrics(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	_, _ = g.counters.WriteTo(w) // the client has gone
}
