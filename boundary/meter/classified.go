// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"github.com/pellucid-mcp/pellucid/boundary/classify"
	"github.com/pellucid-mcp/pellucid/boundary/gateway"
	"github.com/pellucid-mcp/pellucid/text/frame"
)

// Classified counts the verdict of a classifier. A flagged text that no recorded message has, such as a
// description, is not counted: of those no other is told, so that a share of them would always be the whole.
func (m *Meter) Classified(c gateway.Classified) {
	if c.Of == (gateway.ID{}) && c.Flagged() {
		return
	}
	name, mode := frame.Label(c.Name), c.Mode.String()
	m.i.classified.add(1, m.labels.server(c.Server), name, mode, classifiedAs(&c), string(reasonLabel(c.Reason)))
	m.i.questions.add(c.Asked, name, "asked")
	m.i.questions.add(c.Cached, name, "remembered")
	if !c.Dropped && c.Reason != classify.Narrow {
		m.i.classifier.record(c.Latency.Seconds(), name, mode)
	}
}

// classifiedAs is what the verdict came to.
func classifiedAs(c *gateway.Classified) string {
	switch {
	case c.Flagged():
		return "flagged"
	case c.Dropped:
		return "dropped"
	case c.Reason == classify.Narrow:
		return "skipped"
	case c.Reason != classify.Judged:
		return "not_judged"
	}
	return "clean"
}

// reasonLabel is the reason if it is one of package classify's.
func reasonLabel(r classify.Reason) classify.Reason {
	switch r {
	case classify.Judged, classify.Timeout, classify.Unavailable, classify.Malformed, classify.Contrary, classify.Broken,
		classify.OverBudget, classify.Narrow, classify.TooLong, classify.Canceled:
		return r
	}
	return "other"
}
