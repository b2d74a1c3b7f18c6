// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/frame"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

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
	if refused := r.unextended(m); refused != nil {
		return r.refuseExtended(ctx, m, k, refused)
	}
	if k.method == mcpmsg.CallTool {
		rule := r.cfg.rule(k.tool)
		if rule.Denied {
			defer m.Release()
			id := r.refused("request", Dropped, finding.Denied)
			if id == nil {
				return r.toClient(ctx, errDenied.to(k, nil))
			}
			return r.toClient(ctx, r.refuseCall(m, k, *id, frame.Other, placeholderDeny, finding.Denied))
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
	if k.method == mcpmsg.CallTool {
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
	if out := r.refuseIllFormed(m, k); out != nil {
		r.calls.close(k.n)
		return r.toClient(ctx, out)
	}
	if r.withheld(ctx, k) {
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

func (r *relay) clientNotification(ctx context.Context, m *wire.Message) error {
	if m.Method == mcpmsg.Initialized {
		r.news.ready.Store(true)
	}
	if !r.cfg.passages.Method(m.Method) {
		r.quiet.warn("client's notification belongs to no extension that passes", "method", finding.Quote(m.Method))
		return nil
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

func rawParams(m *wire.Message) []byte {
	if !m.Params.Exists() {
		return nil
	}
	return m.Params.Raw()
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
