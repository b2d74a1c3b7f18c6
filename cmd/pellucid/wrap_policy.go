// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"github.com/pellucid-mcp/pellucid/app"
	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/boundary/gateway"
	"github.com/pellucid-mcp/pellucid/boundary/policy"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/record/standing"
	"github.com/pellucid-mcp/pellucid/record/trust"
	"github.com/pellucid-mcp/pellucid/storage"
)

// A wrapPolicy is what --policy names, with the scores that its rules may ask for.
type wrapPolicy struct {
	rules *rules.Rules
	book  *trust.Book
}

// readPolicy reads what --policy names: a preset, or the policy of a configuration.
func (c *wrapCmd) readPolicy() (*wrapPolicy, error) {
	var r *rules.Rules
	var err error
	switch {
	case c.Policy == "":
		return nil, nil
	case slices.Contains(policy.Presets, c.Policy):
		r, err = rules.Parse([]byte("version: 1\npolicy: {preset: "+c.Policy+"}\n"), rules.Options{})
	default:
		r, err = rules.LoadPolicy(c.Policy)
	}
	if err != nil {
		return nil, fmt.Errorf("wrap: --policy: %w", err)
	}
	return &wrapPolicy{rules: r}, nil
}

// Decide implements gateway.Policy.
func (p *wrapPolicy) Decide(e gateway.PolicyEvent) gateway.PolicyDecision {
	return app.DecideBy(p.rules.Policy, p.book, nil, e)
}

// session has the scores begin at rest, and makes them of what passes here.
func (p *wrapPolicy) session(cfg *gateway.Config) {
	p.book = trust.NewBook(trust.New(trust.Options{}))
	cfg.Policy, cfg.Sink = p, gateway.Tee(cfg.Sink, app.TrustSink{Book: p.book})
}

// records opens the ledger. The scores that a policy asks for follow it, until stop is
// called.
func (c *wrapCmd) records(s *storage.Store, dir *state.Dir, e *rules.Evidence, log *slog.Logger) (r *install.Records, stop func(), err error) {
	if c.policy == nil {
		r = install.OpenRecords(s, dir, e, install.PollSeldom, log)
		return r, r.Close, nil
	}
	f, err := standing.Open(context.Background(), s.Ledger(), trust.Options{}.OrDefault(), log)
	if err != nil {
		return nil, nil, install.OpenError(err)
	}
	c.policy.book = f.Book()
	r = install.OpenFollowed(s, dir, e, install.PollSeldom, log, f.Integrated)
	r.Rules(c.policy.rules.Version())
	unfollow := app.FollowScores(f)
	return r, func() { r.Close(); unfollow() }, nil
}
