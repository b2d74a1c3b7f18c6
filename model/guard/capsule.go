// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"slices"

	"github.com/pellucid-mcp/pellucid/model/counterfactual"
	"github.com/pellucid-mcp/pellucid/model/delegation"
)

// A Capsule groups the segments of some sources: a search withholds them together, and a call
// that breaks the capsule while one of them is in the context is put to a reviewer.
type Capsule struct {
	counterfactual.Capsule
	Sources []string // patterns of counterfactual.Source.Label
}

// enclose puts the segments of a context into the capsules of their sources.
func (o *Options) enclose(a *counterfactual.Assembly) (*counterfactual.Assembly, error) {
	if len(o.Capsules) == 0 {
		return a, nil
	}
	claim := counterfactual.Claim{Members: map[int]string{}}
	for i := range o.Capsules {
		claim.Capsules = append(claim.Capsules, o.Capsules[i].Capsule)
	}
	for i := range a.Segments {
		label := a.Segments[i].Source.Label()
		for k := range o.Capsules {
			c := &o.Capsules[k]
			if slices.ContainsFunc(c.Sources, func(p string) bool { return counterfactual.Glob(p, label) }) {
				claim.Members[i] = c.ID
				break
			}
		}
	}
	return a.With(claim)
}

// rules are the operator's rules about values, and what the capsules of a context demand.
func (o *Options) rules(a *counterfactual.Assembly) delegation.Rules {
	if len(a.Capsules) == 0 {
		return o.Rules
	}
	return enclosed{o.Rules}
}

// enclosed are rules beside which a call that breaks a capsule is put to a reviewer.
type enclosed struct{ rules delegation.Rules }

// Names implements delegation.Rules.
func (e enclosed) Names(tool string) bool { return e.rules != nil && e.rules.Names(tool) }

// Rulings implements delegation.Rules.
func (e enclosed) Rulings(a *counterfactual.Assembly, c counterfactual.Call, origins []counterfactual.Origin) (out []delegation.Ruling) {
	if e.rules != nil {
		out = e.rules.Rulings(a, c, origins)
	}
	if id, kind := a.Breaks(c); kind != "" {
		out = append(out, delegation.Ruling{Rule: "capsule " + id + " " + string(kind), Says: delegation.Ask})
	}
	return out
}
