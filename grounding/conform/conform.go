// SPDX-License-Identifier: Apache-2.0

// Package conform scores any grounding adapter against the adversarial corpus.
//
// It is fed by what the corpus holds and judges by what the adapter answers: each
// vector becomes a signed attestation with a validator of its own, so that its
// entry is found in an answer whatever else the adapter returns.
package conform

import (
	"context"
	"fmt"

	"github.com/pellucid-mcp/pellucid/grounding/corpus"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/ucd"
)

// A Receipt says what became of an attestation at ingestion.
type Receipt struct {
	Accepted bool
	unknown  bool   // it was not fed by us: the answer will tell
	Code     string // the adapter's own reason; third-party text
}

// An Answer is what the adapter returned to a query. All of it is third-party
// text.
type Answer struct {
	JSON  []byte   // the response envelope of RFC 5.1
	texts []string // text blocks beside it
	links []string // URIs that were offered as resource pointers
}

// An Adapter is what is under test. An error means that there is no result, not
// that an attestation was refused.
type Adapter interface {
	Ingest(ctx context.Context, attestation []byte) (Receipt, error)
	Query(ctx context.Context, query string) (Answer, error)
}

// A fetcher is an Adapter that also returns one attestation by its canonical hash.
// ok is false where it has no such door.
type fetcher interface {
	Fetch(ctx context.Context, hash string) (a Answer, ok bool, err error)
}

// A Confusables is what an adapter does with characters that are taken for ASCII (RFC
// 4.3); the operator has to tell.
type Confusables string

// The policies of RFC 4.3.
const (
	replace Confusables = "replace"
	reject  Confusables = "reject"
	flag    Confusables = "flag"
)

// A Runner scores one adapter. Scope and Confusables are how the adapter is
// configured; their zero values mean literal and replace.
type Runner struct {
	Adapter     Adapter
	Scope       corpus.Scope
	Confusables Confusables
	Vectors     []corpus.Vector // nil: all
	Each        func(*Result)   // called after each vector, if not nil
}

// Run feeds and queries every vector that is meant for the adapter's scope. The
// error is that of the context, or of a corpus that cannot be read; what goes
// wrong with the adapter is in the report.
func (r *Runner) Run(ctx context.Context) (*Report, error) {
	vectors := r.Vectors
	if vectors == nil {
		var err error
		if vectors, err = corpus.All(); err != nil {
			return nil, err
		}
	}
	scope, policy := max(r.Scope, corpus.Literal), r.Confusables
	if policy == "" {
		policy = replace
	}
	rep := &Report{Corpus: corpus.Version, Scope: scope.String(), Policy: policy}
	for i := range vectors {
		v := &vectors[i]
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("conform: run: %w", err)
		}
		t := trial{vector: v, want: v.Want(scope), policy: policy}
		if v.In(scope) {
			t.run(ctx, r.Adapter)
		} else {
			t.skip = "meant for another scope"
		}
		res := t.result()
		rep.add(res)
		if r.Each != nil {
			r.Each(&res)
		}
	}
	rep.finish()
	return rep, nil
}

// A trial is one vector on its way through the adapter.
type trial struct {
	vector *corpus.Vector
	want   *corpus.Want
	policy Confusables

	skip    string
	faults  []Fault
	notes   []string
	checked [numClauses]bool // clauses of the answer's shape that were looked at
	version string           // the sanitation_version that was claimed
}

func (t *trial) fault(clause, what string) {
	f := Fault{clause, what}
	for _, g := range t.faults {
		if g == f {
			return
		}
	}
	t.faults = append(t.faults, f)
}

func (t *trial) run(ctx context.Context, a Adapter) {
	s := newSubject(t.vector)
	if t.vector.Field != "query" && !t.ingest(ctx, a, s) {
		return
	}
	ans, err := a.Query(ctx, s.query)
	if err != nil {
		t.fault(t.mainClause(), "the query failed")
		return
	}
	t.judge(s, ans)
	if f, ok := a.(fetcher); ok && s.hash != "" {
		t.fetch(ctx, f, s)
	}
}

// fetch looks at the other door: what comes out there is framed and clean as well.
func (t *trial) fetch(ctx context.Context, f fetcher, s *subject) {
	ans, ok, err := f.Fetch(ctx, s.hash)
	switch {
	case !ok:
		return
	case err != nil:
		t.fault("5.2", "an attestation cannot be fetched by its hash")
		return
	}
	t.beside(ans)
	a, ok := parseAnswer(ans.JSON)
	if !ok {
		t.fault("5.2", "an attestation fetched by its hash is no strict JSON object")
		return
	}
	t.outside(a.root)
	if framedIn(a.root, 0) == 0 {
		t.fault("5.2", "an attestation fetched by its hash has no _untrusted_text")
	}
	t.beside(Answer{texts: stringsOf(a.root, nil)})
}

// ingest feeds the attestation. It reports whether there is an answer to look at.
func (t *trial) ingest(ctx context.Context, a Adapter, s *subject) bool {
	got, err := a.Ingest(ctx, s.first)
	if err != nil {
		t.fault(t.mainClause(), "feeding failed")
		return false
	}
	if got.unknown || !got.Accepted && got.Code == duplicate {
		got = t.present(ctx, a, s) // a run before this one may have fed it
	}
	v := t.vector
	all, some := t.confusable()
	mayRefuse := v.Expected != corpus.Accept || t.policy == reject && some
	mustRefuse := v.Expected == corpus.Reject || t.policy == reject && all && v.Expected == corpus.Accept
	switch {
	case got.Accepted && mustRefuse:
		t.fault(t.mainClause(), "accepted what is to be refused")
	case !got.Accepted && !mayRefuse:
		t.fault(t.mainClause(), "refused what is to be accepted")
	case !got.Accepted && v.Code != "" && got.Code != "" && got.Code != v.Code:
		t.notes = append(t.notes, "refused for another reason: "+reason(got.Code))
	}
	if got.Accepted && v.Again != "" && !got.unknown {
		if _, err := a.Ingest(ctx, s.second); err != nil {
			t.fault("7", "feeding the second failed")
		}
	}
	return got.Accepted && !mustRefuse
}

// duplicate is how our own adapter refuses what it holds already.
const duplicate = string(finding.Duplicate)

// present asks whether an attestation that was loaded by others is there.
func (t *trial) present(ctx context.Context, a Adapter, s *subject) Receipt {
	ans, err := a.Query(ctx, s.query)
	if err != nil {
		return Receipt{unknown: true}
	}
	d, ok := parseAnswer(ans.JSON)
	return Receipt{unknown: true, Accepted: ok && len(d.entriesOf(s.did)) > 0}
}

// confusable reports whether step 4.3 finds something in the payload, and whether
// it may: the data also map a few hidden characters, which 4.4 would take.
func (t *trial) confusable() (must, may bool) {
	if !framed(t.vector.Field) {
		return false, false
	}
	return t.lookalikes()
}

// lookalikes is confusable for whatever the payload is of.
func (t *trial) lookalikes() (must, may bool) {
	for _, r := range string(ucd.Append(nil, ucd.NFKC, t.vector.Payload)) {
		if prop := ucd.Of(r); prop&ucd.Confusable != 0 {
			may = true
			must = must || prop&ucd.Hidden == 0
		}
	}
	return must, may
}

// mainClause is the first that the vector is evidence for.
func (t *trial) mainClause() string { return t.vector.Clauses[0] }

// reason shows a code of the adapter's own, which is third-party text.
func reason(code string) string {
	if c := finding.Code(code); c.Known() {
		return code
	}
	return finding.Quote(code)
}
