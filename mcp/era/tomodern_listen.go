// SPDX-License-Identifier: Apache-2.0

package era

import (
	"time"

	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// A stream is a subscriptions/listen of our own before a modern server: one for
// the lists, and one for each resource that the client has subscribed to.
type stream struct {
	id      wire.ID
	uri     string
	filter  []byte
	waiting []wire.ID // requests of the client that the acknowledgement answers
	live    bool      // acknowledged
	due     time.Time // for that
	again   time.Time // to be opened once more
	tries   int
}

const (
	maxStreams = 128
	maxTries   = 6
	firstWait  = time.Second // before a stream is opened once more; it doubles
)

// watchLists lets the server tell of changes in its lists, as a legacy server does unasked.
func (t *toModern) watchLists(now time.Time) {
	if t.lists != nil {
		return
	}
	dst := []byte{'{'}
	for _, c := range [...][2]string{{"tools", "toolsListChanged"}, {"prompts", "promptsListChanged"}, {"resources", "resourcesListChanged"}} {
		if t.id.can(c[0], "listChanged") {
			dst = append(append(append(dst, '"'), c[1]...), `":true,`...)
		}
	}
	if len(dst) == 1 {
		return
	}
	dst[len(dst)-1] = '}'
	t.lists = &stream{filter: dst}
	t.open(t.lists, now)
}

func (t *toModern) open(l *stream, now time.Time) {
	meta := t.meta
	meta.level = nil
	params := meta.alone()
	params = append(append(append(params[:len(params)-1], `,"notifications":`...), l.filter...), '}')
	l.live, l.due = false, now.Add(t.o.Patience)
	l.id = t.ask(mcpmsg.Listen, params, wire.Route{Version: modernVersion}, now, nil)
	t.listens[l.id] = l
}

func (t *toModern) reopen(l *stream, now time.Time) {
	delete(t.listens, l.id)
	t.open(l, now)
}

// subscribe takes resources/subscribe of a legacy client. Each URI gets a subscription of its own at the
// server, and the request is answered when the server has acknowledged it.
func (t *toModern) subscribe(m *wire.Message, now time.Time) {
	uri := clone(m.Params.Get("uri"))
	l := t.byURI[uri]
	switch {
	case t.id != nil && !t.id.can("resources", "subscribe"):
		t.fail(m.ID, errNoMethod)
	case uri == "" || len(uri) > maxURI:
		t.fail(m.ID, errParams)
	case l != nil && l.live:
		t.answer(m.ID, []byte("{}"))
	case l != nil && len(l.waiting) < maxHeld:
		l.waiting = append(l.waiting, m.ID)
	case l != nil, len(t.byURI) >= maxStreams:
		t.fail(m.ID, errBusy)
	default:
		filter := append(append([]byte(`{"resourceSubscriptions":[`), quoted(uri)...), "]}"...)
		l = &stream{uri: uri, filter: filter, waiting: []wire.ID{m.ID}}
		t.byURI[uri] = l
		t.open(l, now)
	}
}

func (t *toModern) unsubscribe(m *wire.Message) {
	l := t.byURI[m.Params.Get("uri").Text()]
	if l != nil {
		t.cancel(l.id, modernVersion)
		t.close(l, errUnsubscribed)
	}
	t.answer(m.ID, []byte("{}"))
}

// close forgets a stream and tells who waits for its beginning.
func (t *toModern) close(l *stream, f *fault) {
	delete(t.listens, l.id)
	if t.byURI[l.uri] == l {
		delete(t.byURI, l.uri)
	}
	for _, id := range l.waiting {
		t.fail(id, f)
	}
	l.waiting = nil
}

// unanswered is a stream that was not acknowledged in time.
func (t *toModern) unanswered(l *stream) {
	if l.live {
		return
	}
	t.cancel(l.id, modernVersion)
	t.close(l, errSilent)
}

// ended is a stream that the server has ended, with m or because it is gone. One
// that once worked is opened again, more and more seldom.
func (t *toModern) ended(l *stream, m *wire.Message, now time.Time) {
	worked := l.live
	refused := m != nil && m.Kind == wire.ErrorResponse && !m.Local
	l.live, l.due = false, time.Time{}
	if len(l.waiting) > 0 || refused || !worked && l.tries == 0 || l.tries >= maxTries {
		t.close(l, errUnsubscribed)
		return
	}
	l.again = now.Add(firstWait << l.tries)
	l.tries++
}

// streamOf returns the subscription of this package on whose stream m came; nil if not found.
func (t *toModern) streamOf(m *wire.Message) *stream {
	if l := t.listens[idOf(m.Params.Get("_meta").Get(mcpmsg.KeySubscriber))]; l != nil {
		return l
	}
	if !m.Related.IsZero() {
		return t.listens[m.Related]
	}
	return nil
}

// heard takes a notification from the stream of a subscription that this package has opened.
func (t *toModern) heard(l *stream, m *wire.Message, _ time.Time) {
	switch m.Method {
	case mcpmsg.Acknowledged:
		t.begun(l, m)
	case mcpmsg.ToolsChanged, mcpmsg.PromptsChanged, mcpmsg.ResourcesChanged:
		if l == t.lists {
			l.tries = 0
			t.plain(m)
		}
	case mcpmsg.ResourceUpdated:
		if l.uri != "" {
			l.tries = 0
			t.plain(m)
		}
	case mcpmsg.LogMessage:
		t.plain(m)
	}
	m.Release()
}

// begun takes the server's acknowledgement.
func (t *toModern) begun(l *stream, m *wire.Message) {
	if l.uri != "" {
		accepted := false
		for v := range m.Params.Get("notifications").Get("resourceSubscriptions").Elements() {
			accepted = accepted || v.Text() == l.uri
		}
		if !accepted {
			t.cancel(l.id, modernVersion)
			t.close(l, errUnsubscribed)
			return
		}
	}
	l.live, l.due = true, time.Time{}
	for _, id := range l.waiting {
		t.answer(id, []byte("{}"))
	}
	l.waiting = nil
}

// plain gives the client a notification without the mark of its subscription.
func (t *toModern) plain(m *wire.Message) {
	if !m.Params.Exists() {
		t.notify(m.Method, nil, wire.ID{})
		return
	}
	var e strictjson.Edits
	meta := m.Params.Get("_meta")
	if e.Remove(meta.Get(mcpmsg.KeySubscriber)); meta.Len() == 1 && e.Len() == 1 {
		e.Remove(meta)
	}
	if n, err := m.Edited(&e); err == nil {
		n.Related = wire.ID{}
		t.pass(n)
	}
}
