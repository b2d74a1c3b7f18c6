// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"slices"

	"github.com/pellucid-mcp/pellucid/boundary/policy"
	"github.com/pellucid-mcp/pellucid/boundary/surface"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// maxShadowsTold bounds the shadows that the log names, maxShadowsNamed those that one line does.
const (
	maxShadowsTold  = 500
	maxShadowsNamed = 10
)

// compare looks for tools and texts that may be taken for another server's, now that one more
// server has been checked. The log names each once.
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
	var lines []*shadowLine
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
			lines = addShadow(lines, sh, held)
		}
	}
	for _, l := range lines {
		a.log.Warn("tools or texts of a server resemble those of another server: compare both", "how", l.how, "server", l.server, "other", l.other,
			"items", l.items, "held", l.held, "among_them", l.names)
	}
}

// A shadowLine is the log line about all shadows of one kind between two servers.
type shadowLine struct {
	how, server, other string
	items, held        int
	names              []string
}

func addShadow(lines []*shadowLine, sh surface.Shadow, held bool) []*shadowLine {
	i := slices.IndexFunc(lines, func(l *shadowLine) bool {
		return l.how == string(sh.How) && l.server == sh.Server && l.other == sh.Other
	})
	if i < 0 {
		i, lines = len(lines), append(lines, &shadowLine{how: string(sh.How), server: sh.Server, other: sh.Other})
	}
	l := lines[i]
	l.items++
	if held {
		l.held++
	}
	if len(l.names) < maxShadowsNamed {
		l.names = append(l.names, sh.Place.Key.Kind.String()+" "+finding.Quote(sh.Place.Key.Name)+" like "+finding.Quote(sh.Tool))
	}
	return lines
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
