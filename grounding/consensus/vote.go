// SPDX-License-Identifier: Apache-2.0

package consensus

import (
	"cmp"
	"time"

	"github.com/pellucid-mcp/pellucid/grounding/attest"
)

// A Vote is what counts of an attestation: package attest has checked it and the
// store knows its status. Votes that are composed together are on one claim (or
// on claims of one group).
type Vote struct {
	ID        string // hash of the attestation
	Validator string // DID
	Verdict   attest.Verdict
	Domain    Domain // as Registry.Resolve returned it
	Topic     string
	Issued    time.Time
	Expires   time.Time // zero: never
	Status    Status

	// Reputation and Trust of the validator, as the operator knows them: from the
	// validators file, or One each. A profile can lower the trust, never raise it.
	Reputation, Trust Score

	// Recorded is the score that the ledger gives the validator as of one point of the
	// ledger, the same for all votes. Only a profile with a LedgerUse reads it; it lowers
	// what the operator knows, and never raises it.
	Recorded Score
}

// standings are the reputation and the trust that count by a profile's use of the ledger.
func (v *Vote) standings(use LedgerUse) (reputation, trust Score) {
	switch use {
	case ledgerReputation:
		return min(v.Reputation, v.Recorded), v.Trust
	case ledgerTrust:
		return v.Reputation, min(v.Trust, v.Recorded)
	}
	return v.Reputation, v.Trust
}

// A Status says whether an attestation stands. The zero Status is unknown, and
// an attestation of unknown status is withheld.
type Status uint8

const (
	StatusUnknown  Status = iota // not known: the attestation is withheld
	Live                         // stands
	CascadePending               // a source that it depends on was retracted
	Retracted                    // withdrawn
	Refused                      // stands, and the aggregator's policy of today refuses it
)

// A Reason says what became of a vote. It is a constant of this package.
type Reason string

// The reasons, in the order in which they are tried: the first that applies is
// the one that is given.
const (
	ProfileNotInForce Reason = "profile-not-in-force"
	Invalid           Reason = "invalid" // no id, validator, verdict or date; a score above One; unknown status
	Withdrawn         Reason = "retracted"
	Pending           Reason = "cascade-pending"
	NotAccepted       Reason = "refused-by-policy"
	NotYetIssued      Reason = "not-yet-issued"
	Expired           Reason = "expired"
	WrongDomain       Reason = "wrong-domain"
	WrongTopic        Reason = "wrong-topic"
	LowReputation     Reason = "low-reputation"
	LowTrust          Reason = "low-trust"
	NoWeight          Reason = "no-weight" // a factor is 0
	Repeated          Reason = "duplicate" // the same attestation a second time
	Superseded        Reason = "superseded"
	Counted           Reason = "counted"
)

// standing is what can be said of a vote without a profile; "" if nothing stands
// against it.
func (v *Vote) standing(now time.Time) Reason {
	switch {
	case v.ID == "" || v.Validator == "" || v.Verdict == "" || v.Issued.IsZero(),
		v.Reputation > One || v.Trust > One || v.Recorded > One,
		v.Status == StatusUnknown || v.Status > Refused:
		return Invalid
	case v.Status == Retracted:
		return Withdrawn
	case v.Status == CascadePending:
		return Pending
	case v.Status == Refused:
		return NotAccepted
	case v.Issued.After(now):
		return NotYetIssued
	case !v.Expires.IsZero() && !now.Before(v.Expires):
		return Expired
	}
	return ""
}

// compare orders votes: a validator's together, the newest first. Votes that
// compare equal are interchangeable.
func (v *Vote) compare(w *Vote) int {
	if c := cmp.Or(w.Issued.Compare(v.Issued), cmp.Compare(v.ID, w.ID)); c != 0 {
		return c
	}
	// An attestation has one hash; what follows only makes the order total.
	return cmp.Or(
		cmp.Compare(v.Validator, w.Validator),
		cmp.Compare(v.Verdict, w.Verdict),
		cmp.Compare(v.Domain, w.Domain),
		cmp.Compare(v.Topic, w.Topic),
		v.Expires.Compare(w.Expires),
		cmp.Compare(v.Status, w.Status),
		cmp.Compare(v.Reputation, w.Reputation),
		cmp.Compare(v.Trust, w.Trust),
		cmp.Compare(v.Recorded, w.Recorded),
	)
}
