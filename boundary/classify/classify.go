// SPDX-License-Identifier: Apache-2.0

// Package classify asks classifiers of injections about text, behind one interface.
//
// A text is asked about in chunks that lose nothing, within bounds of time, number
// and cost; answers are remembered; and what an answer that does not come means is
// configured, never accidental.
//
// A classifier refines what the boundary has decided; it is never the boundary. What
// it misses is still scrubbed, framed and recorded.
package classify

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/pellucid-mcp/pellucid/boundary/policy"
)

// A Classifier judges texts: a managed service, a judge, a model. Its methods may be
// called at the same time.
type Classifier interface {
	// Classify returns one Score for each text, in their order. The texts are within
	// Limits. An error means that none of them was judged; it must hold nothing of
	// the texts, of the answer, or of a key.
	Classify(ctx context.Context, texts []string) ([]Score, error)
	// Limits are what one call may hold.
	Limits() Limits
	// Version changes when answers may: API version, model, configuration. It is a
	// label of at most 64 bytes of a-z A-Z 0-9 . _ -
	Version() string
}

// Limits of one call to a Classifier.
type Limits struct {
	Texts int // 0: 1
	Chars int // code points of one text; 0: no limit
	Total int // code points of all of them; 0: no limit
	// Raw: the classifier wants text as it was received, not the normalised view.
	Raw bool
	// Apart: the classifier gets each text of a result as a text of its own.
	Apart bool
}

// A Score is what a Classifier says of a text.
type Score struct {
	P       float64 // 0 to 1; a classifier that says only yes or no says 1 or 0
	Flagged bool    // by the classifier's own limit
	Code    Code    // its reason, if it gives one
}

// A Code is a provider's reason: a label of at most 64 bytes of a-z A-Z 0-9 . _ -.
// A provider makes one by [CodeOf], since what it is sent is third-party text.
type Code string

// CodeOf is the code that s spells, or "other".
func CodeOf(s string) Code {
	if s == "" || len(s) > 64 {
		return "other"
	}
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '.', c == '_', c == '-':
		default:
			return "other"
		}
	}
	return Code(s)
}

// A Reason says why a text was not judged. It is a constant.
type Reason string

// The reasons. [Timeout] to [OverBudget] are failures, for which [Fail] says what to
// do; [Narrow] is none.
const (
	Judged      Reason = ""
	Timeout     Reason = "timeout"
	Unavailable Reason = "unavailable"     // not reached, or it refused to answer
	Malformed   Reason = "malformed"       // it answered what is no answer
	Contrary    Reason = "contradiction"   // it says yes and no at once
	Broken      Reason = "circuit-open"    // it failed so often that it is left alone
	OverBudget  Reason = "over-budget"     // of calls, of characters, or of work at one time
	Narrow      Reason = "narrow-surface"  // the tool's answers cannot hold an injection
	TooLong     Reason = "text-too-long"   // beyond what is judged of one item
	Canceled    Reason = "no-longer-asked" // the caller has gone
)

// Errors of a Classifier that say more than that it failed, to be wrapped.
var (
	ErrMalformed = errors.New("classify: not an answer of this provider")
	ErrContrary  = errors.New("classify: the answer contradicts itself")
	ErrRefused   = errors.New("classify: the provider refused to answer")
)

// A Segment is a text of a result.
type Segment struct {
	View  string   // normalised: what is judged, and what a model will read
	Raw   string   // as received, for those that want it; "" stands for View
	Parts []string // of View, by the blocks of the result, where it holds several
}

// An Assessment is what a Member has made of a result.
type Assessment struct {
	Name    string // of the member, from the configuration
	Version string
	Mode    policy.Mode // Enforce or Shadow
	// Action is what the member asks for: Allow, Hold or Deny. In Shadow it is what would be asked for.
	Action policy.Action

	Segments []Judgement
	P        float64 // the highest of the segments'
	Code     Code    // of that segment
	Reason   Reason  // Judged if every segment was; else why not the first that was not
	Err      error   // of that Reason, if there was one; holds nothing of the text, of an answer, or of a key
	Cached   int     // chunks that were remembered
	Asked    int     // chunks that were sent
	Latency  time.Duration
}

// Flagged reports whether a segment was.
func (v *Assessment) Flagged() bool {
	return slices.ContainsFunc(v.Segments, func(j Judgement) bool { return j.Flagged })
}

// Outcome is Action as the records of classifiers spell it.
func (v *Assessment) Outcome() string {
	switch v.Action {
	case policy.Allow:
		return "pass"
	case policy.Deny:
		return "withhold"
	}
	return v.Action.String()
}

// A Judgement is that of one segment: of its worst chunk.
type Judgement struct {
	Score
	reason Reason
}

// A Fail says what shall become of a result that could not be judged.
type Fail uint8

// The fail modes. The zero value holds.
const (
	FailHold Fail = iota
	FailOpen
	FailClosed
)

func (f Fail) String() string { return [...]string{"hold", "open", "closed"}[min(f, FailClosed)] }

func (f Fail) action() policy.Action {
	return [...]policy.Action{policy.Hold, policy.Allow, policy.Deny}[min(f, FailClosed)]
}
