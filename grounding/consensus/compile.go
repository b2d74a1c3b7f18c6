// SPDX-License-Identifier: Apache-2.0

package consensus

import (
	"fmt"
	"strings"

	"github.com/pellucid-mcp/pellucid/grounding/attest"
	"github.com/pellucid-mcp/pellucid/text/href"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// The JSON-LD context and type of a profile. The context is bundled: it is
// compared, never fetched.
const (
	ProfileContext = "https://veritas-protocol.example/cpml/v0.1"
	ProfileType    = "ConsensusProfile"
)

const (
	maxProfile     = 1 << 20 // bytes
	maxID          = 256
	maxProse       = 4096
	maxBeliefs     = 64
	maxTopics      = 256
	maxOverrides   = 1024
	maxTrusted     = 8192
	maxValidators  = 100_000 // of minValidators
	maxThreshold   = One - 1 // the greatest that a share can exceed
	profileIDStart = "urn:cpml:"
)

// Compile reads a profile, strictly: a member that the format does not have is
// refused, and so is every value beyond its bounds. The domains are looked up in
// reg. The error is problems, all of them, or wraps a *strictjson.SyntaxError.
func Compile(src []byte, reg *Registry) (*Profile, error) {
	var doc strictjson.Doc
	if err := doc.Reset(src, strictjson.Limits{Bytes: maxProfile, Depth: 8, Values: 1 << 16}); err != nil {
		return nil, fmt.Errorf("consensus: profile: %w", err)
	}
	c := compiler{reg: reg, out: &Profile{
		base:      terms{weightedMajority, defaultThreshold},
		domains:   map[Domain]*belief{},
		overrides: map[string]*override{},
		trust:     trust{usual: One, of: map[string]Score{}},
		text:      untrustedText{Rationales: map[Domain]string{}},
	}}
	c.profile(place{v: doc.Root()})
	if err := c.err(); err != nil {
		return nil, err
	}
	return c.out, nil
}

type compiler struct {
	reader
	reg *Registry
	out *Profile
}

func (c *compiler) profile(p place) {
	out := c.out
	var overrides place
	c.object(p, members{
		"@context":    func(p place) { c.constant(p, ProfileContext) },
		"@type":       func(p place) { c.constant(p, ProfileType) },
		"id":          func(p place) { out.id = c.checked(p, maxID, profileID) },
		"version":     func(p place) { out.version = c.version(p) },
		"owner":       c.owner,
		"issued":      func(p place) { out.issued = c.date(p) },
		"expires":     func(p place) { out.expires = c.date(p) },
		"description": func(p place) { out.text.Description = c.text(p, maxProse) },
		"domains":     func(p place) { c.array(p, maxBeliefs, c.domain) },
		"topics":      func(p place) { overrides = p },
		"validators": func(p place) {
			c.object(p, members{
				"trust":  c.trust,
				"ledger": func(p place) { out.ledger = LedgerUse(c.constant(p, string(ledgerReputation), string(ledgerTrust))) },
			})
		},
		"conflict": func(p place) {
			c.object(p, members{
				"rule":      func(p place) { out.base.rule = c.rule(p) },
				"threshold": func(p place) { out.base.threshold = c.score(p, maxThreshold) },
			})
		},
	}, "@context", "@type", "id", "version", "issued", "domains")
	if overrides.v.Exists() { // after the domains, which they name
		c.names(overrides, maxOverrides, c.override)
	}
	if !out.expires.IsZero() && !out.issued.IsZero() && !out.expires.After(out.issued) {
		c.report(datesOutOfOrder, p.of("expires"))
	}
}

// profileID: urn:cpml: and parts of letters, digits, ".", "-" and "_", parted by ":".
func profileID(s string) bool {
	path, ok := strings.CutPrefix(s, profileIDStart)
	if !ok {
		return false
	}
	for part := range strings.SplitSeq(path, ":") {
		if !word(part, ".-_") {
			return false
		}
	}
	return true
}

func (c *compiler) owner(p place) {
	c.object(p, members{
		"@id": func(p place) {
			c.out.owner = c.checked(p, href.MaxLen, func(s string) bool {
				_, err := href.Parse(s)
				return err == nil && (strings.HasPrefix(s, "did:") || strings.HasPrefix(s, "https:"))
			})
		},
		"name": func(p place) { c.out.text.OwnerName = c.text(p, maxProse) },
	}, "@id")
}

func (c *compiler) rule(p place) Rule {
	return Rule(c.constant(p, string(weightedMajority), string(unanimous)))
}

// lookup resolves the domain that s names at p.
func (c *compiler) lookup(s string, p place) Domain {
	d, err := c.reg.Resolve(s)
	if err != nil {
		c.report(err.(code), p)
	}
	return d
}

func (c *compiler) domain(p place) {
	b := &belief{minValidators: 1}
	var name Domain
	var rationale string
	c.object(p, members{
		"name": func(p place) {
			if p.v.Kind() != '"' {
				c.report(wrongType, p)
				return
			}
			if name = c.lookup(p.v.Text(), p); c.out.domains[name] != nil {
				c.report(duplicate, p)
				name = ""
			}
		},
		"weight":        func(p place) { b.weight = c.score(p, One) },
		"topics":        func(p place) { c.array(p, maxTopics, func(p place) { b.topics = append(b.topics, c.topic(p)) }) },
		"minValidators": func(p place) { b.minValidators = c.count(p, maxValidators) },
		"minReputation": func(p place) { b.minReputation = c.score(p, One) },
		"rationale":     func(p place) { rationale = c.text(p, maxProse) },
	}, "name", "weight")
	if name == "" {
		return
	}
	c.out.domains[name] = b
	if rationale != "" {
		c.out.text.Rationales[name] = rationale
	}
}

func (c *compiler) topic(p place) string { return c.checked(p, maxTopic, attest.TopicValid) }

// override reads the override of the topic that is called name.
func (c *compiler) override(name string, at, val place) {
	if !attest.TopicValid(name) {
		c.report(malformed, at)
	}
	o := &override{topic: name}
	score := func(to **Score, most Score) func(place) {
		return func(p place) { s := c.score(p, most); *to = &s }
	}
	c.object(val, members{
		"rule":          func(p place) { o.rule = c.rule(p) },
		"threshold":     score(&o.threshold, maxThreshold),
		"minValidators": func(p place) { o.minValidators = c.count(p, maxValidators) },
		"minReputation": score(&o.minReputation, One),
		"weights": func(p place) {
			o.weights = map[Domain]Score{}
			c.names(p, maxBeliefs, func(name string, at, val place) { c.weight(o, name, at, val) })
		},
	})
	c.out.overrides[name] = o
}

func (c *compiler) weight(o *override, name string, at, val place) {
	d := c.lookup(name, at)
	s := c.score(val, One)
	switch _, twice := o.weights[d]; {
	case d == "":
	case c.out.domains[d] == nil:
		c.report(domainNotInProfile, at)
	case twice: // by its identifier and by an alias
		c.report(duplicate, at)
	default:
		o.weights[d] = s
	}
}

func (c *compiler) trust(p place) {
	t := &c.out.trust
	c.object(p, members{
		"minimum": func(p place) { t.minimum = c.score(p, One) },
		"default": func(p place) { t.usual = c.score(p, One) },
		"validators": func(p place) {
			c.names(p, maxTrusted, func(name string, at, val place) {
				if _, err := href.ParseDID(name); err != nil {
					c.report(malformed, at)
					return
				}
				id := identity(name)
				if _, twice := t.of[id]; twice {
					c.report(duplicate, at)
				}
				t.of[id] = c.score(val, One)
			})
		},
	})
}
