// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// run is one life of a member: a session of the server's gateway, of which it is the client's
// side. What the client says goes to the gateway at once; what this side has to say, where
// it must not wait, goes through own.
type run struct {
	outlet
	own     queue
	m       *member
	up      *upstream
	name    string
	hello   []byte        // params of initialize; nil: the server is not greeted
	greeted chan struct{} // closed once the server can be asked, or cannot
	err     error         // why it cannot; read once greeted is closed
	dead    chan struct{}
	began   time.Time

	verified bool
	offers   offers
	heeds    bool // it gets what the client notifies; guarded by u.mu, as asked is
	asked    int  // questions to the client without an answer
}

// offers are what a server has said of itself. They have passed its gateway.
type offers struct {
	known        bool
	capabilities map[string]bool // tools, prompts, resources, logging, completions
	subscribe    bool
	instructions string
}

// newRun is called with u.mu held.
func newRun(m *member, up *upstream) *run {
	r := &run{m: m, up: up, name: up.Name, greeted: make(chan struct{}), dead: make(chan struct{})}
	if m.u.era == wire.Legacy {
		r.hello = m.u.hello
	}
	r.own.hand = func(m *wire.Message) { r.message(m) }
	return r
}

// begin has the server checked, and begins its session.
func (r *run) begin() {
	u := r.m.u
	r.began = time.Now()
	r.verified = r.up.verify(u.ctx) == nil
	if r.verified && time.Since(r.began) >= u.f.opt.patience {
		u.announce(listed[:]...) // it was left out of lists meanwhile
	}
	r.up.start(u.ctx, Client{Conn: r, Era: u.era, Principal: u.principal, union: true, counts: &u.counts}, r.ended)
	if r.hello != nil {
		r.greet()
	}
}

// Start implements wire.Conn.
func (r *run) Start(to wire.Receiver) {
	r.outlet.Start(to)
	r.own.begin()
	if r.hello == nil {
		r.heed()
		close(r.greeted)
	}
}

// heed has the server get what the client notifies from here on, and returns what it has missed.
func (r *run) heed() (ready bool, level []byte) {
	u := r.m.u
	u.mu.Lock()
	defer u.mu.Unlock()
	r.heeds = true
	return u.ready, u.level
}

// say tells the server's gateway something without waiting for it, unless too much waits.
func (r *run) say(m *wire.Message) { r.own.put(m, ownWaiting) }

// finish tells the gateway that the client has nothing more to say.
func (r *run) finish() { r.own.end(func() { r.end(io.EOF) }) }

// ended is told that the session is over.
func (r *run) ended(err error) {
	u := r.m.u
	defer u.work.Done()
	u.mu.Lock()
	if r.m.run == r {
		r.m.run = nil
	}
	if time.Since(r.began) >= steady {
		r.m.pause.Reset()
	}
	if r.m.next = time.Now().Add(r.m.up.opt.firstWait); r.verified { // else it is for Verify to be patient
		r.m.next = time.Now().Add(r.m.pause.Next())
	}
	var lost []*errand
	for id, e := range u.pending {
		if e.run == r {
			lost = append(lost, e)
			delete(u.pending, id)
		}
	}
	for id, q := range u.asks {
		if q.run == r {
			delete(u.asks, id)
		}
	}
	u.mu.Unlock()
	r.Close()
	close(r.dead)
	if err != nil && u.ctx.Err() == nil && !errors.Is(err, ErrNoServer) {
		r.up.log.Warn("connection to the server lost", r.up.gone(err)...)
	}
	for _, e := range lost {
		r.fail(e)
	}
}

// fail answers an errand that the server will not answer any more.
func (r *run) fail(e *errand) {
	if e.answer != nil {
		e.answer(constant(e.id, wire.CodeAbsent, textLost, nil))
		return
	}
	_ = r.m.u.refuse(e.turn, wire.CodeAbsent, textLost)
}

// greet initializes the server as the client has initialized us.
func (r *run) greet() {
	u := r.m.u
	ctx, stop := context.WithTimeout(u.ctx, handshakeWait)
	defer stop()
	m, err := r.ask(ctx, nil, mcpmsg.Initialize, r.hello)
	if err == nil && m.Kind != wire.Response {
		err = errAbsent
	}
	if r.err = err; err != nil {
		close(r.greeted)
		r.finish() // another run will try again
		return
	}
	r.offers = offersOf(m.Result)
	ready, level := r.heed()
	if ready { // else it will be told when all are
		r.message(own(wire.NewRequest(wire.ID{}, mcpmsg.Initialized, nil)))
	}
	close(r.greeted)
	if !ready {
		return
	}
	if level != nil && r.offers.capabilities["logging"] {
		r.setLevel(level)
	}
	// It is late, or another than before.
	var kinds []string
	for _, kind := range listed {
		if r.offers.capabilities[kind] {
			kinds = append(kinds, kind)
		}
	}
	u.announce(kinds...)
}

// setLevel tells the server from which level on it logs.
func (r *run) setLevel(params []byte) {
	if m := own(wire.NewRequest(wire.IntID(0), mcpmsg.SetLevel, params)); m != nil {
		r.send(&errand{answer: func(*wire.Message) {}}, m)
	}
}

func (r *run) isGreeted() bool {
	select {
	case <-r.greeted:
		return r.err == nil
	default:
		return false
	}
}

// send gives the server a request, which has its values. false: the errand gets no answer.
func (r *run) send(e *errand, m *wire.Message) bool {
	u := r.m.u
	u.mu.Lock()
	u.last++
	e.id, e.run = wire.IntID(u.last), r
	u.pending[e.id] = e
	u.mu.Unlock()
	m.ID, m.Alias = e.id, wire.ID{}
	taken := r.message(m)
	u.mu.Lock()
	e.sent = taken
	void := taken && e.void
	there := false
	if !taken {
		_, there = u.pending[e.id]
		delete(u.pending, e.id)
	}
	u.mu.Unlock()
	if void {
		e.cancel()
	}
	return !there // else it has been failed already
}

// ask waits for the answer to a request of ours. The error is ctx's, or that the
// server is not there.
func (r *run) ask(ctx context.Context, t *turn, method string, params []byte) (*wire.Message, error) {
	answer := make(chan *wire.Message, 1)
	e := &errand{turn: t, answer: func(m *wire.Message) { answer <- m }}
	m := own(wire.NewRequest(wire.IntID(0), method, params))
	if m == nil || !r.send(e, m) {
		return nil, errAbsent
	}
	select {
	case m := <-answer:
		if m.Local {
			return nil, errAbsent
		}
		return m, nil
	case <-ctx.Done():
		r.forget(e)
		return nil, ctx.Err()
	}
}

// forget cancels an errand.
func (r *run) forget(e *errand) {
	u := r.m.u
	u.mu.Lock()
	_, there := u.pending[e.id]
	delete(u.pending, e.id)
	u.mu.Unlock()
	if there {
		e.cancel()
	}
}

// Write takes what the server's gateway delivers.
func (r *run) Write(_ context.Context, out *wire.Message) error {
	if r.isOff() {
		return wire.ErrClosed
	}
	switch out.Kind {
	case wire.Request:
		return r.question(out)
	case wire.Notification:
		return r.notification(out)
	}
	u := r.m.u
	u.mu.Lock()
	e := u.pending[out.ID]
	if e == nil || e.run != r {
		u.mu.Unlock()
		return nil
	}
	delete(u.pending, out.ID)
	u.mu.Unlock()
	if e.answer != nil {
		if out.Parse() != nil {
			out = constant(out.ID, wire.CodeAbsent, textLost, nil)
		}
		e.answer(out)
		return nil
	}
	u.learn(r.m, e.turn.method, out)
	if !u.close(e.turn) {
		return nil
	}
	out.ID, out.Alias, out.Related = e.turn.id, e.turn.shown, wire.ID{}
	return u.toClient(out)
}

// maxQuestions bounds what one server may ask of the client at one time.
const maxQuestions = 256

// question puts a server's request to the client.
func (r *run) question(m *wire.Message) error {
	bad := m.Parse() != nil
	u := r.m.u
	u.mu.Lock()
	if bad || r.asked >= maxQuestions {
		u.mu.Unlock()
		r.say(constant(m.ID, wire.CodeQueued, textBusy, nil))
		return nil
	}
	r.asked++
	u.lastAsk++
	id := wire.IntID(u.lastAsk)
	u.asks[id] = &question{run: r, id: m.ID, token: string(m.Params.Get("_meta").Get("progressToken").Raw())}
	m.ID, m.Alias, m.Related = id, wire.ID{}, u.relatedTo(r, m.Related)
	u.mu.Unlock()
	return u.toClient(m)
}

// relatedTo is the client's request behind one of ours. u.mu is held.
func (u *union) relatedTo(r *run, ours wire.ID) wire.ID {
	if e := u.pending[ours]; e != nil && e.run == r && e.turn != nil {
		return e.turn.id
	}
	return wire.ID{}
}

// notification passes a server's notification on to the client or the sessions that it concerns.
func (r *run) notification(m *wire.Message) error {
	u := r.m.u
	if m.Parse() != nil {
		return nil
	}
	if sub := m.Params.Get("_meta").Get(mcpmsg.KeySubscriber); sub.Exists() {
		return r.subscribed(m, sub)
	}
	u.mu.Lock()
	related := u.relatedTo(r, m.Related)
	u.mu.Unlock()
	var edits strictjson.Edits
	switch m.Method {
	case mcpmsg.Progress:
		if related.IsZero() {
			return nil // of nothing that the client has asked for
		}
	case mcpmsg.ToolsChanged, mcpmsg.PromptsChanged, mcpmsg.ResourcesChanged:
		if u.era == wire.Modern {
			for _, l := range u.listening(m.Method) {
				if err := u.toClient(l.notice(m.Method)); err != nil {
					return err
				}
			}
			return nil
		}
	case mcpmsg.ResourceUpdated:
		uri := m.Params.Get("uri")
		shown := u.watchedAs(r.m, uri.Text())
		if shown == "" {
			return nil
		}
		if shown != uri.Text() {
			edits.ReplaceText(uri, shown)
		}
	case mcpmsg.LogMessage:
		r.sign(&edits, m.Params)
	case mcpmsg.Cancelled:
		if !r.cancels(&edits, m.Params) {
			return nil
		}
	}
	if m.Edit(&edits) != nil {
		return nil // never: ids and quoted strings are strict JSON
	}
	m.Related = related
	return u.toClient(m)
}

// sign says which server logs.
func (r *run) sign(e *strictjson.Edits, params strictjson.Value) {
	if logger := params.Get("logger"); logger.Kind() == '"' {
		e.ReplaceText(logger, r.name+"/"+logger.Text())
		return
	}
	e.Append(params, "logger", strictjson.AppendQuote(nil, r.name))
}

// cancels gives a server's cancellation the id by which the client knows its request.
func (r *run) cancels(e *strictjson.Edits, params strictjson.Value) bool {
	request := params.Get("requestId")
	id, _ := wire.IDOf(request)
	u := r.m.u
	u.mu.Lock()
	defer u.mu.Unlock()
	for ours, q := range u.asks {
		if q.run == r && q.id == id {
			e.Replace(request, ours.Append(nil))
			delete(u.asks, ours)
			r.asked--
			return true
		}
	}
	return false
}

// Close is called by the gateway.
func (r *run) Close() error {
	r.off()
	r.own.drop(func() { r.end(wire.ErrClosed) })
	return nil
}
