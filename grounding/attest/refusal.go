// SPDX-License-Identifier: Apache-2.0

package attest

import (
	"errors"
	"strconv"

	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/href"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// A Refusal says why an attestation is not accepted, and where. Its text holds
// nothing that a third party wrote, so it may be logged and kept as evidence.
type Refusal struct {
	Code finding.Code

	// Pointer is the JSON pointer of the value that is refused. It is made of
	// names that the context defines, and of indexes; what an undefined member is
	// called is not told, only in which object it stands.
	Pointer string

	// Offset counts bytes of the body; where Text is set, bytes of the decoded
	// string at Pointer.
	Offset int
	Text   bool

	cause error // of KeyUnavailable
}

// Error is the code, the pointer and the offset.
func (r *Refusal) Error() string {
	s := "attest: " + string(r.Code)
	if r.Pointer != "" {
		s += " at " + r.Pointer
	}
	s += " byte " + strconv.Itoa(r.Offset)
	if r.cause != nil {
		s += ": " + finding.Quote(r.cause.Error())
	}
	return s
}

// Unwrap is what a KeyResolver said, for those who know how to ask it whether
// to try again.
func (r *Refusal) Unwrap() error { return r.cause }

// refuseJSON translates what strictjson refuses.
func refuseJSON(err error) *Refusal {
	var se *strictjson.SyntaxError
	if !errors.As(err, &se) {
		return &Refusal{Code: finding.NotJSON}
	}
	r := &Refusal{Code: finding.NotJSON, Offset: se.Offset}
	switch se.Code {
	case strictjson.CodeBytes:
		r.Code = finding.TooLong
	case strictjson.CodeDepth:
		r.Code = finding.TooDeep
	case strictjson.CodeValues:
		r.Code = finding.TooMany
	}
	return r
}

// refuseURI translates what href refuses.
func refuseURI(err error, pointer string) *Refusal {
	r := &Refusal{Code: finding.URISyntax, Pointer: pointer, Text: true}
	var hr *href.Refusal
	if errors.As(err, &hr) {
		r.Code, r.Offset = hr.Code, hr.Offset
	}
	return r
}
