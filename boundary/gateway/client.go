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
				r.enqueue(errBadAnswer.message(a.id, nil))
			}
		}
		return nil
	}
	return r.toClient(ctx, answer{v.Code, "pellucid: " + v.Reason}.message(v.ID, nil))
}

// fromClient passes a message of the client on. It owns m.
func (r *relay) fromClient(ctx context.Context, m *wire.Message) error {
	switch m.Kind {
	case wire.Request:
		return r.request(ctx, m)
	case wire.Notification:
		return r.clientNotification(ctx, m)
	}
	n, isInt := m.ID.Int()
	var a *ask
	if isInt {
		a = r.calls.answered(n, time.Now())
	}
	if a == nil {
		m.Release()
		r.quiet.warn("client answered what nobody asked")
		return nil
	}
	m.ID, m.Alias = a.id, wire.ID{}
	return r.send(ctx, m)
}

func (r *relay) request(ctx context.Context, m *wire.Message) error {
	k := newCall(m, time.Now())
	k.store.most = r.cfg.storeMax
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
	if out := r.stopped(ctx, m, k); out != nil {
		m.Release()
		r.calls.close(k.n)
		return r.toClient(ctx, out)
	}
	headers := r.surface.headers(k.tool)
	route := cloneRoute(mcpmsg.RouteOf(m.Method, m.Params, headers))
	if k.claim != nil && !agree(&route, k.claim, headers) {
		m.Release()
		r.calls.close(k.n)
		return r.toClient(ctx, errMismatch.to(k, nil))
	}
	k.sending(r.surface.label(k.tool))
	if err := k.edit(m); err != nil {
		m.Release()
		r.calls.close(k.n)
		return r.toClient(ctx, errUnsent.to(k, nil))
	}
	m.ID, m.Alias, m.Claim, m.Route = wire.IntID(k.n), wire.ID{}, nil, route
	return r.send(ctx, m)
}

// stopped asks what may keep a request from the server, and returns the answer to one that
// is; nil: nothing does.
func (r *relay) stopped(ctx context.Context, m *wire.Message, k *call) *wire.Message {
	if out := r.refuseIllFormed(m, k); out != nil {
		return out
	}
	if r.withheld(ctx, k) {
		return r.refuseUnapproved(m, k)
	}
	if out := r.released(ctx, k); out != nil {
		return out
	}
	return r.refusedByPolicy(ctx, m, k)
}

// clientNotification passes a notification of the client on. It owns m.
func (r *relay) clientNotification(ctx context.Context, m *wire.Message) error {
	if m.Method == mcpmsg.Initialized {
		r.news.ready.Store(true)
	}
	if !r.cfg.passages.Method(m.Method) {
		r.quiet.warn("client's notification belongs to no extension that passes", "method", finding.Quote(m.Method))
		m.Release()
		return nil
	}
	m.Route = cloneRoute(mcpmsg.RouteOf(m.Method, m.Params, nil))
	if m.Method == mcpmsg.Cancelled && !r.cancelled(m) {
		m.Release()
		return nil
	}
	return r.send(ctx, m)
}

// cancelled gives a cancellation the id that the server knows; false if the server has
// not heard of the request, or no longer works on it.
func (r *relay) cancelled(m *wire.Message) bool {
	request := m.Params.Get("requestId")
	if !request.Exists() {
		return true
	}
	id, valid := idOf(request)
	k := (*call)(nil)
	if valid {
		k = r.calls.cancel(id, time.Now())
	}
	if k == nil {
		return false // answered meanwhile, or never asked
	}
	k.done(OutcomeCancelled, 0)
	if r.holding.drop(k) {
		r.calls.close(k.n)
		return false
	}
	ours := wire.IntID(k.n)
	m.Route.Cancels = ours
	var e strictjson.Edits
	e.Replace(request, ours.Append(nil))
	return m.Edit(&e) == nil
}

// send gives the server a message from the client's reader. A server that no
// longer takes messages is the business of whoever reads it.
func (r *relay) send(ctx context.Context, out *wire.Message) error {
	kind, id := out.Kind, out.ID
	err := r.up.Write(ctx, out)
	if err == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	r.quiet.warn("server takes no messages", "error", err)
	if kind == wire.Request {
		if n, isInt := id.Int(); isInt {
			if k := r.calls.close(n); k != nil && !k.id.IsZero() {
				return r.toClient(ctx, errUnsent.to(k, nil))
			}
		}
	}
	return nil
}
