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

// A rule says what the operator's rules say of the values of a call.
type rule = func(c counterfactual.Call, origins []counterfactual.Origin) (name string, says delegation.Response)

// rule is the operator's rule about values, and what the capsules of a context demand: the worse
// of the two counts.
func (o *Options) rule(a *counterfactual.Assembly) rule {
	if len(a.Capsules) == 0 {
		return o.Rule
	}
	return func(c counterfactual.Call, origins []counterfactual.Origin) (name string, says delegation.Response) {
		if o.Rule != nil {
			name, says = o.Rule(c, origins)
		}
		if id, kind := a.Breaks(c); kind != "" && (says == "" || delegation.Worse(says, delegation.Ask) != says) {
			return "capsule " + id + " " + string(kind), delegation.Ask
		}
		return name, says
	}
}
