// SPDX-License-Identifier: Apache-2.0

package attest

import (
	"strconv"

	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/scrub"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// Meta records everything that was dropped or changed between an attestation and
// its projection, and nothing of what was dropped: it stands outside the untrusted
// frame. Positions are bytes. Replaying the records of a field on its text, but
// where one covers several events, yields the projected text.
type Meta struct {
	Truncated           []Truncation
	ConfusablesReplaced []Record
	StrippedPositions   []Record // hidden characters, markup, floods of marks
	NFKCLossy           []Record // normalised so that a number reads otherwise
	Normalised          []Record // otherwise normalised: compatibility forms, line breaks
	Noted               []Record // found and left; Out and OutEnd mean nothing
	ConfusablesPresent  bool     // left in place: treat as low-confidence (RFC 4.3)
	Deviations          []string // loosenings that were on; constant names
}

// A Record is one event of a field, or Count of them that lie side by side or, in
// the last record of a long list, that begin at Start and end at End.
type Record struct {
	Field       string // path in the attestation: evidence/0/quote
	Class       finding.Code
	Start, End  int // [Start, End) of the text as ingested
	Out, OutEnd int // [Out, OutEnd) of the projected text
	Count       int
}

// A Truncation is a text that was cut (Record), or a list of which only Kept
// entries are shown and Dropped are not.
type Truncation struct {
	Field         string
	Kept, Dropped int    // of a list
	Record        Record // of a text: Count is not 0
}

func (m *Meta) reset() {
	*m = Meta{
		Truncated: m.Truncated[:0], ConfusablesReplaced: m.ConfusablesReplaced[:0],
		StrippedPositions: m.StrippedPositions[:0], NFKCLossy: m.NFKCLossy[:0],
		Normalised: m.Normalised[:0], Noted: m.Noted[:0], Deviations: m.Deviations[:0],
	}
}

// Add appends what other records, its fields behind prefix: "attestations/0/".
func (m *Meta) Add(prefix string, other *Meta) {
	for _, t := range other.Truncated {
		t.Field, t.Record.Field = prefix+t.Field, prefix+t.Record.Field
		m.Truncated = append(m.Truncated, t)
	}
	add := func(dst *[]Record, src []Record) {
		for _, r := range src {
			r.Field = prefix + r.Field
			*dst = append(*dst, r)
		}
	}
	add(&m.ConfusablesReplaced, other.ConfusablesReplaced)
	add(&m.StrippedPositions, other.StrippedPositions)
	add(&m.NFKCLossy, other.NFKCLossy)
	add(&m.Normalised, other.Normalised)
	add(&m.Noted, other.Noted)
	m.ConfusablesPresent = m.ConfusablesPresent || other.ConfusablesPresent
	for _, d := range other.Deviations {
		m.deviate(d)
	}
}

// Record sorts what was done to the text of one field into the lists of RFC §4 and
// §6. Every event stands in exactly one of them.
func (m *Meta) Record(field string, r *scrub.Result) { m.record(field, r, nil) }

// record is Record with memory for the events, which it returns.
func (m *Meta) record(field string, r *scrub.Result, merged []scrub.Entry) []scrub.Entry {
	merged = scrub.Merge(merged[:0], r.Edits)
	for i := range merged {
		e := &merged[i]
		rec := Record{
			Field: field, Class: e.Class.Code(), Start: e.Start, End: e.End, Out: e.Out, OutEnd: e.OutEnd, Count: e.Count,
		}
		switch e.Class {
		case scrub.Truncated:
			m.Truncated = append(m.Truncated, Truncation{Field: field, Record: rec})
		case scrub.Confusable:
			m.ConfusablesReplaced = append(m.ConfusablesReplaced, rec)
		case scrub.NFKCLossy:
			m.NFKCLossy = append(m.NFKCLossy, rec)
		case scrub.NFKC, scrub.LineBreak, scrub.OddSpace, scrub.IllFormedUTF8:
			m.Normalised = append(m.Normalised, rec)
		default:
			m.StrippedPositions = append(m.StrippedPositions, rec)
		}
	}
	for _, n := range r.Notes {
		code := n.Class.Code()
		m.Noted = append(m.Noted, Record{Field: field, Class: code, Start: n.Start, End: n.End, Count: n.Count})
		if code == finding.Confusable {
			m.ConfusablesPresent = true
		}
	}
	return merged
}

func (m *Meta) deviate(name string) {
	for _, d := range m.Deviations {
		if d == name {
			return
		}
	}
	m.Deviations = append(m.Deviations, name)
}

// SanitationVersion is scrub's, or "none" while a loosening is on: then the
// promise of that version does not hold.
func (m *Meta) SanitationVersion() string {
	if len(m.Deviations) > 0 {
		return "none"
	}
	return scrub.Veritas.Version()
}

// AppendJSON appends m as a JSON object: ASCII only, if the prefixes given to Add
// are.
func (m *Meta) AppendJSON(dst []byte) []byte {
	return append(m.AppendMembers(append(dst, '{')), '}')
}

// AppendMembers appends the members of that object, for one that has others too:
// dst must end with "{" or with a member.
func (m *Meta) AppendMembers(dst []byte) []byte {
	w := writer{dst: dst}
	w.text("sanitation_version", m.SanitationVersion())
	w.text("unicode_version", scrub.UnicodeVersion)
	w.text("profile", scrub.Veritas.String())
	w.name("truncated")
	w.dst = append(w.dst, '[')
	for i := range m.Truncated {
		if i > 0 {
			w.dst = append(w.dst, ',')
		}
		w.truncation(&m.Truncated[i])
	}
	w.dst = append(w.dst, ']')
	w.records("confusables_replaced", m.ConfusablesReplaced, true)
	w.records("stripped_positions", m.StrippedPositions, true)
	w.records("nfkc_lossy", m.NFKCLossy, true)
	w.records("normalised", m.Normalised, true)
	w.records("noted", m.Noted, false)
	w.name("confusables_present")
	w.dst = strconv.AppendBool(w.dst, m.ConfusablesPresent)
	if len(m.Deviations) > 0 {
		w.name("deviations")
		w.dst = strictjson.AppendStrings(w.dst, m.Deviations)
	}
	return w.dst
}

func (w *writer) records(name string, rs []Record, out bool) {
	w.name(name)
	w.dst = append(w.dst, '[')
	for i := range rs {
		if i > 0 {
			w.dst = append(w.dst, ',')
		}
		w.record(&rs[i], out)
	}
	w.dst = append(w.dst, ']')
}

func (w *writer) record(r *Record, out bool) {
	w.dst = append(w.dst, '{')
	w.text("field", r.Field)
	w.text("class", string(r.Class))
	w.number("start", r.Start)
	w.number("end", r.End)
	if out {
		w.number("out", r.Out)
		w.number("out_end", r.OutEnd)
	}
	if r.Count > 1 {
		w.number("count", r.Count)
	}
	w.dst = append(w.dst, '}')
}

func (w *writer) truncation(t *Truncation) {
	if t.Record.Count > 0 {
		w.record(&t.Record, true)
		return
	}
	w.dst = append(w.dst, '{')
	w.text("field", t.Field)
	w.number("kept", t.Kept)
	w.number("dropped", t.Dropped)
	w.dst = append(w.dst, '}')
}

func (w *writer) number(name string, n int) {
	w.name(name)
	w.dst = strconv.AppendInt(w.dst, int64(n), 10)
}
