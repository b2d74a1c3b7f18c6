// SPDX-License-Identifier: Apache-2.0

package app

import (
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/boundary/evidence"
	"github.com/pellucid-mcp/pellucid/boundary/gateway"
	"github.com/pellucid-mcp/pellucid/boundary/policy"
	"github.com/pellucid-mcp/pellucid/record/standing"
	"github.com/pellucid-mcp/pellucid/record/trust"
)

// sessionPolicy joins the policy in force and the scores for the calls of one owner.
type sessionPolicy struct {
	b      *boundary
	scopes []string
}

// policyOf is the policy for a session's owner; nil where no policy can be in force.
func (b *boundary) policyOf(owner string) policy.Policy {
	if !b.decides {
		return nil
	}
	scopes := strings.Fields(owner)
	return sessionPolicy{b, scopes[min(1, len(scopes)):]}
}

// Reads implements policy.Policy.
func (s sessionPolicy) Reads() policy.Reads {
	if p := s.b.rules.Load().Policy; p != nil {
		return p.Reads()
	}
	return policy.Reads{}
}

// Decide implements policy.Policy: it adds what the gateway does not know.
func (s sessionPolicy) Decide(in policy.Input) policy.Ruling {
	p := s.b.rules.Load().Policy
	if p == nil || p.Count(in.Direction) == 0 {
		return policy.Ruling{}
	}
	in.Privileged = in.Privileged || p.Privileged(in.Server, in.Tool)
	in.Scopes = s.scopes
	if book := s.b.book(); book != nil {
		server, tool := book.Scores(trust.Origin{Server: in.Server, Tool: in.Tool}, time.Now().Unix())
		in.ServerTrust, in.ToolTrust = server.Float(), tool.Float()
	}
	return p.Decide(&in)
}

// trustSink makes events of decisions where there is no ledger to make them of.
type trustSink struct{ b *boundary }

// Record implements gateway.Sink. It never fails.
func (s trustSink) Record(d gateway.Decision) error {
	book := s.b.book()
	if book == nil {
		return nil
	}
	if e, counts := standing.Of(evidence.Message(&d)); counts {
		book.Apply(e)
	}
	return nil
}
