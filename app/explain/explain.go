// SPDX-License-Identifier: Apache-2.0

// Package explain says in plain words what happened to one call, why, and what a reviewer can do about it now.
//
// It reads the ledger, the queue of held items, the blocked sources, the approvals and the pins,
// and the journal in which wrap keeps decisions without a ledger. The explanation is data:
// the command line and the console print the same.
package explain

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/pellucid-mcp/pellucid/app/audit"
	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/record/sequence"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// A Log is what is read of the ledger. The errors of its first two methods are ledger.ErrNotFound
// where there is no such record.
type Log interface {
	Get(ctx context.Context, id ledger.ID) (sequence.Entry, error)
	At(ctx context.Context, index int64) (sequence.Entry, error)
	// About returns the records of a server that are about the record or held item of, of the
	// time since or later, in the order of the log; more says that not all were looked at.
	About(ctx context.Context, of ledger.ID, server string, since time.Time) (list []sequence.Entry, more bool, err error)
}

// Sources are where an explanation is looked for. What is nil does not exist here.
type Sources struct {
	Log   Log
	Queue interface {
		Get(context.Context, string) (hold.Item, error)
	}
	Blocks interface {
		List(context.Context, bool) ([]hold.Block, error)
	}
	Approvals interface {
		List(context.Context, bool) ([]hold.Approval, error)
	}
	// Captured reports whether texts of a call that was not held are kept.
	Captured func(ctx context.Context, id string) bool
	Journal  func(ledger.ID) (*audit.JournalRow, error)
	Flagged  func(ledger.ID) []audit.Flagged // sentences that classifiers have flagged
	// Pin returns what waits of a tool of a server, for the operator; ok is false where nothing is known.
	Pin func(ctx context.Context, server, tool string) (p Pin, ok bool)

	Looked []string // the places, for a person who asks for an id that is in none
	Guard  string   // directory of the guard's statements, "" if the machine has no guard
	Flag   string   // " --db X", which the commands need; "" where they find the database without
	Now    func() time.Time
}

// A Pin is what a pin says about one tool, or about what waits of a server where the tool has none.
type Pin struct {
	State string `json:"state"` // "pinned", "approved", "pending", "blocked"
	By    string `json:"by,omitzero"`
	At    time.Time
	Name  string // the word by which commands name the server
}

// An Explanation says what happened. Its sentences hold constants, labels, digests and times, and of third
// parties only what a classifier has flagged, in quotes.
type Explanation struct {
	Asked  string   `json:"asked"`            // the id or index as it was given
	ID     string   `json:"id"`               // evidence id of what is explained
	Found  []string `json:"found"`            // "ledger", "queue", "journal", "blocks", "approvals"
	Index  *int64   `json:"index,omitempty"`  // in the log
	Kind   string   `json:"kind,omitempty"`   // of the record
	State  string   `json:"state,omitempty"`  // of the item in the queue
	Time   string   `json:"time,omitempty"`   // RFC 3339
	Server string   `json:"server,omitempty"` // label
	Tool   string   `json:"tool,omitempty"`   // label
	Method string   `json:"method,omitempty"`
	// Verdict is what became of the message: "passed", "changed", "withheld" or "dropped"; of a
	// decision of the guard its act.
	Verdict string `json:"verdict,omitempty"`

	Happened  []string  `json:"happened"`
	Codes     []Code    `json:"codes"`
	Why       []Cause   `json:"why"`
	Delivered []string  `json:"delivered"` // what the client got
	Since     []Step    `json:"since"`     // what became of it, in order
	Do        []Command `json:"do"`
	Notes     []string  `json:"notes"` // what is not known, or not kept
}

// A Code is a code that the decision names, with what it means.
type Code struct {
	Code     string `json:"code"`
	Role     string `json:"role"` // "found", "withheld", "not-inspected", "held-for"
	N        int64  `json:"n,omitempty"`
	Severity string `json:"severity"`
	Meaning  string `json:"meaning"`
}

// A Cause is what led to the decision.
type Cause struct {
	Kind string `json:"kind"` // "hold", "policy", "classifier", "sentence", "schema", "pin", "block", "guard", "approval", "rules", "limit"
	Name string `json:"name,omitempty"`
	Text string `json:"text"`
}

// A Step is something that happened later.
type Step struct {
	Time  string `json:"time"`
	Text  string `json:"text"`
	By    string `json:"by,omitempty"`
	ID    string `json:"id,omitempty"`    // of its record
	Index *int64 `json:"index,omitempty"` // in the log
	Asked bool   `json:"asked,omitempty"` // this record is the one that was asked for
}

// A Command is what a person can do now.
type Command struct {
	Text    string `json:"text"`
	Command string `json:"command"`
}

// ErrUnknown is wrapped where no source knows the id.
var ErrUnknown = errors.New("explain: nothing is known of this id")

// An UnknownError says where it was looked for.
type UnknownError struct {
	Asked  string
	Looked []string
}

func (e *UnknownError) Error() string { return ErrUnknown.Error() + ": " + finding.Quote(e.Asked) }

// Is makes it an ErrUnknown.
func (e *UnknownError) Is(target error) bool { return target == ErrUnknown }

// ErrRef says that what was given is neither an id nor an index.
var ErrRef = errors.New("explain: want an evidence id of 32 hexadecimal digits in lower case, or the index of a record")

// Of explains what an evidence id, the id of a record or held item, or an index of the log names.
func Of(ctx context.Context, src Sources, ref string) (*Explanation, error) {
	if src.Now == nil {
		src.Now = time.Now
	}
	x := &teller{src: src, out: &Explanation{Asked: ref, Found: []string{}, Happened: []string{}, Codes: []Code{}, Why: []Cause{},
		Delivered: []string{}, Since: []Step{}, Do: []Command{}, Notes: []string{}}}
	id, err := ledger.ParseID(ref)
	if err != nil {
		index, err := strconv.ParseUint(ref, 10, 63)
		if err != nil {
			return nil, ErrRef
		}
		e, err := x.at(ctx, int64(index))
		if err != nil {
			return nil, err
		}
		id = e.ID
	}
	if err := x.find(ctx, id); err != nil {
		return nil, err
	}
	x.tell(ctx)
	return x.out, nil
}

// A teller makes one Explanation.
type teller struct {
	src  Sources
	out  *Explanation
	more bool // not every record of the log was looked at

	id      ledger.ID
	asked   *ledger.Statement // the record that was asked for, where another is explained
	st      *ledger.Statement // of id; nil: the log has none
	index   int64
	about   []told
	item    *hold.Item
	journal *audit.JournalRow
}

// A told is a record about what is explained.
type told struct {
	index int64
	st    *ledger.Statement
}

func (x *teller) at(ctx context.Context, index int64) (e sequence.Entry, err error) {
	err = ledger.ErrNotFound
	if x.src.Log != nil {
		e, err = x.src.Log.At(ctx, index)
	}
	if errors.Is(err, ledger.ErrNotFound) {
		return e, &UnknownError{x.out.Asked, x.src.Looked}
	}
	return e, err
}

// find collects what the sources have about an id. A record about another record or about a held
// item leads to that one.
func (x *teller) find(ctx context.Context, id ledger.ID) error {
	x.id = id
	if err := x.record(ctx); err != nil {
		return err
	}
	if x.st != nil && x.st.Of != (ledger.ID{}) && !x.isRoot(x.st) {
		x.asked, x.id, x.st = x.st, x.st.Of, nil
		if err := x.record(ctx); err != nil {
			return err
		}
	}
	if err := x.beside(ctx); err != nil {
		return err
	}
	if x.st == nil && x.item == nil && x.journal == nil && x.asked != nil {
		x.id, x.st, x.asked = x.asked.ID, x.asked, nil // what it is about is gone: it is explained alone
	}
	if x.st == nil && x.item == nil && x.journal == nil {
		return &UnknownError{x.out.Asked, x.src.Looked}
	}
	return x.records(ctx)
}

// isRoot reports whether a record is explained by itself although it is about another.
func (x *teller) isRoot(st *ledger.Statement) bool { return st.Kind == ledger.Message }

// record reads the record of x.id.
func (x *teller) record(ctx context.Context) error {
	if x.src.Log == nil {
		return nil
	}
	e, err := x.src.Log.Get(ctx, x.id)
	if errors.Is(err, ledger.ErrNotFound) || errors.Is(err, sequence.ErrNoLog) {
		return nil
	} else if err != nil {
		return err
	}
	st, err := ledger.UnverifiedStatement(e.Envelope)
	if err != nil {
		return fmt.Errorf("explain: record %d: %w", e.Index, err)
	}
	x.st, x.index = st, e.Index
	return nil
}

// beside reads what the queue and the journal have.
func (x *teller) beside(ctx context.Context) error {
	if x.src.Queue != nil {
		it, err := x.src.Queue.Get(ctx, x.id.String())
		if err == nil {
			x.item = &it
		} else if !errors.Is(err, hold.ErrNotFound) {
			return err
		}
	}
	if x.src.Journal != nil {
		row, err := x.src.Journal(x.id)
		if err != nil {
			return err
		}
		x.journal = row
	}
	return nil
}

// slack is how much earlier than a decision a record about it can be: the item of a result is
// stored before the decision is.
const slack = 10 * time.Minute

// records reads what the log has about x.id.
func (x *teller) records(ctx context.Context) error {
	if x.src.Log == nil {
		return nil
	}
	server, since := "", time.Time{}
	switch {
	case x.st != nil:
		server, since = x.st.Server, x.st.Time
	case x.item != nil:
		server, since = x.item.Server, x.item.Held
	case x.journal != nil:
		server, since = x.journal.Server, x.journal.Time
	}
	list, more, err := x.src.Log.About(ctx, x.id, server, since.Add(-slack))
	if errors.Is(err, sequence.ErrNoLog) {
		return nil
	} else if err != nil {
		return err
	}
	x.more = more
	for i := range list {
		st, err := ledger.UnverifiedStatement(list[i].Envelope)
		if err != nil {
			return fmt.Errorf("explain: record %d: %w", list[i].Index, err)
		}
		x.about = append(x.about, told{list[i].Index, st})
	}
	return nil
}
