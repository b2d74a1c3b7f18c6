// SPDX-License-Identifier: Apache-2.0

package conform

import "slices"

// A requirement is one line of RFC 8.1. Without clauses it rests on everything.
type requirement struct {
	text    string
	clauses []string
	fails   func(*Result) bool // nil: a fault of one of the clauses
}

// sanitation are the clauses that sanitation_version 0.1 promises.
var sanitation = []string{"4.1", "4.2", "4.3", "4.4", "4.6"}

// head is RFC 8.1's list, in its order.
var head = []requirement{
	{"type-checks all input fields and rejects mistyped attestations (3)", []string{"3"}, nil},
	{"runs the full sanitation pipeline on every text field (4)", sanitation, nil},
	{"wraps every text field in the untrusted-text frame (5)", []string{"5.1", "5.2"}, nil},
	{"applies URL hardening (4.5)", []string{"4.5"}, nil},
	{"implements the canonical-hash amendment (7)", []string{"7"}, nil},
	{"passes the adversarial corpus (9)", nil, nil},
	{"returns sanitation_version truthfully", []string{"5.1"}, untruthful},
}

// untruthful: the version is claimed, or none at all is, for an answer that is not
// what the version promises.
func untruthful(r *Result) bool {
	return (r.version == "" || r.version == "0.1") && r.faulty(sanitation)
}

// faulty reports whether there is a fault of one of the clauses, any if there are
// none.
func (r *Result) faulty(clauses []string) bool {
	return slices.ContainsFunc(r.Faults, func(f Fault) bool { return len(clauses) == 0 || slices.Contains(clauses, f.Clause) })
}
