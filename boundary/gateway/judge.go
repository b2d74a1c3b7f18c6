// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"

	"github.com/pellucid-mcp/pellucid/boundary/classify"
	"github.com/pellucid-mcp/pellucid/boundary/policy"
	"github.com/pellucid-mcp/pellucid/text/scrub"
)

// maxJudging bounds the bytes of a session's answers that wait for classifiers. What
// is beyond it is not judged, which is a failure of each of them.
const maxJudging = 64 << 20

// answer lets an answer to a call through the choke point and to the client. It owns
// the message, which it gives back with release, now or once nobody reads it any more.
// An answer that classifiers are asked about waits for them beside the server's reader:
// whatever else the server says is not held up.
func (r *relay) answer(ctx context.Context, k *call, p passage, release func()) error {
	p.judged = r.cfg.judges(&p)
	if p.judged == nil {
		defer release()
		return r.deliver(ctx, k, p)
	}
	if r.in.unfit(&p) {
		defer release()
		p.judged = nil
		return r.deliver(ctx, k, p)
	}
	p.judged.skip()
	asked := p.judged.asks(policy.Enforce)
	if len(asked) == 0 {
		return r.deliverJudged(ctx, k, p, release)
	}
	_, root, _ := partOf(p.msg)
	size := int64(len(root.Raw()))
	if r.judging.Add(size) > maxJudging {
		r.judging.Add(-size)
		for _, m := range asked {
			p.judged.assessments = append(p.judged.assessments, m.Skipped(classify.OverBudget))
		}
		return r.deliverJudged(ctx, k, p, release)
	}
	r.calls.pass()
	r.spawn(func() {
		defer r.calls.passed()
		defer r.judging.Add(-size)
		p.judged.assessments = append(p.judged.assessments, askAll(ctx, asked, r.in.see(p, wantsRaw(asked)))...)
		if ctx.Err() != nil {
			release()
			return // there is nobody left to answer
		}
		_ = r.deliverJudged(ctx, k, p, release) // that the client is gone is heard by its reader
	})
	return nil
}

// deliverJudged delivers an answer and has those judge it that are in shadow mode.
func (r *relay) deliverJudged(ctx context.Context, k *call, p passage, release func()) error {
	asked := p.judged.asks(policy.Shadow)
	err := r.deliver(ctx, k, p)
	if !p.judged.shown || len(asked) == 0 {
		release()
		return err
	}
	r.in.late.wait() // what is said of a record comes behind it
	r.in.behind(p, asked, release)
	return err
}

// deliver is the end of the way of what answers a call.
func (r *relay) deliver(ctx context.Context, k *call, p passage) error {
	m := p.msg
	out := r.in.pass(p)
	r.remember(k, m, out)
	// Closed before the client can know, who may use the id again; and only
	// after the walk, since a subscription's last message names its id.
	if r.calls.close(k.n) == nil || k.cancelled {
		if out != nil {
			out.Room().Leave()
		}
		return nil // the client has been told that it took too long, or waits no more
	}
	unreachable := r.unreachable(m)
	size := 0
	if out != nil {
		k.addressed(out).Whole = m.Whole
		size = out.Len()
	}
	err := r.toClient(ctx, out)
	k.delivered(m, size)
	if err != nil {
		return err
	}
	return unreachable
}

// see makes the view of an answer.
func (in *inspector) see(p passage, raw bool) *view {
	_, root, _ := partOf(p.msg)
	return viewOf(root, in.sight(p), raw, "")
}

// sight is the scrubber for the view of what answers a call, now; nil under a rule
// under which no message passes. Of what MCP would cut nothing is seen, since nothing is
// delivered. Faithful delivers another form, so that all of it is seen.
func (in *inspector) sight(p passage) *scrub.Scrubber {
	rule := in.cfg.ruleOf(&p)
	chars := rule.MaxChars
	if rule.Profile == Faithful {
		chars = maxView
	}
	s, _ := in.scrub.of(chars, scrub.ProfileTokens)
	return s.mcp
}

// behind has classifiers judge what was delivered. It owns what free frees.
func (in *inspector) behind(p passage, asked []*classify.Member, free func()) {
	_, root, _ := partOf(p.msg)
	with, cfg, quiet, raw := in.sight(p), &in.cfg, &in.quiet, wantsRaw(asked)
	d := Decision{ID: p.judged.evidence, Server: p.judged.server, Tool: p.tool, Received: p.judged.input}
	j := p.judged
	work := func(ctx context.Context) {
		cfg.tellAssessments(quiet, &d, j, askAll(ctx, asked, viewOf(root, with, raw, j.kind)), false)
	}
	if cfg.Classifiers.Shadow.offer(shadowJob{bytes: int64(len(root.Raw())), work: work, free: free}) {
		return
	}
	free()
	var list []classify.Assessment
	for _, m := range asked {
		list = append(list, m.Skipped(classify.OverBudget))
	}
	cfg.tellAssessments(quiet, &d, j, list, true)
}
