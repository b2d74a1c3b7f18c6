// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"github.com/pellucid-mcp/pellucid/boundary/policy"
	"github.com/pellucid-mcp/pellucid/boundary/surface"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// maxShadowsTold bounds the lines of log about shadows.
const maxShadowsTold = 50

// compare looks for tools and texts that may be taken for another server's, now that one more
// server has been checked. Each is told once.
func (a *Admissions) compare() {
	select {
	case a.shadow <- struct{}{}:
		defer func() { <-a.shadow }()
	case <-a.ctx.Done():
		return
	}
	servers := a.all()
	all := map[string]*surface.Surface{}
	for name, s := range servers {
		s.mu.Lock()
		if s.surface != nil {
			all[name] = s.surface
		}
		s.mu.Unlock()
	}
	for _, sh := range surface.Shadows(all) {
		held := a.suspend(servers[sh.Server], sh.Place.Key)
		id := string(sh.How) + "\x00" + sh.Server + "\x00" + sh.Place.Key.Name + "\x00" + sh.Other + "\x00" + sh.Tool
		a.mu.Lock()
		fresh := !a.told[id] && len(a.told) < maxShadowsTold
		if fresh {
			a.told[id] = true
		}
		a.mu.Unlock()
		if fresh {
			a.log.Warn("a server's tool or text resembles that of another server: compare both", "how", string(sh.How), "server", sh.Server,
				"item", sh.Place.Key.Kind.String()+" "+finding.Quote(sh.Place.Key.Name), "other", sh.Other, "tool", finding.Quote(sh.Tool), "held", held)
		}
	}
}

// suspend holds an item that may be taken for another server's, if the operator wants that and
// no person has approved the item as it is.
func (a *Admissions) suspend(s *Server, k surface.Key) (held bool) {
	c := s.config()
	if !c.Settings.HoldShadows || c.Settings.Mode != policy.Enforce {
		return false
	}
	n, err := a.opt.Pins.Suspend(a.ctx, c.Pin, k)
	if err != nil {
		a.log.Error("an item that resembles that of another server could not be held", "server", c.Name, "error", err)
	}
	if n > 0 {
		if t, err := s.pin(a.ctx); err == nil {
			s.put(t)
		}
	}
	return n > 0
}
