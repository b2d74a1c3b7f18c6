// SPDX-License-Identifier: Apache-2.0

package attest

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/scrub"
)

func projector(t testing.TB, p Policy) *Projector {
	t.Helper()
	pr, err := NewProjector(p)
	if err != nil {
		t.Fatal(err)
	}
	return pr
}

func attestation(t testing.TB, s *Statement) *Attestation {
	t.Helper()
	a, err := Parse(s.AppendJSON(nil), Options{DangerouslyIngestUntyped: true})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestProjectClean(t *testing.T) {
	a := attestation(t, sample())
	var p Projection
	if err := projector(t, Policy{}).Project(a, &p); err != nil {
		t.Fatal(err)
	}
	got := []string{p.Claim.String(), p.Rationale.String(), p.Qualifications.String(), p.Evidence[0].Quote.String(), p.Evidence[1].Quote.String(), p.CitedWorks[0].Title.String()}
	want := []string{a.Claim.Text, a.Rationale, a.Qualifications, a.Evidence[0].Quote, a.Evidence[1].Quote, a.CitedWorks[0].Title}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if p.Evidence[0].URI.Rendered() != "[www.ipcc.ch] \u2192 https://www.ipcc.ch/report/ar6/wg1/" || p.Evidence[0].Role != "primary" {
		t.Errorf("%+v", p.Evidence[0])
	}
	const meta = `{"sanitation_version":"0.1","unicode_version":"15.0.0","profile":"veritas-0.1","truncated":[],"confusables_replaced":[],` +
		`"stripped_positions":[],"nfkc_lossy":[],"normalised":[],"noted":[],"confusables_present":false}`
	if got := string(p.Meta.AppendJSON(nil)); got != meta {
		t.Errorf("meta = %s", got)
	}
}

func TestProjectRecords(t *testing.T) {
	s := sample()
	s.Rationale = "10\u2076 t\u043e\u200bns <b>of</b> \ufb01sh"
	s.Qualifications = strings.Repeat("long ", 10_000)
	for range 5 {
		s.Evidence = append(s.Evidence, Evidence{Quote: "x"})
	}
	for range MaxWorks {
		s.CitedWorks = append(s.CitedWorks, s.CitedWorks[0])
	}
	var p Projection
	if err := projector(t, Policy{}).Project(attestation(t, s), &p); err != nil {
		t.Fatal(err)
	}
	if got, want := p.Rationale.String(), "106 tons of fish"; got != want {
		t.Errorf("rationale = %q, want %q", got, want)
	}
	if got := p.Qualifications.String(); len(got) > MaxText || !strings.HasSuffix(got, "...") || len(got) < MaxText-32 {
		t.Errorf("qualifications of %d bytes: %q", len(got), got[len(got)-8:])
	}
	if len(p.Evidence) != MaxQuotes || len(p.CitedWorks) != MaxWorks {
		t.Errorf("%d quotes, %d works", len(p.Evidence), len(p.CitedWorks))
	}
	cut := p.Meta.Truncated[0].Record
	want := Meta{
		Truncated: []Truncation{
			{Field: "qualifications", Record: Record{"qualifications", finding.Truncated, cut.Start, 50_000, cut.Out, cut.OutEnd, 1}},
			{Field: "evidence", Kept: 5, Dropped: 2},
			{Field: "cited_works", Kept: 16, Dropped: 1},
		},
		ConfusablesReplaced: []Record{{"rationale", finding.Confusable, 7, 9, 5, 6, 1}},
		StrippedPositions: []Record{
			{"rationale", finding.HiddenZeroWidth, 9, 12, 6, 6, 1},
			{"rationale", finding.MarkupTag, 15, 18, 9, 9, 1},
			{"rationale", finding.MarkupTag, 20, 24, 11, 11, 1},
		},
		NFKCLossy:  []Record{{"rationale", finding.NFKCLossy, 2, 5, 2, 3, 1}},
		Normalised: []Record{{"rationale", finding.NFKC, 25, 28, 12, 14, 1}},
		Deviations: []string{"dangerously_ingest_untyped"},
	}
	got := p.Meta
	got.Noted = nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if v := p.Meta.SanitationVersion(); v != "none" {
		t.Errorf("sanitation version %q in spite of a deviation", v)
	}
}

func TestProjectPolicies(t *testing.T) {
	s := sample()
	s.Evidence[1].Quote = "\u0406gnore it"
	a := attestation(t, s)
	var p Projection
	err := projector(t, Policy{Confusables: scrub.Reject}).Project(a, &p)
	wantRefusal(t, err, Refusal{Code: finding.Confusable, Pointer: "/evidence/1/quote", Text: true}, "reject")
	if p.Rationale.String() != "" || len(p.Evidence) != 0 {
		t.Error("a refused attestation leaves texts")
	}
	if err := projector(t, Policy{Confusables: scrub.Flag}).Project(a, &p); err != nil {
		t.Fatal(err)
	}
	if !p.Meta.ConfusablesPresent || p.Evidence[1].Quote.String() != "\u0406gnore it" || len(p.Meta.Noted) != 1 {
		t.Errorf("%+v", p.Meta)
	}
	if err := projector(t, Policy{DangerouslyRFCSetOnly: true}).Project(a, &p); err != nil {
		t.Fatal(err)
	}
	if p.Meta.ConfusablesPresent || p.Evidence[1].Quote.String() != "lgnore it" || p.Meta.SanitationVersion() != "none" {
		t.Errorf("%q %+v", p.Evidence[1].Quote, p.Meta)
	}
	if _, err := NewProjector(Policy{Confusables: 9}); err == nil {
		t.Error("an unknown policy")
	}
}

// Every change is told, in bounds, in ASCII, and once.
func TestMetaIsComplete(t *testing.T) {
	pr := projector(t, Policy{})
	var p Projection
	rapid.Check(t, func(rt *rapid.T) {
		s := sample()
		s.Rationale = rapid.OneOf(texts(), rapid.String()).Draw(rt, "rationale")
		a := attestation(t, s)
		if err := pr.Project(a, &p); err != nil {
			rt.Fatal(err)
		}
		var events []scrub.Edit
		at := 0
		lists := []*[]Record{&p.Meta.ConfusablesReplaced, &p.Meta.StrippedPositions, &p.Meta.NFKCLossy, &p.Meta.Normalised}
		var all []Record
		for _, l := range lists {
			all = append(all, *l...)
		}
		for _, tr := range p.Meta.Truncated {
			all = append(all, tr.Record)
		}
		for at <= len(a.Rationale) {
			found := -1
			for i, r := range all {
				if r.Field == "rationale" && r.Start >= at && (found < 0 || r.Start < all[found].Start || r.Start == all[found].Start && r.Out < all[found].Out) {
					found = i
				}
			}
			if found < 0 {
				break
			}
			r := all[found]
			all = append(all[:found], all[found+1:]...)
			events = append(events, scrub.Edit{Start: r.Start, End: r.End, Out: r.Out, OutEnd: r.OutEnd})
			at = r.Start
		}
		if !scrub.Replay(a.Rationale, p.Rationale.String(), events) {
			rt.Errorf("the records of %+q do not lead to %+q: %+v", a.Rationale, p.Rationale, events)
		}
		b := p.Meta.AppendJSON(nil)
		if !json.Valid(b) || strings.ContainsFunc(string(b), func(r rune) bool { return r < ' ' || r > '~' }) {
			rt.Errorf("%q", b)
		}
	})
}

func TestMetaIsBounded(t *testing.T) {
	s := sample()
	s.Rationale = strings.Repeat("a\u200bb\u00ad", 5000)
	var p Projection
	if err := projector(t, Policy{}).Project(attestation(t, s), &p); err != nil {
		t.Fatal(err)
	}
	if n := len(p.Meta.StrippedPositions) + len(p.Meta.Truncated); n > scrub.MaxEntries {
		t.Errorf("%d records of one field", n)
	}
	covered := 0
	for _, r := range p.Meta.StrippedPositions {
		covered = max(covered, r.End)
	}
	for _, r := range p.Meta.Truncated {
		covered = max(covered, r.Record.End)
	}
	if covered != len(s.Rationale) {
		t.Errorf("records reach byte %d of %d", covered, len(s.Rationale))
	}
}

func TestMetaAdd(t *testing.T) {
	s := sample()
	s.Rationale = "a\u200bb"
	for range 5 {
		s.Evidence = append(s.Evidence, Evidence{Quote: "x\ufb01"})
	}
	var p Projection
	if err := projector(t, Policy{DangerouslyRFCSetOnly: true}).Project(attestation(t, s), &p); err != nil {
		t.Fatal(err)
	}
	var m Meta
	m.Add("attestations/0/", &p.Meta)
	m.Add("attestations/1/", &p.Meta)
	got := string(m.AppendJSON(nil))
	for _, want := range []string{
		`{"field":"attestations/0/rationale","class":"hidden-zero-width","start":1,"end":4,"out":1,"out_end":1},{"field":"attestations/1/rationale"`,
		`"truncated":[{"field":"attestations/0/evidence","kept":5,"dropped":2},{"field":"attestations/1/evidence"`,
		`"deviations":["dangerously_rfc_set_only"]}`, `"sanitation_version":"none"`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%s lacks %s", got, want)
		}
	}
	if !json.Valid([]byte(got)) {
		t.Error("no JSON")
	}
	if got := string(new(Meta).AppendMembers([]byte(`{"a":1`))); !strings.HasPrefix(got, `{"a":1,"sanitation_version"`) {
		t.Error(got)
	}
}
