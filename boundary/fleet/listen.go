// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"time"

	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/platform/backoff"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// listen is a subscription of a modern client, and those that go with it to the
// servers.
type listen struct {
	t     *turn
	flags map[string]bool // members of the filter, by name
	meta  []byte          // raw
	uris  map[*member][]string
	shown map[resource]string // how the client sees them
}

// filters are the members of a filter, by the notification that they ask for.
var filters = map[string]string{
	mcpmsg.ToolsChanged:     "toolsListChanged",
	mcpmsg.PromptsChanged:   "promptsListChanged",
	mcpmsg.ResourcesChanged: "resourcesListChanged",
}

const maxListens = 256

func (l *listen) wants(method string) bool { return l.flags[filters[method]] }

// notice is a notification of ours in the subscription.
func (l *listen) notice(method string) *wire.Message {
	params := append(l.t.shown.Append([]byte(`{"_meta":{"`+mcpmsg.KeySubscriber+`":`)), `}}`...)
	m := wire.NewRequest(wire.ID{}, method, params)
	m.Related = l.t.id
	return m
}

// listen begins a subscription. It is acknowledged at once, since lists change here
// also when servers come and go, and then passed on to every server.
func (u *union) listen(t *turn, m *wire.Message) error {
	l := &listen{t: t, flags: map[string]bool{}, meta: metaOf(m), uris: map[*member][]string{}, shown: map[resource]string{}}
	filter := m.Params.Get("notifications")
	for _, name := range filters {
		l.flags[name], _ = filter.Get(name).Bool()
	}
	var uris []string
	for uri := range filter.Get("resourceSubscriptions").Elements() {
		if len(uris) < maxWatched && uri.Kind() == '"' {
			uris = append(uris, clone(uri.Text()))
		}
	}
	m.Release()
	var granted []string
	for _, uri := range uris {
		if of := u.findOwner(t.ctx, uri, l.meta); of.m != nil {
			l.uris[of.m], l.shown[of] = append(l.uris[of.m], of.uri), uri
			granted = append(granted, uri)
		}
	}
	u.mu.Lock()
	full := len(u.listens) >= maxListens
	if !full {
		u.listens[l] = true
	}
	u.mu.Unlock()
	if full {
		return u.refuse(t, wire.CodeQueued, textBusy)
	}
	context.AfterFunc(t.ctx, func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		delete(u.listens, l)
	})
	params := append(l.t.shown.Append([]byte(`{"_meta":{"`+mcpmsg.KeySubscriber+`":`)), `},"notifications":`...)
	params = append(l.filter(params, granted), '}')
	ack := wire.NewRequest(wire.ID{}, mcpmsg.Acknowledged, params)
	ack.Related = t.id
	if err := u.toClient(ack); err != nil {
		return err
	}
	for _, mem := range u.all() {
		f := &follower{u: u, l: l, mem: mem, pause: backoff.Waits{First: 2 * u.f.opt.firstWait, Most: u.f.opt.mostWait}}
		u.work.Go(f.follow)
	}
	return nil
}

// filter appends a SubscriptionFilter.
func (l *listen) filter(dst []byte, uris []string) []byte {
	dst = append(dst, '{')
	for _, method := range [...]string{mcpmsg.ToolsChanged, mcpmsg.PromptsChanged, mcpmsg.ResourcesChanged} {
		if l.wants(method) {
			dst = append(strictjson.AppendQuote(dst, filters[method]), ":true,"...)
		}
	}
	if uris != nil {
		dst = append(strictjson.AppendStrings(append(dst, `"resourceSubscriptions":`...), uris), ',')
	}
	if dst[len(dst)-1] == ',' {
		dst = dst[:len(dst)-1]
	}
	return append(dst, '}')
}

// follower keeps up the subscription to one server, until the client's ends.
type follower struct {
	u     *union
	l     *listen
	mem   *member
	pause backoff.Waits
	began time.Time
}

// follow subscribes.
func (f *follower) follow() {
	f.began = time.Now()
	params := f.l.filter([]byte(`{"notifications":`), f.l.uris[f.mem])
	if f.l.meta != nil {
		params = append(append(params, `,"_meta":`...), f.l.meta...)
	}
	m := own(wire.NewRequest(wire.IntID(0), mcpmsg.Listen, append(params, '}')))
	r, err := f.mem.awake(f.l.t.ctx)
	if m == nil || err != nil || !r.send(&errand{turn: f.l.t, answer: f.answered, listen: f.l}, m) {
		f.again()
	}
}

// answered takes the end of the subscription.
func (f *follower) answered(m *wire.Message) {
	code, _ := m.Error.Get("code").Int64()
	if m.Kind == wire.ErrorResponse && !m.Local && (code == wire.CodeNoMethod || code == wire.CodeParams) {
		return // it has nothing to tell
	}
	f.again()
}

// again subscribes after a pause.
func (f *follower) again() {
	if time.Since(f.began) >= steady {
		f.pause.Reset()
	}
	t := time.AfterFunc(f.pause.Next(), func() { f.u.during(f.follow) })
	context.AfterFunc(f.l.t.ctx, func() { t.Stop() })
}

// during does work in this goroutine, unless the session is about to end.
func (u *union) during(work func()) {
	u.mu.Lock()
	over := u.over || u.ctx.Err() != nil
	if !over {
		u.work.Add(1)
	}
	u.mu.Unlock()
	if !over {
		defer u.work.Done()
		work()
	}
}

// listening are the subscriptions that want a notification.
func (u *union) listening(method string) (list []*listen) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for l := range u.listens {
		if l.wants(method) {
			list = append(list, l)
		}
	}
	return list
}

// subscribed passes on what came in a subscription to a server.
func (r *run) subscribed(m *wire.Message, sub strictjson.Value) error {
	id, _ := wire.IDOf(sub)
	u := r.m.u
	u.mu.Lock()
	e := u.pending[id]
	u.mu.Unlock()
	if e == nil || e.run != r || e.listen == nil || m.Method == mcpmsg.Acknowledged {
		return nil
	}
	readdress(m, sub, e.turn.shown)
	if uri := m.Params.Get("uri"); m.Method == mcpmsg.ResourceUpdated {
		var edits strictjson.Edits
		if shown := e.listen.shown[resource{r.m, uri.Text()}]; shown != "" && shown != uri.Text() {
			edits.ReplaceText(uri, shown)
		}
		_ = m.Edit(&edits) // a quoted string is strict JSON
	}
	m.Related = e.turn.id
	return u.toClient(m)
}
