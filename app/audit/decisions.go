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
	faultUnrecorded ledger.Fault = "is not what the log says was decided"
	faultUnread     ledger.Fault = "cannot be read"
	faultRemoved    ledger.Fault = "says what was decided, but the row of it is no longer in the store"
)

// A decisionAudit compares the rows by which something passes or is kept back with the records of the decisions. Package
// evidence words what a record must say, as it did when the row was written.
type decisionAudit struct {
	ctx            context.Context
	records        map[decisionKey][]recorded
	count          int
	firstRecord    time.Time // rows from before it were written without evidence
	lastUnnamedPin int       // number of the last record of a pin that names no pin: an earlier release wrote it

	notCompared struct{ olderRows, earlierPins int } // rows from before the log, and pins that an earlier release wrote
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
	number   int // in the order of the log
	subjects storage.ReadSubjects
}

// addRecord adds a record if it is about a decision.
func (d *decisionAudit) addRecord(st *ledger.Statement, subjects storage.ReadSubjects) {
	if d.firstRecord.IsZero() {
		d.firstRecord = st.Time
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
	d.count++
	if k.kind == ledger.SurfaceApproved && st.Of == (ledger.ID{}) {
		d.lastUnnamedPin = d.count
	}
	d.records[k] = append(d.records[k], recorded{st, d.count, subjects})
}

// isRecorded reports whether a record says e. Where anyTime is set, its time does not count.
func (d *decisionAudit) isRecorded(e *ledger.Event, anyTime bool) bool {
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
		subjects, kept := r.subjects(d.ctx)
		return !kept || sameSubjects(subjects, e.Subjects, "")
	})
}

// sameSubjects compares the subjects of two records, except those of a role.
func sameSubjects(a, b []ledger.Subject, but ledger.Role) bool {
	of := func(list []ledger.Subject) []ledger.Subject {
		return slices.DeleteFunc(slices.Clone(list), func(s ledger.Subject) bool { return s.Role == but || s.Role == ledger.NoContent })
	}
	a, b = of(a), of(b)
	return len(a) == len(b) && !slices.ContainsFunc(a, func(s ledger.Subject) bool { return !slices.Contains(b, s) })
}

// The verdicts of records with which a row is stored, and with which a person ends it.
var (
	beginVerdicts = []string{"approved", "granted", "proposed", "quarantined"}
	endVerdicts   = []string{"revoked", "lifted"}
)

// wasEnded reports whether a record says that a person has ended what e began.
func (d *decisionAudit) wasEnded(e *ledger.Event) bool {
	return slices.ContainsFunc(d.records[decisionKey{e.Kind, e.Of}], func(r recorded) bool {
		if !slices.Contains(endVerdicts, r.Verdict) || r.Rule != e.Rule || r.Server != frame.Label(e.Server) || r.Tool != frame.Label(e.Tool) || r.Time.Before(e.Time) {
			return false
		}
		subjects, kept := r.subjects(d.ctx)
		return kept && sameSubjects(subjects, e.Subjects, ledger.By)
	})
}

// isWhole reports whether records say that a row began as it did, and that it ended if it has.
func (d *decisionAudit) isWhole(began, is *ledger.Event, ended time.Time, by string) bool {
	switch {
	case !d.isRecorded(began, false):
		return false
	case ended.IsZero():
		return by == "" && !d.wasEnded(began)
	}
	return d.isRecorded(is, false)
}

// compareRows compares the rows with the records. Each problem is a place and what is wrong there.
func (d *decisionAudit) compareRows(rows *storage.DecisionRows) (out []ledger.Problem) {
	d.notCompared.olderRows, d.notCompared.earlierPins = 0, 0
	fault := func(place string, f ledger.Fault) {
		out = append(out, ledger.Problem{Place: place, Index: -1, Fault: f})
	}
	there := map[decisionKey]bool{}
	check := func(place string, began *ledger.Event, whole bool) {
		k := decisionKey{began.Kind, began.Of}
		there[k] = true
		switch begun := slices.ContainsFunc(d.records[k], func(r recorded) bool { return slices.Contains(beginVerdicts, r.Verdict) }); {
		case whole:
		case !begun && (d.firstRecord.IsZero() || began.Time.Before(d.firstRecord)):
			d.notCompared.olderRows++
		default:
			fault(place, faultUnrecorded)
		}
	}
	for _, place := range rows.Unread {
		fault(place, faultUnread)
	}
	for _, a := range rows.Approvals {
		started := a
		started.Revoked = time.Time{}
		began := evidence.Approval(started)
		check("approval "+a.ID, began, d.isWhole(began, evidence.Approval(a), a.Revoked, a.Revoker))
	}
	for _, x := range rows.Exceptions {
		began, ok := d.grantOf(x)
		check("exception "+x.ID, began, ok && d.isWhole(began, evidence.Exception(x), x.Revoked, x.Revoker))
	}
	for _, b := range rows.Blocks {
		started := b
		started.Lifted = time.Time{}
		began := evidence.Block(started)
		check("block "+b.ID, began, d.isWhole(began, evidence.Block(b), b.Lifted, b.By))
	}
	for server, record := range rows.Pins {
		there[pinKey(server)] = true
		if f := d.comparePin(server, record); f != "" {
			fault("pin "+finding.Quote(server), f)
		}
	}
	for k, list := range d.records {
		if last := list[len(list)-1]; !there[k] && d.mustHaveRow(list) {
			fault("record "+last.ID.String(), faultRemoved)
		}
	}
	return out
}

// mustHaveRow reports whether the row that records are about must be there.
func (d *decisionAudit) mustHaveRow(list []recorded) bool {
	// A row stays for a while after its end, unless it names a person who was forgotten: then the openings are erased. A
	// record that was added to a restored database has no opening either.
	isKept := func(r recorded) bool {
		_, kept := r.subjects(d.ctx)
		return kept
	}
	last := list[len(list)-1]
	if surfaceKinds[last.Kind] {
		return last.Of != (ledger.ID{}) && last.Kind != ledger.SurfaceDropped && last.number > d.lastUnnamedPin && isKept(last)
	}
	return slices.ContainsFunc(list, func(r recorded) bool {
		return slices.Contains(beginVerdicts, r.Verdict) && time.Since(r.Time) < hold.Remembered && isKept(r)
	})
}

// grantOf returns the event that granted or proposed an exception. It is not ok if the members of the row contradict each
// other, or if the confirmation of the second person is not recorded.
func (d *decisionAudit) grantOf(x hold.Exception) (began *ledger.Event, ok bool) {
	ok = (x.Second == "" || !x.Until.IsZero()) && (x.Keep == 0 || x.Until.IsZero())
	second := x.Second
	x.Revoked, x.Second = time.Time{}, ""
	began = evidence.Exception(x)
	if second != "" {
		began.Numbers = nil // the row no longer says for how long it was granted or proposed
		if !d.isRecorded(began, false) {
			began.Verdict = "proposed"
		}
		x.Second = second
		ok = ok && d.isRecorded(evidence.Exception(x), true)
	}
	return began, ok
}

// comparePin compares the record of a pin with the latest record of the log about it, and names with those of the
// decisions. It returns "" if they agree.
func (d *decisionAudit) comparePin(server string, record []byte) ledger.Fault {
	p, err := surface.ParsePin(server, record)
	if err != nil {
		return faultUnread
	}
	about := d.records[pinKey(server)]
	if len(about) == 0 || about[len(about)-1].number < d.lastUnnamedPin {
		d.notCompared.earlierPins++
	} else if subjects, kept := about[len(about)-1].subjects(d.ctx); kept && !slices.Contains(subjects, ledger.Subject{Role: ledger.Approved, Digest: ledger.Digest(p.Decided())}) {
		return faultUnrecorded
	}
	about = append(slices.Clip(about), d.records[decisionKey{ledger.SurfaceApproved, ledger.ID{}}]...)
	for i := range p.Items {
		it := &p.Items[i]
		versions := it.DecidedByHand()
		if len(versions) > 0 && p.Since.After(d.firstRecord) && !slices.ContainsFunc(about, func(r recorded) bool { return d.decidesItem(r, versions, it.By) }) {
			return faultUnrecorded
		}
	}
	return ""
}

// decidesItem reports whether a record says that this person has decided on one of the versions.
func (d *decisionAudit) decidesItem(r recorded, versions []surface.Digest, by string) bool {
	if r.Kind != ledger.SurfaceApproved && r.Kind != ledger.SurfaceBlocked {
		return false
	}
	subjects, kept := r.subjects(d.ctx)
	named, item := by == "" || !kept, !kept
	for _, s := range subjects {
		named = named || s.Role == ledger.By && s.Digest == sha256.Sum256([]byte(by))
		item = item || s.Role == ledger.Item && slices.Contains(versions, surface.Digest(s.Digest))
	}
	return named && item
}

// reportFaults adds what is wrong to the report. A row that was written meanwhile, with its record, is read again.
func (d *decisionAudit) reportFaults(l *storage.Ledger, before *storage.DecisionRows, report func(place string, fault ledger.Fault)) (notChecked []string, err error) {
	found := d.compareRows(before)
	if len(found) > 0 {
		now, err := l.DecisionRows(d.ctx)
		if err != nil {
			return nil, err
		}
		again := d.compareRows(&now)
		for _, p := range found {
			if slices.Contains(again, p) {
				report(p.Place, p.Fault)
			}
		}
	}
	if n := d.notCompared.olderRows; n > 0 {
		notChecked = append(notChecked, fmt.Sprintf("%d rows of approvals, exceptions and blocks: they are older than the log", n))
	}
	if n := d.notCompared.earlierPins; n > 0 {
		notChecked = append(notChecked, fmt.Sprintf("%d pins, except what a person has decided: an earlier release has written them", n))
	}
	return notChecked, nil
}
