// SPDX-License-Identifier: Apache-2.0

package app

import (
	"cmp"
	"fmt"

	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/model/counterfactual"
	"github.com/pellucid-mcp/pellucid/model/delegation"
	"github.com/pellucid-mcp/pellucid/model/guard"
	"github.com/pellucid-mcp/pellucid/platform/sigv4"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
)

// options are what the settings say of the guard itself.
func (s *GuardSettings) options() (*guard.Options, error) {
	g := &s.Guard
	o := &guard.Options{
		Upstream: g.Upstream, Key: s.Key, Buffer: g.Buffer, Pass: g.Pass, SharedHosts: g.SharedHosts, Headers: g.Headers, Policy: s.policy(), Calls: g.Calls, Concurrency: g.Concurrency, Millis: g.Time.Milliseconds(),
		TokenFactor: int64(g.Factor), MinTokens: int64(g.MinTokens), Refine: g.Refine, AttenuateBelow: g.AttenuateBelow,
		Fail:     counterfactual.Undecided{DangerouslyAllowPrivileged: g.FailOpen},
		Severity: counterfactual.Bands(g.Severity),
		Hooks:    guard.Hooks{MinSeverity: s.Severity},
	}
	o.AWS = s.aws()
	o.Task = guard.Task(g.Task)
	o.Verdicts, o.DangerouslyIgnoreReaders = g.Verdicts, g.IgnoreReaders
	if err := planner(&o.Planner, &g.Planner); err != nil {
		return nil, err
	}
	var err error
	if o.Rules, err = valueRules(g); err != nil {
		return nil, err
	}
	o.Hooks.QuarantineFrom = g.Quarantine.From
	for _, c := range g.Capsules {
		o.Capsules = append(o.Capsules, guard.Capsule{Sources: c.Sources,
			Capsule: counterfactual.Capsule{ID: c.Name, ForbiddenTopics: c.Forbidden, NoExternalCalls: c.NoCalls}})
	}
	if g.Audit {
		o.Audit = true
	}
	if g.Strategy != "prior" {
		o.Strategy = counterfactual.Strategy(g.Strategy)
	}
	if g.Calibration != "" {
		cal, err := ReadCalibration(g.Calibration)
		if err == nil {
			o.Rates, err = cal.Rates()
		}
		if err != nil {
			return nil, fmt.Errorf("guard: calibration: %w", err)
		}
	}
	if len(g.UntrustedTools) > 0 {
		strangers := &counterfactual.Privileges{}
		for _, glob := range g.UntrustedTools {
			strangers.Rules = append(strangers.Rules, counterfactual.ToolRule{Tool: glob, Privilege: 1})
		}
		strangers.Rules = append(strangers.Rules, counterfactual.ToolRule{Tool: "*"})
		o.UntrustedTool = func(name string) bool { return strangers.Privilege(name) > 0 }
	}
	return o, nil
}

// aws is what signs for Amazon Bedrock; nil: nothing does.
func (s *GuardSettings) aws() *sigv4.Signer {
	if s.Guard.AWS == nil {
		return nil
	}
	return signer(s.Guard.AWS, s.Guard.Upstream)
}

// signer signs requests to a runtime endpoint of Amazon Bedrock.
func signer(a *rules.GuardAWS, endpoint string) *sigv4.Signer {
	read := func(v rules.Value) sigv4.Secret { return func() (string, error) { return a.Read(v) } }
	out := &sigv4.Signer{Region: cmp.Or(a.Region, sigv4.Region(endpoint, "bedrock-runtime")), Service: a.Service,
		Access: read(a.AccessKey), Secret: read(a.SecretKey)}
	if a.SessionToken.Reveal() != "" {
		out.Session = read(a.SessionToken)
	}
	return out
}

// planner says who is asked what a request may need.
func planner(to *guard.Planner, p *rules.GuardPlanner) error {
	to.Confirm, to.DangerouslySkipStated, to.Ahead = p.Confirm, p.SkipStated, p.Ahead
	if p.Examples != "" {
		b, err := terminal.ReadInput(p.Examples, nil)
		if err == nil {
			to.Examples, err = delegation.ParseExamples(b)
		}
		if err != nil {
			return fmt.Errorf("guard: planner: examples: %w", err)
		}
	}
	if p.Model != nil {
		e, err := p.Model.Endpoint()
		if err != nil {
			return fmt.Errorf("guard: planner: %w", err)
		}
		to.Client = e
	}
	return nil
}

// policy says which calls need a verdict.
func (s *GuardSettings) policy() *counterfactual.Privileges {
	p := &counterfactual.Privileges{Guess: !s.Guard.NoGuess}
	for _, t := range s.Guard.Tools {
		p.Rules = append(p.Rules, counterfactual.ToolRule(t))
	}
	return p
}
