// SPDX-License-Identifier: Apache-2.0

package attest

import (
	"strconv"

	"github.com/pellucid-mcp/pellucid/text/href"
	"github.com/pellucid-mcp/pellucid/text/scrub"
)

// The caps of RFC 4.1. It names none for the claim and for titles: they have those
// of a rationale and of a quote.
const (
	MaxText   = 2000 // bytes of a rationale, qualifications, a claim
	MaxQuote  = 1000 // bytes of a quote, a title
	MaxQuotes = 5
	MaxWorks  = 16 // cited works; the RFC says nothing, but length is what attacks need
)

// DeviationUntyped is what Meta.Deviations says of an attestation that
// Options.DangerouslyIngestUntyped has let through.
const DeviationUntyped = "dangerously_ingest_untyped"

// Policy says how texts are made safe; the zero value is the strict choice.
type Policy struct {
	// Confusables and Scope rule RFC 4.3. With scrub.Reject, Project refuses an
	// attestation that has any: ingestion must not store it.
	Confusables scrub.Confusables
	Scope       scrub.Scope
	// Ellipsis ends a cut text with U+2026 instead of "...".
	Ellipsis bool
	// DangerouslyRFCSetOnly removes only what RFC 4.4 names.
	DangerouslyRFCSetOnly bool
}

// A Projector makes Projections. It is immutable and safe for concurrent use.
type Projector struct {
	text, quote *scrub.Scrubber
	deviations  []string
}

// NewProjector compiles p.
func NewProjector(p Policy) (*Projector, error) {
	sp := scrub.Policy{
		Profile: scrub.Veritas, MaxBytes: MaxText, Confusables: p.Confusables, Scope: p.Scope,
		Ellipsis: p.Ellipsis, DangerouslyRFCSetOnly: p.DangerouslyRFCSetOnly,
	}
	pr := &Projector{deviations: sp.Deviations()}
	var err error
	if pr.text, err = scrub.Compile(sp); err != nil {
		return nil, err
	}
	sp.MaxBytes = MaxQuote
	pr.quote, err = scrub.Compile(sp)
	return pr, err
}

// A Projection is the part of an attestation that a reader may be shown, behind
// a frame: its texts are clean, but still a stranger's. Project reuses its memory.
type Projection struct {
	Claim          scrub.Clean
	Rationale      scrub.Clean
	Qualifications scrub.Clean
	Evidence       []ProjectedEvidence // at most MaxQuotes
	CitedWorks     []ProjectedWork     // at most MaxWorks
	Meta           Meta

	result scrub.Result
	merged []scrub.Entry
}

// ProjectedEvidence is Evidence with a clean quote.
type ProjectedEvidence struct {
	Quote scrub.Clean
	URI   href.URI
	Role  string
}

// A ProjectedWork is a CitedWork with a clean title.
type ProjectedWork struct {
	URI   href.URI
	Title scrub.Clean
}

// Project fills p from a. The error is a *Refusal where the policy rejects
// confusable characters and a has one; p holds nothing to show then.
//
// spec: attestation/7
func (pr *Projector) Project(a *Attestation, p *Projection) error {
	p.reset()
	p.Meta.Deviations = append(p.Meta.Deviations, pr.deviations...)
	if a.Untyped != nil {
		p.Meta.Deviations = append(p.Meta.Deviations, DeviationUntyped)
	}
	var r *Refusal // the first
	keep := func(c *scrub.Clean, s *scrub.Scrubber, field, text string) {
		if r == nil && text != "" {
			*c, r = p.clean(s, field, text)
		}
	}
	keep(&p.Claim, pr.text, "claim/text", a.Claim.Text)
	keep(&p.Rationale, pr.text, "rationale", a.Rationale)
	keep(&p.Qualifications, pr.text, "qualifications", a.Qualifications)
	for i := range min(len(a.Evidence), MaxQuotes) {
		e := &a.Evidence[i]
		p.Evidence = append(p.Evidence, ProjectedEvidence{URI: e.URI, Role: e.Role})
		keep(&p.Evidence[i].Quote, pr.quote, quoteFields[i], e.Quote)
	}
	for i := range min(len(a.CitedWorks), MaxWorks) {
		p.CitedWorks = append(p.CitedWorks, ProjectedWork{URI: a.CitedWorks[i].URI})
		keep(&p.CitedWorks[i].Title, pr.quote, titleField(i), a.CitedWorks[i].Title)
	}
	p.drop("evidence", MaxQuotes, len(a.Evidence))
	p.drop("cited_works", MaxWorks, len(a.CitedWorks))
	if r != nil {
		p.reset()
		return r
	}
	return nil
}

// clean scrubs one text and records what was done.
func (p *Projection) clean(s *scrub.Scrubber, field, text string) (scrub.Clean, *Refusal) {
	s.Scrub(text, &p.result)
	if p.result.Refused != 0 {
		return scrub.Clean{}, &Refusal{
			Code: p.result.Refused.Code(), Pointer: "/" + field, Offset: p.result.RefusedAt.Start, Text: true,
		}
	}
	p.merged = p.Meta.record(field, &p.result, p.merged)
	return p.result.Clean, nil
}

// drop records that of a list only the first entries are shown.
func (p *Projection) drop(field string, most, n int) {
	if n > most {
		p.Meta.Truncated = append(p.Meta.Truncated, Truncation{Field: field, Kept: most, Dropped: n - most})
	}
}

var quoteFields = [MaxQuotes]string{
	"evidence/0/quote", "evidence/1/quote", "evidence/2/quote", "evidence/3/quote", "evidence/4/quote",
}

func titleField(i int) string { return "cited_works/" + strconv.Itoa(i) + "/title" }

func (p *Projection) reset() {
	p.Claim, p.Rationale, p.Qualifications = scrub.Clean{}, scrub.Clean{}, scrub.Clean{}
	p.Evidence, p.CitedWorks = p.Evidence[:0], p.CitedWorks[:0]
	p.Meta.reset()
}
