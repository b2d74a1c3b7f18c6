// SPDX-License-Identifier: Apache-2.0

package rules

import "strings"

// A GuardCapsule groups the texts of some sources: a search withholds them together, and while
// one is in a context, calls that it forbids are put to a reviewer.
type GuardCapsule struct {
	Name      string
	Sources   []string // patterns of SERVER/TOOL, or ?/TOOL where no fence proves the server
	Forbidden []string // words or phrases that the arguments of a call must not hold
	NoCalls   bool     // no call that needs a decision may be made
}

const maxGuardCapsules = 64

func guardCapsules(g *Guard) value {
	return named(maxGuardCapsules, isToolKey, (*GuardCapsule).members, newGuardCapsule,
		func(c *compiler, name string, key, val place) {
			p := newGuardCapsule()
			p.Name = name
			c.object(val, p.members())
			if len(p.Sources) == 0 {
				c.report(key, "want sources: the capsule holds no text without")
			}
			g.Capsules = append(g.Capsules, *p)
		},
		func(yield func(string, *GuardCapsule) bool) {
			for i := range g.Capsules {
				if !yield(g.Capsules[i].Name, &g.Capsules[i]) {
					return
				}
			}
		})
}

func newGuardCapsule() *GuardCapsule {
	p := new(GuardCapsule)
	reset(p.members())
	return p
}

func (p *GuardCapsule) members() []member {
	return []member{
		{"sources", live, list(&p.Sources, nil, maxGuardNames, "SERVER/TOOL, where * stands for any characters", isGuardSource),
			"whose texts are in it: `SERVER/TOOL`, or `?/TOOL` where no fence proves the server; `*` stands for any characters"},
		{"forbidden", live, list(&p.Forbidden, nil, maxGuardNames, "words", isTopic), "words or phrases that no call may have in its arguments while a text of the capsule is in the context"},
		{"no_calls", live, boolean(&p.NoCalls, false), "no privileged call may be made while a text of the capsule is in the context"},
	}
}

func isGuardSource(s string) bool {
	return s != "" && len(s) <= maxText && strings.ContainsAny(s, "/*")
}

func isTopic(s string) bool { return strings.TrimSpace(s) != "" && len(s) <= maxText }
