// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"errors"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/semconv/v1.41.0/mcpconv"
)

// instruments are the metrics. Each has the sets of labels that it was used with.
type instruments struct {
	decisions  counter
	findings   counter
	rejections counter
	tokens     counter
	released   counter
	traffic    counter
	gates      counter
	webhooks   counter
	forwards   counter
	classified counter
	questions  counter

	sessions, requests gauge

	operation histogram // semconv: as the client sees us
	upstream  histogram // semconv: as we see the server
	session   histogram // semconv
	added     histogram

	classifier histogram
}

type (
	counter struct {
		metric.Int64Counter
		names *[5]string
		sets  *sets
	}
	gauge struct {
		metric.Int64UpDownCounter
		names *[5]string
		sets  *sets
	}
	histogram struct {
		metric.Float64Histogram
		names *[5]string
		sets  *sets
	}
)

// seconds are the bounds of all durations: what we add is tens of microseconds,
// what servers take can be minutes.
var seconds = []float64{.00005, .0001, .0002, .0005, .001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10, 30, 60, 120, 300}

func newInstruments(m metric.Meter) (i instruments, err error) {
	var errs []error
	count := func(name, unit, help string, labels ...string) counter {
		c, err := m.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(help))
		errs = append(errs, err)
		return counter{c, five(labels), &sets{}}
	}
	level := func(name, help string, labels ...string) gauge {
		g, err := m.Int64UpDownCounter(name, metric.WithDescription(help))
		errs = append(errs, err)
		return gauge{g, five(labels), &sets{}}
	}
	i.decisions = count("pellucid.decisions", "", "Messages of servers that were judged.", "server", "method", "kind", "verdict")
	i.findings = count("pellucid.findings", "", "What was found in messages of servers: treated, not_inspected, or withheld.", "server", "state", "code")
	i.rejections = count("pellucid.schema.rejections", "", "Answers of servers that were refused because they have not the shape that they must have.", "server", "tool", "code")
	i.tokens = count("pellucid.control_token.hits", "", "Control tokens of chat templates in what servers sent: treated, withheld, or left where honest text spells them too.", "server", "tool", "code", "state")
	i.released = count("pellucid.released", "", "Held results that were delivered because a person released them.", "server")
	i.traffic = count("pellucid.bytes", "By", "Bytes of requests (client), of answers as they came (server) and as they went (delivered).", "server", "flow")
	i.forwards = count("pellucid.forwards", "", "Requests of sessions that another replica has.", "outcome")
	i.gates = count("pellucid.gate.requests", "", "HTTP requests that a check let pass or refused.", "gate", "outcome")
	i.webhooks = count("pellucid.webhook.messages", "", "Messages of webhooks: attempts that delivered one, that failed or after which one was given_up, and messages that were dropped.", "receiver", "outcome")
	i.classified = count("pellucid.classifier.verdicts", "", "Answers of tools that classifiers were to judge: clean, flagged, not_judged, skipped or dropped.", "server", "classifier", "mode", "verdict", "reason")
	i.questions = count("pellucid.classifier.chunks", "", "Pieces of text that classifiers were asked about, or that were remembered.", "classifier", "source")
	i.sessions = level("pellucid.sessions.active", "Sessions between a client and a server.", "server")
	i.requests = level("pellucid.requests.active", "Requests of clients under way.", "server")

	bounds := metric.WithExplicitBucketBoundaries(seconds...)
	operation := []string{"server", "mcp.method.name", "gen_ai.tool.name", "gen_ai.operation.name", "error.type"}
	server, err := mcpconv.NewServerOperationDuration(m, bounds)
	errs = append(errs, err)
	i.operation = histogram{server.Inst(), five(operation), &sets{}}
	client, err := mcpconv.NewClientOperationDuration(m, bounds)
	errs = append(errs, err)
	i.upstream = histogram{client.Inst(), five(operation), &sets{}}
	session, err := mcpconv.NewServerSessionDuration(m, bounds)
	errs = append(errs, err)
	i.session = histogram{session.Inst(), five([]string{"server", "error.type"}), &sets{}}
	added, err := m.Float64Histogram("pellucid.added.duration", metric.WithUnit("s"), bounds,
		metric.WithDescription("What the boundary added to a request that was answered, waiting for the list of tools included."))
	errs = append(errs, err)
	i.added = histogram{added, five([]string{"server", "mcp.method.name"}), &sets{}}
	asked, err := m.Float64Histogram("pellucid.classifier.duration", metric.WithUnit("s"), bounds,
		metric.WithDescription("How long a classifier took about one answer."))
	errs = append(errs, err)
	i.classifier = histogram{asked, five([]string{"classifier", "mode"}), &sets{}}
	return i, errors.Join(errs...)
}

func five(names []string) *[5]string {
	var out [5]string
	copy(out[:], names)
	return &out
}
