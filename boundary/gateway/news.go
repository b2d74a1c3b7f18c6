// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// news is what is needed to tell a client that lists have changed although the server
// has said nothing: a person has approved or blocked something.
type news struct {
	lists atomic.Uint32 // bits of changing: what the server has lists of
	ready atomic.Bool   // a legacy client has been greeted

	mu      sync.Mutex
	telling bool // a goroutine tells the client
	again   bool // it has to tell it once more
}

// begin reports whether the caller has to tell the client: if it is being told, it is told once more then.
func (n *news) begin() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.again = true
	begin := !n.telling
	n.telling = true
	return begin
}

// next reports whether the client has to be told once more.
func (n *news) next() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.telling, n.again = n.again, false
	return n.telling
}

// changed has the client told of what an Admission has changed. A client that does not read holds up no caller.
func (r *relay) changed() {
	if !r.news.begin() || !r.join() {
		return
	}
	go func() {
		defer r.leave()
		for r.news.next() && r.announceChanges(r.life) == nil {
		}
	}()
}

// greeted notes what a server offers.
func (n *news) greeted(capabilities strictjson.Value) {
	bits := uint32(0)
	for i, name := range changing {
		if capabilities.Get(name).Exists() {
			bits |= 1 << i
		}
	}
	n.lists.Store(bits)
}

// filters are the members of a subscription's filter that ask for a notification.
var filters = [len(changing)]string{"toolsListChanged", "promptsListChanged", "resourcesListChanged"}

// wants are the notifications that a subscription asks for, as bits of changing.
func wants(m *wire.Message) (bits uint32) {
	if m.Method != mcpmsg.Listen {
		return 0
	}
	for i, name := range filters {
		if v := m.Params.Get("notifications").Get(name); v.Kind() == 't' {
			bits |= 1 << i
		}
	}
	return bits
}

// announceChanges tells the client that other items may be seen than before.
func (r *relay) announceChanges(ctx context.Context) error {
	for i, name := range changing {
		method := "notifications/" + name + "/list_changed"
		if r.news.ready.Load() && r.news.lists.Load()&(1<<i) != 0 {
			if err := r.toClient(ctx, wire.NewRequest(wire.ID{}, method, nil)); err != nil {
				return err
			}
		}
		for _, k := range r.calls.listening(1 << i) {
			params := append(k.shown.Append([]byte(`{"_meta":{"`+mcpmsg.KeySubscriber+`":`)), `}}`...)
			m := wire.NewRequest(wire.ID{}, method, params)
			m.Related = k.id
			if err := r.toClient(ctx, m); err != nil {
				return err
			}
		}
	}
	return nil
}

// listening are the subscriptions that want one of the notifications.
func (c *calls) listening(bits uint32) (list []*call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.up {
		if k.wants&bits != 0 && !k.cancelled {
			list = append(list, k)
		}
	}
	return list
}
