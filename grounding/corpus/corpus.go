// SPDX-License-Identifier: Apache-2.0

// Package corpus is the adversarial conformance corpus of the Veritas grounding RFC (section 9), as data.
//
// A vector is one file, vectors/FAMILY/NNN-NAME.vec: header lines, one empty
// line, the payload. The file is printable ASCII and LF, nothing else; NNN counts
// from 001 in each family without a gap.
//
//	clause: 4.2 4.3
//	family: homoglyph
//	field: rationale
//	scope: any
//	level: MUST
//	expect: accept
//	text: paypal and b
//	meta: confusables_replaced
//	comment: Cyrillic a twice, and a full-width b that only NFKC folds
//
//	p\u{430}yp\u{430}l and \u{ff42}
//
// A header line is a name, a colon, a space and a value. The names come in this
// order; those in brackets may be left out, those with a star may be repeated:
//
//	clause      clauses of the RFC that the vector is evidence for
//	family      one of the eight of section 9; the directory
//	field       the member of the attestation that holds the payload
//	[as]        "json": the payload is the JSON value itself, not the content of a string
//	[quotes]    how often the payload is repeated as a quote (field quote)
//	scope       literal, mixed or any: with which scope of step 4.3 it is meant
//	level       MUST: the RFC's letter. SHOULD: more than the letter
//	expect      accept, reject CODE, or either CODE
//	[text]      the exact text that the reader gets
//	[contains]* what the text holds
//	[absent]*   what the text does not hold
//	[bytes]     MIN..MAX, the length of the text
//	[meta]      members of _meta that are not empty (or true); "-" for none. Those
//	            of the RFC that are not named are empty; without the line, any are
//	[mixed-text], [mixed-meta]  the same for scope mixed, where that differs
//	[again]     the same attestation with this payload, fed second, is a duplicate
//	comment     why the vector is here
//
// "either" may be refused at ingestion, but if it is accepted then the text is
// as said: where clause 3 leaves room to refuse what clause 4 would make safe.
// CODE names the reason; an adapter with other names is not failed for them.
//
// In text, contains, absent, again and the payload, a line break has no meaning
// and a backslash begins an escape. Each character has one spelling:
//
//	\\  \n  \t        backslash, line feed, tab
//	\u{HEX}           a code point that is not printable ASCII, lower case, no leading zero
//	\xHH              a byte from 80 to ff that is not part of well-formed UTF-8
//	\rep{N}{UNIT}     UNIT N times; UNIT holds no "}" except in \u{HEX}, and no \rep
//
// A line must not end with a space: \u{20} is allowed for it there only.
//
// It is part of the public API: All returns the vectors, Vector.In says whether a
// vector is meant for an adapter, and Vector.Want says what the adapter must answer.
package corpus

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"sync"
)

// Version is that of the set of vectors. It changes with any expectation.
const Version = "0.1.0"

//go:embed vectors
var files embed.FS

// Families are the eight families of RFC section 9, in its order.
var Families = []string{
	"direct-injection", "homoglyph", "bidi", "zero-width",
	"url-encoded", "length-attack", "sanitation-bypass", "negative",
}

// Fields are the places of an attestation that can hold a payload: "quote" and
// "uri" are those of evidence, "cited-uri" is that of cited_works, "query" is
// the client's own question.
var Fields = []string{
	"rationale", "qualifications", "quote", "uri", "cited-uri",
	"validator-did", "verdict", "consensus-domain", "query",
}

// Clauses are those that a vector may be evidence for.
var Clauses = []string{"3", "4.1", "4.2", "4.3", "4.4", "4.5", "4.6", "5.1", "5.2", "6", "7"}

// MetaMembers are the members of _meta that a vector may ask for. The first
// three are arrays of the RFC, the fourth is its flag; nfkc_lossy is ours and is
// looked at only where a vector names it.
var MetaMembers = []string{"truncated", "confusables_replaced", "stripped_positions", "confusables_present", "nfkc_lossy"}

// A Scope is one of step 4.3.
type Scope uint8

const (
	Any     Scope = iota // both: of a vector only
	Literal              // every confusable character is replaced
	Mixed                // only where a word pretends
)

var scopeNames = []string{"any", "literal", "mixed"}

// String returns the name that stands in a file.
func (s Scope) String() string { return scopeNames[s] }

// An Expected says what becomes of the attestation at ingestion.
type Expected uint8

const (
	Accept Expected = iota // accepted
	Reject                 // refused
	Either                 // refused, or accepted and made safe as said
)

var expectedNames = []string{"accept", "reject", "either"}

// String returns the name that stands in a file.
func (o Expected) String() string { return expectedNames[o] }

// A Vector is one test of an adapter. Payload, Again and the texts of a Want are
// hostile: show them by finding.Quote only.
type Vector struct {
	Family   string
	Name     string // NNN-NAME
	Clauses  []string
	Field    string
	JSON     bool // Payload is a JSON value
	Quotes   int  // how many quotes hold Payload, at least 1 for field quote
	Scope    Scope
	Must     bool
	Expected Expected
	Code     string // why Reject or Either may refuse
	Literal  Want   // in scope literal
	Mixed    Want   // in scope mixed
	Again    string // "" for none
	Comment  string
	Payload  string
}

// A Want is what the reader of the answer gets.
type Want struct {
	Exact            bool // Text is the whole text
	Text             string
	Contains, Absent []string
	Min, Max         int      // bytes of the text; Max 0: any number
	Meta             []string // nil: not looked at
}

// ID is FAMILY/NNN-NAME, which is constant text and safe to show.
func (v *Vector) ID() string { return v.Family + "/" + v.Name }

// In reports whether v is meant for an adapter of that scope.
func (v *Vector) In(s Scope) bool { return v.Scope == Any || v.Scope == s }

// Want returns what is expected of an adapter of that scope.
func (v *Vector) Want(s Scope) *Want {
	if s == Mixed {
		return &v.Mixed
	}
	return &v.Literal
}

// Level returns MUST or SHOULD.
func (v *Vector) Level() string {
	if v.Must {
		return "MUST"
	}
	return "SHOULD"
}

// All returns the vectors, families in their order, each by number. They are
// shared: change nothing.
func All() ([]Vector, error) { return load() }

var load = sync.OnceValues(func() ([]Vector, error) { return Load(files) })

// Load reads the vectors of another set, laid out like this one.
func Load(fsys fs.FS) ([]Vector, error) {
	var all []Vector
	for _, family := range Families {
		entries, err := fs.ReadDir(fsys, path.Join("vectors", family))
		if err != nil {
			return nil, fmt.Errorf("corpus: read family: %w", err)
		}
		for i, e := range entries {
			name, ok := strings.CutSuffix(e.Name(), ".vec")
			if !ok || !isName(name) || !strings.HasPrefix(name, fmt.Sprintf("%03d-", i+1)) {
				return nil, fmt.Errorf("corpus: %s: file %d is not named %03d-NAME.vec", family, i+1, i+1)
			}
			src, err := fs.ReadFile(fsys, path.Join("vectors", family, e.Name()))
			if err != nil {
				return nil, fmt.Errorf("corpus: read vector: %w", err)
			}
			v, err := Parse(src)
			if err == nil && v.Family != family {
				err = &SyntaxError{Line: 2, Reason: "family is not the directory"}
			}
			if err != nil {
				return nil, fmt.Errorf("corpus: %s/%s: %w", family, name, err)
			}
			v.Name = name
			all = append(all, v)
		}
	}
	return all, nil
}

func isName(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return len(s) > len("000-") && len(s) <= 80
}
