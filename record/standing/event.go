// SPDX-License-Identifier: Apache-2.0

// Package standing computes the scores of trust from the records of the ledger: the same records always give the same scores.
//
// Of decides what a record says of the server, tool or validator that it is about. [Replay] applies the records of
// a log in their order, and so does a [Follower] beside a running gateway: who stands
// at the same size of the log has the same scores, bit for bit, whether he saw the
// records come, read them later, or began with the snapshot of another process.
package standing

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/record/trust"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// The words of records that count here, shared with those who write them.
const (
	// heldCall begins the rule of a call that was held before the server got it: what
	// a person decides about it says nothing of the server.
	heldCall = "policy-call:"
	// Validator begins the rule of a record about what a validator has signed. What
	// follows names it.
	Validator = "validator:"
	// Injection is the verdict of a classifier that enforces, Hijack that of a counterfactual run. The
	// second lowers the score of the text's origin.
	Injection = "injection"
	Hijack    = "hijack"
	// PolicyFailed names the number that says in a record that its rule could not be evaluated.
	PolicyFailed = "policy-failed"
	// Signed is the reason's beginning of what was refused although its signature is
	// the validator's.
	signed = "proven:"
)

// Refused is the reason of a refusal of what bears its validator's signature.
func Refused(code string) string { return signed + code }

// ValidatorName is what records and scores call a validator: the digest of its DID. It is
// not salted: a validator signs in public, and a score needs to know one again.
func ValidatorName(did string) string {
	sum := sha256.Sum256([]byte(did))
	return hex.EncodeToString(sum[:])
}

// Lowering begins the name of a number in a record that lowers the score of its server. The trust.Kind follows; the
// number is the mark of the content.
const Lowering = "trust:"

// Of is what a record says of an origin; false if it is no event.
func Of(e *ledger.Event) (trust.Observation, bool) {
	out := trust.Observation{Time: e.Time.Unix(), Origin: trust.Origin{Server: e.Server, Tool: e.Tool}}
	if i := slices.IndexFunc(e.Numbers, isLowering); i >= 0 {
		out.Kind, out.Mark = trust.Kind(strings.TrimPrefix(e.Numbers[i].Name, Lowering)), e.Numbers[i].N
	}
	switch e.Kind {
	case ledger.Message:
		if out.Kind == "" && isClean(e) {
			out.Kind = trust.Clean
		}
	case ledger.ResultTaken:
		out.Kind, out.Mark = trust.HeldReleased, 0
	case ledger.ResultDenied:
		if !strings.HasPrefix(e.Rule, heldCall) {
			out.Kind = trust.HeldDenied
		}
	case ledger.SurfaceApproved:
		out.Kind = trust.SurfaceApproved
	case ledger.AttestationAccepted, ledger.AttestationRefused, ledger.AttestationEvent:
		return validator(e, out)
	}
	return out, out.Kind != "" && out.Origin.Server != ""
}

func isLowering(n ledger.Number) bool {
	kind, is := strings.CutPrefix(n.Name, Lowering)
	return is && trust.Kind(kind).Lowers()
}

// isClean reports whether a record is that of a tool's answer that has only notes, if it has findings. Other findings
// do not lower the trust in the server by themselves: see [trust.Kind].
func isClean(e *ledger.Event) bool {
	if e.Method != "tools/call" || e.Shape != "result" && e.Shape != "error" || e.Verdict == "withheld" || e.Verdict == "dropped" {
		return false
	}
	noted := func(c ledger.Count) bool { return c.Code.Severity() > finding.Info }
	return !slices.ContainsFunc(e.Findings, noted) && !slices.ContainsFunc(e.Withheld, noted)
}

// validator is what a record says of a validator. It names one only where its
// signature was verified.
func validator(e *ledger.Event, out trust.Observation) (trust.Observation, bool) {
	name, ok := strings.CutPrefix(e.Rule, Validator)
	if !ok {
		return out, false
	}
	out.Origin, out.Proven = trust.Origin{Validator: name}, true
	switch {
	case e.Kind == ledger.AttestationAccepted && e.Verdict == "added":
		out.Kind = trust.Clean
	case e.Kind == ledger.AttestationRefused && strings.HasPrefix(e.Reason, signed):
		out.Kind = trust.ShapeLie
	case e.Kind == ledger.AttestationEvent && e.Verdict == "retracted":
		out.Kind = trust.HeldDenied
	case e.Kind == ledger.AttestationEvent && e.Verdict == "reversed":
		out.Kind = trust.HeldReleased
	}
	return out, out.Kind != ""
}

// The numbers of a record that rules took effect by which scores are made.
const (
	numberRest     = "trust-rest"      // millionths
	numberFloor    = "trust-floor"     // millionths
	numberHalfLife = "trust-half-life" // seconds
)

// Numbers are the options for the record that rules took effect.
func Numbers(o trust.Options) []ledger.Number {
	o = o.OrDefault()
	return []ledger.Number{{Name: numberRest, N: int64(o.Rest)}, {Name: numberFloor, N: int64(o.Floor)},
		{Name: numberHalfLife, N: int64(o.HalfLife / time.Second)}}
}

// optionsOf are the options that a record says are in force; false if it says nothing.
func optionsOf(e *ledger.Event) (o trust.Options, ok bool) {
	if e.Kind != ledger.RulesLoaded {
		return o, false
	}
	n := func(name string, most int64) int64 {
		i := slices.IndexFunc(e.Numbers, func(n ledger.Number) bool { return n.Name == name })
		if i < 0 || e.Numbers[i].N <= 0 || e.Numbers[i].N > most {
			return 0
		}
		return e.Numbers[i].N
	}
	const longest = 366 * 24 * 60 * 60
	o = trust.Options{Rest: trust.Score(n(numberRest, int64(trust.One))), Floor: trust.Score(n(numberFloor, int64(trust.One))),
		HalfLife: time.Duration(n(numberHalfLife, longest)) * time.Second}
	return o.OrDefault(), o.Rest > 0 && o.Floor > 0 && o.HalfLife > 0
}
