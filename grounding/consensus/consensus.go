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

// Version is the version of docs/spec/consensus.md that this package implements.
const Version = "0.2"

// A Code is a reason to refuse a document or a name. The set is closed: a Code
// is a constant of this package, never text that a third party chose.
type Code string

// The reasons to refuse.
const (
	MemberUnknown      Code = "member-unknown"
	MemberMissing      Code = "member-missing"
	WrongType          Code = "wrong-type"
	NotAllowed         Code = "value-not-allowed" // not one of the constants that may stand here
	Malformed          Code = "malformed"         // not by the grammar of an id, topic, DID or date
	OutOfRange         Code = "out-of-range"
	TooPrecise         Code = "too-precise" // finer than a millionth
	TooLong            Code = "too-long"
	TooMany            Code = "too-many"
	Empty              Code = "empty"
	Duplicate          Code = "duplicate"
	DatesOutOfOrder    Code = "dates-out-of-order" // expires no later than issued
	DomainMalformed    Code = "domain-malformed"
	DomainUnregistered Code = "domain-unregistered"
	DomainLookalike    Code = "domain-lookalike"      // not registered, but it looks as if it were
	DomainNotInProfile Code = "domain-not-in-profile" // an override names a domain that the profile does not
	MoreProblems       Code = "more-problems"         // the list is cut
)

// Error makes a Code an error, for errors.Is.
func (c Code) Error() string { return "consensus: " + string(c) }

// A Problem is one mistake in a document.
type Problem struct {
	Code Code
	// Pointer says where, as a JSON pointer. A name that the document's author
	// chose stands in it as "#n", its ordinal from 0: no text of the document does.
	Pointer string
	Offset  int // octets from the start of the document
}

// Problems are the mistakes in a document, in its order, at most 64; after that
// one with the code MoreProblems ends the list.
type Problems []Problem

const maxProblems = 64

// Error lists all problems. It holds nothing of the document.
func (p Problems) Error() string {
	var b strings.Builder
	b.WriteString("consensus: document refused: ")
	for i, x := range p {
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(string(x.Code) + " at " + strconv.Quote(x.Pointer) + " (octet " + strconv.Itoa(x.Offset) + ")")
	}
	return b.String()
}

// Unwrap gives the codes, for errors.Is.
func (p Problems) Unwrap() []error {
	out := make([]error, len(p))
	for i, x := range p {
		out[i] = x.Code
	}
	return out
}

// sorted puts p in the order of the document and cuts it.
func (p Problems) sorted() Problems {
	slices.SortStableFunc(p, func(a, b Problem) int { return cmp.Compare(a.Offset, b.Offset) })
	if len(p) > maxProblems {
		p = p[:maxProblems:maxProblems]
		p = append(p, Problem{MoreProblems, "", p[maxProblems-1].Offset})
	}
	return p
}
