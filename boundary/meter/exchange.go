// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"errors"
	"time"

	"go.opentelemetry.io/otel/semconv/v1.41.0/mcpconv"

	"github.com/pellucid-mcp/pellucid/boundary/gateway"
	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
)

// Session counts a session with a server.
func (m *Meter) Session(server string) (ended func(error)) {
	server = m.labels.server(server)
	begin := time.Now()
	m.i.sessions.add(1, server)
	return func(err error) {
		m.i.sessions.add(-1, server)
		m.i.session.record(time.Since(begin).Seconds(), server, sessionError(err))
	}
}

// sessionError is the class of what ended a session.
func sessionError(err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, gateway.ErrUpstreamGone):
		return "server_gone"
	case errors.Is(err, gateway.ErrFrontBroken):
		return "client_gone"
	}
	return "_OTHER"
}

// exchange is one request on its way. Its times are in the order of its methods.
type exchange struct {
	m              *Meter
	server, method string
	tool           string
	born, sent     time.Time
	answered       time.Time
}

// Request counts a request of a client.
func (m *Meter) Request(r gateway.Request) gateway.Exchange {
	x := &exchange{m: m, server: m.labels.server(r.Server), method: r.Method, born: time.Now()}
	m.i.requests.add(1, x.server)
	m.i.traffic.add(r.Bytes, x.server, "client")
	return x
}

// Sent begins the server's share of the time.
func (x *exchange) Sent(tool string) {
	if x.method == mcpmsg.CallTool {
		x.tool = x.m.labels.tool(x.server, tool)
	}
	x.sent = time.Now()
}

// Answered ends it.
func (x *exchange) Answered(size int) {
	x.answered = time.Now()
	x.m.i.traffic.add(size, x.server, "server")
}

// Done counts the request.
func (x *exchange) Done(o gateway.Outcome, size int) {
	now := time.Now()
	x.m.i.requests.add(-1, x.server)
	x.m.i.traffic.add(size, x.server, "delivered")
	operation := ""
	if x.method == mcpmsg.CallTool {
		operation = string(mcpconv.GenAIOperationNameExecuteTool)
	}
	failed := ""
	if o != gateway.OutcomeOK {
		failed = string(o)
	}
	whole := now.Sub(x.born)
	x.m.i.operation.record(whole.Seconds(), x.server, x.method, x.tool, operation, failed)
	if !x.sent.IsZero() && !x.answered.IsZero() {
		theirs := x.answered.Sub(x.sent)
		x.m.i.upstream.record(theirs.Seconds(), x.server, x.method, x.tool, operation, failed)
		x.m.i.added.record((whole - theirs).Seconds(), x.server, x.method)
	}
}
