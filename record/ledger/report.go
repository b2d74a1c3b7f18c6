// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"fmt"
	"strconv"
)

// A Fault is what is wrong, in a constant text that follows a Problem's place.
type Fault string

// The faults.
const (
	FaultMissing    Fault = "is missing"
	FaultUnreadable Fault = "cannot be read"
	FaultForm       Fault = "does not have the form that docs/spec/evidence.md gives"
	FaultStray      Fault = "does not belong to the export"

	FaultUnsigned Fault = "is not signed by the key in force"
	FaultKeys     Fault = "is not signed by a key that leads to one of the trusted keys"
	FaultQuorum   Fault = "is cosigned by too few of the witnesses"
	FaultRoot     Fault = "has a root that is not that of the records"

	FaultFirst     Fault = "does not name the first key of the log"
	FaultSigner    Fault = "is signed by another key than the one in force"
	FaultSignature Fault = "has a wrong signature"
	FaultTwice     Fault = "has the id of an earlier record"
	FaultNotInTree Fault = "is not the record that the tree holds"
	FaultDisagree  Fault = "and its tile do not agree"
	FaultOrigin    Fault = "names a key of another log"

	FaultTile Fault = "does not hold the hashes that follow from the records"

	FaultOpening Fault = "does not open its record"
	FaultFork    Fault = "is not the beginning of this log"
	FaultNewer   Fault = "is of a longer log than this one"
)

// A Problem is one thing that is wrong, and where.
type Problem struct {
	Place string // "checkpoint", "record 17", "tile 0/3", "bundle 2", "opening 4", "older checkpoint 0", "file ..."
	Path  string // of the file in an export; "" where that is not one file
	Index int64  // of the record; -1: it is not about one
	Fault Fault
}

// String says where and what, on one line.
func (p Problem) String() string {
	s := p.Place + " " + string(p.Fault)
	if p.Path != "" {
		s += " (" + p.Path + ")"
	}
	return s
}

// MaxProblems bounds the list of a Report.
const MaxProblems = 100

// A Report is the outcome of a verification.
type Report struct {
	// Checkpoint is what the keys stand for; nil if its signatures do not hold.
	Checkpoint *OpenedCheckpoint
	Records    int64 // that hold
	Openings   int64 // that hold
	Erased     int64 // openings that were erased
	Kinds      map[Kind]int64
	Keys       []*Key // of the log, in the order in which they were in force

	Problems   []Problem // at most MaxProblems
	More       int64     // problems beyond them
	NotChecked []string  // what could not be checked, in constant texts and numbers
}

// OK reports whether nothing is wrong. What was not checked stands in NotChecked.
func (r *Report) OK() bool { return r.Checkpoint != nil && len(r.Problems) == 0 && r.More == 0 }

func (r *Report) problem(p Problem) {
	if len(r.Problems) == MaxProblems {
		r.More++
		return
	}
	r.Problems = append(r.Problems, p)
}

func (r *Report) record(index int64, f Fault) {
	r.problem(Problem{"record " + strconv.FormatInt(index, 10), "", index, f})
}

func (r *Report) notChecked(format string, args ...any) {
	r.NotChecked = append(r.NotChecked, fmt.Sprintf(format, args...))
}
