// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/pellucid-mcp/pellucid/boundary/gateway"
	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
)

// union is one client and all servers, each behind a gateway of its own. It is the client's
// Receiver: a request goes to its server's gateway in the goroutine that has read it, and
// messages of the servers go to the client in the goroutines that have read them. Only the
// goroutine of a request that needs an answer of a server first waits for that server.
type union struct {
	f         *Fleet
	front     wire.Conn
	era       wire.Era
	principal string
	may       func(server string) bool
	counts    gateway.Counts // of what the client asks of all servers
	ctx       context.Context
	stop      context.CancelFunc
	ended     func(error)
	work      sync.WaitGroup

	mu      sync.Mutex
	failure error // set once the client can no longer be written to
	news    news
	members []*member // in the order of the configuration
	last    int64
	pending map[wire.ID]*errand
	turns   map[wire.ID]*turn // the client's requests under way
	lastAsk int64
	asks    map[wire.ID]*question // the servers' requests to the client
	listens map[*listen]bool
	places  places
	hello   []byte // params of initialize; nil before it
	ready   bool   // notifications/initialized has come
	level   []byte // params of the last logging/setLevel
	over    bool   // the session has ended: no run is begun any more
}

// news is the state of the notification that the list of servers has changed. telling: a goroutine
// is sending it. again: the list has changed once more meanwhile.
type news struct{ telling, again bool }

// turn is a request of the client.
type turn struct {
	id     wire.ID
	shown  wire.ID // how the client spells it
	method string
	ctx    context.Context
	stop   context.CancelFunc
}

// errand is a request to a server.
type errand struct {
	id     wire.ID
	run    *run
	turn   *turn               // the request of the client that the answer belongs to
	answer func(*wire.Message) // takes the answer; nil: it goes to the client unchanged
	listen *listen
	sent   bool // the server's gateway has it; guarded by u.mu
	void   bool // it is to be cancelled once it is sent; guarded by u.mu
}

// question is a request of a server to the client.
type question struct {
	run   *run
	id    wire.ID // of the request, as the server's gateway spells it
	token string  // raw
}

// maxTurns bounds the client's requests under way.
const maxTurns = 4096

// StartAll begins to relay between a client and all servers that it may see, as if they
// were one. ended is told once why that is over: the client is gone (nil), the Fleet is closed
// (ErrNoServer), or ctx has ended.
func (f *Fleet) StartAll(ctx context.Context, c Client, ended func(error)) {
	if !f.begin() {
		c.Conn.Close()
		ended(ErrNoServer)
		return
	}
	if c.May == nil {
		c.May = func(string) bool { return true }
	}
	u := &union{f: f, front: c.Conn, era: c.Era, principal: c.Principal, may: c.May, pending: map[wire.ID]*errand{}, turns: map[wire.ID]*turn{},
		asks: map[wire.ID]*question{}, listens: map[*listen]bool{}, places: newPlaces(), lastAsk: gateway.FirstQuestion()}
	u.ctx, u.stop = context.WithCancel(ctx)
	forget := context.AfterFunc(f.ctx, u.stop)
	u.ended = func(err error) {
		forget()
		switch {
		case err == nil:
		case f.ctx.Err() != nil:
			err = ErrNoServer
		case ctx.Err() != nil:
			err = ctx.Err()
		}
		ended(err)
		f.work.Done()
	}
	f.mu.Lock()
	f.unions[u] = true
	f.mu.Unlock()
	u.update(f.all())
	context.AfterFunc(u.ctx, func() { u.front.Close() })
	u.front.Start(u)
}

// Ended implements wire.Receiver.
func (u *union) Ended(err error) {
	go func() { // gateways may have answers to give
		u.finish(errors.Is(err, io.EOF))
		u.mu.Lock()
		why := u.failure
		u.mu.Unlock()
		if why == nil && !errors.Is(err, io.EOF) {
			why = fmt.Errorf("fleet: client gone: %w", err)
		}
		u.ended(why)
	}()
}

// finish ends every gateway. They may answer what is under way, where the client has only
// closed its side.
func (u *union) finish(drain bool) {
	u.f.mu.Lock()
	delete(u.f.unions, u)
	u.f.mu.Unlock()
	u.mu.Lock()
	u.over = true
	var runs []*run
	for _, m := range u.members {
		if m.run != nil {
			runs = append(runs, m.run)
		}
	}
	u.mu.Unlock()
	for _, r := range runs {
		r.finish()
	}
	for _, r := range runs {
		if !drain {
			break
		}
		select {
		case <-r.dead:
		case <-u.ctx.Done():
		}
	}
	u.stop()
	u.front.Close()
	u.work.Wait()
}

// changed makes the members those that the Fleet has by now, and tells the client. It does
// not wait for it.
func (u *union) changed() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.news.again = true
	if u.over || u.news.telling {
		return
	}
	u.news.telling = true
	u.work.Go(func() {
		for u.more() {
			u.update(u.f.all())
			u.announce(listed[:]...)
		}
	})
}

// more reports whether there is news.
func (u *union) more() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.news.telling, u.news.again = u.news.again, false
	return u.news.telling
}

// update makes the members those of list.
func (u *union) update(list []*upstream) {
	u.mu.Lock()
	defer u.mu.Unlock()
	old := u.members
	u.members = nil
	for _, up := range list {
		if !u.may(up.Name) {
			continue
		}
		i := slices.IndexFunc(old, func(m *member) bool { return m.up.condition == up.condition })
		if i < 0 {
			u.members = append(u.members, newMember(u, up))
			continue
		}
		old[i].up, old[i].prefix = up, prefixOf(&up.Server)
		u.members = append(u.members, old[i])
	}
	u.places.keep(u.members)
}

// all returns the members.
func (u *union) all() []*member {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.members
}

// Violation implements wire.Receiver.
func (u *union) Violation(v *wire.Violation) {
	if v.Kind != wire.Notification && v.Kind != wire.Response && v.Kind != wire.ErrorResponse {
		_ = u.toClient(refusal(v.ID, wire.ID{}, v.Code, "pellucid: "+v.Reason))
	}
}

// toClient tells the client. An error ends the session.
func (u *union) toClient(out *wire.Message) error {
	err := u.front.Write(u.ctx, out)
	if err == nil {
		return nil
	}
	err = fmt.Errorf("fleet: client gone: %w", err)
	u.mu.Lock()
	if u.failure == nil && !u.over {
		u.failure = err
	}
	u.mu.Unlock()
	u.stop()
	return err
}

// Message implements wire.Receiver.
func (u *union) Message(m *wire.Message) {
	switch m.Kind {
	case wire.Request:
		_ = u.request(m) // an error has ended the session
	case wire.Notification:
		u.notification(m)
		m.Release()
	default:
		u.answered(m)
	}
}

// request begins a turn. It owns m.
func (u *union) request(m *wire.Message) error {
	t := &turn{id: m.ID, shown: m.ID, method: m.Method}
	if !m.Alias.IsZero() {
		t.shown = m.Alias
	}
	t.ctx, t.stop = context.WithCancel(u.ctx)
	u.mu.Lock()
	_, taken := u.turns[t.id]
	full := len(u.turns) >= maxTurns
	if !taken && !full {
		u.turns[t.id] = t
	}
	u.mu.Unlock()
	switch {
	case taken:
		t.stop()
		return u.toClient(refusal(t.id, t.shown, wire.CodeInvalid, textDuplicate))
	case full:
		t.stop()
		return u.toClient(refusal(t.id, t.shown, wire.CodeQueued, textBusy))
	}
	return u.dispatch(t, m)
}

// dispatch gives a request of the client to the part of the union that answers it: the union itself, all
// servers (lists), or the one server that the tool, prompt, URI or task belongs to.
func (u *union) dispatch(t *turn, m *wire.Message) error {
	if u.era == wire.Legacy && m.Method != mcpmsg.Ping && !u.greeted(m) {
		m.Release()
		return u.refuse(t, wire.CodeInvalid, textOrder)
	}
	if !mcpmsg.Union.Method(m.Method) {
		m.Release()
		return u.refuse(t, wire.CodeNoMethod, textNoMethod)
	}
	switch m.Method {
	case mcpmsg.CallTool, mcpmsg.GetPrompt:
		return u.byName(t, m)
	case mcpmsg.Ping:
		m.Release()
		return u.result(t, []byte("{}"))
	case mcpmsg.SetLevel:
		return u.setLevel(t, m)
	}
	var work func(*turn, *wire.Message) error
	switch m.Method {
	case mcpmsg.Initialize:
		work = u.initialize
	case mcpmsg.Discover:
		work = u.discover
	case mcpmsg.ListTools, mcpmsg.ListPrompts, mcpmsg.ListResources, mcpmsg.ListTemplates, mcpmsg.ListTasks:
		work = u.list
	case mcpmsg.ReadResource, mcpmsg.Subscribe, mcpmsg.Unsubscribe:
		work = u.byURI
	case mcpmsg.Complete:
		work = u.complete
	case mcpmsg.GetTask, mcpmsg.TaskResult, "tasks/cancel", "tasks/update":
		work = u.byTask
	case mcpmsg.Listen:
		work = u.listen
	default:
		m.Release()
		return u.refuse(t, wire.CodeNoMethod, textNoMethod)
	}
	u.work.Go(func() { _ = work(t, m) }) // an error has stopped the union
	return nil
}

// greeted reports whether a legacy request comes when it may: initialize first, and
// once.
func (u *union) greeted(m *wire.Message) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	first := u.hello == nil
	if first && m.Method == mcpmsg.Initialize {
		u.hello = append([]byte{}, m.Params.Raw()...)
		return true
	}
	return !first && m.Method != mcpmsg.Initialize
}

// close ends a turn; false if it has ended before, so that no answer is expected.
func (u *union) close(t *turn) bool {
	t.stop()
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.turns[t.id] != t {
		return false
	}
	delete(u.turns, t.id)
	return true
}

func (u *union) refuse(t *turn, code int, text string) error {
	if !u.close(t) {
		return nil
	}
	return u.toClient(refusal(t.id, t.shown, code, text))
}

func (u *union) result(t *turn, result []byte) error {
	if !u.close(t) {
		return nil
	}
	m := wire.NewResult(t.id, result)
	m.Alias, m.Whole = t.shown, true
	return u.toClient(m)
}
