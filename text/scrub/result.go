// SPDX-License-Identifier: Apache-2.0

package scrub

import "github.com/pellucid-mcp/pellucid/text/ucd"

// Result is what Scrub found. The caller reuses it: Scrub on clean text then
// allocates nothing. Edits, Notes and Credentials are valid until the next Scrub; to keep them,
// clone them. One Result serves one goroutine at a time.
type Result struct {
	// Item is what the texts of one item, as one answer of a server, share: the caller
	// sets it before the first of them. Without it each text is an item of its own. Scrub
	// leaves the pointer as it is.
	Item *Allowance

	Clean Clean
	Edits []Edit // what was dropped or changed, in order
	Notes []Note // what was found and left, at most one per class

	// Tokens is the number of control tokens and role markers that were removed or
	// defused; under veritas-0.1, which leaves them, that were found.
	Tokens int
	// TokensLeft is the number of those that mcp and faithful left, since they are
	// ambiguous or the policy keeps them. The Notes say where the first stands.
	TokensLeft int

	// Credentials are the content credentials that were removed, in order.
	Credentials []Credential

	// Refused is the class for which the text must not be used: Suspicious
	// (surface) or Confusable (veritas-0.1 with Reject); 0 if it may. RefusedAt is
	// where the first cause stands.
	Refused   Class
	RefusedAt Note

	// Scratch memory.
	pass    pass
	ed      editor
	spare   []Edit
	buf     ucd.Buffer
	match   matcher
	mark    markup
	normals [32]normal
	low     []uint32
}

// A Note says that something was found and left as it is.
type Note struct {
	Class      Class
	Start, End int // bytes of the input: the first that was found
	Count      int // how many; 1 where only the first was looked for
}

// Changed reports whether the clean text differs from the input.
func (r *Result) Changed() bool { return len(r.Edits) > 0 }

// Truncated reports whether text was cut off.
func (r *Result) Truncated() bool { return r.Has(Truncated) }

// CutAt returns where text was cut off, in bytes of the input, and whether it was.
func (r *Result) CutAt() (at int, cut bool) {
	for i := range r.Edits {
		if r.Edits[i].Class == Truncated {
			return r.Edits[i].Start, true
		}
	}
	return 0, false
}

// Has reports whether an event or a note is of class c.
func (r *Result) Has(c Class) bool {
	for i := range r.Edits {
		if r.Edits[i].Class == c {
			return true
		}
	}
	for i := range r.Notes {
		if r.Notes[i].Class == c {
			return true
		}
	}
	return false
}

// Hidden returns the number of events that removed hidden characters.
func (r *Result) Hidden() int {
	n := 0
	for i := range r.Edits {
		if r.Edits[i].Class.Hidden() {
			n++
		}
	}
	return n
}

func (r *Result) reset() {
	r.Clean = Clean{}
	r.Edits, r.Notes = r.Edits[:0], r.Notes[:0]
	r.Tokens, r.TokensLeft = 0, 0
	r.Credentials = r.Credentials[:0]
	r.Refused, r.RefusedAt = 0, Note{}
}

// addNote adds to the note of class c, which stands where it was first seen.
func (r *Result) addNote(c Class, start, end int) {
	for i := range r.Notes {
		if r.Notes[i].Class == c {
			r.Notes[i].Count++
			return
		}
	}
	r.Notes = append(r.Notes, Note{c, start, end, 1})
}

// refuse keeps the first cause.
func (r *Result) refuse(c, what Class, start, end int) {
	if r.Refused == 0 {
		r.Refused, r.RefusedAt = c, Note{what, start, end, 1}
	}
}
