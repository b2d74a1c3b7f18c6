// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/pellucid-mcp/pellucid/model/counterfactual"
	"github.com/pellucid-mcp/pellucid/model/counterfactual/run"
)

// counters are the metrics of a guard. Every label is a constant of this module.
type counters struct {
	requests, decisions, probes       *prometheus.CounterVec
	took, attempts, tokens, fromCache prometheus.Counter
	text                              http.Handler
}

func newCounters() *counters {
	all := prometheus.NewRegistry()
	one := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Name: "pellucid_guard_" + name, Help: help})
		all.MustRegister(c)
		return c
	}
	by := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "pellucid_guard_" + name, Help: help}, labels)
		all.MustRegister(c)
		return c
	}
	return &counters{
		requests:  by("requests_total", "Requests of clients, by what became of them.", "result"),
		decisions: by("decisions_total", "Decisions about privileged calls.", "act", "reason"),
		probes:    by("probes_total", "Counterfactual runs of a model.", "purpose", "result"),
		took:      one("decision_milliseconds_total", "Time that decisions took, in milliseconds."),
		attempts:  one("probe_attempts_total", "Requests to the provider for counterfactual runs, retries included."),
		tokens:    one("probe_tokens_total", "Tokens that counterfactual runs used."),
		fromCache: one("probe_cached_tokens_total", "Tokens of counterfactual runs that the provider read from its cache."),
		text:      promhttp.HandlerFor(all, promhttp.HandlerOpts{MaxRequestsInFlight: 4, Timeout: 10 * time.Second}),
	}
}

func (c *counters) probe(s *run.Step) {
	what := string(s.Failure)
	if s.Failure == counterfactual.FailNone {
		what = "answered"
	}
	c.probes.WithLabelValues(string(s.Purpose), what).Inc()
	// A counter panics at a negative number, and the provider chooses these.
	c.attempts.Add(float64(max(s.Attempts, 0)))
	c.tokens.Add(float64(max(s.Tokens, 0)))
	c.fromCache.Add(float64(max(s.Cached, 0)))
}

func (c *counters) decided(o *decision, took time.Duration) {
	c.decisions.WithLabelValues(string(o.act), string(o.reason)).Inc()
	c.took.Add(float64(max(took.Milliseconds(), 0)))
}

// exchanged counts a request by what became of it.
func (c *counters) exchanged(what string) { c.requests.WithLabelValues(what).Inc() }
