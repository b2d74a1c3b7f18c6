// SPDX-License-Identifier: Apache-2.0

// Package scrub turns raw third-party text into clean text, and lists every change.
//
// A Policy names one of four profiles; Compile turns it into a Scrubber. Scrub is
// total: it takes any bytes and returns clean text and events. Steps lists the steps
// of a profile. Scrub runs them in order and repeats the list until nothing changes.
// It leaves out a step where a survey of the text shows that the step would change
// nothing; a test compares that with the whole list.
//
// It is part of the public API:
//
//	scrubber, err := scrub.Compile(scrub.Policy{Profile: scrub.Faithful}) // the default of the product
//	var r scrub.Result
//	scrubber.Scrub(text, &r) // r.Clean is what a model may read
//
// The zero Policy is the profile "mcp", the strictest, which also normalises. Where tokens are
// defused, as under Faithful, TokenTable.Restore takes that back in what a client sends.
//
// The formats and the reasons stand in docs/spec/scrub.md.
package scrub

import "github.com/pellucid-mcp/pellucid/text/ucd"

// Version is that of docs/spec/scrub.md: profiles, classes and event format.
const Version = "0.4"

// UnicodeVersion is the version of normal forms and confusables: of all that a canonical hash
// depends on. Emoji, scripts and marks are newer (docs/spec/scrub.md).
const UnicodeVersion = ucd.Version

// Clean is text that a Scrubber has made safe to the letter of its profile: no
// hidden character and (but for veritas-0.1, which flags them) no control token.
// It does not promise that its words are harmless. Only this package makes one;
// the zero Clean is the empty text.
type Clean struct {
	s      string
	narrow bool // s holds no opener (ucd.Opener) but those of ASCII
}

// String returns the text.
func (c Clean) String() string { return c.s }

// Narrow reports that no character of the text but an ASCII one is known to look like an
// opening bracket. Where it is false, there may be one.
func (c Clean) Narrow() bool { return c.narrow }

// Scrubber is a compiled, immutable Policy, safe for concurrent use.
type Scrubber struct {
	p     Policy
	steps []Step
	quick bool // plain may answer for the steps
	limit int  // of bytes, for plain
}

// Policy returns what the Scrubber was compiled from, defaults filled in.
func (s *Scrubber) Policy() Policy { return s.p }

// Scrub cleans in and leaves in r what it found. It allocates nothing where it
// changes nothing, once r has grown. Time is linear in len(in).
func (s *Scrubber) Scrub(in string, r *Result) {
	r.reset()
	if s.quick && plain(in, s.limit, s.p.Tokens) {
		r.Clean = Clean{s: in, narrow: true}
		if r.Item != nil {
			r.Item.visible += len(in) // plain ASCII
		}
		return
	}
	s.run(in, r, true)
}

// maxPasses bounds the way to the fix point. Text that is no attack on the
// scrubber itself needs two passes, the last of which finds nothing.
const maxPasses = 8

// run repeats the steps until nothing changes. With notes, it also notes what is
// kept but worth a word: then in must be the input itself.
func (s *Scrubber) run(in string, r *Result, notes bool) {
	p := &r.pass
	*p = pass{policy: &s.p, r: r, text: in, first: notes, action: s.tokenAction(), raises: notes}
	for n := 0; ; n++ {
		if p.first && s.p.Profile <= Faithful {
			p.facts = survey(p.text, r)
			p.noteWhiteSpace()
			p.noteSpelledOut()
			if p.facts.imitated && !r.Has(Confusable) {
				p.noteLookalike()
			}
		} else {
			p.facts = survey(p.text, nil)
		}
		p.blunt = n >= maxPasses
		p.again, p.kept = false, [numUses]int{}
		for i := range s.steps {
			if st := &s.steps[i]; st.idle == nil || !st.idle(p) {
				p.apply(st)
			}
		}
		p.first = false
		if !p.again || n > maxPasses+2 {
			break
		}
	}
	r.Clean = Clean{s: p.text}
	s.guard(p)
	r.Clean.narrow = len(r.Edits) == 0 && !p.facts.illFormed && !p.facts.opener
	p.spend()
	r.Edits = joinNeighbours(r.Edits)
	*p = pass{}
}

// guard holds the cap where the fix point was not reached in time: a cut text
// is never longer, whatever a step would make of it.
func (s *Scrubber) guard(p *pass) {
	if s.p.Profile == Veritas && len(p.text) > s.p.MaxBytes {
		p.begin()
		cutBytes(p, true)
		p.end()
		p.r.Clean = Clean{s: p.text}
	}
}

// A jsonCheck is what is known of whether a text is JSON.
type jsonCheck uint8

const (
	jsonUnchecked jsonCheck = iota
	notJSON
	isJSON
)

// A pass is one run through the steps of one text.
type pass struct {
	policy *Policy
	r      *Result
	text   string // as the last step left it
	facts  facts  // of the text at the beginning of the pass
	first  bool   // the first pass: notes about what is kept are taken
	again  bool   // a step did what an earlier one may have to look at
	cut    bool   // veritas-0.1: text was cut and the marker is due
	ends   []int  // where the parts of a joined text end
	blunt  bool   // too many passes: remove what could be the cause
	action TokenAction
	raises bool // look-alikes of tokens go up one level, once for each text
	json   jsonCheck
	parted bool // a blank or a line break was left where something was removed

	kept [numUses]int // hidden characters that faithful has kept, by use
}

// apply runs one step and joins its edits to those before.
func (p *pass) apply(st *Step) {
	p.begin()
	st.do(p)
	if p.end() && st.feeds {
		p.again = true
	}
}

func (p *pass) begin() {
	p.r.ed.begin(p.text)
	p.json = jsonUnchecked
}

// end takes over what the step's editor made. It reports whether that differs.
func (p *pass) end() bool {
	ed := &p.r.ed
	if len(ed.events) == 0 {
		return false
	}
	p.text = ed.finish()
	r := p.r
	if len(r.Edits) == 0 {
		r.Edits, ed.events = ed.events, r.Edits
	} else {
		r.spare = compose(r.spare[:0], r.Edits, ed.events)
		r.Edits, r.spare = r.spare, r.Edits
	}
	return true
}
