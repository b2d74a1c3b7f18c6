// SPDX-License-Identifier: Apache-2.0

// Package meter counts what the boundary does: Prometheus metrics and health, under labels that no third party chooses.
//
// Labels are bounded. A server or tool is named only while the operator has
// approved it ([Meter.Approve]) and it is a label (frame.IsLabel), else it is
// "other"; methods are those of the protocol; codes, verdicts and outcomes are
// closed sets. Principals, ids, URIs and texts are never labels.
package meter

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/otlptranslator"
	"go.opentelemetry.io/otel/attribute"
	otelprom "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/pellucid-mcp/pellucid/boundary/gateway"
	"github.com/pellucid-mcp/pellucid/text/frame"
	"github.com/pellucid-mcp/pellucid/text/scrub"
)

// Options names the program that a [Meter] counts for.
type Options struct {
	Version, Commit string
}

// Meter counts decisions and requests. It is safe for concurrent use.
type Meter struct {
	registry *prometheus.Registry
	metrics  *sdkmetric.MeterProvider
	meter    metric.Meter
	i        instruments
	labels   labels
	rules    atomic.Pointer[string]
}

var (
	_ gateway.Sink     = (*Meter)(nil)
	_ gateway.Observer = (*Meter)(nil)
)

const scope = "github.com/pellucid-mcp/pellucid/internal/meter"

// cardinality is the most combinations of labels that one metric has; what is
// beyond is counted in one of its own. Approved names are bounded far below it.
const cardinality = 20_000

// New returns a Meter.
func New(opt Options) (*Meter, error) {
	m := &Meter{registry: prometheus.NewRegistry()}
	m.labels.init()
	reader, err := otelprom.New(otelprom.WithRegisterer(m.registry), otelprom.WithoutScopeInfo(), otelprom.WithoutTargetInfo(),
		otelprom.WithTranslationStrategy(otlptranslator.UnderscoreEscapingWithSuffixes))
	if err != nil {
		return nil, fmt.Errorf("meter: %w", err)
	}
	m.metrics = sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader), sdkmetric.WithCardinalityLimit(cardinality))
	m.meter = m.metrics.Meter(scope)
	if m.i, err = newInstruments(m.meter); err != nil {
		return nil, fmt.Errorf("meter: %w", err)
	}
	if err := m.info(opt); err != nil {
		return nil, fmt.Errorf("meter: %w", err)
	}
	return m, nil
}

// Handler serves the metrics in Prometheus' formats.
func (m *Meter) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4, Timeout: 10 * time.Second})
}

// Rules tells which version of the rules is in force: a digest of ours.
func (m *Meter) Rules(version string) {
	version = frame.Label(version)
	m.rules.Store(&version)
}

// Forwarded counts a request that another replica may have to answer. outcome is a constant of the program's.
func (m *Meter) Forwarded(outcome string) { m.i.forwards.add(1, outcome) }

// Gauges are numbers that others know. Each function is called once for each
// look at the metrics; nil ones are left out.
type Gauges struct {
	Sessions func() int64 // open on the front
	Children func() int64 // processes of servers
	Held     func() int64 // results that wait for a person
	Servers  func() int64 // configured
	Captures func() int64 // texts of calls that could not be kept
	// States tells of each configured server how it does: up, down, idle or rejected.
	States func(tell func(server, state string))

	Webhooks // to receivers
	Ledger   // of the evidence
	Replicas // of one store
}

// Replicas are the gauges of the gateways on one store.
type Replicas struct {
	Live func() int64 // with this one
}

// Webhooks are the gauges of messages to receivers.
type Webhooks struct {
	Waiting func() int64 // for their delivery
	GivenUp func() int64
}

// Ledger are the gauges of the evidence.
type Ledger struct {
	Pending    func() int64 // records that are not yet part of the log
	Size       func() int64 // records of the log
	Integrated func() int64 // records that this process has added
	Lost       func() int64 // events that could not be recorded
	Lag        func() int64 // milliseconds since nothing was pending
	Still      func() int64 // seconds for which records have been pending while the log did not grow
	Key        func() int64 // 1: this process has the key of the log
	Cosigned   func() int64 // records up to which enough witnesses have cosigned the log
	Alone      func() int64 // 1: no synchronous standby of the database is left
	Stopped    func() int64 // 1: the database has lost a part of the log
}

// Watch adds gauges. It is to be called once.
func (m *Meter) Watch(g Gauges) error {
	for _, one := range []struct {
		name, help string
		read       func() int64
	}{
		{"pellucid.front.sessions", "Sessions of clients that are open.", g.Sessions},
		{"pellucid.children", "Processes of servers that run.", g.Children},
		{"pellucid.held.items", "Results that wait for a person.", g.Held},
		{"pellucid.webhook.waiting", "Messages of webhooks that wait for their delivery.", g.Waiting},
		{"pellucid.webhook.given_up", "Messages of webhooks that were given up in the last 30 days.", g.GivenUp},
		{"pellucid.servers", "Servers that are configured.", g.Servers},
		{"pellucid.captures.lost", "Captures of calls that could not be kept since the start.", g.Captures},
		{"pellucid.ledger.pending", "Records that are not yet part of the log.", g.Pending},
		{"pellucid.ledger.size", "Records of the log.", g.Size},
		{"pellucid.ledger.integrated", "Records that this process has added to the log.", g.Integrated},
		{"pellucid.ledger.lost", "Events that could not be recorded.", g.Lost},
		{"pellucid.ledger.lag_milliseconds", "For how long something has been pending.", g.Lag},
		{"pellucid.replicas", "Replicas on this store that run, with this one.", g.Live},
		{"pellucid.ledger.still_seconds", "For how many seconds records have been pending while the log did not grow.", g.Still},
		{"pellucid.ledger.key", "1 where this process has the key of the log, and can carry it on.", g.Key},
		{"pellucid.ledger.cosigned", "Records up to which enough witnesses have cosigned the log, as this process has asked.", g.Cosigned},
		{"pellucid.ledger.standby_missing", "1 where records need a synchronous standby of the database, and none is connected.", g.Alone},
		{"pellucid.ledger.stopped", "1 where the log is stopped, because the database has lost a part of it that was published.", g.Stopped},
	} {
		if one.read == nil {
			continue
		}
		_, err := m.meter.Int64ObservableGauge(one.name, metric.WithDescription(one.help),
			metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
				o.Observe(one.read())
				return nil
			}))
		if err != nil {
			return fmt.Errorf("meter: %w", err)
		}
	}
	if g.States == nil {
		return nil
	}
	_, err := m.meter.Int64ObservableGauge("pellucid.server.state", metric.WithDescription("1, with the state of each server: up, down, idle or rejected."),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			g.States(func(server, state string) {
				o.Observe(1, metric.WithAttributes(attribute.String("server", m.labels.server(server)), attribute.String("state", frame.Label(state))))
			})
			return nil
		}))
	if err != nil {
		return fmt.Errorf("meter: %w", err)
	}
	return nil
}

// info are the metrics that say what runs: always 1, their labels are the news.
func (m *Meter) info(opt Options) error {
	build := metric.WithAttributeSet(attribute.NewSet(
		attribute.String("version", frame.Label(opt.Version)), attribute.String("commit", frame.Label(opt.Commit)),
		attribute.String("go", runtime.Version()), attribute.String("sanitation", scrub.Version), attribute.String("unicode", scrub.UnicodeVersion)))
	_, err := m.meter.Int64ObservableGauge("pellucid.build.info", metric.WithDescription("Which program this is."),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(1, build)
			return nil
		}))
	if err != nil {
		return err
	}
	_, err = m.meter.Int64ObservableGauge("pellucid.rules.info", metric.WithDescription("Which rules are in force."),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			if v := m.rules.Load(); v != nil {
				o.Observe(1, metric.WithAttributes(attribute.String("version", *v)))
			}
			return nil
		}))
	return err
}

// sets keeps the label sets that were used, so that counting allocates nothing.
type sets struct {
	mu   sync.RWMutex
	made map[[5]string]metric.MeasurementOption
}

// with returns the option for pairs of names and values, of which one set of
// names must always come with the same number of values.
func (s *sets) with(names *[5]string, values [5]string) metric.MeasurementOption {
	s.mu.RLock()
	o, ok := s.made[values]
	s.mu.RUnlock()
	if ok {
		return o
	}
	var list []attribute.KeyValue
	for i, n := range names {
		if n != "" && values[i] != "" {
			list = append(list, attribute.String(n, values[i]))
		}
	}
	o = metric.WithAttributeSet(attribute.NewSet(list...))
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.made == nil || len(s.made) >= cardinality {
		s.made = map[[5]string]metric.MeasurementOption{}
	}
	s.made[values] = o
	return o
}
