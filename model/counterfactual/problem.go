// SPDX-License-Identifier: Apache-2.0

package counterfactual

// A Problem is everything that a Plan needs to know, and nothing of a text: it
// is written into the record as it stands.
type Problem struct {
	Assembly string `json:"assembly"` // Assembly.ID
	Segments []Unit `json:"segments"` // in the assembly's order
	// Order are the segments in the order in which they are suspected: a free
	// prior, which only says what is asked first. Those left out follow.
	Order   []int    `json:"order,omitempty"`
	Targets []Target `json:"targets"`

	Rates    Rates     `json:"rates"`  // of this model
	Rule     Rule      `json:"rule"`   // zero: of Rates
	Budget   Budget    `json:"budget"` // the zero Budget is a live decision's
	Strategy Strategy  `json:"strategy,omitempty"`
	Severity Bands     `json:"severity"`
	Fail     Undecided `json:"fail,omitzero"`

	// Level is the rung of the attenuation run that parts data from control;
	// LevelPlain stands for LevelMasked.
	Level Level `json:"level"`
	// Refine asks for the span inside each segment that was found.
	Refine bool `json:"refine,omitempty"`
	// Full asks, after the attribution, for every segment × perturbation that the
	// budget allows, for the metrics.
	Full bool `json:"full,omitempty"`
	// Known is the class of every target, where it was found out by other means: the plan
	// only looks for the segments then.
	Known AttributionClass `json:"known,omitempty"`
	// MaxCauses ends the redundancy sweep; 0 = 6.
	MaxCauses int `json:"max_causes"`
	// Metrics are the ids of what the observations measure; none: those of Metrics.
	Metrics []string `json:"metrics,omitempty"`
	// Seed is of everything that is drawn: samples and orders.
	Seed uint64 `json:"seed,omitempty,string"`
}

// A Unit is what a Plan knows of a segment.
type Unit struct {
	ID      string `json:"id"`
	Digest  string `json:"digest,omitempty"`
	Source  string `json:"source,omitempty"`  // label of where it came from, for stratified samples and for people
	Trust   int    `json:"trust,omitempty"`   // thousandths
	Capsule string `json:"capsule,omitempty"` // the operator's id: segments of one capsule are withheld together; "" = alone
	Parents []int  `json:"parents,omitempty"` // it derives from these: hidden with any of them
	Twins   []int  `json:"twins,omitempty"`   // hold copies of its text: asked about first once it was found
	Named   bool   `json:"named,omitempty"`   // the user's task names its source
	Bytes   int    `json:"octets,omitempty"`
	Tokens  int    `json:"tokens,omitempty"` // bound of what showing it costs
	Cuts    []int  `json:"cuts,omitempty"`   // where a span may begin or end, ascending, inside the text; for Refine
}

// A Target is a proposal that is to be explained.
type Target struct {
	Digest    string `json:"digest"`         // of the canonical action
	Tool      string `json:"tool,omitempty"` // label
	Privilege int    `json:"privilege"`      // thousandths; from the policy
	// UserGiven: the trusted text holds every critical argument.
	UserGiven bool     `json:"user_given,omitempty"`
	Critical  []string `json:"critical,omitempty"` // labels of the critical arguments
}

// Budget bounds what a Plan may ask for. The zero Budget is a live decision's.
type Budget struct {
	Calls        int `json:"calls"`         // probes altogether; 0 = 12
	VerdictCalls int `json:"verdict_calls"` // of these, for the verdict; 0 = half of Calls
	// Tokens bounds what probes cost together, counted without any cache; 0 = 3 ×
	// BaseTokens.
	Tokens int64 `json:"tokens"`
	// BaseTokens is what the base request and its answer cost. Each probe sets
	// aside its own bound before it is asked.
	BaseTokens int64 `json:"base_tokens"`
	// AnswerTokens bounds one answer.
	AnswerTokens int64 `json:"answer_tokens"`
	Millis       int64 `json:"millis"`      // since the start, by the observations; 0 = 60,000
	Concurrency  int   `json:"concurrency"` // probes out at the same time; 0 = 4
}

// A Probe is one question: show the model this variant, once more if Replicate
// is not 0. Its Tokens were set aside for it.
type Probe struct {
	Variant   Variant
	Replicate int
	Purpose   Purpose
	Tokens    int64
}

// A Purpose says why a probe is asked.
type Purpose string

// The purposes.
const (
	PurposeVerdict  Purpose = "verdict"
	PurposeLocate   Purpose = "locate"
	PurposeCertify  Purpose = "certify"
	PurposeRefine   Purpose = "refine"
	PurposeLeaveOne Purpose = "leave-one-out"
	PurposeFull     Purpose = "full"

	// Of questions that no plan asks: see package delegation.
	PurposePlan   Purpose = "plan"
	PurposeRival  Purpose = "rival"
	PurposeRepair Purpose = "repair"
)

// An Observation is what came of a Probe.
type Observation struct {
	Variant   Variant `json:"variant"`
	Replicate int     `json:"replicate"`

	// Failure says why there is no answer; what follows is empty then, but for
	// Tokens and Elapsed. A failed probe has cost a call.
	Failure Failure `json:"failure,omitempty"`
	// Recurrences are of the targets, in their order.
	Recurrences []Recurrence `json:"outcomes,omitempty"`
	// Others counts privileged proposals of the answer that are no target.
	Others  int  `json:"others,omitempty"`
	Refused bool `json:"refused,omitempty"`
	// Metrics are the divergences of the answer from the base answer, in
	// thousandths, in the order of Metrics.
	Metrics []int `json:"metrics,omitempty"`

	Request  string `json:"request,omitempty"`  // digest of its bytes, as "sha256:…"; "" if there are none
	Response string `json:"response,omitempty"` // the same of the answer
	Model    string `json:"model,omitempty"`    // digest of model id and fingerprint of who answered; see ModelDigest
	Tokens   int64  `json:"tokens"`             // uncached input and output; 0 = not known: the bound is charged
	Elapsed  int64  `json:"elapsed"`            // milliseconds since the start of the plan, when it arrived
}

// A Recurrence is what one answer says of one target.
type Recurrence struct {
	Recurs bool `json:"recurs"`
	// Tampered names the critical arguments for which this answer, proposing the same
	// tool, has what the user gave, where the target has something else.
	Tampered []string `json:"tampered,omitempty"`
}

// A Failure says why a probe has no answer.
type Failure string

// The failures.
const (
	FailNone     Failure = ""
	FailTimeout  Failure = "timeout"
	FailLimited  Failure = "rate-limited"
	FailRejected Failure = "rejected"     // the provider refuses the request
	FailDenied   Failure = "unauthorized" // the provider refuses the key, or there is none
	FailBudget   Failure = "over-budget"
	FailCanceled Failure = "canceled"
	FailBroken   Failure = "malformed" // no answer that can be read
	FailServer   Failure = "server-error"
)

// A Strategy says which segments are sampled first where not all can be.
type Strategy string

// The strategies. The zero Strategy is by prior.
const (
	strategyPrior      Strategy = ""
	strategyUniform    Strategy = "uniform"
	strategyStratified Strategy = "stratified" // by source, in turn
)

// Undecided says what happens to a proposal that was not decided.
type Undecided struct {
	// DangerouslyAllowPrivileged lets a privileged proposal through undecided.
	DangerouslyAllowPrivileged bool `json:"dangerously_allow_privileged,omitempty"`
	// HoldOthers holds undecided what is not privileged.
	HoldOthers bool `json:"hold_others,omitempty"`
}

// An Oracle answers probes: a model behind a runner, a simulator, a record.
type Oracle interface {
	Ask(Probe) Observation
}

// Drive asks o, one probe at a time, until the plan has no more questions.
func Drive(p *Plan, o Oracle) *Result {
	for {
		probes := p.Next(1)
		if len(probes) == 0 {
			return p.Result()
		}
		p.Observe(o.Ask(probes[0]))
	}
}
