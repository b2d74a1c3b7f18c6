// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/boundary/evidence"
	"github.com/pellucid-mcp/pellucid/boundary/gateway"
	"github.com/pellucid-mcp/pellucid/boundary/policy"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/record/standing"
	"github.com/pellucid-mcp/pellucid/record/trust"
)

// sessionPolicy joins the policy in force and the scores for the calls of one owner.
type sessionPolicy struct {
	b      *boundary
	scopes []string
}

// policyOf is the policy for a session's owner; nil where no policy can be in force.
func (b *boundary) policyOf(owner string) gateway.Policy {
	if b.trust == nil {
		return nil
	}
	scopes := strings.Fields(owner)
	return sessionPolicy{b, scopes[min(1, len(scopes)):]}
}

// The actions of package policy are those of package gateway, in the same order.
var _ = [1]struct{}{}[int(policy.Deny)-int(gateway.PolicyDeny)]

// Decide implements gateway.Policy.
func (s sessionPolicy) Decide(e gateway.PolicyEvent) gateway.PolicyDecision {
	return decideBy(s.b.rules.Load().Policy, s.b.trust, s.scopes, e)
}

// decideBy has a policy, nil for none, decide about an event of a session that has scopes.
func decideBy(p *rules.Policy, book *trust.Book, scopes []string, e gateway.PolicyEvent) gateway.PolicyDecision {
	direction := policy.Result
	if e.Call {
		direction = policy.Call
	}
	if p == nil || p.Rules(direction) == 0 {
		return gateway.PolicyDecision{}
	}
	event := policy.Event{
		Direction: direction, Server: e.Server, Tool: e.Tool,
		ReadOnly: e.ReadOnly, Destructive: e.Destructive, OpenWorld: e.OpenWorld,
		Privileged:   p.Privileged(e.Server, e.Tool) || !e.ReadOnly && !e.Unprivileged,
		NotInspected: e.NotInspected, Size: e.Size, Scopes: scopes,
	}
	for _, c := range e.Findings {
		event.Findings = append(event.Findings, policy.Count{Code: c.Code, N: c.N})
	}
	for _, score := range e.Scores {
		event.Scores = append(event.Scores, policy.Score{Name: score.Classifier, Value: score.P})
	}
	server, tool := book.Scores(trust.Origin{Server: e.Server, Tool: e.Tool}, time.Now().Unix())
	event.ServerTrust, event.ToolTrust = server.Float(), tool.Float()
	d := p.Decide(&event)
	return gateway.PolicyDecision{PolicyOutcome: policyOutcomeOf(d.Outcome), Would: policyOutcomeOf(d.Would)}
}

func policyOutcomeOf(o policy.Outcome) gateway.PolicyOutcome {
	return gateway.PolicyOutcome{Action: gateway.PolicyAction(o.Action), Rule: o.Rule, Question: o.Question, Failed: o.Failed}
}

// trustSink makes events of decisions where there is no ledger to make them of.
type trustSink struct{ book *trust.Book }

// Record implements gateway.Sink. It never fails.
func (s trustSink) Record(d gateway.Decision) error {
	if e, counts := standing.Of(evidence.Message(&d)); counts {
		s.book.Apply(e)
	}
	return nil
}

// trustFile keeps the snapshot of the scores in the state directory.
type trustFile struct{ dir *state.Dir }

const (
	trustName   = "trust"
	maxSnapshot = 256 << 20 // bytes
)

// LoadTrust implements trust.Store.
func (f trustFile) LoadTrust(context.Context) ([]byte, error) {
	b, err := f.dir.Read(trustName, maxSnapshot)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return b, err
}

// SaveTrust implements trust.Store.
func (f trustFile) SaveTrust(_ context.Context, snapshot []byte) error {
	return f.dir.Write(trustName, snapshot)
}

// openTrust reads the scores where there is no ledger. A snapshot that does not fit is
// put aside: everything is at rest then.
func (b *boundary) openTrust(dir *state.Dir) (err error) {
	b.scores = trustFile{dir}
	b.trust, err = trust.Open(context.Background(), b.scores, b.scored)
	return b.begunAnew(err)
}

// saveWait is how often scores are kept.
const saveWait = time.Minute

func (b *boundary) keepTrust(ctx context.Context) {
	tick := time.NewTicker(saveWait)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			b.saveTrust()
		case <-ctx.Done():
			return
		}
	}
}

func (b *boundary) saveTrust() {
	if b.trust == nil || b.scores.dir == nil { // the log has them
		return
	}
	if err := b.trust.Save(context.Background(), b.scores); err != nil {
		b.log.Warn("trust scores of servers could not be stored", "error", err)
	}
}
