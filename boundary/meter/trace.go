// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"errors"
	"fmt"
	"net/url"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/pellucid-mcp/pellucid/boundary/gateway"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/frame"
)

func (m *Meter) startTraces(opt Options) error {
	u, err := url.Parse(opt.OTLP)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return errors.New("meter: OTLP: want an http:// or https:// URL")
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/v1/traces"
	}
	exporter, err := otlptrace.New(ctx, newCollector(u.String(), opt.header))
	if err != nil {
		return fmt.Errorf("meter: OTLP: %s", finding.Quote(err.Error()))
	}
	// The library has one place for all its errors. A collector's answer is a
	// third party's text too.
	log := m.log
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		log.Warn("traces or metrics could not be delivered", "error", finding.Quote(err.Error()))
	}))
	share := opt.share
	if share <= 0 || share > 1 {
		share = 1
	}
	m.traces = sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter),
		sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(share))),
		sdktrace.WithResource(resource.NewWithAttributes(semconv.SchemaURL, semconv.ServiceName("pellucid"), semconv.ServiceVersion(frame.Label(opt.Version)))))
	m.tracer = m.traces.Tracer(scope)
	return nil
}

var propagator propagation.TraceContext

// beginSpan begins what the client sees of us, in the client's trace if it has one.
func (x *exchange) beginSpan(r gateway.Request) {
	if x.m.tracer == nil {
		return
	}
	from := propagator.Extract(ctx, propagation.MapCarrier{"traceparent": r.TraceParent, "tracestate": r.TraceState})
	_, x.span = x.m.tracer.Start(from, x.method, trace.WithSpanKind(trace.SpanKindServer), trace.WithTimestamp(x.born))
}

// beginLeg begins what we see of the server, and returns by which traceparent the
// server continues it.
func (x *exchange) beginLeg() string {
	if x.span == nil {
		return ""
	}
	inner := trace.ContextWithSpan(ctx, x.span)
	inner, x.leg = x.m.tracer.Start(inner, x.method, trace.WithSpanKind(trace.SpanKindClient), trace.WithTimestamp(x.sent))
	out := propagation.MapCarrier{}
	propagator.Inject(inner, out)
	return out["traceparent"]
}

func (x *exchange) endSpans(now time.Time, operation, failed string) {
	if x.span == nil {
		return
	}
	name := x.method
	attrs := []attribute.KeyValue{semconv.McpMethodNameKey.String(x.method), attribute.String("pellucid.server", x.server)}
	if x.tool != "" {
		name += " " + x.tool
		attrs = append(attrs, semconv.GenAIToolName(x.tool))
	}
	if operation != "" {
		attrs = append(attrs, semconv.GenAIOperationNameKey.String(operation))
	}
	if failed != "" {
		attrs = append(attrs, semconv.ErrorTypeKey.String(failed))
	}
	end := func(s trace.Span, at time.Time, by Transport) {
		s.SetName(name)
		s.SetAttributes(attrs...)
		if by != "" {
			s.SetAttributes(semconv.NetworkTransportKey.String(string(by)))
		}
		if failed != "" {
			s.SetStatus(codes.Error, "")
		}
		s.End(trace.WithTimestamp(at))
	}
	if x.leg != nil {
		at := x.answered
		if at.IsZero() {
			at = now
		}
		end(x.leg, at, x.over.server)
	}
	if x.version != "" { // the server may speak another: eras are translated behind the boundary
		x.span.SetAttributes(semconv.McpProtocolVersion(x.version))
	}
	end(x.span, now, x.over.client)
}
