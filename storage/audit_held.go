// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"slices"
	"time"

	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/record/ledger"
)

// A heldAudit compares the queue of held results with what the log says of them.
type heldAudit struct {
	rows  map[ledger.ID]heldRow
	told  map[ledger.ID]*heldTold
	first time.Time // of the log's records: rows from before were held without evidence
}

// A heldRow is an item of the queue as the audit has read it.
type heldRow struct {
	hold.Item      // without Body
	bad       bool // the row cannot be that of an item
}

// A heldTold is what the records say of one item.
type heldTold struct {
	held    *ledger.Statement // of kind result-held; nil: not seen
	state   hold.State
	decided time.Time // by a person
	erased  bool      // with what names its principal
	of, by  told      // the records of kind result-held, and of the decision

	proposed   time.Time // by the first of two persons
	proposedBy told
}

// A told is where the opening of a record is: in the log, or here where the record waits.
type told struct {
	index   int64
	opening []byte
}

// heldKinds are the states that records lead to.
var heldKinds = map[ledger.Kind]hold.State{ledger.ResultHeld: hold.Held, ledger.ResultReleased: hold.Released,
	ledger.ResultTaken: hold.Taken, ledger.ResultDenied: hold.Denied, ledger.ResultExpired: hold.Expired}

// heldRank is how far a state is; records of different processes may stand in another order.
var heldRank = map[hold.State]int{hold.Held: 1, hold.Released: 2, hold.Taken: 3, hold.Denied: 3, hold.Expired: 3}

// read takes what the queue has before the log is read: the record of each item is older.
func (h *heldAudit) read(ctx context.Context, s *Store) error {
	h.rows, h.told = map[ledger.ID]heldRow{}, map[ledger.ID]*heldTold{}
	err := s.EachRow(ctx, func(r *sql.Rows) error {
		var body []byte
		var call, digest int
		it, err := scanHeld(r, time.Time{}, &body, &call, &digest)
		id, badID := ledger.ParseID(it.ID)
		row := heldRow{it, err != nil || badID != nil || heldRank[it.State] == 0 || call != len(it.Call) || digest != len(it.Digest)}
		it.Body = body
		if body != nil && !it.Sealed() && (!it.Opened(body) || len(body) != it.Bytes) {
			row.bad = true
		}
		if body != nil == (it.State == hold.Taken || it.State == hold.Denied || it.State == hold.Expired) {
			row.bad = true // a body stays exactly as long as it may be delivered
		}
		h.rows[id] = row
		return nil
	}, `SELECT `+heldColumns+`, body, length(call), length(digest) FROM held`)
	return s.Fail(ctx, "read the queue", err)
}

// Record takes note of a record of the log that holds.
func (a *Audit) Record(index int64, st *ledger.Statement) {
	if a.held.first.IsZero() {
		a.held.first = st.Time
	}
	a.addRecord(st, told{index: index})
}

func (a *Audit) addRecord(st *ledger.Statement, at told) {
	a.held.addRecord(st, at)
	if a.Each != nil {
		a.Each(st, func(ctx context.Context) ([]ledger.Subject, bool) { return a.subjects(ctx, at) })
	}
}

func (h *heldAudit) addRecord(st *ledger.Statement, at told) {
	state, is := heldKinds[st.Kind]
	erased := st.Kind == ledger.PrincipalForgotten
	proposed := st.Kind == ledger.PolicyDecided && st.Rule == hold.RuleTwoPersons
	if !is && !erased && !proposed || st.Of == (ledger.ID{}) {
		return
	}
	t := h.told[st.Of]
	if t == nil {
		t = &heldTold{by: told{index: -1}, proposedBy: told{index: -1}}
		h.told[st.Of] = t
	}
	if erased {
		t.erased = true
		return
	}
	if proposed {
		t.proposed, t.proposedBy = st.Time, at
		return
	}
	switch state {
	case hold.Held:
		kept := *st
		t.held, t.of = &kept, at
	case hold.Released, hold.Denied:
		t.decided, t.by = st.Time, at
	}
	if heldRank[state] >= heldRank[t.state] {
		t.state = state
	}
}

// until is when the item was to expire.
func (t *heldTold) until() time.Time {
	for _, n := range t.held.Numbers {
		if n.Name == "until" {
			return time.Unix(n.N, 0)
		}
	}
	return time.Time{}
}

// gone reports whether the queue may have removed the row by now.
func (t *heldTold) gone(now time.Time) bool {
	if !t.decided.IsZero() {
		return now.Sub(t.decided) > hold.Remembered
	}
	return heldRank[t.state] > heldRank[hold.Released] && now.Sub(t.until()) > hold.Remembered
}

func (a *Audit) heldFits(ctx context.Context) error {
	h := &a.held
	for id, row := range h.rows {
		t := h.told[id]
		fault := ledger.Fault("")
		switch {
		case row.bad:
			fault = faultHeld
		case t == nil || t.held == nil:
			if !h.first.IsZero() && row.Held.After(h.first) {
				fault = faultNoRecord
			}
		case t.erased || !a.heldIs(ctx, row, t):
			fault = faultHeld
		}
		if fault != "" && a.settled(ctx, row) {
			a.Problem("held result "+writerName(row.ID), fault)
		}
	}
	for id, t := range h.told {
		if _, there := h.rows[id]; there || t.held == nil || t.erased || t.gone(time.Now()) {
			continue
		}
		if _, kept := a.subjects(ctx, t.of); !kept {
			continue // its opening was erased, and the item with it
		}
		if _, err := a.l.s.GetHeld(ctx, id.String(), time.Time{}); errors.Is(err, hold.ErrNotFound) {
			a.Problem("held result "+id.String(), faultNoRow)
		} else if err != nil && ctx.Err() != nil {
			return err
		}
	}
	return nil
}

// settled reports whether a row still is what was read: a process may have changed it
// since, with its record.
func (a *Audit) settled(ctx context.Context, row heldRow) bool {
	now, err := a.l.s.GetHeld(ctx, row.ID, time.Time{})
	if errors.Is(err, hold.ErrNotFound) {
		return false
	}
	return err != nil || now.State == row.State
}

func (a *Audit) subjects(ctx context.Context, t told) (list []ledger.Subject, kept bool) {
	b := t.opening
	if b == nil && t.index >= 0 {
		e, err := a.l.At(ctx, t.index)
		if err != nil {
			return nil, false
		}
		b = e.Opening
	}
	o, err := ledger.ParseOpening(b)
	if err != nil {
		return nil, false
	}
	return o.Subjects, true
}

// decidedBy reports whether a row names the person and the time that a record has; recorded is zero where there is none.
func (a *Audit) decidedBy(ctx context.Context, at time.Time, name string, recorded time.Time, by told) bool {
	if !at.Equal(recorded) || recorded.IsZero() {
		return at.Equal(recorded) && name == ""
	}
	subjects, kept := a.subjects(ctx, by)
	i := slices.IndexFunc(subjects, func(s ledger.Subject) bool { return s.Role == ledger.By })
	return !kept || i < 0 && name == "" || i >= 0 && subjects[i].Digest == sha256.Sum256([]byte(name))
}

// heldIs reports whether a row is what its records say.
func (a *Audit) heldIs(ctx context.Context, row heldRow, t *heldTold) bool {
	st := t.held
	// A record has labels only: it is compared with what the row would be as one.
	e := ledger.Event{Kind: ledger.Message, Server: row.Server, Tool: row.Tool, Rule: row.Rule, Reason: string(row.Code)}
	as, err := e.Seal(ledger.Salt{})
	if err != nil {
		return false
	}
	same := st.Server == as.Parsed.Server && st.Tool == as.Parsed.Tool && st.Rule == as.Parsed.Rule && st.Reason == as.Parsed.Reason && st.Time.Equal(row.Held)
	for _, n := range st.Numbers {
		switch n.Name {
		case "until":
			same = same && row.Until.Unix() == n.N
		case "bytes":
			same = same && int64(row.Bytes) == n.N
		case "people":
			same = same && int64(row.People) == n.N
		}
	}
	switch row.State {
	case hold.Taken: // the record of the delivery may be lost, that of the release is not
		same = same && (t.state == hold.Released || t.state == hold.Taken)
	case hold.Released:
		same = same && t.state == hold.Released
	default:
		same = same && row.State == t.state
	}
	same = same && a.decidedBy(ctx, row.Decided, row.By, t.decided, t.by) && a.decidedBy(ctx, row.Proposed, row.Proposer, t.proposed, t.proposedBy)
	subjects, kept := a.subjects(ctx, t.of)
	if !kept {
		return same
	}
	want := map[ledger.Role]ledger.Digest{ledger.Held: ledger.Digest(row.Digest)}
	if row.Call != (hold.Digest{}) {
		want[ledger.Call] = ledger.Digest(row.Call)
	}
	if row.Principal != "" {
		want[ledger.Principal] = sha256.Sum256([]byte(row.Principal))
	}
	for _, s := range subjects {
		same = same && want[s.Role] == s.Digest
		delete(want, s.Role)
	}
	return same && len(want) == 0
}
