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

	"github.com/pellucid-mcp/pellucid/finding"
	"github.com/pellucid-mcp/pellucid/hold"
	"github.com/pellucid-mcp/pellucid/internal/mcpmsg"
	"github.com/pellucid-mcp/pellucid/internal/strictjson"
	"github.com/pellucid-mcp/pellucid/internal/wire"
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
	prof      *profile
	surface   toolList
	news      news
	calls     *calls
	holding   holding
	toServer  chan *wire.Outgoing
	quiet     quiet
	work      sync.WaitGroup
	passing   atomic.Int64 // messages of the server on their way to the client
	judging   atomic.Int64 // octets of those that wait for classifiers
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
		cfg: cfg, log: cfg.Log, front: front, up: up, prof: newProfile(cfg.Profile),
		calls: newCalls(cfg.InFlight), toServer: make(chan *wire.Outgoing, queueLength),
	}
	r.quiet.log = cfg.Log
	r.surface.admission = cfg.Admission
	r.listing.versions, r.clientOwn.versions = cfg.Admission != nil, cfg.Admission != nil
	r.in, err = newInspector(cfg, r.prof, r.calls.original)
	return r, err
}

func (r *relay) run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	ended := r.begun()
	work := &r.work
	client, server := make(chan error, 1), make(chan error, 1)
	work.Go(func() { client <- r.readClient(ctx) })
	work.Go(func() { server <- r.readServer(ctx) })
	work.Go(func() { r.writeServer(ctx) })
	work.Go(func() { r.watch(ctx) })
	work.Go(func() { r.tell(ctx) })

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

// readClient relays what the client sends. It returns nil when the client has closed its side.
func (r *relay) readClient(ctx context.Context) error {
	for {
		m, err := r.front.Read(ctx)
		var v *wire.Violation
		switch {
		case errors.As(err, &v):
			err = r.clientViolation(ctx, v)
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("%w: %w", ErrFrontBroken, err)
		default:
			err = r.fromClient(ctx, m)
		}
		if err != nil {
			return err
		}
	}
}

// clientViolation answers, where that is possible, what is no message.
func (r *relay) clientViolation(ctx context.Context, v *wire.Violation) error {
	r.log.Warn("client sent no acceptable message", "reason", v.Reason, "octet", v.Offset, "excerpt", v.Excerpt)
	switch v.Kind {
	case wire.Notification:
		return nil
	case wire.Response, wire.ErrorResponse:
		if n, isInt := v.ID.Int(); isInt {
			if a := r.calls.answered(n, time.Now()); a != nil {
				r.enqueue(errBadAnswer.outgoing(a.id, nil))
			}
		}
		return nil
	}
	return r.toClient(ctx, answer{v.Code, "pellucid: " + v.Reason}.outgoing(v.ID, nil))
}

// fromClient passes a message of the client on. It owns m.
func (r *relay) fromClient(ctx context.Context, m *wire.Message) error {
	switch m.Kind {
	case wire.Request:
		return r.request(ctx, m)
	case wire.Notification:
		defer m.Release()
		return r.clientNotification(ctx, m)
	}
	defer m.Release()
	n, isInt := m.ID.Int()
	var a *ask
	if isInt {
		a = r.calls.answered(n, time.Now())
	}
	if a == nil {
		r.quiet.warn("client answered what nobody asked")
		return nil
	}
	out := &wire.Outgoing{Kind: m.Kind, ID: a.id}
	if m.Kind == wire.Response {
		out.Raw = wire.AppendResult(nil, a.id, m.Result.Raw())
	} else {
		out.Raw = wire.AppendError(nil, a.id, m.Error.Raw())
	}
	return r.send(ctx, out)
}

func (r *relay) request(ctx context.Context, m *wire.Message) error {
	k := newCall(m, time.Now())
	r.observe(m, &k.watched)
	if k.method == mcpmsg.CallTool {
		rule := r.cfg.rule(k.tool)
		if rule.Denied {
			defer m.Release()
			r.refused("request", Dropped, finding.Denied)
			return r.toClient(ctx, errDenied.to(k, nil))
		}
		k.limit = rule.Timeout
		if r.cfg.Hold != nil {
			k.digest = hold.CallOf(r.cfg.Principal, r.cfg.Name, k.tool, m.Params.Get("arguments").Raw())
		}
	}
	if refused := r.calls.open(k); refused != nil {
		defer m.Release()
		return r.toClient(ctx, refused.to(k, nil))
	}
	if r.mustList(k.method) {
		kept, begin := r.holding.hold(m, k, r.surface.current)
		if begin { // m stays held until the listing that begins here has ended
			r.askPage("", contextMeta(m))
		}
		if kept {
			return nil
		}
	}
	return r.forward(ctx, m, k)
}

// forward sends the client's request under our number. It owns m.
func (r *relay) forward(ctx context.Context, m *wire.Message, k *call) error {
	defer m.Release()
	if r.withheld(k) {
		r.calls.close(k.n)
		return r.toClient(ctx, r.refuseUnapproved(m, k))
	}
	if out, is := r.released(ctx, k); is {
		r.calls.close(k.n)
		k.done(OutcomeOK, len(out.Raw))
		return r.toClient(ctx, out)
	}
	if out := r.refusedByPolicy(ctx, m, k); out != nil {
		r.calls.close(k.n)
		return r.toClient(ctx, out)
	}
	id := wire.IntID(k.n)
	headers := r.surface.headers(k.tool)
	route := cloneRoute(mcpmsg.RouteOf(m.Method, m.Params, headers))
	if k.claim != nil && !agree(&route, k.claim, headers) {
		r.calls.close(k.n)
		return r.toClient(ctx, errMismatch.to(k, nil))
	}
	k.sending(r.surface.label(k.tool))
	return r.send(ctx, &wire.Outgoing{
		Raw: wire.AppendRequest(nil, id, m.Method, k.params(m)), Kind: wire.Request, ID: id, Method: m.Method, Route: route,
	})
}

func rawParams(m *wire.Message) []byte {
	if !m.Params.Exists() {
		return nil
	}
	return m.Params.Raw()
}

func (r *relay) clientNotification(ctx context.Context, m *wire.Message) error {
	if m.Method == methodInitialized {
		r.news.ready.Store(true)
	}
	out := &wire.Outgoing{Kind: wire.Notification, Method: m.Method}
	out.Route = cloneRoute(mcpmsg.RouteOf(m.Method, m.Params, nil))
	params := rawParams(m)
	if request := m.Params.Get("requestId"); m.Method == mcpmsg.Cancelled && request.Exists() {
		id, valid := idOf(request)
		k := (*call)(nil)
		if valid {
			k = r.calls.cancel(id, time.Now())
		}
		if k == nil {
			return nil // answered meanwhile, or never asked
		}
		k.done(OutcomeCancelled, 0)
		if r.holding.drop(k) {
			r.calls.close(k.n)
			return nil // the server has not heard of it yet
		}
		ours := wire.IntID(k.n)
		var e strictjson.Edits
		e.Replace(request, ours.Append(nil))
		params, out.Route.Cancels = e.Apply(nil, m.Params), ours
	}
	out.Raw = wire.AppendRequest(nil, wire.ID{}, m.Method, params)
	return r.send(ctx, out)
}

// send gives the server a message from the client's reader. A server that no
// longer takes messages is the business of whoever reads it.
func (r *relay) send(ctx context.Context, out *wire.Outgoing) error {
	err := r.up.Write(ctx, out)
	if err == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	r.quiet.warn("server takes no messages", "error", err)
	if out.Kind == wire.Request {
		if n, isInt := out.ID.Int(); isInt {
			if k := r.calls.close(n); k != nil && !k.id.IsZero() {
				return r.toClient(ctx, errUnsent.to(k, nil))
			}
		}
	}
	return nil
}

// toClient gives the client a message: one that passed the choke point, or a constant answer.
func (r *relay) toClient(ctx context.Context, out *wire.Outgoing) error {
	if out == nil {
		return nil
	}
	if err := r.front.Write(ctx, out); err != nil {
		return fmt.Errorf("%w: %w", ErrFrontBroken, err)
	}
	if _, pipe := r.front.(*wire.Lines); pipe { // it keeps nothing that it has written
		wire.PutBuffer(out.Raw)
	}
	return nil
}

// enqueue leaves a message for the server without waiting for it.
func (r *relay) enqueue(out *wire.Outgoing) {
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
	late, unanswered := r.calls.expired(now, r.cfg.Timeout)
	for _, a := range unanswered {
		r.enqueue(errClientGone.outgoing(a.id, nil))
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

func cancellation(k *call) *wire.Outgoing {
	id := wire.IntID(k.n)
	params := append(id.Append([]byte(`{"requestId":`)), `,"reason":"timed out"}`...)
	return &wire.Outgoing{Raw: wire.AppendRequest(nil, wire.ID{}, mcpmsg.Cancelled, params),
		Kind: wire.Notification, Method: mcpmsg.Cancelled, Route: wire.Route{Cancels: id}}
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
