// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/boundary/evidence"
	"github.com/pellucid-mcp/pellucid/boundary/surface"
	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/storage"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/frame"
)

// The faults of rows that decide.
const (
	faultUnborne ledger.Fault = "is not what the log says was decided"
	faultUnread  ledger.Fault = "cannot be read"
	faultRemoved ledger.Fault = "says what was decided, but the row of it is no longer in the store"
)

// A deciding compares the rows by which something passes or is kept back with the records of the decisions. What a record
// must say is worded by package evidence, as it was when the row was written.
type deciding struct {
	ctx           context.Context
	records       map[decisionKey][]recorded
	first         time.Time // of the records: what is older was decided without evidence
	n             int
	old           int // number of the last record of a pin that names no pin: an earlier release wrote it
	older, former int // rows from before the log, and pins that an earlier release has written: they are not compared
}

type decisionKey struct {
	kind ledger.Kind
	of   ledger.ID
}

// surfaceKinds are the kinds of records about pins. They stand under one key.
var surfaceKinds = map[ledger.Kind]bool{ledger.SurfaceVerified: true, ledger.SurfaceChanged: true, ledger.SurfaceRejected: true,
	ledger.SurfaceApproved: true, ledger.SurfaceBlocked: true, ledger.SurfaceDropped: true}

func pinKey(server string) decisionKey {
	return decisionKey{ledger.SurfaceApproved, ledger.ID(surface.PinID(server))}
}

// A recorded is a decision, as its record has it.
type recorded struct {
	*ledger.Statement
	n       int // in the order of the log
	opening func(context.Context) *ledger.Opening
}

// note takes note of a record, if it is of a decision.
func (d *deciding) note(st *ledger.Statement, opening func(context.Context) *ledger.Opening) {
	if d.first.IsZero() {
		d.first = st.Time
	}
	k := decisionKey{st.Kind, st.Of}
	switch st.Kind {
	case ledger.Counterfactual, ledger.PolicyDecided:
		if st.Rule != "approval" && st.Rule != hold.RuleException && !strings.HasPrefix(st.Rule, "quarantine-") {
			return
		}
	default:
		if !surfaceKinds[st.Kind] {
			return
		}
		k.kind = ledger.SurfaceApproved
	}
	d.n++
	if k.kind == ledger.SurfaceApproved && st.Of == (ledger.ID{}) {
		d.old = d.n
	}
	d.records[k] = append(d.records[k], recorded{st, d.n, opening})
}

// borne reports whether a record says e. Where anyTime is set, its time does not count.
func (d *deciding) borne(e *ledger.Event, anyTime bool) bool {
	sealed, err := e.Seal(ledger.Salt{})
	if err != nil {
		return false
	}
	want := sealed.Parsed
	return slices.ContainsFunc(d.records[decisionKey{e.Kind, e.Of}], func(r recorded) bool {
		if r.Rule != want.Rule || r.Verdict != want.Verdict || r.Server != want.Server || r.Tool != want.Tool || r.Reason != want.Reason ||
			!anyTime && !r.Time.Equal(want.Time) {
			return false
		}
		for _, n := range want.Numbers { // an earlier release has recorded fewer
			if i := slices.IndexFunc(r.Numbers, func(m ledger.Number) bool { return m.Name == n.Name }); i >= 0 && r.Numbers[i].N != n.N {
				return false
			}
		}
		o := r.opening(d.ctx)
		return o == nil || sameSubjects(o.Subjects, e.Subjects, "") // nil: it was erased, with the names
	})
}

// sameSubjects compares what two records are about, but for those of a role.
func sameSubjects(a, b []ledger.Subject, but ledger.Role) bool {
	of := func(list []ledger.Subject) []ledger.Subject {
		return slices.DeleteFunc(slices.Clone(list), func(s ledger.Subject) bool { return s.Role == but || s.Role == ledger.NoContent })
	}
	a, b = of(a), of(b)
	return len(a) == len(b) && !slices.ContainsFunc(a, func(s ledger.Subject) bool { return !slices.Contains(b, s) })
}

// ended reports whether a person has ended what e began, as the record of that verdict says.
func (d *deciding) ended(e *ledger.Event, verdict string) bool {
	return slices.ContainsFunc(d.records[decisionKey{e.Kind, e.Of}], func(r recorded) bool {
		o := r.opening(d.ctx)
		if o == nil || r.Verdict != verdict || r.Rule != e.Rule || r.Server != frame.Label(e.Server) || r.Tool != frame.Label(e.Tool) || !r.Time.After(e.Time) {
			return false
		}
		return sameSubjects(o.Subjects, e.Subjects, ledger.By)
	})
}

// begins are the verdicts of records with which a row is stored.
var begins = []string{"approved", "granted", "proposed", "quarantined"}

// problems compares the rows with the records. Each is a place and what is wrong there.
func (d *deciding) problems(rows *storage.Deciding) (out []ledger.Problem) {
	d.older, d.former = 0, 0
	fault := func(place string, f ledger.Fault) {
		out = append(out, ledger.Problem{Place: place, Index: -1, Fault: f})
	}
	there := map[decisionKey]bool{}
	check := func(place string, e *ledger.Event, since time.Time, holds bool) {
		k := decisionKey{e.Kind, e.Of}
		there[k] = true
		switch begun := slices.ContainsFunc(d.records[k], func(r recorded) bool { return slices.Contains(begins, r.Verdict) }); {
		case holds:
		case !begun && (d.first.IsZero() || since.Before(d.first)):
			d.older++
		default:
			fault(place, faultUnborne)
		}
	}
	for _, place := range rows.Unread {
		fault(place, faultUnread)
	}
	for _, a := range rows.Approvals {
		check("approval "+a.ID, evidence.Approval(a), a.Since, d.approval(a))
	}
	for _, x := range rows.Exceptions {
		check("exception "+x.ID, evidence.Exception(x), x.Since, d.exception(x))
	}
	for _, b := range rows.Blocks {
		check("block "+b.ID, evidence.Block(b), b.Since, d.block(b))
	}
	for server, record := range rows.Pins {
		there[pinKey(server)] = true
		if f := d.pin(server, record); f != "" {
			fault("pin "+finding.Quote(server), f)
		}
	}
	for k, list := range d.records {
		if last := list[len(list)-1]; !there[k] && d.remains(list) {
			fault("record "+last.ID.String(), faultRemoved)
		}
	}
	return out
}

// remains reports whether the row that records are about must be there.
func (d *deciding) remains(list []recorded) bool {
	last := list[len(list)-1]
	if surfaceKinds[last.Kind] {
		return last.Of != (ledger.ID{}) && last.Kind != ledger.SurfaceDropped && last.n > d.old && last.opening(d.ctx) != nil
	}
	// What is over is kept for a while, and what names a person who was forgotten is not: its openings are erased. A record
	// that was added to a restored database has none either.
	return slices.ContainsFunc(list, func(r recorded) bool {
		return slices.Contains(begins, r.Verdict) && time.Since(r.Time) < hold.Remembered && r.opening(d.ctx) != nil
	})
}

func (d *deciding) approval(a hold.Approval) bool {
	begun := a
	begun.Revoked, begun.Revoker = time.Time{}, ""
	e := evidence.Approval(begun)
	if a.Revoked.IsZero() {
		return a.Revoker == "" && d.borne(e, false) && !d.ended(e, "revoked")
	}
	return d.borne(e, false) && d.borne(evidence.Approval(a), false)
}

func (d *deciding) block(b hold.Block) bool {
	begun := b
	begun.Lifted, begun.By = time.Time{}, ""
	e := evidence.Block(begun)
	if b.Lifted.IsZero() {
		return b.By == "" && d.borne(e, false) && !d.ended(e, "lifted")
	}
	return d.borne(e, false) && d.borne(evidence.Block(b), false)
}

func (d *deciding) exception(x hold.Exception) bool {
	if x.Second != "" && x.Until.IsZero() || x.Keep != 0 && !x.Until.IsZero() || x.Revoker != "" && x.Revoked.IsZero() {
		return false
	}
	begun := x
	begun.Revoked, begun.Revoker, begun.Second = time.Time{}, "", ""
	e := evidence.Exception(begun)
	if x.Second != "" {
		confirmed := begun
		confirmed.Second = x.Second
		if !d.borne(evidence.Exception(confirmed), true) {
			return false
		}
		e.Numbers = nil // for how long it was granted or proposed, the row no longer says
		if !d.borne(e, false) {
			e.Verdict = "proposed"
		}
	}
	if x.Revoked.IsZero() {
		return d.borne(e, false) && !slices.ContainsFunc(d.records[decisionKey{e.Kind, e.Of}], func(r recorded) bool { return r.Verdict == "revoked" && r.opening(d.ctx) != nil })
	}
	return d.borne(e, false) && d.borne(evidence.Exception(x), false)
}

// pin compares the record of a pin with the latest record of the log about it, and names with those of the decisions.
func (d *deciding) pin(server string, record []byte) ledger.Fault {
	p, err := surface.ParsePin(server, record)
	if err != nil {
		return faultUnread
	}
	about := d.records[pinKey(server)]
	if len(about) == 0 || about[len(about)-1].n < d.old {
		d.former++
	} else if o := about[len(about)-1].opening(d.ctx); o != nil && !slices.Contains(o.Subjects, ledger.Subject{Role: ledger.Approved, Digest: ledger.Digest(p.Decided())}) {
		return faultUnborne
	}
	about = append(slices.Clip(about), d.records[decisionKey{ledger.SurfaceApproved, ledger.ID{}}]...)
	for i := range p.Items {
		it := &p.Items[i]
		of := it.DecidedByHand()
		if len(of) > 0 && p.Since.After(d.first) && !slices.ContainsFunc(about, func(r recorded) bool { return d.decidedItem(r, of, it.By) }) {
			return faultUnborne
		}
	}
	return ""
}

// decidedItem reports whether a record says that this person has decided on one of the versions.
func (d *deciding) decidedItem(r recorded, of []surface.Digest, by string) bool {
	if r.Kind != ledger.SurfaceApproved && r.Kind != ledger.SurfaceBlocked {
		return false
	}
	o := r.opening(d.ctx)
	if o == nil { // it was erased, with the name
		return true
	}
	named := by == ""
	item := false
	for _, s := range o.Subjects {
		named = named || s.Role == ledger.By && s.Digest == sha256.Sum256([]byte(by))
		item = item || s.Role == ledger.Item && slices.Contains(of, surface.Digest(s.Digest))
	}
	return named && item
}

// rest adds what is wrong to the report. A row that was written meanwhile, with its record, is read again.
func (d *deciding) rest(ctx context.Context, l *storage.Ledger, before *storage.Deciding, report func(place string, fault ledger.Fault)) (notChecked []string, err error) {
	found := d.problems(before)
	if len(found) > 0 {
		now, err := l.Deciding(ctx)
		if err != nil {
			return nil, err
		}
		again := d.problems(&now)
		for _, p := range found {
			if slices.Contains(again, p) {
				report(p.Place, p.Fault)
			}
		}
	}
	if d.older > 0 {
		notChecked = append(notChecked, fmt.Sprintf("%d rows of approvals, exceptions and blocks: they are older than the log", d.older))
	}
	if d.former > 0 {
		notChecked = append(notChecked, fmt.Sprintf("%d pins, but for what a person has decided: an earlier release has written them", d.former))
	}
	return notChecked, nil
}
