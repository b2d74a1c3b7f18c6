// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// serverViolation drops what is no message, and tells whoever waits for it.
func (r *relay) serverViolation(ctx context.Context, v *wire.Violation) error {
	r.calls.arrived()
	defer r.calls.passed()
	args := []any{"reason", v.Reason, "offset", v.Offset, "excerpt", v.Excerpt}
	switch v.Kind {
	case wire.Response, wire.ErrorResponse:
		k := r.calls.answer(v.ID)
		if k == nil || r.calls.close(k.n) == nil {
			break
		}
		if k.id.IsZero() {
			r.listed(ctx, nil, r.surface.generation())
			break
		}
		evidence := r.refused("result", Withheld, finding.Violation, args...)
		if k.cancelled {
			return nil
		}
		return r.toClient(ctx, errBadAnswer.to(k, evidence))
	case wire.Request:
		if !v.ID.IsZero() {
			r.enqueue(answer{v.Code, "pellucid: " + v.Reason}.message(v.ID, nil))
		}
	}
	if v.Told {
		r.in.refuse("message", Dropped, finding.Violation)
		return nil
	}
	r.refused("message", Dropped, finding.Violation, args...)
	return nil
}

// fromServer passes a message of the server on. It owns m.
func (r *relay) fromServer(ctx context.Context, m *wire.Message) error {
	r.calls.arrived()
	defer r.calls.passed()
	kept := false // by whoever judges it
	defer func() {
		if !kept {
			m.Release()
		}
	}()
	switch m.Kind {
	case wire.Request:
		return r.serverRequest(ctx, m)
	case wire.Notification:
		return r.serverNotification(ctx, m)
	}
	k := r.calls.answer(m.ID)
	switch {
	case k == nil: // or it is answered already
		r.refused("result", Dropped, finding.Unsolicited)
		return nil
	case k.id.IsZero():
		r.calls.close(k.n)
		r.ownPage(ctx, k, m)
		return nil
	case m.Local && errors.Is(m.Cause, wire.ErrRenewed) && !k.repeated && k.paramsToRepeat != nil:
		r.repeatRequest(k)
		return nil
	}
	k.heardAnswer(m)
	if k.method == mcpmsg.SetLevel && k.minLogLevel >= 0 { // also where the server has no levels
		r.minLogLevel.Store(int32(k.minLogLevel))
	}
	p := passage{msg: m, method: k.method, id: k.shown, ctx: callContext{ctx, k}, watched: &k.watched, store: &k.store, restored: k.restored, revision: r.revisionOf(k)}
	if k.revision == mcpmsg.Modern {
		p.clientAbilities = &k.abilities
	}
	switch {
	case k.method == mcpmsg.CallTool:
		p.question, p.facts = k.asked, k.facts
		r.answersCall(&p, k)
	case p.ofTask():
		r.answersCall(&p, k)
	case m.Kind != wire.Response:
	case m.Result.Get("nextCursor").Exists():
		p.lastPage = m.Result.Get("nextCursor").Kind() != '"' || r.paging.isLastPage(k, m.Result.Get("nextCursor").Text())
	}
	switch {
	case m.Kind != wire.Response:
	case k.method == mcpmsg.ReadResource:
		p.uri = k.item.Name
	case k.method == mcpmsg.ListTools:
		r.clientPage(k, m)
	case k.method == mcpmsg.Initialize, k.method == mcpmsg.Discover:
		if !m.Result.Get("capabilities").Get("tools").Exists() {
			r.surface.settle(nil, r.surface.generation()) // there is nothing to list
		}
		r.news.greeted(m.Result.Get("capabilities"))
		version := m.Result.Get("protocolVersion").Text()
		if v := revision(version); v != "" {
			r.agreed.Store(&v)
			p.revision = r.revisionOf(k)
		}
		wire.AllowBatches(r.front, wire.HasBatches(version)) // what comes in an array leaves message by message
		wire.AllowBatches(r.up, wire.HasBatches(version))
	}
	kept = true
	return r.answer(ctx, k, p, m.Release)
}

// unreachable returns why the relay ends with the answer m: because the server
// could not be reached from the start.
func (r *relay) unreachable(m *wire.Message) error {
	if !m.Local {
		r.answered.Store(true)
		return nil
	}
	r.quiet.warn("a request could not be sent to the server", "error", m.Cause)
	if r.answered.Load() || !errors.Is(m.Cause, wire.ErrUnreachable) {
		return nil
	}
	err := fmt.Errorf("%w: %w", ErrUpstreamGone, m.Cause)
	r.failure.Store(&err)
	return err
}

func (r *relay) serverRequest(ctx context.Context, m *wire.Message) error {
	if !r.cfg.passages.Method(m.Method) {
		r.refuseExtension(m)
		return nil
	}
	if m.Method == mcpmsg.Sample && !r.cfg.DangerouslyAllowSampling {
		args := []any{"method", mcpmsg.Sample, "allow_with", "dangerously_allow_sampling"}
		if id := r.in.refuseOf(Decision{Method: mcpmsg.Sample, Kind: "request", Verdict: Dropped}, finding.Denied); id != nil {
			args = append(args, "evidence", id.String())
		}
		r.quiet.warn("server's request refused: "+string(finding.Denied), args...)
		r.enqueue(errNoSampling.message(m.ID, nil))
		return nil
	}
	if isQuestion(m.Method) && !r.canAsk(m) {
		r.refused("request", Dropped, finding.Denied, "method", m.Method, "why", "the client has not declared the capability")
		r.enqueue(errNoMethod.message(m.ID, nil))
		return nil
	}
	a, refused := r.calls.ask(m.ID, m.Method, time.Now())
	if refused != nil {
		r.refused("request", Dropped, finding.Violation)
		r.enqueue(refused.message(m.ID, nil))
		return nil
	}
	if r.clientLeft.Load() { // behind ask: clientGone answers those that it finds there
		if r.calls.answered(a.n, time.Now()) != nil {
			r.enqueue(errClientGone.message(a.id, nil))
		}
		return nil
	}
	p := passage{msg: m, method: m.Method, id: wire.IntID(a.n), revision: r.revisionOf(nil)}
	p.judged = r.cfg.judges(&p)
	out := r.in.pass(p)
	if out == nil {
		r.calls.answered(a.n, time.Now())
		r.enqueue(errWithheld.message(a.id, nil))
		return nil
	}
	if k := r.related(m); k != nil {
		out.Related = k.id
	}
	r.watch(&p)
	return r.toClient(ctx, out)
}

// canAsk reports whether the client has declared the capability that m needs, in the session or in the request that m
// belongs to. A client that has not declared any yet is asked.
func (r *relay) canAsk(m *wire.Message) bool {
	able := r.abilities.Load()
	if k := r.related(m); k != nil && r.clientModern.Load() {
		able = &k.abilities
	}
	return able == nil || able.Accepts(m.Method, m.Params)
}

// isQuestion reports whether only a client that has declared a capability may be asked this.
func isQuestion(method string) bool {
	return method == mcpmsg.Elicit || method == mcpmsg.Sample || method == mcpmsg.ListRoots
}

// wantsLog reports whether the client wants a log message of the level. k is the request that it belongs to, if
// that is known. spec: 2026-07-28: a request without a level gets none.
func (r *relay) wantsLog(k *call, level int) bool {
	switch {
	case !r.clientModern.Load():
		return level >= int(r.minLogLevel.Load())
	case k != nil:
		return k.wantsLog(level)
	}
	return r.calls.anyWantsLog(level)
}

// related returns the client's request that a request or notification of the
// server belongs to: the one on whose stream it came; else the one that it names
// or, since what a server says over a pipe it says at work, the only one there is.
func (r *relay) related(m *wire.Message) *call {
	if !m.Related.IsZero() {
		return r.calls.get(m.Related)
	}
	if m.Method == mcpmsg.Progress {
		if k, under := r.calls.noteProgress(string(m.Params.Get("progressToken").Raw()), time.Now()); under {
			return k
		}
		return nil
	}
	if id, valid := wire.IDOf(m.Params.Get("_meta").Get(mcpmsg.KeySubscriber)); valid {
		return r.calls.get(id)
	}
	if m.Kind == wire.Request || m.Method == mcpmsg.LogMessage {
		return r.calls.only()
	}
	return nil
}

func (r *relay) serverNotification(ctx context.Context, m *wire.Message) error {
	if !r.cfg.passages.Method(m.Method) {
		r.refuseExtension(m)
		return nil
	}
	p := passage{msg: m, method: m.Method}
	k := r.related(m) // before the walk: m may be read no more behind it
	switch m.Method {
	case mcpmsg.Progress:
		of, _ := r.calls.noteProgress(string(m.Params.Get("progressToken").Raw()), time.Now())
		if of == nil { // some clients end the session where they do not know the token
			r.refused("notification", Dropped, finding.Unsolicited, "method", mcpmsg.Progress)
			return nil
		}
		if of.sent != "" {
			p.token = of.token
		}
	case mcpmsg.LogMessage:
		if level := mcpmsg.LevelOf(m.Params.Get("level").Text()); level >= 0 && !r.wantsLog(k, level) {
			r.refused("notification", Dropped, finding.Unsolicited, "method", mcpmsg.LogMessage)
			return nil
		}
	case mcpmsg.ElicitationComplete:
		if able := r.abilities.Load(); able != nil && !able.URL && !r.clientModern.Load() {
			r.refused("notification", Dropped, finding.Denied, "method", mcpmsg.ElicitationComplete)
			return nil
		}
	case mcpmsg.ToolsChanged:
		r.surface.stale()
	case mcpmsg.Cancelled:
		request := m.Params.Get("requestId")
		if !request.Exists() {
			break
		}
		id, valid := wire.IDOf(request)
		if !valid {
			r.refused("notification", Dropped, finding.Misshapen)
			return nil
		}
		n, known := r.calls.asked(id)
		if !known {
			return nil // answered meanwhile
		}
		p.cancels = wire.IntID(n)
	case mcpmsg.TaskStatus, mcpmsg.TaskChanged:
		if p.endsTask(m.Params) {
			r.createdBy(&p, r.cfg.taskOf(m.Params.Get("taskId")))
		}
	}
	p.judged = r.cfg.judges(&p)
	out := r.in.pass(p)
	if out != nil && k != nil {
		out.Related = k.id
	}
	r.watch(&p)
	return r.toClient(ctx, out)
}

// cloneRoute copies a route whose strings alias a message that will be reused:
// a transport may keep them.
func cloneRoute(in wire.Route) wire.Route {
	in.Version, in.Name = strings.Clone(in.Version), strings.Clone(in.Name)
	out := maps.Clone(in.Params)
	clear(out)
	for name, value := range in.Params {
		out[name] = strings.Clone(value)
	}
	in.Params = out
	return in
}
