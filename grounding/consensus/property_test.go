// SPDX-License-Identifier: Apache-2.0

package consensus

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pellucid-mcp/pellucid/grounding/attest"
)

// Few values each, so that ties, clashes and copies are common.
var (
	genScore  = rapid.SampledFrom([]Score{0, 1, 100_000, 250_000, 333_333, One / 2, One - 1, One})
	genWeight = rapid.SampledFrom([]Score{0, 1, 100_000, 250_000, 333_333, One / 2})
	genTopic  = rapid.SampledFrom([]string{"", "a", "a:b", "a:b:c", "d"})
	genDomain = rapid.SampledFrom([]Domain{"scientific-default", "journalism-default", "legal-jurisdiction-eu", "religious-traditional"})
	genDay    = rapid.Map(rapid.IntRange(-4, 2), func(d int) time.Time { return now.AddDate(0, 0, d) })
	genWho    = rapid.Map(rapid.IntRange(0, 6), func(n int) string { return fmt.Sprintf("did:web:v%d.example", n) })
)

var genProfile = rapid.Custom(func(t *rapid.T) *Profile {
	p := &Profile{
		id: "urn:cpml:any", version: "1", issued: now.AddDate(-1, 0, 0),
		base:      terms{rapid.SampledFrom([]Rule{weightedMajority, unanimous}).Draw(t, "rule"), min(genScore.Draw(t, "threshold"), maxThreshold)},
		domains:   map[Domain]*belief{},
		overrides: map[string]*override{},
		trust:     trust{usual: rapid.SampledFrom([]Score{One / 2, One}).Draw(t, "trust"), minimum: rapid.SampledFrom([]Score{0, One / 4}).Draw(t, "least trust"), of: map[string]Score{"did:web:v1.example": One / 4}},
	}
	for _, d := range rapid.SliceOfNDistinct(genDomain, 1, 3, rapid.ID[Domain]).Draw(t, "domains") {
		p.domains[d] = &belief{
			weight:        genWeight.Draw(t, "weight"),
			topics:        rapid.SampledFrom([][]string{nil, nil, {"a"}, {"a:b", "d"}}).Draw(t, "topics"),
			minValidators: rapid.IntRange(1, 3).Draw(t, "least validators"),
			minReputation: rapid.SampledFrom([]Score{0, 0, One / 4}).Draw(t, "least reputation"),
		}
	}
	if rapid.Bool().Draw(t, "overridden") {
		o := &override{topic: "a:b", minValidators: rapid.IntRange(0, 2).Draw(t, "least validators"), weights: map[Domain]Score{}}
		o.weights[genDomain.Draw(t, "domain")] = genWeight.Draw(t, "weight")
		p.overrides[o.topic] = o
	}
	return p
})

var genVote = rapid.Custom(func(t *rapid.T) Vote {
	v := Vote{
		ID:         fmt.Sprintf("sha256:%d", rapid.IntRange(0, 40).Draw(t, "id")),
		Validator:  genWho.Draw(t, "who"),
		Verdict:    rapid.SampledFrom([]attest.Verdict{attest.Verified, attest.False, attest.Disputed, attest.Supported}).Draw(t, "verdict"),
		Domain:     genDomain.Draw(t, "domain"),
		Topic:      genTopic.Draw(t, "topic"),
		Issued:     genDay.Draw(t, "issued"),
		Status:     rapid.SampledFrom([]Status{Live, Live, Live, CascadePending, Retracted, StatusUnknown}).Draw(t, "status"),
		Reputation: genScore.Draw(t, "reputation"),
		Trust:      genScore.Draw(t, "trust"),
	}
	if rapid.IntRange(0, 3).Draw(t, "ends") == 0 {
		v.Expires = genDay.Draw(t, "expires")
	}
	return v
})

var genVotes = rapid.SliceOfN(genVote, 0, 24)

// drawn is one composition.
type drawn struct {
	p       *Profile
	topic   string
	votes   []Vote
	verdict Result
	why     Explanation
}

func draw(t *rapid.T) drawn {
	d := drawn{p: genProfile.Draw(t, "profile"), topic: genTopic.Draw(t, "topic"), votes: genVotes.Draw(t, "votes")}
	d.verdict, d.why = Compose(d.p, d.topic, now, d.votes)
	return d
}

// The verdict and its explanation do not depend on the order in which votes
// were ingested.
func TestOrderNeverMatters(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := draw(t)
		v, e := Compose(d.p, d.topic, now, rapid.Permutation(d.votes).Draw(t, "order"))
		if diff := cmp.Diff(d.verdict, v); diff != "" {
			t.Fatal(diff)
		}
		if diff := cmp.Diff(d.why, e, cmp.AllowUnexported(Weight{})); diff != "" {
			t.Fatal(diff)
		}
	})
}

// One more validator who says SUPPORTED does not turn a claim that is VERIFIED or SUPPORTED into one that is not.
func TestSupportHelps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := draw(t)
		affirms := func(r Result) bool { return r.Primary == attest.Verified || r.Primary == attest.Supported }
		if d.verdict.Basis != majority || !affirms(d.verdict) {
			return
		}
		more := genVote.Draw(t, "one more")
		more.ID, more.Validator, more.Verdict = "sha256:more", "did:web:more.example", attest.Supported
		if got, _ := Compose(d.p, d.topic, now, append(slices.Clone(d.votes), more)); !affirms(got) {
			t.Fatalf("%v with one more that supports it: %v", d.verdict, got)
		}
	})
}

// What did not count may as well not be there.
func TestWithheldNeverMatters(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := draw(t)
		counted := map[string]int{} // how many votes of an id by a validator counted
		for _, x := range d.why.Votes {
			if x.Reason == Counted {
				counted[x.Validator+x.ID+string(x.Verdict)]++
			}
		}
		var withheld []int
		for i, v := range d.votes {
			if counted[v.Validator+v.ID+string(v.Verdict)] == 0 {
				withheld = append(withheld, i)
			}
		}
		if len(withheld) == 0 {
			return
		}
		gone := rapid.SliceOfDistinct(rapid.SampledFrom(withheld), rapid.ID[int]).Draw(t, "left out")
		var rest []Vote
		for i, v := range d.votes {
			if !slices.Contains(gone, i) {
				rest = append(rest, v)
			}
		}
		v, e := Compose(d.p, d.topic, now, rest)
		if diff := cmp.Diff(d.verdict, v); diff != "" {
			t.Fatal(diff)
		}
		if diff := cmp.Diff(d.why.Tallies, e.Tallies, cmp.AllowUnexported(Weight{})); diff != "" {
			t.Fatal(diff)
		}
	})
}

// Only the proportions of the weights matter: of the domains', of the
// reputations, of the trust.
func TestWeightsScale(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := draw(t)
		for _, b := range d.p.domains {
			b.minReputation = 0 // a bar, not a weight
		}
		d.p.trust.minimum = 0
		halve := func(s Score) Score { return s / 2 * 2 } // to what can be halved
		for i := range d.votes {
			d.votes[i].Reputation, d.votes[i].Trust = halve(d.votes[i].Reputation), halve(d.votes[i].Trust)
		}
		want, _ := Compose(d.p, d.topic, now, d.votes)

		double := *d.p
		double.domains, double.overrides = map[Domain]*belief{}, map[string]*override{}
		for name, b := range d.p.domains {
			twice := *b
			twice.weight *= 2
			double.domains[name] = &twice
		}
		for topic, o := range d.p.overrides {
			twice := *o
			twice.weights = maps.Clone(o.weights)
			for name := range twice.weights {
				twice.weights[name] *= 2
			}
			double.overrides[topic] = &twice
		}
		if got, _ := Compose(&double, d.topic, now, d.votes); got != want {
			t.Fatalf("domains' weights twice: %+v, before %+v", got, want)
		}
		half := slices.Clone(d.votes)
		for i := range half {
			half[i].Reputation /= 2
		}
		if got, _ := Compose(d.p, d.topic, now, half); got != want {
			t.Fatalf("reputations halved: %+v, before %+v", got, want)
		}
		for i := range half {
			half[i].Trust /= 2
		}
		if got, _ := Compose(d.p, d.topic, now, half); got != want {
			t.Fatalf("trust halved too: %+v, before %+v", got, want)
		}
	})
}

// One more validator who says what has won changes nothing, whatever its domain,
// topic, weight and status.
func TestWinnerStays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := draw(t)
		if d.verdict.Basis != majority {
			return
		}
		more := genVote.Draw(t, "one more")
		more.Validator, more.Verdict = "did:web:newcomer.example", d.verdict.Primary
		v, _ := Compose(d.p, d.topic, now, append(d.votes, more))
		if v.Primary != d.verdict.Primary || v.Basis != majority || v.Disagreement != d.verdict.Disagreement {
			t.Fatalf("%+v, before %+v", v, d.verdict)
		}
	})
}

// However often a validator speaks, it counts once, and no heavier than its
// heaviest vote.
func TestValidatorCountsOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := draw(t)
		seen := map[string]bool{}
		for _, x := range d.why.Votes {
			if x.Reason == Counted && seen[x.Validator] {
				t.Fatalf("%s counts twice", x.Validator)
			}
			seen[x.Validator] = seen[x.Validator] || x.Reason == Counted
		}
		if n := d.verdict.Validators; n > len(seen) {
			t.Fatalf("%d validators of %d", n, len(seen))
		}
		// The same votes once more, some under a new hash.
		again := append(slices.Clone(d.votes), d.votes...)
		v, e := Compose(d.p, d.topic, now, again)
		if v != d.verdict || e.Total != d.why.Total {
			t.Fatalf("twice the votes: %+v, before %+v", v, d.verdict)
		}
		for i := range d.votes {
			again[i].ID += "-again"
		}
		if v, e := Compose(d.p, d.topic, now, again); v != d.verdict || e.Total != d.why.Total {
			t.Fatalf("twice the votes under other hashes: %+v, before %+v", v, d.verdict)
		}
	})
}

// The explanation is enough to come to the verdict by hand.
func TestExplanationSuffices(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := draw(t)
		if len(d.why.Votes) != len(d.votes) {
			t.Fatalf("%d votes, %d entries", len(d.votes), len(d.why.Votes))
		}
		weights := map[attest.Verdict]Weight{}
		var total Weight
		n := 0
		for _, x := range d.why.Votes {
			weights[x.Verdict], total = weights[x.Verdict].plus(x.Weight), total.plus(x.Weight)
			if x.Reason == Counted {
				n++
			}
		}
		maps.DeleteFunc(weights, func(_ attest.Verdict, w Weight) bool { return w.IsZero() })
		verified, supported := weights[attest.Verified], weights[attest.Supported]
		if both := verified.plus(supported); !verified.IsZero() && !supported.IsZero() { // one side
			delete(weights, attest.Verified)
			if weights[attest.Supported] = both; d.why.Affirming == nil || d.why.Affirming.Weight != both {
				t.Fatalf("together they have %v, told %+v", both, d.why.Affirming)
			}
		} else if d.why.Affirming != nil {
			t.Fatalf("one of them has no weight: %+v", d.why.Affirming)
		}
		want := Result{Primary: attest.Disputed, Validators: n, Disagreement: len(weights) > 1}
		if n < d.why.MinValidators {
			want.Primary = attest.Unverified
		} else {
			for verdict, w := range weights {
				alone := true
				for other, x := range weights {
					alone = alone && (other == verdict || x.Compare(w) < 0)
				}
				if alone && w.exceeds(d.why.Threshold, total) && (d.why.Rule != unanimous || len(weights) == 1) {
					want.Primary = verdict
				}
			}
		}
		if want.Primary == attest.Supported && d.why.Affirming != nil && d.why.Rule != unanimous && verified.Compare(supported) > 0 {
			want.Primary = attest.Verified
		}
		want.Basis = d.verdict.Basis
		if want != d.verdict {
			t.Fatalf("by hand %+v, got %+v", want, d.verdict)
		}
	})
}
