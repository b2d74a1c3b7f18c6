// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/model/counterfactual"
	"github.com/pellucid-mcp/pellucid/model/guard"
	"github.com/pellucid-mcp/pellucid/model/jobs"
	"github.com/pellucid-mcp/pellucid/model/llm"
	"github.com/pellucid-mcp/pellucid/platform/listen"
	"github.com/pellucid-mcp/pellucid/storage"
)

// guardSettings are what a configuration and the command line say together.
type guardSettings struct {
	guard    rules.Guard
	store    rules.Store
	evidence rules.Evidence
	key      llm.Key
	seal     func([]byte) ([]byte, error) // to the reviewers; nil: what is held is not encrypted
	severity int                          // from which a source is blamed and withheld
}

// settings reads the configuration and puts the command line on top of it.
func (c *guardCmd) settings(e *env) (*guardSettings, error) {
	out := &guardSettings{severity: 250}
	if c.Config != "" {
		r, err := rules.Load(c.Config, e.references())
		if err != nil {
			return nil, exit.With(exit.Config, fmt.Errorf("guard: %w", err))
		}
		out.store, out.evidence = r.Store, r.Evidence
		if r.Guard != nil {
			out.guard = *r.Guard
		}
		if r.Reviewers != nil {
			out.seal = r.Reviewers.Seal
		}
	}
	g := &out.guard
	g.Upstream = cmp.Or(c.Upstream, g.Upstream)
	if g.Upstream == "" {
		return nil, exit.With(exit.Config, errors.New("guard: neither --upstream nor guard.upstream of the configuration says where the provider is"))
	}
	g.Audit = c.Mode == "audit" || c.Mode == "" && g.Audit
	g.FailOpen = c.Fail == "open" || c.Fail == "" && g.FailOpen
	g.Buffer = c.Buffer || g.Buffer
	g.NoGuess = c.NoGuess || g.NoGuess
	g.UntrustedTools = append(g.UntrustedTools[:len(g.UntrustedTools):len(g.UntrustedTools)], c.Untrusted...)
	g.Tools = append(c.tools(), g.Tools...)
	g.Pass = append(g.Pass[:len(g.Pass):len(g.Pass)], c.Pass...)
	set := func(to *int, flag *int) {
		if flag != nil {
			*to = *flag
		}
	}
	set(&g.Calls, c.Calls)
	set(&g.Factor, c.Factor)
	if c.Seconds != nil {
		g.Time = time.Duration(*c.Seconds) * time.Second
	}
	set(&out.severity, g.Blame)
	set(&out.severity, c.Severity)
	if c.Severity != nil {
		g.Quarantine.From = nil
	}
	g.Quarantine.Scope = cmp.Or(c.Quarantine, g.Quarantine.Scope, "text")
	switch {
	case c.Key != "":
		secret := e.secrets()
		if _, err := secret.optional("guard: --key", c.Key); err != nil {
			return nil, err
		}
		out.key = llm.NewKey(c.Key, func() (string, error) { return secret(c.Key) })
	case g.Key.Reveal() != "":
		out.key = llm.NewKey(g.Key.String(), func() (string, error) { return g.Key.Reveal(), nil })
	}
	return out, nil
}

// tools are the rules of the command line, which go before those of the configuration.
func (c *guardCmd) tools() (out []rules.GuardTool) {
	for _, glob := range c.Privileged {
		out = append(out, rules.GuardTool{Tool: glob, Privilege: 1000})
	}
	for _, glob := range c.ReadOnly {
		out = append(out, rules.GuardTool{Tool: glob})
	}
	return out
}

// options are what the settings say of the guard itself.
func (s *guardSettings) options() (*guard.Options, error) {
	g := &s.guard
	o := &guard.Options{
		Upstream: g.Upstream, Key: s.key, Buffer: g.Buffer, Pass: g.Pass, Policy: s.policy(), Calls: g.Calls, Concurrency: g.Concurrency, Millis: g.Time.Milliseconds(),
		TokenFactor: int64(g.Factor), MinTokens: int64(g.MinTokens), Refine: g.Refine,
		Fail:     counterfactual.FailMode{DangerouslyAllowPrivileged: g.FailOpen},
		Severity: counterfactual.Bands(g.Severity),
		Hooks:    guard.Hooks{MinSeverity: s.severity},
	}
	o.Hooks.QuarantineFrom = g.Quarantine.From
	if g.Audit {
		o.Mode = guard.Audit
	}
	if g.Strategy != "prior" {
		o.Strategy = counterfactual.Strategy(g.Strategy)
	}
	if g.Calibration != "" {
		cal, err := readCalibration(g.Calibration)
		if err == nil {
			o.Rates, err = cal.Rates()
		}
		if err != nil {
			return nil, fmt.Errorf("guard: calibration: %w", err)
		}
	}
	if len(g.UntrustedTools) > 0 {
		strangers := &counterfactual.Policy{}
		for _, glob := range g.UntrustedTools {
			strangers.Rules = append(strangers.Rules, counterfactual.ToolRule{Tool: glob, Privilege: 1})
		}
		strangers.Rules = append(strangers.Rules, counterfactual.ToolRule{Tool: "*"})
		o.UntrustedTool = func(name string) bool { return strangers.Privilege(name) > 0 }
	}
	return o, nil
}

// policy says which calls need a verdict.
func (s *guardSettings) policy() *counterfactual.Policy {
	p := &counterfactual.Policy{Guess: !s.guard.NoGuess}
	for _, t := range s.guard.Tools {
		p.Rules = append(p.Rules, counterfactual.ToolRule(t))
	}
	return p
}

// withWorkers makes the guard, and where there are to be workers has them begin. done
// ends them.
func (c *guardCmd) withWorkers(ctx context.Context, o guard.Options, db string, log *slog.Logger) (g *guard.Guard, done func(), err error) {
	if c.Workers == 0 {
		if g, err = guard.New(o); err != nil {
			return nil, nil, exit.With(exit.Config, err)
		}
		return g, func() {}, nil
	}
	switch {
	case !storage.IsPostgres(db):
		return nil, nil, exit.With(exit.Config, errors.New("guard: --workers needs a database that is Postgres (--db)"))
	case o.Mode != guard.Audit:
		return nil, nil, exit.With(exit.Config, errors.New("guard: --workers needs audit mode: a client waits for what is enforced"))
	case o.Key.IsZero():
		return nil, nil, exit.With(exit.Config, errors.New("guard: --workers needs a key of the guard's own: clients' are never stored"))
	}
	queue := &auditQueue{ready: make(chan struct{})}
	o.Audits = queue
	if g, err = guard.New(o); err != nil {
		return nil, nil, exit.With(exit.Config, err)
	}
	most := 2 * max(time.Duration(o.Millis)*time.Millisecond, time.Minute)
	queue.Queue, err = jobs.Open(ctx, jobs.Options{URL: db, Workers: c.Workers, Timeout: most, Log: log,
		Do: func(ctx context.Context, id string, work []byte) error {
			select {
			case <-queue.ready:
				return g.RunAudit(ctx, id, work, queue)
			case <-ctx.Done(): // it could not be opened after all
				return ctx.Err()
			}
		}})
	if err != nil {
		return nil, nil, exit.With(exit.Unreachable, err)
	}
	close(queue.ready)
	return g, func() {
		wait, stop := context.WithTimeout(context.Background(), listen.ShutdownWait)
		defer stop()
		if err := queue.Close(wait); err != nil {
			log.Warn("a worker has been cut: another one goes on")
		}
	}, nil
}

// auditQueue is a queue whose workers may begin before it is known.
type auditQueue struct {
	*jobs.Queue
	ready chan struct{}
}
