// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/pellucid-mcp/pellucid/boundary/fleet"
	"github.com/pellucid-mcp/pellucid/record/sequence"
)

// The header of every page says how the gateway is. The store is asked at most once in headerEvery, for all pages together, and
// not longer than headerLimit, so that a store that is away delays no page by more.
const (
	headerEvery = 2 * time.Second
	headerLimit = time.Second
)

// A lineView is one fact of the header. Bad has a mark: something has to be done.
type lineView struct {
	Word Own
	To   Path // "": nowhere
	Bad  bool
}

// An overall is what the store says for the header.
type overall struct {
	logged  bool // there is a log; false: no ledger, or no record yet
	logErr  error
	size    int64
	stopped bool
	still   time.Duration
	heldErr error
	held    []Waiting
}

// A header remembers it.
type header struct {
	mu   sync.Mutex
	at   time.Time // zero: to be read
	last overall
}

// forget has the next page ask the store: something was decided.
func (h *header) forget() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.at = time.Time{}
}

// overall is what the store says now, or said a moment ago.
func (c *Console) overall(ctx context.Context) overall {
	h := &c.header
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	if age := now.Sub(h.at); age >= 0 && age < headerEvery {
		return h.last
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), headerLimit)
	defer stop()
	h.last, h.at = overall{}, now
	if c.opt.Held != nil {
		h.last.held, h.last.heldErr = c.opt.Held(ctx)
	}
	if l := c.opt.Ledger; l != nil {
		head, err := l.Head(ctx)
		h.last.logged, h.last.size, h.last.stopped = err == nil, head.Size, head.Stop != nil
		if err == nil {
			h.last.still, err = l.Still(ctx, now)
		}
		if err != nil && !errors.Is(err, sequence.ErrNoLog) {
			h.last.logErr = err
		}
	}
	return h.last
}

// lines are the facts of the header for a person.
func (c *Console) lines(q *request) []lineView {
	all := c.overall(q.Context())
	return append(c.serversLine(q), c.logLine(&all), c.heldLine(q, &all))
}

// serversLine counts the servers of this gateway that the person sees; nothing where there is no gateway.
func (c *Console) serversLine(q *request) []lineView {
	if c.opt.Health == nil {
		return nil
	}
	n := map[fleet.State]int{}
	for _, h := range c.opt.Health() {
		if q.who.Sees(h.Name) {
			n[h.State]++
		}
	}
	out := lineView{Word: "no server", To: pathTo("servers"), Bad: n[fleet.Down]+n[fleet.Rejected] > 0}
	for _, s := range []struct {
		state fleet.State
		word  Own
	}{{fleet.Up, "up"}, {fleet.Idle, "idle"}, {fleet.Down, "down"}, {fleet.Rejected, "rejected"}} {
		switch {
		case n[s.state] == 0:
		case out.Word == "no server":
			out.Word = things(n[s.state], "server") + " " + s.word
		default:
			out.Word += ", " + count(int64(n[s.state])) + " " + s.word
		}
	}
	return []lineView{out}
}

func (c *Console) logLine(all *overall) lineView {
	out := lineView{To: pathTo(findPath)}
	switch {
	case c.opt.Ledger == nil:
		return lineView{Word: "no log is kept"}
	case all.logErr != nil:
		return lineView{Word: "log \u2013", Bad: true}
	case !all.logged:
		out.Word = "log: no record yet"
	case all.stopped:
		out.Word, out.Bad = "log stopped at "+counted(all.size, "record"), true
	case all.still > 0:
		out.Word, out.Bad = "log stands still for "+lasts(all.still), true
	default:
		out.Word = counted(all.size, "record") + " signed"
	}
	return out
}

func (c *Console) heldLine(q *request, all *overall) lineView {
	if c.opt.Held == nil || all.heldErr != nil {
		return lineView{Word: "held \u2013", Bad: all.heldErr != nil}
	}
	n := 0
	for _, x := range all.held {
		if q.who.Sees(x.Server) {
			n += x.N
		}
	}
	out := lineView{Word: "none held"}
	if n > 0 {
		out.Word = count(int64(n)) + " held"
	}
	if c.opens(q.who, "review") {
		out.To = pathTo("review")
	}
	return out
}
