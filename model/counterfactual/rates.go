// SPDX-License-Identifier: Apache-2.0

package counterfactual

import "math"

// Rates say how reliably a model repeats itself, in millionths. The zero Rates
// are those of a model that nobody has measured.
type Rates struct {
	// P1 is a lower bound for the chance that a proposal recurs where all that caused
	// it is shown.
	P1 int `json:"p1"`
	// P0 is an upper bound for the chance that it recurs where it is not.
	P0 int `json:"p0"`
	// Model is the ModelDigest that they were measured on. An answer by another one
	// ends their use.
	Model string `json:"model,omitempty"`
}

// uncalibrated are the rates of a model that was not measured.
var uncalibrated = Rates{P1: 880_000, P0: 20_000}

// A Rule decides from answers whether a set of segments is sufficient for an
// proposal: a sequential likelihood-ratio test, in thousandths of a nat, so that it
// is the same on every machine. The sum of Positive for each answer in which the
// proposal recurs and of Negative for each other one is the logarithm of an e-value
// for "sufficient" against "not".
type Rule struct {
	Positive int `json:"positive"`
	Negative int `json:"negative"` // below 0
	Accept   int `json:"accept"`   // sufficient at this sum or above
	Reject   int `json:"reject"`   // not sufficient at this sum or below
}

// The errors that a decision of a Rule may have: 0.05 that a set which is not
// sufficient is taken for one that is, 0.02 the other way round.
const (
	acceptAt = 2996  // 1000 ln(1/0.05)
	rejectAt = -3912 // 1000 ln 0.02
)

// uncalibratedRule is Uncalibrated.Rule, a test holds them equal.
var uncalibratedRule = Rule{Positive: 3784, Negative: -2100, Accept: acceptAt, Reject: rejectAt}

// mostAnswers is how many equal answers have to decide about one set: as many as the attribution
// of a live decision may ask for.
const mostAnswers = 6

// Relaxed reports whether the errors of a decision are larger than those above, because a model
// of these rates could not be decided on within mostAnswers otherwise, and whether the rates tell
// nothing at all and uncalibrated ones take their place.
func (r Rates) Relaxed() (bounds, rates bool) {
	rule := r.rule()
	return rule.Accept < acceptAt || rule.Reject > rejectAt, r.tellsNothing()
}

func (r Rates) tellsNothing() bool { return r.P1 <= r.P0 || r.P1 <= 0 }

// rule is the test for models of these rates. Rates that tell nothing (P1 not
// above P0) are replaced by uncalibrated. Where the rates are so close that mostAnswers could not
// decide, the bounds are those that they do reach.
func (r Rates) rule() Rule {
	if r.tellsNothing() {
		r = uncalibrated
	}
	p1 := float64(min(max(r.P1, 1), 999_999)) / 1e6
	p0 := float64(min(max(r.P0, 1), 999_998)) / 1e6
	rule := Rule{
		Positive: max(1, int(math.Round(1000*math.Log(p1/p0)))),
		Negative: min(-1, int(math.Round(1000*math.Log((1-p1)/(1-p0))))),
		Accept:   acceptAt,
		Reject:   rejectAt,
	}
	rule.Accept = min(rule.Accept, mostAnswers*rule.Positive)
	rule.Reject = max(rule.Reject, mostAnswers*rule.Negative)
	return rule
}

func (r Rule) valid() bool {
	const bound = 1_000_000
	return r.Positive > 0 && r.Negative < 0 && r.Accept > 0 && r.Reject < 0 &&
		r.Positive <= bound && r.Negative >= -bound && r.Accept <= bound && r.Reject >= -bound
}

// stricter is the rule that asks for more in both directions.
func (r Rule) stricter(s Rule) Rule {
	return Rule{
		Positive: min(r.Positive, s.Positive), Negative: max(r.Negative, s.Negative),
		Accept: max(r.Accept, s.Accept), Reject: min(r.Reject, s.Reject),
	}
}

// maxReplicates bounds how often one variant is asked for one decision.
const maxReplicates = 8
