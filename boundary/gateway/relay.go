// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// relay is the session of one client with one server. It has no goroutine while nothing happens: a message
// passes in the goroutine of the connection on which it came, and queue, clock and news of lists start one
// when they have something to do.
//
// So fromClient and fromServer run in several goroutines at a time, beside the clock, the forwarding of calls
// that waited for the list of tools, and classifiers. What they share is guarded as said here, and no lock is
// held while a connection, a Sink, a Queue, a Policy, a classifier or an Admission is called. What comes on
// one stream is handled in its order, since its goroutine hands over one message after the other. What comes
// on two streams has no order; where one message would undo another, its owner keeps the order: calls lets a
// cancellation wait for the request that is being written, and toolList takes no list that is older than the
// change which the server has announced.
type relay struct {
	// Set before the connections are started, and not changed then.
	cfg       Config
	log       *slog.Logger
	front, up wire.Conn
	life      context.Context // ends with the session
	stop      context.CancelFunc
	observed  func(error) // tells the Observer of the end
	told      func(error) // tells who has started the session of the end
	unwatch   func() bool // ends the watch of the context
	unhear    func()      // ends the watch of the Admission

	// Safe for concurrent use: each has its own lock, or none is needed.
	in           *inspector
	surface      toolList // what the server has listed
	tasks        Tasks    // which tools have created them
	lists        listings // what it lists just now
	paging       paging
	news         news
	calls        *calls // the one table of what is under way, and of ids
	outbox       outbox
	expiry       expiry
	quiet        quiet
	pace         pace         // of what classifiers are asked about beside answers
	judging      atomic.Int64 // bytes of messages that wait for classifiers
	failure      atomic.Pointer[error]
	answered     atomic.Bool            // the server has answered something
	agreed       atomic.Pointer[string] // revision of a legacy session
	clientModern atomic.Bool
	abilities    atomic.Pointer[mcpmsg.Abilities] // of the client; nil before it has declared them
	minLogLevel  atomic.Int32                     // the least that a legacy client wants of log messages

	clientOver atomic.Bool // no message of the client is taken any more
	serverOver atomic.Bool // likewise of the server
	clientLeft atomic.Bool // the client has closed its side, and may still read

	// parts counts what has to return before the session has ended: the two connections, the one call of
	// end, and goroutines. join adds to it.
	parts atomic.Int64
	mu    sync.Mutex // guards what follows
	begun bool       // both connections were started
	over  bool
	err   error // why it is over
}

func newRelay(front, up wire.Conn, cfg Config) (*relay, error) {
	cfg, err := cfg.orDefault()
	if err != nil {
		return nil, err
	}
	r := &relay{
		cfg: cfg, log: cfg.Log, front: front, up: up,
		calls: newCalls(cfg.inFlight), tasks: cfg.Tasks,
	}
	if r.tasks == nil {
		r.tasks = new(sessionTasks)
	}
	r.calls.begun = r.expiry.arm
	r.quiet.log = cfg.Log
	r.surface.admission = cfg.Admission
	r.lists.own.versions, r.lists.client.versions = cfg.Admission != nil, cfg.Admission != nil
	r.in, err = newInspector(cfg, r.calls.original)
	if err == nil {
		r.in.late = &lateRecord{spawn: r.spawn}
	}
	return r, err
}

// start starts both connections. told is called once both have ended.
func (r *relay) start(ctx context.Context, told func(error)) {
	r.life, r.stop = context.WithCancel(ctx)
	r.told, r.observed = told, r.observeSession()
	r.parts.Store(3)
	r.startClock()
	r.unhear = func() {}
	if a := r.cfg.Admission; a != nil {
		r.unhear = a.OnChange(r.changed)
	}
	r.unwatch = context.AfterFunc(ctx, func() { r.end(ctx.Err()) })
	r.up.Start(r.serverSide())
	r.front.Start(r.clientSide())
	r.mu.Lock()
	r.begun = true
	over := r.over
	r.mu.Unlock()
	if over { // it was over before both were started
		r.shut()
	}
}

// join lets the session wait for another part of it; false: it is over.
func (r *relay) join() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.over {
		r.parts.Add(1)
	}
	return !r.over
}

// leave ends a part of the session. The last one ends the session.
func (r *relay) leave() {
	if r.parts.Add(-1) > 0 {
		return
	}
	for _, k := range r.calls.all() {
		k.done(OutcomeGone, 0)
	}
	r.observed(r.err)
	r.told(r.err)
}

// spawn runs f in a goroutine that is a part of the session. Its caller is one too.
func (r *relay) spawn(f func()) {
	r.parts.Add(1)
	go func() {
		defer r.leave()
		f()
	}()
}

// end closes both connections. The first reason counts.
func (r *relay) end(err error) {
	r.mu.Lock()
	if r.over {
		r.mu.Unlock()
		return
	}
	r.over, r.err = true, err
	begun := r.begun
	r.mu.Unlock()
	if begun {
		r.shut()
	}
}

func (r *relay) shut() {
	r.clientOver.Store(true)
	r.serverOver.Store(true)
	r.stop()
	r.unwatch()
	r.unhear()
	r.outbox.end()
	r.expiry.end()
	r.front.Close()
	r.up.Close()
	r.leave()
}

// side takes what comes from the client, or from the server.
type side struct {
	r         *relay
	over      *atomic.Bool // nothing of it is taken any more
	message   func(context.Context, *wire.Message) error
	violation func(context.Context, *wire.Violation) error
	gone      func(error)
	broken    error // what an end means that was not orderly
}

func (r *relay) clientSide() *side {
	return &side{r, &r.clientOver, r.fromClient, r.clientViolation, r.clientGone, ErrFrontBroken}
}

func (r *relay) serverSide() *side {
	return &side{r, &r.serverOver, r.fromServer, r.serverViolation, r.serverGone, ErrUpstreamGone}
}

// Message implements wire.Receiver. An error of the relay ends the session.
func (s *side) Message(m *wire.Message) {
	if s.over.Load() {
		m.Release()
		return
	}
	if err := s.message(s.r.life, m); err != nil {
		s.gone(err)
	}
}

// Violation implements wire.Receiver.
func (s *side) Violation(v *wire.Violation) {
	if s.over.Load() {
		return
	}
	if err := s.violation(s.r.life, v); err != nil {
		s.gone(err)
	}
}

// Ended implements wire.Receiver.
func (s *side) Ended(err error) {
	defer s.r.leave()
	if !errors.Is(err, io.EOF) {
		err = fmt.Errorf("%w: %w", s.broken, err)
	}
	s.gone(err)
}

// clientGone ends the session, after what is under way where the client has only closed its side: io.EOF.
func (r *relay) clientGone(err error) {
	if r.clientOver.Swap(true) {
		return
	}
	if !errors.Is(err, io.EOF) {
		r.end(err)
		return
	}
	r.clientLeft.Store(true)
	for _, a := range r.calls.unanswered() { // the client can answer them no more, and the server waits
		r.enqueue(errClientGone.message(a.id, nil))
	}
	r.spawn(r.drain)
}

// serverGone ends the session once the client has what the server has said.
func (r *relay) serverGone(err error) {
	if errors.Is(err, io.EOF) {
		err = ErrUpstreamGone
	}
	switch {
	case r.serverOver.Swap(true):
	case errors.Is(err, ErrFrontBroken):
		r.end(err)
	default:
		r.spawn(func() {
			r.abandonCalls(err)
			if r.clientLeft.Load() {
				err = r.failed()
			}
			r.end(err)
		})
	}
}

// drain waits for the answers that are still to come to a client that has said
// all it had to say.
func (r *relay) drain() {
	wait := drainWait
	if r.cfg.Finish {
		wait += r.calls.longest(r.cfg.Timeout)
	}
	over := time.NewTimer(wait)
	defer over.Stop()
	select {
	case <-r.calls.rest(true):
		r.end(r.failed())
	case <-over.C:
		r.end(nil)
	case <-r.life.Done():
	}
}

// lost notes that a request has no answer because the server is gone, if the server has never answered.
func (r *relay) lost() {
	if err := ErrUpstreamGone; !r.answered.Load() {
		r.failure.CompareAndSwap(nil, &err)
	}
}

// failed is why the server has never answered, if that is so: it could not be reached, or it is gone.
func (r *relay) failed() error {
	if err := r.failure.Load(); err != nil {
		return *err
	}
	return nil
}

// abandonCalls tells the client of every request that will never be answered, behind the last message of the
// server. why is the reason. If it is an invalid answer of the server, the client is told that.
func (r *relay) abandonCalls(why error) {
	ctx, stop := context.WithTimeout(r.life, drainWait)
	defer stop()
	select {
	case <-r.calls.rest(false):
	case <-ctx.Done():
	}
	r.calls.pass() // drain waits for these answers too
	defer r.calls.passed()
	for _, k := range r.calls.all() {
		r.lost()
		out := errGone.to(k, nil)
		told := wire.AnswerTo(k.id, why)
		if told != nil && !told.Local {
			told = r.in.pass(passage{msg: told, method: k.method, id: k.shown, revision: r.revisionOf(k)})
		}
		if told != nil {
			out = k.addressed(told)
		}
		if r.front.Write(ctx, out) != nil {
			return
		}
	}
}

// toClient gives the client a message: one that passed the choke point, or a constant answer.
func (r *relay) toClient(ctx context.Context, out *wire.Message) error {
	if out == nil {
		return nil
	}
	if err := r.front.Write(ctx, out); err != nil {
		return fmt.Errorf("%w: %w", ErrFrontBroken, err)
	}
	return nil
}

// expire ends what takes too long; false if the session is at its end.
func (r *relay) expire(ctx context.Context, now time.Time) bool {
	r.calls.pass()
	defer r.calls.passed()
	late, unanswered, stuck := r.calls.expired(now, r.cfg.Timeout)
	for _, a := range unanswered {
		r.enqueue(errClientGone.message(a.id, nil))
	}
	for _, k := range late {
		if k.id.IsZero() {
			r.quiet.warn("server did not list its tools in time")
			r.listed(ctx, nil, r.surface.generation())
			continue
		}
		if k.cancelled {
			continue
		}
		r.log.Warn("server did not answer in time", "tool", r.surface.label(k.tool), "after", now.Sub(k.born).String())
		if m := wire.NewCancellation(wire.IntID(k.n), "timed out", false); r.calls.follow(k, m) == sendNow {
			r.enqueue(m)
		}
		if r.toClient(ctx, errTimeout.to(k, nil)) != nil {
			return false
		}
	}
	if stuck {
		r.serverGone(ErrUpstreamStuck)
	}
	return !stuck
}

// refused records and tells the operator of a message that never reached the
// choke point.
func (r *relay) refused(kind string, v Verdict, code finding.Code, args ...any) *ID {
	id := r.in.refuse(kind, v, code)
	if id != nil {
		args = append(args, "evidence", id.String())
	}
	r.quiet.warn("server's message refused: "+string(code), args...)
	return id
}

// refusedRequest is refused of a request of the client. The record names a tool only where the server lists it and
// a reviewer has approved some version of it: other names are words of the client, its model or the server.
func (r *relay) refusedRequest(k *call, code finding.Code, args ...any) *ID {
	d := Decision{Method: methodLabel(k.method), Kind: "call", Principal: r.cfg.Principal, Verdict: Dropped}
	args = append(args, "method", finding.Quote(k.method))
	if k.method == mcpmsg.CallTool {
		d.Tool = r.surface.named(k.tool)
		args = append(args, "tool", finding.Quote(k.tool))
	}
	id := r.in.refuseOf(d, code)
	if id != nil {
		args = append(args, "evidence", id.String())
	}
	what := "a request of the client was refused: " + string(code)
	switch code {
	case finding.Unapproved:
		what = "a request of the client was refused: what it asks for is not approved"
	case finding.Denied:
		what = "a request of the client was refused: the configuration denies it"
	}
	r.quiet.warn(what, args...)
	return id
}
