// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
)

// union is one client and all servers, each behind a gateway of its own. It reads
// the client; the gateways' goroutines bring what the servers say. Nothing in it
// waits for a server but the goroutine of a request that cannot do without.
type union struct {
	f         *Fleet
	front     wire.ReadConn
	era       wire.Era
	principal string
	may       func(server string) bool
	ctx       context.Context
	stop      context.CancelFunc
	work      sync.WaitGroup

	mu      sync.Mutex
	members []*member // in the order of the configuration
	last    int64
	pending map[wire.ID]*errand
	turns   map[wire.ID]*turn // the client's requests under way
	lastAsk int64
	asks    map[wire.ID]*question // the servers' requests to the client
	listens map[*listen]bool
	places  places
	hello   []byte // params of initialize; nil: not yet
	ready   bool   // notifications/initialized has come
	level   []byte // params of the last logging/setLevel
	over    bool   // no run is begun any more
}

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
	turn   *turn              // whose answer it is, or is part of
	answer chan *wire.Message // nil: the answer is the client's as it is
	listen *listen
}

// question is a request of a server to the client.
type question struct {
	run   *run
	id    wire.ID // the server's gateway's
	token string  // raw
}

// maxTurns bounds the client's requests under way.
const maxTurns = 4096

// ServeAll relays between a client and all servers that it may see, as if they were
// one, until the client is gone (nil), the Fleet is closed (ErrNoServer), or ctx ends.
func (f *Fleet) ServeAll(ctx context.Context, c Client) error {
	if !f.begin() {
		c.Conn.Close()
		return ErrNoServer
	}
	defer f.work.Done()
	if c.May == nil {
		c.May = func(string) bool { return true }
	}
	u := &union{f: f, front: c.Conn, era: c.Era, principal: c.Principal, may: c.May, pending: map[wire.ID]*errand{}, turns: map[wire.ID]*turn{},
		asks: map[wire.ID]*question{}, listens: map[*listen]bool{}, places: newPlaces()}
	u.ctx, u.stop = context.WithCancel(ctx)
	defer context.AfterFunc(f.ctx, u.stop)()
	u.work.Go(u.follow)
	err := u.read()
	u.finish(err == nil)
	u.stop()
	c.Conn.Close()
	u.work.Wait()
	switch {
	case err == nil:
	case f.ctx.Err() != nil:
		err = ErrNoServer
	case ctx.Err() != nil:
		err = ctx.Err()
	}
	return err
}

// finish lets the gateways answer what is under way, where the client has only
// closed its side.
func (u *union) finish(drain bool) {
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
		r.end()
	}
	if !drain {
		return
	}
	for _, r := range runs {
		select {
		case <-r.dead:
		case <-u.ctx.Done():
		}
	}
}

// follow keeps the members to what servers there are.
func (u *union) follow() {
	first := true
	for {
		list, changed := u.f.all()
		u.update(list)
		if !first {
			u.announce("tools", "prompts", "resources")
		}
		first = false
		select {
		case <-changed:
		case <-u.ctx.Done():
			return
		}
	}
}

// update makes the members those of list, and returns them.
func (u *union) update(list []*upstream) []*member {
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
	return u.members
}

// all returns the members. The first call may come before follow has begun.
func (u *union) all() []*member {
	u.mu.Lock()
	members := u.members
	u.mu.Unlock()
	if members == nil {
		list, _ := u.f.all()
		members = u.update(list)
	}
	return members
}

// read relays what the client says, until it has said all (nil).
func (u *union) read() error {
	for {
		m, err := u.front.Read(u.ctx)
		v := violation(err)
		switch {
		case v != nil:
			if v.Kind != wire.Notification && v.Kind != wire.Response && v.Kind != wire.ErrorResponse {
				err = u.toClient(refusal(v.ID, wire.ID{}, v.Code, "pellucid: "+v.Reason))
			} else {
				err = nil
			}
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("fleet: client gone: %w", err)
		default:
			err = u.fromClient(m)
		}
		if err != nil {
			return err
		}
	}
}

func (u *union) toClient(out *wire.Message) error {
	if err := u.front.Write(u.ctx, out); err != nil {
		u.stop()
		return fmt.Errorf("fleet: client gone: %w", err)
	}
	return nil
}

func (u *union) fromClient(m *wire.Message) error {
	switch m.Kind {
	case wire.Request:
		return u.request(m)
	case wire.Notification:
		u.notification(m)
		m.Release()
	default:
		u.answered(m)
	}
	return nil
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
	case "tasks/get", mcpmsg.TaskResult, "tasks/cancel", "tasks/update":
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

// close ends a turn; false if it has ended before, so that nobody waits for an answer.
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
