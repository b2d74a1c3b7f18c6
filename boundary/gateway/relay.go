// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// relay is one client and one server. Each side has one goroutine that reads
// it; what the server's reader and the clock have to say to the server goes
// through a queue, so that a server which does not read cannot stop the one who
// reads it. An idle session has no other goroutine: queue, clock and news of lists
// start theirs when they have something to do.
type relay struct {
	cfg       Config
	log       *slog.Logger
	front, up wire.ReadConn
	in        *inspector
	surface   toolList
	news      news
	calls     *calls
	holding   holding
	life      context.Context // of run
	outbox    outbox
	expiry    expiry
	quiet     quiet
	work      sync.WaitGroup
	passing   atomic.Int64 // messages on their way to the client whose calls may be closed already
	judging   atomic.Int64 // bytes of those that wait for classifiers
	failure   atomic.Pointer[error]
	answered  atomic.Bool            // the server has answered something
	agreed    atomic.Pointer[string] // revision of a legacy session
	listing   listing
	clientOwn listing // what the client lists itself
}

func newRelay(front, up wire.ReadConn, cfg Config) (*relay, error) {
	cfg, err := cfg.orDefault()
	if err != nil {
		return nil, err
	}
	r := &relay{
		cfg: cfg, log: cfg.Log, front: front, up: up,
		calls: newCalls(cfg.inFlight),
	}
	r.calls.begun = r.expiry.arm
	r.quiet.log = cfg.Log
	r.surface.admission = cfg.Admission
	r.listing.versions, r.clientOwn.versions = cfg.Admission != nil, cfg.Admission != nil
	r.in, err = newInspector(cfg, r.calls.original)
	return r, err
}

func (r *relay) run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	r.life = ctx
	ended := r.begun()
	work := &r.work
	client, server := make(chan error, 1), make(chan error, 1)
	var changed <-chan struct{} // nil: never
	if a := r.cfg.Admission; a != nil {
		changed = a.Changed()
	}
	work.Go(func() { client <- r.readClient(ctx) })
	work.Go(func() { server <- r.readServer(ctx) })
	r.startClock(ctx)

	err := r.attend(ctx, client, server, changed)
	stop()
	r.outbox.end()
	r.expiry.end()
	r.front.Close()
	r.up.Close()
	work.Wait()
	for _, k := range r.calls.all() {
		k.done(OutcomeGone, 0)
	}
	ended(err)
	return err
}

// attend waits until one side has ended, and has the client told of changes meanwhile.
func (r *relay) attend(ctx context.Context, client, server <-chan error, changed <-chan struct{}) error {
	told := make(chan (<-chan struct{}), 1)
	for {
		select {
		case err := <-client:
			if err == nil {
				err = r.drain(ctx, server)
			}
			return err
		case err := <-server:
			r.abandon(ctx)
			return err
		case <-ctx.Done():
			return ctx.Err()
		case <-changed: // a client that does not read holds its own goroutine only
			changed = nil
			r.work.Go(func() { told <- r.tell(ctx) })
		case changed = <-told:
		}
	}
}

// drain waits for the answers that are still to come to a client that has said
// all it had to say.
func (r *relay) drain(ctx context.Context, server <-chan error) error {
	over := time.NewTimer(drainWait)
	defer over.Stop()
	poll := time.NewTicker(drainWait / 200)
	defer poll.Stop()
	for !r.calls.idle() || r.passing.Load() > 0 {
		select {
		case <-poll.C:
		case <-over.C:
			return nil
		case <-server:
			r.abandon(ctx)
			return r.failed()
		case <-ctx.Done():
			return nil
		}
	}
	return r.failed()
}

// failed is why the server could never be reached, if that is so.
func (r *relay) failed() error {
	if err := r.failure.Load(); err != nil {
		return *err
	}
	return nil
}

// abandon tells the client of every request that will never be answered.
func (r *relay) abandon(ctx context.Context) {
	ctx, stop := context.WithTimeout(ctx, drainWait)
	defer stop()
	r.settle(ctx)
	for _, k := range r.calls.all() {
		if r.front.Write(ctx, errGone.to(k, nil)) != nil {
			return
		}
	}
}

// settle waits for what the server has said and is not yet with the client.
func (r *relay) settle(ctx context.Context) {
	poll := time.NewTicker(drainWait / 200)
	defer poll.Stop()
	for r.passing.Load() > 0 {
		select {
		case <-poll.C:
		case <-ctx.Done():
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

// expire ends what takes too long; false if the client cannot be told.
func (r *relay) expire(ctx context.Context, now time.Time) bool {
	r.passing.Add(1)
	defer r.passing.Add(-1)
	late, unanswered := r.calls.expired(now, r.cfg.Timeout)
	for _, a := range unanswered {
		r.enqueue(errClientGone.message(a.id, nil))
	}
	for _, k := range late {
		if k.id.IsZero() {
			r.quiet.warn("server did not list its tools in time")
			r.listed(ctx, nil)
			continue
		}
		if k.cancelled {
			continue
		}
		r.log.Warn("server did not answer in time", "tool", r.surface.label(k.tool), "after", now.Sub(k.born).String())
		if !r.holding.drop(k) {
			r.enqueue(cancellation(k))
		}
		if r.toClient(ctx, errTimeout.to(k, nil)) != nil {
			return false
		}
	}
	return true
}

func cancellation(k *call) *wire.Message {
	id := wire.IntID(k.n)
	params := append(id.Append([]byte(`{"requestId":`)), `,"reason":"timed out"}`...)
	m := wire.NewRequest(wire.ID{}, mcpmsg.Cancelled, params)
	m.Route.Cancels = id
	return m
}

// refused records and tells the operator of a message that never reached the
// choke point.
func (r *relay) refused(kind string, v Verdict, code finding.Code, args ...any) *ID {
	id := r.in.refuse(kind, v, code)
	if id != nil {
		args = append(args, "evidence", id.String())
	}
	what := "server's message refused: "
	if kind == "request" && (code == finding.Denied || code == finding.Unapproved) {
		what = "client's call refused: "
	}
	r.quiet.warn(what+string(code), args...)
	return id
}
