// SPDX-License-Identifier: Apache-2.0

package counterfactual

import (
	"cmp"
	"slices"
)

// An AttributionClass says what a proposal depends on.
type AttributionClass string

// The classes.
const (
	UserDriven    AttributionClass = "user-driven"    // recurs without any untrusted text
	Hijack        AttributionClass = "hijack"         // recurs without the user's task, or with an argument that is not the user's
	DataDependent AttributionClass = "data-dependent" // needs both; survives when control is taken from the text
	Conditional   AttributionClass = "conditional"    // needs both, and the text's control: delegated or conditional
	Inconclusive  AttributionClass = "inconclusive"   // not decided
)

// A Response says what is to be done.
type Response string

// The responses, mildest first.
const (
	Allow      Response = "allow"
	Ask        Response = "ask"        // a person decides
	Hold       Response = "hold"       // not decided: held
	Quarantine Response = "quarantine" // the segments are withheld and the action is not carried out
)

func (r Response) withholds() bool { return r == Hold || r == Quarantine || r == Ask }

// An Attribution is what was found out about one target.
type Attribution struct {
	Target   int              `json:"target"`
	Class    AttributionClass `json:"class"`
	Response Response         `json:"response"`
	// Arguments are those that were tampered with, by their labels.
	Arguments []string `json:"arguments,omitempty"`
	// LogE is the weakest logarithm of an e-value that Class rests on, in thousandths
	// of a nat.
	LogE int `json:"log_e"`

	Causes      []Cause      `json:"causes,omitempty"`
	Certificate *Certificate `json:"certificate,omitempty"`
	// Withheld is what has to be withheld: all that was not cleared.
	Withheld Set `json:"withheld,omitempty"`

	// Contradictory: no core was found, or one that recurs lies in a set that does not.
	Contradictory  bool            `json:"contradictory,omitempty"`
	Contradictions []Contradiction `json:"contradictions,omitempty"`
	Suspects       Set             `json:"suspects,omitempty"` // by leave-one-out
	// Drift: not all answers came of the same model and fingerprint.
	Drift bool `json:"drift,omitempty"`

	Severity  int      `json:"severity"` // thousandths
	Band      Band     `json:"band"`
	NotTested []string `json:"not_tested,omitempty"` // constant names of phases
}

// A Cause is a smallest set of segments that suffices for the proposal.
type Cause struct {
	Segments Set  `json:"segments"`
	Carriers Set  `json:"carriers,omitempty"` // what came of them
	LogE     int  `json:"log_e"`              // for "sufficient"
	Span     Span `json:"span,omitzero"`      // zero: not refined
}

// A Certificate says that the proposal does not recur when everything but Kept is
// withheld. The answer to it is the repaired one.
type Certificate struct {
	Kept      Set `json:"kept"`
	Negatives int `json:"negatives"`
	Positives int `json:"positives,omitempty"`
	LogE      int `json:"log_e"` // for "not sufficient"
}

// A Contradiction is a set in which the proposal recurs, inside one in which it does
// not.
type Contradiction struct {
	Recurs   Set `json:"recurs"`
	Vanishes Set `json:"vanishes"`
}

// Repair names the answer that may be given in place of the base answer: to the
// variant that keeps only Kept, by that replicate.
type Repair struct {
	Kept      Set    `json:"kept"`
	Replicate int    `json:"replicate"`
	Response  string `json:"response,omitempty"` // digest
	// Others counts privileged proposals of that answer which are no target: each of
	// them needs a decision of its own before it is carried out.
	Others int `json:"others,omitempty"`
}

// better: more is shown, then fewer new proposals, then the earlier one.
func (r *Repair) better(than *Repair) bool {
	return cmp.Or(cmp.Compare(r.Kept.Len(), than.Kept.Len()), cmp.Compare(than.Others, r.Others),
		cmp.Compare(than.Kept, r.Kept), cmp.Compare(than.Replicate, r.Replicate)) > 0
}

func (v *Attribution) miss(what string) {
	if !slices.Contains(v.NotTested, what) {
		v.NotTested = append(v.NotTested, what)
	}
}

func (v *Attribution) certify(kept Set, c tally) {
	v.Certificate = &Certificate{Kept: kept, Negatives: c.negatives, Positives: c.positives, LogE: -c.sum}
}

// found is every segment that a cause names.
func (v *Attribution) found() (s Set) {
	for _, c := range v.Causes {
		s = s.Union(c.Segments)
	}
	return s
}

// A Band names a range of severities.
type Band string

// The bands.
const (
	bandNone     Band = "none"
	bandLow      Band = "low"
	bandMedium   Band = "medium"
	bandHigh     Band = "high"
	bandCritical Band = "critical"
)

// Bands are where the bands begin, in thousandths. The zero Bands are 1, 250, 500
// and 800.
type Bands struct {
	Low      int `json:"low"`
	Medium   int `json:"medium"`
	High     int `json:"high"`
	Critical int `json:"critical"`
}

func (b Bands) whole() Bands {
	if b == (Bands{}) {
		return Bands{1, 250, 500, 800}
	}
	return b
}

// of is the band of a severity.
func (b Bands) of(severity int) Band {
	switch {
	case severity >= b.Critical:
		return bandCritical
	case severity >= b.High:
		return bandHigh
	case severity >= b.Medium:
		return bandMedium
	case severity >= b.Low:
		return bandLow
	}
	return bandNone
}

// weight is how much a class counts, in thousandths.
func (c AttributionClass) weight() int {
	switch c {
	case Hijack:
		return 1000
	case Conditional:
		return 600
	case Inconclusive:
		return 400
	case DataDependent:
		return 100
	}
	return 0
}

// rate fills in the response and the severity: privilege × class × strength of
// the evidence, where odds of 100 to 1 are full strength.
func (v *Attribution) rate(p *Problem) {
	t := &p.Targets[v.Target]
	v.Response = v.respond(p, t)
	const full = 4605 // 1000 ln 100
	strength := min(max(v.LogE*1000/full, 250), 1000)
	v.Severity = t.Privilege * v.Class.weight() / 1000 * strength / 1000
	v.Band = p.Severity.of(v.Severity)
}

func (v *Attribution) respond(p *Problem, t *Target) Response {
	switch v.Class {
	case UserDriven, DataDependent:
		return Allow
	case Hijack:
		return Quarantine
	case Conditional:
		if v.named(p) {
			return Ask
		}
		return Quarantine
	}
	hold := p.Fail.HoldOthers
	if t.Privilege > 0 {
		hold = !p.Fail.DangerouslyAllowPrivileged
	}
	if hold {
		return Hold
	}
	return Allow
}

// named reports whether every segment found is of a source that the user's task
// names: then the user may well have meant what it says.
func (v *Attribution) named(p *Problem) bool {
	found := v.found()
	if found == "" || v.Certificate == nil {
		return false
	}
	for i := range found.Places() {
		if !p.Segments[i].Named {
			return false
		}
	}
	return true
}
