// SPDX-License-Identifier: Apache-2.0

package guard

// auditLater runs a decision behind the answer's back.
func (g *Guard) auditLater(x *exchange, a *answer) {
	select {
	case g.audits <- struct{}{}:
	default:
		g.counters.exchanged("audit-skipped")
		return
	}
	go func() {
		defer func() { <-g.audits }()
		if g.behind.Err() == nil {
			g.decide(g.behind, x, a, true, true)
		}
	}()
}
