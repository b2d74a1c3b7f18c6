// SPDX-License-Identifier: Apache-2.0

// Package consensus composes what validators say of a claim into one verdict, by the profile that a consumer has chosen.
//
// A profile (CPML) is a document that is compiled: strictly, all mistakes at
// once, into an immutable Profile. A Registry is the closed set of consensus
// domains that a profile and an attestation may name. Compose is a function of
// its arguments: the same votes give the same verdict, in whatever order they
// came, and the explanation says of every vote what became of it.
//
// The format and the rules are those of docs/spec/consensus.md.
package consensus

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// version is the version of docs/spec/consensus.md that this package implements.
const version = "0.3"

// A code is a reason to refuse a document or a name. The set is closed: a code
// is a constant of this package, never text that a third party chose.
type code string

// The reasons to refuse.
const (
	memberUnknown      code = "member-unknown"
	memberMissing      code = "member-missing"
	wrongType          code = "wrong-type"
	notAllowed         code = "value-not-allowed" // not one of the constants that may stand here
	malformed          code = "malformed"         // not by the grammar of an id, topic, DID or date
	outOfRange         code = "out-of-range"
	tooPrecise         code = "too-precise" // finer than a millionth
	tooLong            code = "too-long"
	tooMany            code = "too-many"
	empty              code = "empty"
	duplicate          code = "duplicate"
	datesOutOfOrder    code = "dates-out-of-order" // expires no later than issued
	domainMalformed    code = "domain-malformed"
	domainUnregistered code = "domain-unregistered"
	domainLookalike    code = "domain-lookalike"      // not registered, but it looks as if it were
	domainNotInProfile code = "domain-not-in-profile" // an override names a domain that the profile does not
	moreProblems       code = "more-problems"         // the list is cut
)

// Error makes a code an error, for errors.Is.
func (c code) Error() string { return "consensus: " + string(c) }

// A problem is one mistake in a document.
type problem struct {
	code code
	// pointer says where, as a JSON pointer. A name that the document's author
	// chose stands in it as "#n", its ordinal from 0: no text of the document does.
	pointer string
	offset  int // bytes from the start of the document
}

// problems are the mistakes in a document, in its order, at most 64; after that
// one with the code moreProblems ends the list.
type problems []problem

const maxProblems = 64

// Error lists all problems. It holds nothing of the document.
func (p problems) Error() string {
	var b strings.Builder
	b.WriteString("consensus: document refused: ")
	for i, x := range p {
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(string(x.code) + " at " + strconv.Quote(x.pointer) + " (byte " + strconv.Itoa(x.offset) + ")")
	}
	return b.String()
}

// Unwrap gives the codes, for errors.Is.
func (p problems) Unwrap() []error {
	out := make([]error, len(p))
	for i, x := range p {
		out[i] = x.code
	}
	return out
}

// sorted puts p in the order of the document and cuts it.
func (p problems) sorted() problems {
	slices.SortStableFunc(p, func(a, b problem) int { return cmp.Compare(a.offset, b.offset) })
	if len(p) > maxProblems {
		p = p[:maxProblems:maxProblems]
		p = append(p, problem{moreProblems, "", p[maxProblems-1].offset})
	}
	return p
}
