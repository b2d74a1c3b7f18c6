// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"

	"github.com/pellucid-mcp/pellucid/model/counterfactual"
	"github.com/pellucid-mcp/pellucid/model/guard"
)

// options are what the settings say of the guard itself.
func (s *GuardSettings) options() (*guard.Options, error) {
	g := &s.Guard
	o := &guard.Options{
		Upstream: g.Upstream, Key: s.Key, Buffer: g.Buffer, Pass: g.Pass, Policy: s.policy(), Calls: g.Calls, Concurrency: g.Concurrency, Millis: g.Time.Milliseconds(),
		TokenFactor: int64(g.Factor), MinTokens: int64(g.MinTokens), Refine: g.Refine, AttenuateBelow: g.AttenuateBelow,
		Fail:     counterfactual.Undecided{DangerouslyAllowPrivileged: g.FailOpen},
		Severity: counterfactual.Bands(g.Severity),
		Hooks:    guard.Hooks{MinSeverity: s.Severity},
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

// policy says which calls need a verdict.
func (s *GuardSettings) policy() *counterfactual.Privileges {
	p := &counterfactual.Privileges{Guess: !s.Guard.NoGuess}
	for _, t := range s.Guard.Tools {
		p.Rules = append(p.Rules, counterfactual.ToolRule(t))
	}
	return p
}
