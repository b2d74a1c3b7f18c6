// SPDX-License-Identifier: Apache-2.0

package attest

import (
	"fmt"
	"slices"

	"github.com/pellucid-mcp/pellucid/text/finding"
)

// Verdict is what a validator says of a claim.
type Verdict string

// The verdicts of RFC-FACTCHECK and of the grounding RFC, §3.
const (
	Verified   Verdict = "VERIFIED"
	Supported  Verdict = "SUPPORTED"
	Qualified  Verdict = "QUALIFIED"
	Unverified Verdict = "UNVERIFIED"
	Disputed   Verdict = "DISPUTED"
	False      Verdict = "FALSE"
)

var builtin = []Verdict{Verified, Supported, Qualified, Unverified, Disputed, False}

// maxVerdict is the greatest length of a verdict's name, in bytes.
const maxVerdict = 64

// Registry is the closed set of verdicts that a federation uses: the built-in
// ones and those that an operator adds. The zero value holds the built-in
// ones. A Registry does not change once it is made.
type Registry struct {
	extra []Verdict // sorted
}

// NewRegistry returns the registry of the built-in verdicts and of extra.
// A name is 1 to 64 bytes of A–Z, 0–9 and _, and begins with a letter: it
// can thus be shown anywhere without escaping.
func NewRegistry(extra ...string) (*Registry, error) {
	r := new(Registry)
	for _, name := range extra {
		if !verdictName(name) {
			return nil, fmt.Errorf("attest: verdict name: %s is not upper-case letters, digits and _", finding.Quote(name))
		}
		if v := Verdict(name); !r.Has(v) {
			r.extra = append(r.extra, v)
		}
	}
	slices.Sort(r.extra)
	return r, nil
}

// Has reports whether v is registered.
func (r *Registry) Has(v Verdict) bool {
	if slices.Contains(builtin, v) {
		return true
	}
	return r != nil && slices.Contains(r.extra, v)
}

// Verdicts returns every registered verdict, the built-in ones first and in
// their own order, the added ones sorted.
func (r *Registry) Verdicts() []Verdict {
	if r == nil {
		return slices.Clone(builtin)
	}
	return slices.Concat(builtin, r.extra)
}

func verdictName(s string) bool {
	if len(s) == 0 || len(s) > maxVerdict || s[0] < 'A' || s[0] > 'Z' {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' {
			return false
		}
	}
	return true
}
