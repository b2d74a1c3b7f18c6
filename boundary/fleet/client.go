// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
)

// notification passes a notification of the client on to the servers that it concerns.
func (u *union) notification(m *wire.Message) {
	if m.Method == mcpmsg.Cancelled {
		if id, ok := wire.IDOf(m.Params.Get("requestId")); ok {
			u.cancel(id)
		}
		return
	}
	if !mcpmsg.Union.Method(m.Method) {
		return
	}
	for _, r := range u.addressees(m) {
		r.message(m.Clone())
	}
}

// addressees are the servers that a notification of the client concerns.
func (u *union) addressees(m *wire.Message) (runs []*run) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if m.Method == mcpmsg.Progress {
		token := string(m.Params.Get("progressToken").Raw())
		for _, q := range u.asks {
			if q.token == token && token != "" {
				runs = append(runs, q.run)
			}
		}
		return runs
	}
	u.ready = u.ready || m.Method == mcpmsg.Initialized // in one step: see run.heed
	for _, mem := range u.members {
		if mem.run != nil && mem.run.heeds {
			runs = append(runs, mem.run)
		}
	}
	return runs
}

// cancel gives a turn up, and with it what servers do for it.
func (u *union) cancel(id wire.ID) {
	u.mu.Lock()
	t := u.turns[id]
	u.mu.Unlock()
	if t == nil || t.method == mcpmsg.Initialize || !u.close(t) {
		return
	}
	u.mu.Lock()
	var errands []*errand
	for id, e := range u.pending {
		if e.turn == t {
			errands = append(errands, e)
			delete(u.pending, id)
		}
	}
	u.mu.Unlock()
	for _, e := range errands {
		e.cancel()
	}
}

// cancel tells the server that the client does not wait for the answer any more.
func (e *errand) cancel() {
	u := e.run.m.u
	u.mu.Lock()
	e.void = true
	sent := e.sent
	u.mu.Unlock()
	if !sent { // it is behind the request that the server is told
		return
	}
	e.run.say(own(wire.NewCancellation(e.id, "cancelled", u.era == wire.Modern)))
}

// answered takes the client's answer to a question of a server. It owns m.
func (u *union) answered(m *wire.Message) {
	u.mu.Lock()
	q := u.asks[m.ID]
	delete(u.asks, m.ID)
	if q != nil {
		q.run.asked--
	}
	u.mu.Unlock()
	if q == nil {
		m.Release()
		return
	}
	m.ID, m.Alias = q.id, wire.ID{}
	q.run.message(m)
}

// announce tells the client that lists have changed.
func (u *union) announce(kinds ...string) {
	u.mu.Lock()
	listens := make([]*listen, 0, len(u.listens))
	for l := range u.listens {
		listens = append(listens, l)
	}
	ready := u.ready
	u.mu.Unlock()
	for _, kind := range kinds {
		method := "notifications/" + kind + "/list_changed"
		if u.era == wire.Legacy && ready {
			_ = u.toClient(wire.NewRequest(wire.ID{}, method, nil))
		}
		for _, l := range listens {
			if l.wants(method) {
				_ = u.toClient(l.notice(method))
			}
		}
	}
}
