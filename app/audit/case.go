// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/app/local"
	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/record/sequence"
	"github.com/pellucid-mcp/pellucid/storage"
)

// CaseType names the format of a case (docs/spec/evidence.md, Case).
const CaseType = "https://github.com/pellucid-mcp/pellucid/case/v0.2"

// A Case is all that is known of one decision, in one file: nothing stands in it that its records do
// not prove, and nothing can be taken out of it that its head does not miss. docs/spec/verify/verify.py checks it offline.
type Case struct {
	Type     string        `json:"type"`
	ID       string        `json:"id"`      // evidence id
	Records  []CaseRecord  `json:"records"` // in the order of the log, all under one checkpoint
	Held     *CaseHeld     `json:"held,omitempty"`
	Decided  *CaseDecided  `json:"decided,omitempty"`
	Deletion *CaseDeletion `json:"deletion,omitempty"`
	Guard    []byte        `json:"guard,omitempty"` // statement of the guard, of which the record has the digest
	Head     string        `json:"head,omitempty"`  // signed envelope about all of the above; "": the key of the log is not here
}

// A CaseRecord is a record with its proof, and its opening unless that was erased or left out.
type CaseRecord struct {
	Proof   string `json:"proof"` // C2SP tlog-proof
	Opening string `json:"opening,omitempty"`
}

// A CaseHeld is what was held.
type CaseHeld struct {
	State     string `json:"state"`               // as the records say
	Text      []byte `json:"text,omitempty"`      // as it was received: third-party text
	Encrypted []byte `json:"encrypted,omitempty"` // an age file, which only a reviewer opens
}

// A CaseDecided names the reviewer whose digest a record has.
type CaseDecided struct {
	By     string `json:"by"`
	Record string `json:"record"`
}

// A CaseDeletion names the record about this item that says that what was held is destroyed.
type CaseDeletion struct {
	How    string `json:"how"` // "denied", "expired", "taken", "forgotten"
	Record string `json:"record"`
}

// CaseOptions say what a case contains.
type CaseOptions struct {
	Key             *ledger.Signer // of the log, where it is given by reference; nil: that of the installation
	WithoutText     bool           // leave out what is held
	WithoutOpenings bool           // leave out the plain digests, and so the text and the names
	// Open decrypts what is held, for a reviewer who has the key; nil: it stays encrypted.
	Open func(*hold.Item) ([]byte, error)
	// Statement reads the guard's statement of a decision; nil without an error if the guard wrote nothing.
	Statement func(ledger.ID) ([]byte, error)
}

// ends are the kinds of records about an item after which what was held is gone, and the state that they make.
var ends = map[ledger.Kind]string{ledger.ResultDenied: "denied", ledger.ResultExpired: "expired", ledger.ResultTaken: "taken",
	ledger.PrincipalForgotten: "forgotten"}

// slack is how much earlier than a decision a record about it can be.
const slack = 10 * time.Minute

// errUnproved means that what the queue holds is not what was put into it.
var errUnproved = errors.New("ledger: case: what is held is not what the record says; --without-text leaves it out")

// NewCase collects a case from a store. The id is that of a record or of a held item.
func NewCase(ctx context.Context, s *storage.Store, dir *state.Dir, id ledger.ID, o CaseOptions) (*Case, error) {
	l := s.Ledger()
	queue := hold.New(s, hold.Options{})
	list, err := caseRecords(ctx, l, queue, dir, &id)
	if err != nil {
		return nil, err
	}
	b := &caseBuilder{o: o, c: &Case{Type: CaseType, ID: id.String()}}
	for i := range list {
		if err := b.take(&list[i]); err != nil {
			return nil, err
		}
	}
	if err := b.held(ctx, queue, id); err != nil {
		return nil, err
	}
	if err := b.guard(id); err != nil {
		return nil, err
	}
	if err := b.prove(ctx, l); err != nil {
		return nil, err
	}
	return b.c, b.sign(ctx, l, dir)
}

// caseRecords returns the record of an id and those about it. id becomes that of the decision, where
// it named a record about one. A held item whose decision was not recorded has the records about it alone.
func caseRecords(ctx context.Context, l *storage.Ledger, q *hold.Queue, dir *state.Dir, id *ledger.ID) ([]sequence.Entry, error) {
	var list []sequence.Entry
	var server string
	var since time.Time
	e, err := Find(ctx, l, dir, *id)
	switch {
	case errors.Is(err, errNoRecord):
		it, err := q.Get(ctx, id.String())
		if errors.Is(err, hold.ErrNotFound) {
			return nil, errNoRecord
		} else if err != nil {
			return nil, err
		}
		server, since = it.Server, it.Held
	case err != nil:
		return nil, err
	default:
		st, err := statement(&e)
		if err != nil {
			return nil, err
		}
		if st.Of != (ledger.ID{}) && st.Kind != ledger.Message {
			*id = st.Of
			if e, err = l.Get(ctx, st.Of); err == nil {
				st, err = statement(&e)
			}
		}
		if err != nil && !errors.Is(err, ledger.ErrNotFound) {
			return nil, err
		}
		if err == nil {
			list = append(list, e)
		}
		server, since = st.Server, st.Time
	}
	about, more, err := l.About(ctx, *id, server, since.Add(-slack))
	if err != nil {
		return nil, err
	}
	if more {
		return nil, errors.New("ledger: case: the log is too long to find every record of this case")
	}
	if list = append(list, about...); len(list) == 0 {
		return nil, errNoRecord
	}
	slices.SortFunc(list, func(a, b sequence.Entry) int { return cmp.Compare(a.Index, b.Index) })
	return slices.CompactFunc(list, func(a, b sequence.Entry) bool { return a.Index == b.Index }), nil
}

// A caseBuilder makes a Case.
type caseBuilder struct {
	o       CaseOptions
	c       *Case
	records []caseStatement

	checkpoint []byte // of all proofs
}

type caseStatement struct {
	index   int64
	st      *ledger.Statement
	opening *ledger.Opening // nil: erased
	raw     []byte
}

// plain is the plain digest of a role; false where the opening is erased or left out.
func (r *caseStatement) plain(role ledger.Role) (d ledger.Digest, ok bool) {
	if r.opening == nil {
		return d, false
	}
	for _, s := range r.opening.Subjects {
		if s.Role == role {
			return s.Digest, true
		}
	}
	return d, false
}

func (b *caseBuilder) take(e *sequence.Entry) error {
	st, err := statement(e)
	if err != nil {
		return err
	}
	r := caseStatement{index: e.Index, st: st}
	if o, err := ledger.ParseOpening(e.Opening); !b.o.WithoutOpenings && err == nil && o.Check(st) == nil {
		r.opening, r.raw = o, e.Opening
	}
	b.records = append(b.records, r)
	return nil
}

// of returns the last record of a kind.
func (b *caseBuilder) of(kind ledger.Kind) *caseStatement {
	for i := len(b.records) - 1; i >= 0; i-- {
		if b.records[i].st.Kind == kind {
			return &b.records[i]
		}
	}
	return nil
}

// held adds what was held, its state, who decided, and what proves that it is gone.
func (b *caseBuilder) held(ctx context.Context, q *hold.Queue, id ledger.ID) error {
	state := "held"
	if b.of(ledger.ResultReleased) != nil {
		state = "released"
	}
	for i := range b.records {
		if r := &b.records[i]; ends[r.st.Kind] != "" && r.st.Of == id {
			state = ends[r.st.Kind]
			b.c.Deletion = &CaseDeletion{state, r.st.ID.String()}
		}
	}
	put := b.of(ledger.ResultHeld)
	if put == nil {
		return nil
	}
	h := &CaseHeld{State: state}
	b.c.Held = h
	it, err := q.Get(ctx, id.String())
	if errors.Is(err, hold.ErrNotFound) {
		return nil
	} else if err != nil {
		return err
	}
	for _, kind := range []ledger.Kind{ledger.ResultReleased, ledger.ResultDenied} {
		r := b.of(kind)
		if r == nil {
			continue
		}
		if d, ok := r.plain(ledger.By); ok && d == sha256.Sum256([]byte(it.By)) {
			b.c.Decided = &CaseDecided{it.By, r.st.ID.String()}
		}
	}
	if b.o.WithoutText || it.Body == nil || b.c.Deletion != nil {
		return nil
	}
	return b.text(h, put, &it)
}

// text adds what is held, as far as the record proves it.
func (b *caseBuilder) text(h *CaseHeld, put *caseStatement, it *hold.Item) error {
	body := it.Body
	if it.Sealed() {
		if b.o.Open == nil {
			h.Encrypted = body
			return nil
		}
		var err error
		if body, err = b.o.Open(it); err != nil {
			return err
		}
	}
	d, ok := put.plain(ledger.Held)
	switch {
	case !ok:
		return nil // nothing ties the text to the record
	case d != sha256.Sum256(body):
		return errUnproved
	}
	h.Text = body
	return nil
}

// guard adds the statement of the guard.
func (b *caseBuilder) guard(id ledger.ID) error {
	i := slices.IndexFunc(b.records, func(r caseStatement) bool { return r.st.ID == id })
	if i < 0 || b.records[i].st.Kind != ledger.Counterfactual || b.o.Statement == nil || b.o.WithoutText {
		return nil
	}
	text, err := b.o.Statement(id)
	if err != nil || text == nil {
		return err
	}
	if d, ok := b.records[i].plain(ledger.Output); ok && d == sha256.Sum256(text) {
		b.c.Guard = text
	}
	return nil
}

// A fixedLog is a log under one checkpoint: it may grow meanwhile.
type fixedLog struct {
	*storage.Ledger
	checkpoint []byte
}

// Checkpoint implements ledger.Source.
func (l fixedLog) Checkpoint(context.Context) ([]byte, error) { return l.checkpoint, nil }

// prove makes the proofs, under the latest checkpoint that witnesses have cosigned if it has the
// records, and else under the latest.
func (b *caseBuilder) prove(ctx context.Context, l *storage.Ledger) error {
	last := b.records[len(b.records)-1].index
	checkpoint, err := l.Cosigned(ctx)
	if err == nil && ledger.CheckpointSize(checkpoint) <= last {
		checkpoint, err = l.Checkpoint(ctx)
	}
	if err != nil {
		return fmt.Errorf("ledger: case: checkpoint: %w", err)
	}
	b.checkpoint = checkpoint
	for _, r := range b.records {
		p, err := ledger.Prove(ctx, fixedLog{l, checkpoint}, r.index)
		if err != nil {
			return err
		}
		b.c.Records = append(b.c.Records, CaseRecord{string(p.Bytes()), string(r.raw)})
	}
	return nil
}

// Case collects a case from a database, once the records that wait are part of its log.
func (o CaseOptions) Case(d install.Database, id ledger.ID) (c *Case, err error) {
	dir, err := local.OpenState()
	if err != nil {
		return nil, err
	}
	err = d.WithIntegrated(func(ctx context.Context, s *storage.Store) error {
		c, err = NewCase(ctx, s, dir, id, o)
		return err
	})
	if errors.Is(err, install.ErrNoStore) || errors.Is(err, sequence.ErrNoLog) {
		return nil, fmt.Errorf("%w: %w", install.ErrNoLog, err)
	}
	return c, err
}
