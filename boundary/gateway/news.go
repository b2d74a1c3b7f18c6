// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
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

// tell tells the client that other items may be seen than before. It returns what is
// closed when that changes again; nil if the client cannot be told.
func (r *relay) tell(ctx context.Context) (changed <-chan struct{}) {
	changed = r.cfg.Admission.Changed() // first: what changes meanwhile is told once more
	for i, name := range changing {
		method := "notifications/" + name + "/list_changed"
		if r.news.ready.Load() && r.news.lists.Load()&(1<<i) != 0 {
			if r.toClient(ctx, wire.NewRequest(wire.ID{}, method, nil)) != nil {
				return nil
			}
		}
		for _, k := range r.calls.listening(1 << i) {
			params := append(k.shown.Append([]byte(`{"_meta":{"`+mcpmsg.KeySubscriber+`":`)), `}}`...)
			m := wire.NewRequest(wire.ID{}, method, params)
			m.Related = k.id
			if r.toClient(ctx, m) != nil {
				return nil
			}
		}
	}
	return changed
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
