// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/boundary/gateway"
	"github.com/pellucid-mcp/pellucid/boundary/policy"
	"github.com/pellucid-mcp/pellucid/boundary/surface"
	"github.com/pellucid-mcp/pellucid/boundary/validate"
	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/record/standing"
	"github.com/pellucid-mcp/pellucid/record/trust"
)

// Message is the event of a decision about a message.
func Message(d *gateway.Decision) *ledger.Event {
	e := &ledger.Event{
		ID: ledger.ID(d.ID), Time: d.Time, Kind: ledger.Message,
		Server: d.Server, Tool: d.Tool, Method: d.Method, Shape: d.Kind, Verdict: string(d.Verdict), Profile: d.Profile,
		Versions:  []ledger.Version{{Of: "sanitation", Version: d.SanitationVersion}, {Of: "unicode", Version: d.UnicodeVersion}},
		Inspected: int64(d.Inspected), Findings: counts(d.Findings), NotInspected: counts(d.NotInspected), Withheld: counts(d.Withheld),
	}
	e.Subjects = digests(e.Subjects, ledger.Received, d.Received)
	e.Subjects = digests(e.Subjects, ledger.Delivered, d.Delivered)
	e.Subjects = names(e.Subjects, ledger.Principal, d.Principal)
	if d.Restored > 0 {
		e.Numbers = append(e.Numbers, ledger.Number{Name: "restored", N: int64(d.Restored)})
		e.Subjects = digests(e.Subjects, ledger.Asked, d.Asked)
		e.Subjects = digests(e.Subjects, ledger.Sent, d.Sent)
	}
	if d.Repeated > 0 {
		e.Numbers = append(e.Numbers, ledger.Number{Name: "repeated", N: int64(d.Repeated)})
	}
	if f := d.Fault; f.Kind != "" {
		e.Numbers = append(e.Numbers, Lowering(trust.Kind(f.Kind), f.Content))
	}
	if id, err := ledger.ParseID(d.Released); err == nil {
		e.Kind, e.Of = ledger.ResultTaken, id
	}
	if len(d.Withheld) > 0 && (d.Verdict == gateway.Withheld || d.Verdict == gateway.Dropped) {
		e.Reason = string(d.Withheld[0].Code)
	}
	if d.Validation.Conformity == validate.Invalid || d.Validation.Conformity == validate.Unverifiable {
		e.Rule = "schema"
	}
	if p := d.Policy; p.Rule != "" && p.Action != policy.Allow {
		e.Actor, e.Rule = "policy", policyRule+p.Rule
		if e.Reason == "" {
			e.Reason = policyRule + p.Action.String()
		}
		if p.Failed {
			e.Numbers = append(e.Numbers, ledger.Number{Name: standing.PolicyFailed, N: 1})
		}
	}
	return e
}

// Lowering returns the number that says by which kind of fault and which content a server's score falls. The Recorder
// puts a keyed mark in its place, so that a reader of the log cannot guess the content.
func Lowering[D ~[sha256.Size]byte](kind trust.Kind, content D) ledger.Number {
	return ledger.Number{Name: standing.Lowering + string(kind), N: markOf(content[:])}
}

// markOf returns the first 52 bits of a digest.
func markOf(digest []byte) int64 { return int64(binary.BigEndian.Uint64(digest) >> 12) }

// withKeyedMarks returns the numbers with a keyed mark in the place of each that Lowering has made.
func (r *Recorder) withKeyedMarks(list []ledger.Number) []ledger.Number {
	list = slices.Clone(list)
	for i, n := range list {
		if strings.HasPrefix(n.Name, standing.Lowering) && n.N != 0 {
			h := hmac.New(sha256.New, r.o.MarkKey)
			_ = binary.Write(h, binary.BigEndian, n.N)
			list[i].N = markOf(h.Sum(nil))
		}
	}
	return list
}

// policyRule begins the name of a rule of a policy.
const policyRule = "policy:"

// would is the event that a rule which only watches would have been stricter; nil if
// none would.
func would(d *gateway.Decision) *ledger.Event {
	w := d.Policy.Would
	if w.Rule == "" {
		return nil
	}
	e := &ledger.Event{Time: d.Time, Kind: ledger.PolicyDecided, Of: ledger.ID(d.ID), Server: d.Server, Tool: d.Tool, Shape: d.Kind,
		Actor: "policy", Rule: policyRule + w.Rule, Verdict: w.Action.String(), Reason: "would"}
	if w.Failed {
		e.Reason = "would-failed"
	}
	return e
}

// Held words what becomes of a result that waits for a person: hold.Options.Evidence.
// An item that a person released, and nobody took, expires as any other.
func (r *Recorder) Held(it hold.Item) ([]byte, error) {
	kinds := map[hold.State]ledger.Kind{hold.Held: ledger.ResultHeld, hold.Released: ledger.ResultReleased, hold.Denied: ledger.ResultDenied, hold.Expired: ledger.ResultExpired}
	e := &ledger.Event{Kind: kinds[it.State], Time: it.Held, Server: it.Server, Tool: it.Tool, Rule: it.Rule, Reason: string(it.Code)}
	if id, err := ledger.ParseID(it.ID); err == nil {
		e.Of = id
	}
	e.Subjects = digests(e.Subjects, ledger.Held, it.Digest)
	e.Subjects = digests(e.Subjects, ledger.Call, it.Call)
	e.Subjects = names(e.Subjects, ledger.Principal, it.Principal)
	switch it.State {
	case hold.Held:
		e.Numbers = []ledger.Number{{Name: "bytes", N: int64(it.Bytes)}, {Name: "until", N: it.Until.Unix()}, {Name: "people", N: int64(it.People)}}
	case hold.Expired:
		e.Actor, e.Time = "expiry", time.Time{} // now
	case hold.Proposed:
		proposed(e, &it)
	case hold.Released, hold.Denied:
		e.Actor, e.Time = "person", it.Decided
		e.Subjects = names(e.Subjects, ledger.By, it.By)
	}
	return r.Seal(e)
}

// Forgotten words that a held item was erased with what names its principal. The record has no digest of
// the name or of the text: it would be the one that remains.
func (r *Recorder) Forgotten(it hold.Item) ([]byte, error) {
	e := &ledger.Event{Kind: ledger.PrincipalForgotten, Server: it.Server, Tool: it.Tool, Actor: "person"}
	if id, err := ledger.ParseID(it.ID); err == nil {
		e.Of = id
	}
	return r.Seal(e)
}

// Pin words what becomes of a server's pin: for surface.Pins.WithEvidence.
func (r *Recorder) Pin(p surface.PinChange) ([]byte, error) {
	e := &ledger.Event{Time: p.Time, Server: p.Server, Of: ledger.ID(p.Pin), Numbers: []ledger.Number{{Name: "waiting", N: int64(p.Waiting)}}}
	role := ledger.Surface
	switch p.Act {
	case surface.ActPin:
		e.Kind = ledger.SurfaceVerified
	case surface.ActReject:
		e.Kind = ledger.SurfaceRejected
	case surface.ActApprove:
		e.Kind, role, e.Actor = ledger.SurfaceApproved, ledger.Item, "person"
	case surface.ActBlock:
		e.Kind, role, e.Actor = ledger.SurfaceBlocked, ledger.Item, "person"
	case surface.ActDrop:
		if e.Kind = ledger.SurfaceDropped; p.By != "" {
			e.Actor = "person"
		}
	case surface.ActSuspend:
		e.Kind, e.Reason = ledger.SurfaceChanged, "suspended"
	default:
		e.Kind = ledger.SurfaceChanged
		if p.Waiting > 0 {
			e.Numbers = append(e.Numbers, Lowering(trust.HeldChange, p.Digest))
		}
	}
	e.Subjects = digests(e.Subjects, role, p.Digest)
	e.Subjects = digests(e.Subjects, ledger.Approved, p.Decided)
	e.Subjects = names(e.Subjects, ledger.By, p.By)
	return r.Seal(e)
}

// Loaded records that rules took effect, and has every later record name them. scores
// are by what those of this process are made, deviations the loosenings that are on.
func (r *Recorder) Loaded(version string, effective []byte, scores trust.Options, deviations []string) {
	r.Rules(version)
	r.Note(&ledger.Event{Kind: ledger.RulesLoaded, Reason: strings.Join(deviations, "+"), Versions: []ledger.Version{{Of: "rules", Version: version}}, Numbers: standing.Numbers(scores),
		Subjects: []ledger.Subject{{Role: ledger.Rules, Digest: sha256.Sum256(effective)}}})
}

func digests[D ~[sha256.Size]byte](list []ledger.Subject, role ledger.Role, d D) []ledger.Subject {
	if d == (D{}) {
		return list
	}
	return append(list, ledger.Subject{Role: role, Digest: ledger.Digest(d)})
}

// names adds the digest of a name, which never stands in a record itself.
func names(list []ledger.Subject, role ledger.Role, name string) []ledger.Subject {
	if name == "" {
		return list
	}
	return append(list, ledger.Subject{Role: role, Digest: sha256.Sum256([]byte(name))})
}

func counts(list []policy.Count) []ledger.Count {
	if len(list) == 0 {
		return nil
	}
	out := make([]ledger.Count, len(list))
	for i, c := range list {
		out[i] = ledger.Count{Code: c.Code, N: int64(c.N)}
	}
	return out
}
