// SPDX-License-Identifier: Apache-2.0

package frame

import (
	"encoding/hex"
	"strconv"

	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/scrub"
)

// Kind says what a text that a model reads was framed with.
type Kind uint8

const (
	KindFence Kind = iota // a keyed fence in the text: Key.Fence
	KindMeta              // nothing in the text, this value only
	KindLLM               // the envelope of an external LLM's answer: LLM.Append
)

var kindNames = [...]string{"fence", "meta", "llm"}

// String returns "fence", "meta" or "llm".
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return Other
}

// Bounds of a Provenance as JSON.
const (
	MaxPositions    = 256  // of one Finding
	maxAllPositions = 1024 // of all Findings together
	maxEntries      = 64   // of Findings; of NotInspected
	maxPath         = 128  // bytes
)

// Provenance is the value of the _meta member MetaKey: what a program needs to
// know of a result and may believe, because it holds nothing that a third party
// wrote but labels. It stands outside the untrusted frame.
type Provenance struct {
	Origin                               // shown as Labels
	Kind              Kind               // how the text was framed
	Profile           string             // of scrub: "mcp", "faithful", …
	Strict            bool               // a policy had the profile remove more
	SanitationVersion string             // of the profile
	UnicodeVersion    string             // of the tables
	Evidence          string             // id of the record of this decision; hex
	Digest            Digest             // of the text as delivered; zero: left out
	Credentials       []scrub.Credential // digests of the C2PA manifests that texts carried
	Framed            Places             // where the texts are that stand in a frame
	NotFramed         Places             // where a third party's words are that do not
	Inspected         int                // how many strings were looked at
	Findings          []Finding          // what was removed, replaced or noted
	NotInspected      []NotInspected
}

// Places are paths into a result as it is delivered, each like a Finding's Field. A
// path covers what is below it. As the last name "*" stands for every member of the
// object that the protocol does not name. The path "." is the whole
// result, but for what is listed as framed.
type Places struct {
	List []string
	More int // how many there are that List has no room for
}

// Add appends a path, or counts it where the list is full.
func (p *Places) Add(path string) {
	if len(p.List) < maxEntries {
		p.List = append(p.List, path)
		return
	}
	p.More++
}

// Finding is what was found at one place.
type Finding struct {
	// Field is the path of the string from the result on, such as
	// content/0/text. A name on it that a third party chose is written as #n, its
	// ordinal among its siblings. What is not a path is shown as Other.
	Field     string
	Code      finding.Code
	Count     int    // how many there were; at least len(Positions) is shown
	Positions []Span // ascending; merged behind MaxPositions
}

// Span is [Start, End) in UTF-8 bytes of the string as it was received.
type Span struct{ Start, End int }

// NotInspected is what was passed without a look inside.
type NotInspected struct {
	Field  string
	Reason finding.Code
}

// AppendJSON appends p as a JSON object: ASCII only, at most some 40 KB, without empty
// members, the same bytes for the same p. What goes beyond a bound is not dropped: the last
// position covers the rest by range, the last entry by count.
func (p *Provenance) AppendJSON(dst []byte) []byte {
	o := p.Labels()
	dst = append(dst, `{"untrusted":true`...)
	dst = appendMember(dst, "server", o.Server)
	if IsLabel(p.Tool) { // else there is none, or it is not known
		dst = appendMember(dst, "tool", o.Tool)
	}
	dst = appendMember(dst, "model", o.Model)
	dst = appendMember(dst, "frame", p.Kind.String())
	dst = appendMember(dst, "profile", p.Profile)
	if p.Strict {
		dst = append(dst, `,"strict":true`...)
	}
	dst = appendMember(dst, "sanitation_version", p.SanitationVersion)
	dst = appendMember(dst, "unicode_version", p.UnicodeVersion)
	dst = appendMember(dst, "evidence", p.Evidence)
	if p.Digest != (Digest{}) {
		dst = append(dst, `,"digest":"sha256:`...)
		dst = hex.AppendEncode(dst, p.Digest[:])
		dst = append(dst, '"')
	}
	dst = appendCredentials(dst, p.Credentials)
	dst = appendPlaces(dst, "framed", p.Framed)
	dst = appendPlaces(dst, "not_framed", p.NotFramed)
	dst = append(dst, `,"inspected":`...)
	dst = strconv.AppendInt(dst, int64(p.Inspected), 10)
	dst = appendFindings(dst, p.Findings)
	return append(appendNotInspected(dst, p.NotInspected), '}')
}

func appendNotInspected(dst []byte, all []NotInspected) []byte {
	if len(all) == 0 {
		return dst
	}
	dst = append(dst, `,"not_inspected":[`...)
	for i, n := range all[:min(len(all), maxEntries)] {
		dst = appendComma(dst, i)
		dst = append(dst, `{"field":"`...)
		dst = append(dst, path(n.Field)...)
		dst = append(dst, '"')
		dst = appendMember(dst, "reason", code(n.Reason))
		dst = append(dst, '}')
	}
	dst = append(dst, ']')
	if more := len(all) - maxEntries; more > 0 {
		dst = append(dst, `,"not_inspected_more":`...)
		dst = strconv.AppendInt(dst, int64(more), 10)
	}
	return dst
}

func appendCredentials(dst []byte, list []scrub.Credential) []byte {
	for i, c := range list[:min(len(list), maxEntries)] {
		if i == 0 {
			dst = append(dst, `,"credentials":[`...)
		}
		dst = append(appendComma(dst, i), `"sha256:`...)
		dst = append(hex.AppendEncode(dst, c[:]), '"')
	}
	if len(list) > 0 {
		dst = append(dst, ']')
	}
	return dst
}

// appendPlaces appends the member name, and name_more where there are more places.
func appendPlaces(dst []byte, name string, p Places) []byte {
	if len(p.List)+p.More == 0 {
		return dst
	}
	dst = append(append(append(dst, `,"`...), name...), `":[`...)
	shown := min(len(p.List), maxEntries)
	for i, place := range p.List[:shown] {
		dst = appendComma(dst, i)
		dst = append(append(append(dst, '"'), path(place)...), '"')
	}
	dst = append(dst, ']')
	if more := len(p.List) - shown + p.More; more > 0 {
		dst = append(append(append(dst, `,"`...), name...), `_more":`...)
		dst = strconv.AppendInt(dst, int64(more), 10)
	}
	return dst
}

func appendFindings(dst []byte, all []Finding) []byte {
	if len(all) == 0 {
		return dst
	}
	dst = append(dst, `,"findings":[`...)
	left := maxAllPositions
	for i, f := range all {
		dst = appendComma(dst, i)
		if i == maxEntries-1 && len(all) > maxEntries {
			dst = appendRest(dst, all[i:])
			break
		}
		dst = append(dst, `{"field":"`...)
		dst = append(dst, path(f.Field)...)
		dst = append(dst, '"')
		dst = appendMember(dst, "code", code(f.Code))
		dst = append(dst, `,"count":`...)
		dst = strconv.AppendInt(dst, int64(max(f.Count, len(f.Positions))), 10)
		if n := len(f.Positions); n > 0 {
			shown := max(1, min(n, left, MaxPositions))
			left -= shown
			dst = append(dst, `,"positions":[`...)
			for j, s := range f.Positions[:shown] {
				if j == shown-1 {
					s.End = f.Positions[n-1].End
				}
				dst = appendComma(dst, j)
				dst = append(dst, '[')
				dst = strconv.AppendInt(dst, int64(s.Start), 10)
				dst = append(dst, ',')
				dst = strconv.AppendInt(dst, int64(s.End), 10)
				dst = append(dst, ']')
			}
			dst = append(dst, ']')
		}
		dst = append(dst, '}')
	}
	return append(dst, ']')
}

// appendRest appends the one entry that stands for all of rest.
func appendRest(dst []byte, rest []Finding) []byte {
	n := 0
	for _, f := range rest {
		n += max(f.Count, len(f.Positions))
	}
	dst = append(dst, `{"field":"`+Other+`","code":"`+Other+`","count":`...)
	dst = strconv.AppendInt(dst, int64(n), 10)
	return append(dst, '}')
}

func appendComma(dst []byte, i int) []byte {
	if i > 0 {
		dst = append(dst, ',')
	}
	return dst
}

// appendMember appends a further member of an object, unless value is empty.
// Nothing but a label gets through, so nothing needs an escape.
func appendMember(dst []byte, name, value string) []byte {
	if value == "" {
		return dst
	}
	dst = append(dst, `,"`...)
	dst = append(dst, name...)
	dst = append(dst, `":"`...)
	dst = append(dst, Label(value)...)
	return append(dst, '"')
}

var pathSet = setOf(lower + upper + digit + "_#*$./-")

// path returns f if it is made of letters, digits and _ # * $ . / - only.
func path(f string) string {
	if only(f, &pathSet, maxPath) {
		return f
	}
	return Other
}

func code(c finding.Code) string {
	if c.Known() {
		return string(c)
	}
	return Other
}
