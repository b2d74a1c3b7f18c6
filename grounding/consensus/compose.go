// SPDX-License-Identifier: Apache-2.0

package consensus

import (
	"cmp"
	"slices"
	"time"

	"github.com/pellucid-mcp/pellucid/grounding/attest"
)

// A Result is what the votes come to.
type Result struct {
	Primary      attest.Verdict `json:"primary_verdict"`
	Basis        Basis          `json:"outcome"`
	Validators   int            `json:"validator_count"`      // distinct, of the votes that counted
	Disagreement bool           `json:"disagreement_present"` // a second verdict has weight
}

// A Basis says why the verdict is what it is. It is a constant of this package.
type Basis string

// The outcomes.
const (
	majority       Basis = "majority"           // the primary verdict has won
	tooFew         Basis = "too-few-validators" // UNVERIFIED
	tie            Basis = "tie"                // DISPUTED: two verdicts have the most weight
	belowThreshold Basis = "below-threshold"    // DISPUTED: no verdict exceeds the threshold
	dissent        Basis = "dissent"            // DISPUTED: the profile wants unanimity
	notInForce     Basis = "profile-not-in-force"
)

// An Explanation is how a verdict came about: enough to compose it again by
// hand. It does not depend on the order of the votes.
type Explanation struct {
	Profile       string    `json:"profile"`
	Version       string    `json:"profile_version"`
	Override      string    `json:"override,omitempty"` // the topic whose override applied
	Rule          Rule      `json:"rule"`
	Threshold     Score     `json:"threshold"`
	MinValidators int       `json:"min_validators"`
	Ledger        LedgerUse `json:"ledger,omitempty"` // for what scores of the ledger were taken
	Total         Weight    `json:"total_weight"`
	Tallies       []Tally   `json:"tallies"`             // the heaviest first, then by name
	Affirming     *Tally    `json:"affirming,omitempty"` // VERIFIED and SUPPORTED together, where both have weight
	Votes         []Entry   `json:"votes"`               // by validator, the newest first
}

// A Tally is what was counted for one verdict.
type Tally struct {
	Verdict    attest.Verdict `json:"verdict"`
	Validators int            `json:"validator_count"`
	Weight     Weight         `json:"weight"`
}

// An Entry says what became of one vote.
type Entry struct {
	ID        string         `json:"id"`
	Validator string         `json:"validator_did"`
	Verdict   attest.Verdict `json:"verdict"`
	Reason    Reason         `json:"reason"`
	Weight    Weight         `json:"weight"`                 // 0 unless it counted
	Recorded  Score          `json:"ledger_score,omitempty"` // where the profile takes it
}

// Compose composes votes on one claim by the profile p, at the time now. topic
// is what was asked for: it selects the override, and only votes on it or on a
// topic below it count; "" is every topic.
//
// A vote counts that stands, is in a domain and on a topic that p believes, and
// is its validator's newest of those; it weighs domain weight × trust in p ×
// trust × reputation, of which a profile with a LedgerUse takes one to be at most the
// ledger's score of the validator. A vote that does not count has no effect at all: leaving
// it out changes nothing but its own entry.
//
// spec: consensus/3
func Compose(p *Profile, topic string, now time.Time, votes []Vote) (Result, Explanation) {
	inForce := p.inForce(now)
	if p == nil {
		p = &Profile{}
	}
	c := composition{p: p, topic: topic, now: now, over: p.override(topic), inForce: inForce}
	e := Explanation{Profile: p.id, Version: p.version, Rule: p.base.rule, Threshold: p.base.threshold, Ledger: p.ledger}
	if o := c.over; o != nil {
		e.Override, e.Rule = o.topic, cmp.Or(o.rule, e.Rule)
		if o.threshold != nil {
			e.Threshold = *o.threshold
		}
	}
	e.MinValidators = c.minValidators()
	e.Votes = c.entries(votes)
	e.Tallies, e.Total = tally(e.Votes)
	e.Affirming = joinAffirming(e.Tallies)
	return c.verdict(&e), e
}

type composition struct {
	p       *Profile
	topic   string
	now     time.Time
	over    *override
	inForce bool
}

// minValidators is the greatest number that a domain with a say on the topic
// asks for. It does not depend on the votes: a vote more must not raise the bar.
func (c *composition) minValidators() int {
	if c.over != nil && c.over.minValidators > 0 {
		return c.over.minValidators
	}
	n := 1
	for d, b := range c.p.domains {
		if b.touches(c.topic) && c.weight(d, b) > 0 {
			n = max(n, b.minValidators)
		}
	}
	return n
}

func (c *composition) weight(d Domain, b *belief) Score {
	if c.over != nil {
		if w, ok := c.over.weights[d]; ok {
			return w
		}
	}
	return b.weight
}

// judge says what becomes of v before it is compared with its validator's other
// votes: "" and a weight above 0, or why it does not count.
func (c *composition) judge(v *Vote, identity string) (Reason, Weight) {
	if !c.inForce {
		return ProfileNotInForce, Weight{}
	}
	if r := v.standing(c.now); r != "" {
		return r, Weight{}
	}
	b := c.p.domains[v.Domain]
	if b == nil {
		return WrongDomain, Weight{}
	}
	minReputation := b.minReputation
	if c.over != nil && c.over.minReputation != nil {
		minReputation = *c.over.minReputation
	}
	trusted := c.p.trust.in(identity)
	reputation, trust := v.standings(c.p.ledger)
	switch {
	case !within(v.Topic, c.topic) || !b.covers(v.Topic):
		return WrongTopic, Weight{}
	case reputation < minReputation:
		return LowReputation, Weight{}
	case uint64(trust)*uint64(trusted) < uint64(c.p.trust.minimum)*uint64(One):
		return LowTrust, Weight{}
	}
	w := product(c.weight(v.Domain, b), trusted, trust, reputation)
	if w.IsZero() {
		return NoWeight, Weight{}
	}
	return "", w
}

// entries says what becomes of every vote.
func (c *composition) entries(votes []Vote) []Entry {
	type cast struct {
		vote     *Vote
		identity string
	}
	casts := make([]cast, len(votes))
	for i := range votes {
		casts[i] = cast{&votes[i], identity(votes[i].Validator)}
	}
	slices.SortFunc(casts, func(a, b cast) int {
		if c := cmp.Compare(a.identity, b.identity); c != 0 {
			return c
		}
		return a.vote.compare(b.vote)
	})
	out := make([]Entry, len(casts))
	counted := -1 // the newest cast that counted
	for i, x := range casts {
		reason, weight := c.judge(x.vote, x.identity)
		if reason == "" {
			switch {
			case counted < 0 || casts[counted].identity != x.identity:
				reason, counted = Counted, i
			case casts[counted].vote.ID == x.vote.ID:
				reason, weight = Repeated, Weight{}
			default:
				reason, weight = Superseded, Weight{}
			}
		}
		out[i] = Entry{x.vote.ID, x.vote.Validator, x.vote.Verdict, reason, weight, 0}
		if c.p.ledger != "" {
			out[i].Recorded = x.vote.Recorded
		}
	}
	return out
}

// tally adds up what counted.
func tally(entries []Entry) ([]Tally, Weight) {
	tallies := []Tally{} // [] in JSON, never null
	var total Weight
	for i := range entries {
		e := &entries[i]
		if e.Reason != Counted {
			continue
		}
		k := slices.IndexFunc(tallies, func(t Tally) bool { return t.Verdict == e.Verdict })
		if k < 0 {
			k = len(tallies)
			tallies = append(tallies, Tally{Verdict: e.Verdict})
		}
		tallies[k].Validators++
		tallies[k].Weight = tallies[k].Weight.plus(e.Weight)
		total = total.plus(e.Weight)
	}
	slices.SortFunc(tallies, func(a, b Tally) int {
		return cmp.Or(b.Weight.Compare(a.Weight), cmp.Compare(a.Verdict, b.Verdict))
	})
	return tallies, total
}

// joinAffirming returns VERIFIED and SUPPORTED as one side: the two verdicts do not contradict each other, and both
// mean at least SUPPORTED. It returns nil unless both have weight.
func joinAffirming(tallies []Tally) *Tally {
	out, n := Tally{Verdict: attest.Supported}, 0
	for _, t := range tallies {
		if isAffirming(t) {
			out.Validators, out.Weight, n = out.Validators+t.Validators, out.Weight.plus(t.Weight), n+1
		}
	}
	if n < 2 {
		return nil
	}
	return &out
}

// opposingTallies returns the tallies that contradict each other, the heaviest first.
func (e *Explanation) opposingTallies() []Tally {
	if e.Affirming == nil {
		return e.Tallies
	}
	out := append(slices.DeleteFunc(slices.Clone(e.Tallies), isAffirming), *e.Affirming)
	slices.SortStableFunc(out, func(a, b Tally) int { return b.Weight.Compare(a.Weight) })
	return out
}

// winningVerdict returns the verdict of the side that has won. Of VERIFIED and SUPPORTED it is the heavier one. It is
// SUPPORTED where both weigh the same, and where the profile wants unanimity.
func (e *Explanation) winningVerdict(side Tally) attest.Verdict {
	if e.Affirming == nil || side.Verdict != attest.Supported || e.Rule == unanimous {
		return side.Verdict
	}
	i := slices.IndexFunc(e.Tallies, isAffirming) // the heaviest first, then by name
	return e.Tallies[i].Verdict
}

func isAffirming(t Tally) bool { return t.Verdict == attest.Verified || t.Verdict == attest.Supported }

func (c *composition) verdict(e *Explanation) Result {
	sides := e.opposingTallies()
	v := Result{Disagreement: len(sides) > 1}
	for _, t := range sides {
		v.Validators += t.Validators
	}
	switch {
	case !c.inForce:
		v.Primary, v.Basis = attest.Unverified, notInForce
	case v.Validators < e.MinValidators:
		v.Primary, v.Basis = attest.Unverified, tooFew
	case v.Disagreement && sides[0].Weight == sides[1].Weight:
		v.Primary, v.Basis = attest.Disputed, tie
	case v.Disagreement && e.Rule == unanimous:
		v.Primary, v.Basis = attest.Disputed, dissent
	case !sides[0].Weight.exceeds(e.Threshold, e.Total):
		v.Primary, v.Basis = attest.Disputed, belowThreshold
	default:
		v.Primary, v.Basis = e.winningVerdict(sides[0]), majority
	}
	return v
}
