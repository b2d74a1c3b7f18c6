// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"context"

	"github.com/pellucid-mcp/pellucid/boundary/gateway"
	"github.com/pellucid-mcp/pellucid/boundary/policy"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/frame"
)

// ctx is of no consequence to a counter.
var ctx = context.Background()

func (c counter) add(n int, values ...string) {
	if n > 0 {
		c.Add(ctx, int64(n), c.sets.with(c.names, array(values)))
	}
}

func (g gauge) add(n int64, values ...string) { g.Add(ctx, n, g.sets.with(g.names, array(values))) }

func (h histogram) record(v float64, values ...string) {
	h.Record(ctx, v, h.sets.with(h.names, array(values)))
}

func array(values []string) (out [5]string) {
	copy(out[:], values)
	return out
}

// Record counts a decision. It never fails.
func (m *Meter) Record(d gateway.Decision) error {
	server := m.labels.server(d.Server)
	tool := m.labels.tool(d.Server, d.Tool)
	m.i.decisions.add(max(1, d.Repeated), server, frame.Label(d.Method), frame.Label(d.Kind), frame.Label(string(d.Verdict)))
	for _, c := range d.Findings {
		treated := c.N - countOf(d.Withheld, c.Code) // what was withheld was found as well
		m.i.findings.add(treated, server, "treated", codeLabel(c.Code))
		switch {
		case isToken(c.Code):
			m.i.tokens.add(treated, server, tool, codeLabel(c.Code), "treated")
		case c.Code == finding.AmbiguousToken:
			m.i.tokens.add(treated, server, tool, codeLabel(c.Code), "left")
		}
	}
	for _, c := range d.NotInspected {
		m.i.findings.add(c.N, server, "not_inspected", codeLabel(c.Code))
	}
	for _, c := range d.Withheld {
		m.i.findings.add(c.N, server, "withheld", codeLabel(c.Code))
		if isToken(c.Code) {
			m.i.tokens.add(c.N, server, tool, codeLabel(c.Code), "withheld")
		}
	}
	if code := rejection(d); code != "" {
		m.i.rejections.add(max(1, d.Repeated), server, tool, string(code))
	}
	if d.Released != "" {
		m.i.released.add(1, server)
	}
	return nil
}

func countOf(list []policy.Count, code finding.Code) (n int) {
	for _, c := range list {
		if c.Code == code {
			n += c.N
		}
	}
	return n
}

// isToken reports whether what was found speaks to a model as its chat template
// does: any hit is an attempt at injection.
func isToken(c finding.Code) bool {
	switch c {
	case finding.ControlToken, finding.EncodedToken, finding.RoleMarker, finding.SplitAcrossBlocks:
		return true
	}
	return false
}

// rejection is why a message was refused as a whole for its shape, or "".
func rejection(d gateway.Decision) finding.Code {
	if d.Verdict != gateway.Withheld && d.Verdict != gateway.Dropped {
		return ""
	}
	for _, c := range d.Withheld {
		switch c.Code {
		case finding.ShapeInvalid, finding.SchemaInvalid, finding.SchemaBroken, finding.SchemaUnverifiable, finding.NotStructured,
			finding.Misshapen, finding.CaseVariant, finding.Violation:
			return c.Code
		}
	}
	return ""
}
