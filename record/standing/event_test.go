// SPDX-License-Identifier: Apache-2.0

package standing

import (
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/record/trust"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// TestOf: what each kind of record says, and of whom.
func TestOf(t *testing.T) {
	at := time.Unix(1000, 999)
	server, tool := trust.Origin{Server: "s"}, trust.Origin{Server: "s", Tool: "t"}
	validator := trust.Origin{Validator: "ab"}
	found := func(codes ...finding.Code) (out []ledger.Count) {
		for _, c := range codes {
			out = append(out, ledger.Count{Code: c, N: 1})
		}
		return out
	}
	message := func(verdict string) ledger.Event {
		return ledger.Event{Kind: ledger.Message, Server: "s", Tool: "t", Method: "tools/call", Shape: "result", Verdict: verdict}
	}
	with := func(e ledger.Event, found []ledger.Count) ledger.Event { e.Findings = found; return e }
	lowers := func(e ledger.Event, kind trust.Kind) ledger.Event {
		e.Numbers = []ledger.Number{{Name: "restored", N: 1}, {Name: Lowering + string(kind), N: 7}}
		return e
	}
	for name, tt := range map[string]struct {
		e    ledger.Event
		kind trust.Kind
		of   trust.Origin
	}{
		"clean":                  {message("passed"), trust.Clean, tool},
		"a list":                 {ledger.Event{Kind: ledger.Message, Server: "s", Method: "tools/list", Shape: "result", Verdict: "passed"}, "", trust.Origin{}},
		"a note":                 {with(message("changed"), found(finding.NFKC, finding.Confusable, finding.AmbiguousToken)), trust.Clean, tool},
		"what a text is about":   {with(message("changed"), found(finding.ControlToken, finding.RoleMarker)), "", trust.Origin{}},
		"emoji":                  {with(message("changed"), found(finding.HiddenVariation, finding.HiddenZeroWidth)), "", trust.Origin{}},
		"hidden, and no message": {with(message("changed"), found(finding.HiddenTag, finding.HiddenBidi)), "", trust.Origin{}},
		"a hidden message":       {lowers(with(message("changed"), found(finding.HiddenTag)), trust.HiddenMessage), trust.HiddenMessage, tool},
		"a forged frame":         {lowers(message("changed"), trust.ForgedFrame), trust.ForgedFrame, tool},
		"no schema's":            {lowers(message("withheld"), trust.ShapeLie), trust.ShapeLie, tool},
		"a kind that raises":     {lowers(message("withheld"), trust.HeldReleased), "", trust.Origin{}},
		"a kind of nothing":      {lowers(message("withheld"), "made-up"), "", trust.Origin{}},
		"held":                   {ledger.Event{Kind: ledger.ResultHeld, Server: "s", Tool: "t"}, "", trust.Origin{}},
		"the client's":           {ledger.Event{Kind: ledger.Message, Server: "s", Tool: "t", Method: "tools/call", Shape: "call", Verdict: "dropped", Findings: found(finding.HiddenTag)}, "", trust.Origin{}},
		"a correction":           {ledger.Event{Kind: ledger.Message, Server: "s", Tool: "t", Method: "tools/call", Shape: "result", Verdict: "withheld", Reason: "not-recorded"}, "", trust.Origin{}},
		"without a server":       {ledger.Event{Kind: ledger.Message, Method: "tools/call", Shape: "result", Verdict: "passed"}, "", trust.Origin{}},
		"released":               {ledger.Event{Kind: ledger.ResultReleased, Server: "s", Tool: "t"}, "", trust.Origin{}},
		"taken":                  {ledger.Event{Kind: ledger.ResultTaken, Server: "s", Tool: "t", Findings: found(finding.HiddenTag)}, trust.HeldReleased, tool},
		"denied":                 {ledger.Event{Kind: ledger.ResultDenied, Server: "s", Tool: "t", Rule: "policy:r"}, trust.HeldDenied, tool},
		"a call denied":          {ledger.Event{Kind: ledger.ResultDenied, Server: "s", Tool: "t", Rule: heldCall + "r"}, "", trust.Origin{}},
		"changed":                {lowers(ledger.Event{Kind: ledger.SurfaceChanged, Server: "s"}, trust.HeldChange), trust.HeldChange, server},
		"changed, nothing held":  {ledger.Event{Kind: ledger.SurfaceChanged, Server: "s"}, "", trust.Origin{}},
		"rejected":               {ledger.Event{Kind: ledger.SurfaceRejected, Server: "s"}, "", trust.Origin{}},
		"approved":               {ledger.Event{Kind: ledger.SurfaceApproved, Server: "s"}, trust.SurfaceApproved, server},
		"pinned":                 {ledger.Event{Kind: ledger.SurfaceVerified, Server: "s"}, "", trust.Origin{}},
		"an injection":           {ledger.Event{Kind: ledger.Classified, Server: "s", Tool: "t", Verdict: Injection}, "", trust.Origin{}},
		"hijack":                 {lowers(ledger.Event{Kind: ledger.Counterfactual, Server: "s", Tool: "t", Verdict: Hijack}, trust.Hijack), trust.Hijack, tool},
		"no hijack":              {ledger.Event{Kind: ledger.Counterfactual, Server: "s", Tool: "t", Verdict: "inconclusive"}, "", trust.Origin{}},
		"an attestation":         {ledger.Event{Kind: ledger.AttestationAccepted, Verdict: "added", Rule: Validator + "ab"}, trust.Clean, validator},
		"renewed":                {ledger.Event{Kind: ledger.AttestationAccepted, Verdict: "renewed", Rule: Validator + "ab"}, "", trust.Origin{}},
		"refused, signed":        {ledger.Event{Kind: ledger.AttestationRefused, Reason: Refused("too-long"), Rule: Validator + "ab"}, trust.ShapeLie, validator},
		"refused, by anybody":    {ledger.Event{Kind: ledger.AttestationRefused, Reason: "bad-signature"}, "", trust.Origin{}},
		"refused, of no reason":  {ledger.Event{Kind: ledger.AttestationRefused, Reason: "too-long", Rule: Validator + "ab"}, "", trust.Origin{}},
		"withdrawn by others":    {ledger.Event{Kind: ledger.AttestationEvent, Verdict: "retracted", Rule: Validator + "ab"}, trust.HeldDenied, validator},
		"its own withdrawal":     {ledger.Event{Kind: ledger.AttestationEvent, Verdict: "retracted"}, "", trust.Origin{}},
		"a policy":               {ledger.Event{Kind: ledger.PolicyDecided, Server: "s", Tool: "t", Verdict: "deny"}, "", trust.Origin{}},
	} {
		tt.e.Time = at
		e, counts := Of(&tt.e)
		if counts != (tt.kind != "") || counts && (e.Kind != tt.kind || e.Origin != tt.of || e.Time != 1000 || e.Proven != (tt.of == validator) || e.Kind.Lowers() && tt.of != validator && e.Kind != trust.HeldDenied && e.Mark != 7) {
			t.Errorf("%s: %+v, %v", name, e, counts)
		}
	}
}

// TestOptionsOf: what Numbers says is read again, and nothing else.
func TestOptionsOf(t *testing.T) {
	want := trust.Options{Rest: 500_000, Floor: 1, HalfLife: time.Hour}.OrDefault()
	e := ledger.Event{Kind: ledger.RulesLoaded, Numbers: Numbers(want)}
	if got, ok := optionsOf(&e); !ok || got != want {
		t.Errorf("%+v, %v", got, ok)
	}
	for _, change := range []func(){
		func() { e.Numbers = e.Numbers[1:] },
		func() { e.Numbers = Numbers(want); e.Numbers[2].N = 1 << 50 },
		func() { e.Numbers = Numbers(want); e.Numbers[0].N = -1 },
		func() { e.Numbers, e.Kind = Numbers(want), ledger.Message },
	} {
		if change(); func() bool { _, ok := optionsOf(&e); return ok }() {
			t.Errorf("%+v is read", e)
		}
	}
}
