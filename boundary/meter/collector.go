// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/pellucid-mcp/pellucid/platform/backoff"
)

// A collector takes traces: OTLP over HTTP, as protobuf. The library's own client
// brings gRPC along, 11 MB of it, and heeds variables, proxies and redirects: traces
// and the credentials beside them go where the operator has said, and nowhere else.
type collector struct {
	url    string
	header map[string]string
	client *http.Client
}

var _ otlptrace.Client = (*collector)(nil)

// Bounds of an export. What cannot be delivered within them is lost: traces wait
// for nobody.
const (
	exportWait  = 10 * time.Second // for one request
	exportTries = 4
	firstPause  = 500 * time.Millisecond // doubles
	longestRest = 5 * time.Second        // that a collector may ask for
)

func newCollector(url string, header map[string]string) *collector {
	return &collector{url: url, header: header, client: &http.Client{
		Timeout:       exportWait,
		Transport:     &http.Transport{MaxIdleConns: 2, IdleConnTimeout: time.Minute},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

func (c *collector) Start(context.Context) error { return nil }

func (c *collector) Stop(context.Context) error {
	c.client.CloseIdleConnections()
	return nil
}

// UploadTraces sends spans, and once more where the collector asks for it.
func (c *collector) UploadTraces(ctx context.Context, spans []*tracepb.ResourceSpans) error {
	// An ExportTraceServiceRequest is a TracesData in all but name.
	body, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: spans})
	if err != nil {
		return fmt.Errorf("meter: OTLP: %w", err)
	}
	pause := backoff.Waits{First: firstPause, Most: longestRest}
	for try := 1; ; try++ {
		again, rest, err := c.post(ctx, body)
		if err == nil || !again || try == exportTries {
			return err
		}
		if err := backoff.Sleep(ctx, max(pause.Next(), min(rest, longestRest))); err != nil {
			return err
		}
	}
}

// post sends one request. again means that another may fare better, after rest.
//
// spec: OTLP/HTTP "Failures"
func (c *collector) post(ctx context.Context, body []byte) (again bool, rest time.Duration, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return false, 0, fmt.Errorf("meter: OTLP: %w", err)
	}
	for name, value := range c.header {
		req.Header.Set(name, value)
	}
	req.Header.Set("Content-Type", "application/x-protobuf")
	resp, err := c.client.Do(req)
	if err != nil {
		return ctx.Err() == nil, 0, fmt.Errorf("meter: OTLP: %w", err)
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10)) // so that the connection can be used again
	switch resp.StatusCode {
	case http.StatusOK, http.StatusAccepted, http.StatusNoContent:
		return false, 0, nil
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		again = true
	}
	rest = backoff.RetryAfter(resp.Header.Get("Retry-After"), time.Now())
	return again, rest, fmt.Errorf("meter: OTLP: the collector answered with status %d", resp.StatusCode)
}
