// SPDX-License-Identifier: Apache-2.0

package consensus

import (
	"slices"
	"strings"
	"time"
)

// A Rule says how a profile settles a conflict between verdicts.
type Rule string

// The rules.
const (
	// weightedMajority: the verdict with the most weight, if its share of all
	// weight exceeds the threshold; the default.
	weightedMajority Rule = "weighted-majority"
	// unanimous: in addition, no other verdict has any weight.
	unanimous Rule = "unanimous"
)

// defaultThreshold is the share that a verdict must exceed where a profile does
// not say otherwise.
const defaultThreshold Score = One / 2

// A Profile is a consumer's compiled choice of whom to believe on what. It does
// not change once it is made. The zero Profile, and a nil one, believes nobody.
//
// Nothing that its methods return but UntrustedText is prose: ids, versions,
// topics and domains have a grammar that is safe in a label.
type Profile struct {
	id, version     string
	owner           string // a DID or an https URI, or ""
	issued, expires time.Time
	base            terms
	domains         map[Domain]*belief
	overrides       map[string]*override
	trust           trust
	ledger          LedgerUse
	text            untrustedText
}

// A LedgerUse says for what a profile takes the score that the aggregator's ledger gives a
// validator (docs/spec/trust.md). "" is for nothing, the default.
type LedgerUse string

// The uses.
const (
	ledgerReputation LedgerUse = "reputation" // the reputation is at most the score
	ledgerTrust      LedgerUse = "trust"      // the operator's trust is at most the score
)

// LedgerUse says whether composition by the profile reads Vote.Recorded.
func (p *Profile) LedgerUse() LedgerUse {
	if p == nil {
		return ""
	}
	return p.ledger
}

// terms decide on a whole composition.
type terms struct {
	rule      Rule
	threshold Score
}

// A belief is what a profile says of one domain.
type belief struct {
	weight        Score
	topics        []string // none: every topic
	minValidators int      // at least 1
	minReputation Score
}

// covers reports whether votes on topic count in the domain.
func (b *belief) covers(topic string) bool {
	return len(b.topics) == 0 || slices.ContainsFunc(b.topics, func(root string) bool { return within(topic, root) })
}

// touches reports whether votes on topic, or on one below it, may count.
func (b *belief) touches(topic string) bool {
	return b.covers(topic) || slices.ContainsFunc(b.topics, func(t string) bool { return within(t, topic) })
}

// An override replaces parts of a profile for a topic and all below it. A nil
// member leaves the profile's own.
type override struct {
	topic         string
	threshold     *Score
	rule          Rule // "" leaves the profile's own
	minValidators int  // 0 leaves the domains' own
	minReputation *Score
	weights       map[Domain]Score
}

type trust struct {
	minimum Score
	usual   Score // of a validator that is not in of
	of      map[string]Score
}

func (t *trust) in(validator string) Score {
	if s, ok := t.of[validator]; ok {
		return s
	}
	return t.usual
}

// untrustedText is the prose in a profile, as its author wrote it: third-party
// text, to be sanitised before anybody, person or model, is shown it.
type untrustedText struct {
	Description string
	OwnerName   string
	Rationales  map[Domain]string
}

// ID is the profile's identifier: urn:cpml:…
func (p *Profile) ID() string {
	if p == nil {
		return ""
	}
	return p.id
}

// Version is the version that the profile's author gave it.
func (p *Profile) Version() string {
	if p == nil {
		return ""
	}
	return p.version
}

// Owner is a DID or an https URI that package href has passed; "" if the profile
// does not say.
func (p *Profile) Owner() string {
	if p == nil {
		return ""
	}
	return p.owner
}

// inForce reports whether now lies in [issued, expires).
func (p *Profile) inForce(now time.Time) bool {
	return p != nil && !now.Before(p.issued) && (p.expires.IsZero() || now.Before(p.expires))
}

// Domains lists the domains that the profile believes, sorted.
func (p *Profile) Domains() []Domain {
	if p == nil {
		return nil
	}
	out := make([]Domain, 0, len(p.domains))
	for d := range p.domains {
		out = append(out, d)
	}
	slices.Sort(out)
	return out
}

// ForDomain is the profile of a consumer who names a domain and no profile: it
// believes every validator of d alike, from the first one on, by weighted
// majority. It is always in force. d is as Registry.Resolve returned it.
func ForDomain(d Domain) *Profile {
	return &Profile{
		id:      "urn:cpml:domain:" + string(d),
		version: version,
		base:    terms{weightedMajority, defaultThreshold},
		domains: map[Domain]*belief{d: {weight: One, minValidators: 1}},
		trust:   trust{usual: One},
	}
}

// Restrict is p with no domain but d, whose minimum of validators is then the
// only one. It is false where p does not believe d.
func (p *Profile) Restrict(d Domain) (*Profile, bool) {
	if p == nil || p.domains[d] == nil {
		return nil, false
	}
	out := *p
	out.domains = map[Domain]*belief{d: p.domains[d]}
	return &out, true
}

// override is the one of the longest topic that topic is or lies below; nil if
// there is none.
func (p *Profile) override(topic string) *override {
	if len(topic) > maxTopic {
		return nil
	}
	for t := range above(topic) {
		if o := p.overrides[t]; o != nil {
			return o
		}
	}
	return nil
}

// identity maps the spellings of a DID that lead to one document to one string,
// so that a did:web validator does not count twice by writing its host in
// capitals or by naming the usual port.
func identity(did string) string {
	rest, ok := strings.CutPrefix(did, "did:web:")
	if !ok {
		return did
	}
	host, path := rest, ""
	if i := strings.IndexByte(rest, ':'); i >= 0 {
		host, path = rest[:i], rest[i:]
	}
	if lower := strings.TrimSuffix(asciiLower(host), "%3a443"); lower != host {
		return "did:web:" + lower + path
	}
	return did
}
