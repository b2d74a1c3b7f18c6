// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// clientViolation answers, where that is possible, what is no message.
func (r *relay) clientViolation(ctx context.Context, v *wire.Violation) error {
	r.log.Warn("a message of the client was refused", "reason", v.Reason, "offset", v.Offset, "excerpt", v.Excerpt)
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
		r.quiet.warn("an answer of the client was dropped: no request waits for it")
		return nil
	}
	m.ID, m.Alias = a.id, wire.ID{}
	r.restoreAnswer(m)
	return r.send(ctx, m)
}

// hasCaseVariant reports whether params have a member whose name differs only in case from a member that says what the
// request is about. Some servers take it for that member, and would run another tool than the one that was decided on.
func hasCaseVariant(m *wire.Message) bool {
	switch m.Method {
	case mcpmsg.CallTool, mcpmsg.GetPrompt, mcpmsg.ReadResource, mcpmsg.Subscribe, mcpmsg.Complete:
	default:
		if !strings.HasPrefix(m.Method, mcpmsg.Tasks) {
			return false
		}
	}
	for _, v := range [...]strictjson.Value{m.Params, m.Params.Get("ref")} {
		for name := range v.Members() {
			for _, ours := range [...]string{"name", "arguments", "uri", "ref", "taskId"} {
				if text := name.Text(); text != ours && strings.EqualFold(text, ours) {
					return true
				}
			}
		}
	}
	return false
}

func (r *relay) request(ctx context.Context, m *wire.Message) error {
	k := newCall(m, time.Now())
	k.store.most = r.cfg.StorePatience
	if hasCaseVariant(m) {
		defer m.Release()
		return r.toClient(ctx, errCaseVariant.to(k, r.refusedRequest(k, finding.CaseVariant)))
	}
	r.observe(m, &k.watched)
	if refused := r.unextended(m); refused != nil {
		return r.refuseExtended(ctx, m, k, refused)
	}
	if k.method == mcpmsg.CallTool {
		rule := r.cfg.rule(k.tool)
		if rule.Denied {
			defer m.Release()
			id := r.refusedRequest(k, finding.Denied)
			if id == nil {
				return r.toClient(ctx, errDenied.to(k, nil))
			}
			return r.toClient(ctx, r.refuseCall(m, k, *id, unknownTool, placeholderDeny, finding.Denied))
		}
		k.limit = rule.Timeout
		k.asked = r.question(&rule, m)
		if r.cfg.Hold != nil {
			k.digest = hold.CallOf(r.cfg.Principal, r.cfg.Name, k.tool, m.Params.Get("arguments").Raw())
		}
	}
	switch {
	case k.method == mcpmsg.Initialize:
		r.abilities.Store(&k.abilities)
		r.clientModern.Store(false) // it asked for server/discover before, and the server has none
	case k.revision == mcpmsg.Modern && !r.clientModern.Load():
		r.abilities.Store(new(mcpmsg.Abilities)) // each request says what it can be asked
		r.clientModern.Store(true)
	case k.method == mcpmsg.SetLevel && k.minLogLevel >= 0 && int32(k.minLogLevel) < r.minLogLevel.Load():
		r.minLogLevel.Store(int32(k.minLogLevel)) // before the server knows: it may log before it answers
	}
	r.aboutTask(k, m)
	if refused := r.calls.open(k); refused != nil {
		defer m.Release()
		return r.toClient(ctx, refused.to(k, nil))
	}
	if r.awaitsTools(k, m) {
		return nil
	}
	return r.forward(ctx, m, k)
}

// awaitsTools reports whether the request waits until the server has listed its tools. It has m then.
func (r *relay) awaitsTools(k *call, m *wire.Message) bool {
	if !k.needsTools() {
		return false
	}
	var meta []byte
	kept, begin := r.calls.holdRequest(k, m, func() bool {
		if r.surface.current() {
			return true
		}
		meta = contextMeta(m) // now: once m is held, it may be released at any time
		return false
	})
	if begin { // m stays held until the listing that begins here has ended
		r.askPage("", meta)
	}
	return kept
}

// repeatRequest sends a request again that the server did not carry out since it had forgotten the session. The
// tools that the server lists now decide whether it may be asked.
func (r *relay) repeatRequest(k *call) {
	m := wire.NewRequest(wire.IntID(k.n), k.method, k.paramsToRepeat)
	if m.Parse() != nil || !r.calls.reopen(k) {
		return
	}
	r.spawn(func() { // a server that does not read must not hold up the one that reads it
		if !r.awaitsTools(k, m) {
			_ = r.forwardHeld(r.life, m, k)
		}
	})
}

// forward sends the client's request under our number. It owns m.
func (r *relay) forward(ctx context.Context, m *wire.Message, k *call) error {
	if out := r.stopped(ctx, m, k); out != nil {
		m.Release()
		return r.instead(ctx, k, out)
	}
	headers := r.surface.headers(k.tool)
	route := cloneRoute(mcpmsg.RouteOf(m.Method, m.Params, headers))
	if !k.repeated {
		if out := r.prepareRequest(m, k, headers, &route); out != nil {
			m.Release()
			return r.instead(ctx, k, out)
		}
	}
	m.Recheck = k.paramsToRepeat != nil
	m.ID, m.Alias, m.Claim, m.Route = wire.IntID(k.n), wire.ID{}, nil, route
	if !r.calls.send(k) { // cancelled, or too late
		m.Release()
		return nil
	}
	err := r.up.Write(ctx, m)
	if next := r.calls.sent(k); next != nil {
		_ = r.send(ctx, next)
	}
	if r.unsent(ctx, err) && r.calls.close(k.n) != nil {
		if errors.Is(err, wire.ErrPeerClosed) || errors.Is(err, wire.ErrClosed) {
			r.lost()
		}
		return r.toClient(ctx, errUnsent.to(k, nil))
	}
	return ctx.Err()
}

// prepareRequest makes m what the server gets, or returns the answer to a request that the server does not get.
func (r *relay) prepareRequest(m *wire.Message, k *call, headers []mcpmsg.ParamHeader, route *wire.Route) *wire.Message {
	if k.claim != nil && !agree(route, k.claim, headers) {
		return errMismatch.to(k, nil)
	}
	k.sending(r.surface.label(k.tool))
	var e strictjson.Edits
	k.restored = r.restore(m, &e)
	if err := k.applyEdits(m, &e); err != nil {
		return errUnsent.to(k, nil)
	}
	if k.restored.tokens > 0 { // a header may repeat an argument
		*route = cloneRoute(mcpmsg.RouteOf(m.Method, m.Params, headers))
	}
	if r.cfg.Repeat && k.item.Name != "" {
		k.paramsToRepeat = bytes.Clone(m.Body())
	}
	return nil
}

// instead answers a request that the server does not get. Where the client has heard meanwhile that it took too
// long, or waits no more, it is not answered.
func (r *relay) instead(ctx context.Context, k *call, out *wire.Message) error {
	if r.calls.close(k.n) == nil || k.cancelled {
		out.Release()
		return nil
	}
	return r.toClient(ctx, out)
}

// stopped asks what may keep a request from the server, and returns the answer to one that
// is; nil: nothing does.
func (r *relay) stopped(ctx context.Context, m *wire.Message, k *call) *wire.Message {
	if out := r.refuseIllFormed(m, k); out != nil {
		return out
	}
	if r.mayNotKnow(ctx, k) {
		return r.refuseUnapproved(m, k)
	}
	if k.repeated { // what follows was asked before
		return nil
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
		r.quiet.warn("a notification of the client was dropped: its extension is not passed on", "method", finding.Quote(m.Method))
		m.Release()
		return nil
	}
	m.Route = cloneRoute(mcpmsg.RouteOf(m.Method, m.Params, nil))
	if m.Method == mcpmsg.Cancelled {
		switch r.cancelled(m) {
		case neverSend:
			m.Release()
			return nil
		case sendLater:
			return nil
		}
	}
	return r.send(ctx, m)
}

// cancelled gives a cancellation the id that the server knows, and says when the server gets it: never if it has
// not heard of the request, or no longer works on it.
func (r *relay) cancelled(m *wire.Message) following {
	request := m.Params.Get("requestId")
	if !request.Exists() {
		return sendNow
	}
	id, valid := wire.IDOf(request)
	k := (*call)(nil)
	if valid {
		k = r.calls.cancel(id, time.Now())
	}
	if k == nil {
		return neverSend // answered meanwhile, or never asked
	}
	k.done(OutcomeCancelled, 0)
	ours := wire.IntID(k.n)
	m.Route.Cancels = ours
	var e strictjson.Edits
	e.Replace(request, ours.Append(nil))
	if m.Edit(&e) != nil {
		return neverSend
	}
	return r.calls.follow(k, m)
}

// send gives the server a message that is not a request of the client's.
func (r *relay) send(ctx context.Context, out *wire.Message) error {
	r.write(ctx, out)
	return ctx.Err()
}

// write is send, and reports whether the message could be sent.
func (r *relay) write(ctx context.Context, out *wire.Message) bool {
	r.calls.write()
	err := r.up.Write(ctx, out)
	r.calls.wrote()
	return !r.unsent(ctx, err)
}

// unsent reports whether a message could not be sent, though the session goes on. That the server has ended is
// heard from its connection.
func (r *relay) unsent(ctx context.Context, err error) bool {
	if err == nil || ctx.Err() != nil {
		return false
	}
	r.quiet.warn("a message could not be sent to the server", "error", err)
	return true
}
