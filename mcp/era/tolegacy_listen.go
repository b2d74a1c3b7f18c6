// SPDX-License-Identifier: Apache-2.0

package era

import (
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// A subscription is a modern client's subscriptions/listen before a legacy server.
type subscription struct {
	id                        wire.ID // the client's
	tools, prompts, resources bool
	uris                      []string
	waits                     int // answers to resources/subscribe under way
	acked                     bool
}

const (
	maxListens = 64
	maxURIs    = 1024 // of one listen, and of all
	maxURI     = 8 << 10
)

// listen begins a subscription of a modern client. It subscribes to each resource at the server, as far
// as the server declares that it can.
func (t *toLegacy) listen(m *wire.Message, now time.Time) {
	filter := m.Params.Get("notifications")
	wanted := filter.Get("resourceSubscriptions")
	switch {
	case filter.Kind() != '{':
		t.fail(m.ID, errParams)
		return
	case len(t.listens) >= maxListens || wanted.Len() > maxURIs || len(t.uris)+wanted.Len() > maxURIs || t.listens[m.ID] != nil:
		t.fail(m.ID, errBusy)
		return
	}
	l := &subscription{id: m.ID}
	want := func(name string, capability ...string) bool {
		return filter.Get(name).Kind() == 't' && t.id.can(capability...)
	}
	l.tools = want("toolsListChanged", "tools", "listChanged")
	l.prompts = want("promptsListChanged", "prompts", "listChanged")
	l.resources = want("resourcesListChanged", "resources", "listChanged")
	t.listens[m.ID] = l
	if t.id.can("resources", "subscribe") {
		for v := range wanted.Elements() {
			if uri := clone(v); uri != "" && len(uri) <= maxURI {
				t.subscribe(l, uri, now)
			}
		}
	}
	t.acknowledge(l)
}

// subscribe lets the server tell of uri, if it does not do so already.
func (t *toLegacy) subscribe(l *subscription, uri string, now time.Time) {
	for _, had := range l.uris {
		if had == uri {
			return
		}
	}
	t.uris[uri]++
	if t.uris[uri] > 1 {
		l.uris = append(l.uris, uri)
		return
	}
	l.waits++
	t.ask(mcpmsg.Subscribe, uriParams(uri), wire.Route{}, now, func(m *wire.Message, now time.Time) {
		l.waits--
		if m != nil && m.Kind == wire.Response && t.listens[l.id] == l {
			l.uris = append(l.uris, uri)
		} else {
			t.drop(uri, m != nil && m.Kind == wire.Response)
		}
		t.acknowledge(l)
	})
}

func uriParams(uri string) []byte { return append(append([]byte(`{"uri":`), quoted(uri)...), '}') }

// drop ends one listen's interest in uri.
func (t *toLegacy) drop(uri string, tell bool) {
	if t.uris[uri]--; t.uris[uri] > 0 {
		return
	}
	delete(t.uris, uri)
	if tell {
		t.ask(mcpmsg.Unsubscribe, uriParams(uri), wire.Route{}, t.o.now(), func(*wire.Message, time.Time) {})
	}
}

// acknowledge tells the client what it will hear of, once that is known.
//
// spec: 2026-07-28: it comes before any notification of the subscription.
func (t *toLegacy) acknowledge(l *subscription) {
	if l.waits > 0 || l.acked || t.listens[l.id] != l {
		return
	}
	l.acked = true
	dst := []byte(`{"notifications":{`)
	n := len(dst)
	member := func(name string, on bool) {
		if on {
			dst = append(append(append(dst, '"'), name...), `":true,`...)
		}
	}
	member("toolsListChanged", l.tools)
	member("promptsListChanged", l.prompts)
	member("resourcesListChanged", l.resources)
	if len(l.uris) > 0 {
		dst = append(dst, `"resourceSubscriptions":[`...)
		for _, uri := range l.uris {
			dst = append(append(dst, quoted(uri)...), ',')
		}
		dst = append(dst[:len(dst)-1], "],"...)
	}
	if len(dst) > n {
		dst = dst[:len(dst)-1]
	}
	dst = append(append(dst, `},"_meta":`...), subscriptionMeta(l.id)...)
	t.notify(mcpmsg.Acknowledged, append(dst, '}'), l.id)
	if !l.tools && !l.prompts && !l.resources && len(l.uris) == 0 { // there is nothing to wait for
		delete(t.listens, l.id)
		t.answer(l.id, append(append([]byte(`{"resultType":"complete","_meta":`), subscriptionMeta(l.id)...), '}'))
	}
}

func subscriptionMeta(id wire.ID) []byte {
	return append(id.Append([]byte(`{"`+mcpmsg.KeySubscriber+`":`)), '}')
}

// unlisten ends a subscription that its client has cancelled.
func (t *toLegacy) unlisten(l *subscription, _ time.Time) {
	delete(t.listens, l.id)
	for _, uri := range l.uris {
		t.drop(uri, true)
	}
	l.uris = nil
}

// changed notifies every listen that has subscribed to it.
func (t *toLegacy) changed(m *wire.Message) {
	uri := m.Params.Get("uri").Text()
	exact := m.Method == mcpmsg.ResourceUpdated && t.uris[uri] > 0
	for _, l := range t.listens {
		if l.acked && l.wants(m.Method, uri, exact) {
			t.changedFor(l, m)
		}
	}
	if t.native {
		t.related(m)
		t.pass(m)
		return
	}
	m.Release()
}

// wants reports whether the subscription asks for a notification of that method about uri. exact: only
// uri itself counts, and not what lies below it.
func (l *subscription) wants(method, uri string, exact bool) bool {
	switch method {
	case mcpmsg.ToolsChanged:
		return l.tools
	case mcpmsg.PromptsChanged:
		return l.prompts
	case mcpmsg.ResourcesChanged:
		return l.resources
	}
	for _, u := range l.uris {
		// spec: it may be a part of what was subscribed to.
		if u == uri || !exact && u != "" && strings.HasPrefix(uri, u) {
			return true
		}
	}
	return false
}

// changedFor passes the notification m to the client of a subscription, with its id.
func (t *toLegacy) changedFor(l *subscription, m *wire.Message) {
	if !m.Params.Exists() {
		t.notify(m.Method, append(append([]byte(`{"_meta":`), subscriptionMeta(l.id)...), '}'), l.id)
		return
	}
	var e strictjson.Edits
	if meta := m.Params.Get("_meta"); meta.Kind() == '{' {
		e.Append(meta, mcpmsg.KeySubscriber, l.id.Append(nil))
	} else {
		e.Append(m.Params, "_meta", subscriptionMeta(l.id))
	}
	if n, err := m.Edited(&e); err == nil {
		n.Related = l.id
		t.pass(n)
	}
}
