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
// reads it.
type relay struct {
	cfg       Config
	log       *slog.Logger
	front, up wire.Conn
	in        *inspector
	surface   toolList
	news      news
	calls     *calls
	holding   holding
	toServer  chan *wire.Message
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

// queueLength bounds what waits for a server that does not read.
const queueLength = 256

func newRelay(front, up wire.Conn, cfg Config) (*relay, error) {
	cfg, err := cfg.orDefault()
	if err != nil {
		return nil, err
	}
	r := &relay{
		cfg: cfg, log: cfg.Log, front: front, up: up,
		calls: newCalls(cfg.inFlight), toServer: make(chan *wire.Message, queueLength),
	}
	r.quiet.log = cfg.Log
	r.surface.admission = cfg.Admission
	r.listing.versions, r.clientOwn.versions = cfg.Admission != nil, cfg.Admission != nil
	r.in, err = newInspector(cfg, r.calls.original)
	return r, err
}

func (r *relay) run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	ended := r.begun()
	work := &r.work
	client, server := make(chan error, 1), make(chan error, 1)
	if a := r.cfg.Admission; a != nil {
		changed := a.Changed()
		work.Go(func() { r.tell(ctx, changed) })
	}
	work.Go(func() { client <- r.readClient(ctx) })
	work.Go(func() { server <- r.readServer(ctx) })
	work.Go(func() { r.writeServer(ctx) })
	work.Go(func() { r.watch(ctx) })

	var err error
	select {
	case err = <-client:
		if err == nil {
			err = r.drain(ctx, server)
		}
	case err = <-server:
		r.abandon(ctx)
	case <-ctx.Done():
		err = ctx.Err()
	}
	stop()
	r.front.Close()
	r.up.Close()
	work.Wait()
	for _, k := range r.calls.all() {
		k.done(OutcomeGone, 0)
	}
	ended(err)
	return err
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

// enqueue leaves a message for the server without waiting for it.
func (r *relay) enqueue(out *wire.Message) {
	select {
	case r.toServer <- out:
	default:
		r.quiet.warn("message to the server lost: it does not read")
	}
}

func (r *relay) writeServer(ctx context.Context) {
	for {
		select {
		case out := <-r.toServer:
			if err := r.up.Write(ctx, out); err != nil && ctx.Err() == nil {
				r.quiet.warn("server takes no messages", "error", err)
			}
		case <-ctx.Done():
			return
		}
	}
}

// watch ends what takes too long.
func (r *relay) watch(ctx context.Context) {
	tick := time.NewTicker(min(time.Second, max(r.cfg.Timeout/4, time.Millisecond)))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			if !r.expire(ctx, now) {
				return
			}
		}
	}
}

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
