// SPDX-License-Identifier: Apache-2.0

package ground

import (
	"context"
	"errors"
	"time"

	"github.com/pellucid-mcp/pellucid/grounding/attest"
	"github.com/pellucid-mcp/pellucid/grounding/consensus"
)

// Store keeps attestations, the claims that they are about, and the cascade
// events that withdraw them. Its methods may be called at the same time, also
// from several processes on one store.
//
// A method that changes something has changed it wholly and durably when it
// returns nil, and not at all when it returns ErrBusy, ErrFull or ErrInvalid.
// After ErrUnavailable either may be so; as every change is idempotent, the
// caller repeats it. Other errors than these are those of the context.
type Store interface {
	// Put stores a batch, whole or not at all, and says what became of each
	// record, in the order of the batch. A record is compared with what is stored
	// and with what precedes it in the batch, as attest.Relate does. evidence makes
	// the ledger's records of what became of them, which are stored with the batch;
	// it may be called more than once, and what it fails with Put does. nil: there
	// are none.
	Put(ctx context.Context, batch []Record, evidence func([]PutResult) ([][]byte, error)) ([]PutResult, error)

	// Search returns the claims that match q, the best first.
	Search(ctx context.Context, q Query) (Hits, error)

	// Attestations returns, for each of the claims in the order given, the
	// attestations that are not superseded, those that stand first and among them
	// the latest first, at most perClaim of each claim, and without their Original.
	// A claim that is unknown has none.
	Attestations(ctx context.Context, claims []attest.Hash, perClaim int) ([]Attestations, error)

	// ByHash returns the record with the given canonical hash, also one that is
	// superseded or does not stand; ErrNotFound if not found.
	ByHash(ctx context.Context, h attest.Hash) (Stored, error)

	// Apply stores a cascade event and, in the same transaction, sets the status
	// of the attestations that it concerns and of everything that depends on them,
	// however indirectly. Of the events on one target the latest decides, whatever
	// the order in which they came. An event that is stored already changes nothing.
	// With any other the ledger's record of it is stored; nil: absent.
	Apply(ctx context.Context, e Cascade, evidence []byte) (Change, error)

	// Feed returns what was stored after the given cursor, in the order of
	// commitment and without gaps: what is missing was not committed. It returns
	// at most limit entries, fewer where they are large, none only at the end.
	Feed(ctx context.Context, after Cursor, limit int) ([]Entry, error)
}

// The errors of a Store, to be compared with errors.Is. Their texts hold nothing
// of what is stored.
var (
	ErrNotFound    = errors.New("ground: not found")
	ErrBusy        = errors.New("ground: store is busy: try again later")
	ErrFull        = errors.New("ground: store is full")
	ErrUnavailable = errors.New("ground: store is unavailable")
	ErrInvalid     = errors.New("ground: record cannot be stored")
)

// MaxBatch is the greatest number of records in a Put.
const MaxBatch = 4096

// A Record is an attestation that has passed attest.Parse and Verify. All
// texts are well-formed UTF-8 without U+0000.
type Record struct {
	Hash        attest.Hash     // canonical hash of the envelope
	HashVersion attest.Version  // by which Hash and ClaimHash were computed
	Key         attest.DedupKey // equal for what says the same to a reader
	ID          string          // IRI that the validator gave it
	Validator   string          // DID

	ClaimHash attest.Hash
	ClaimText string // sanitised; all attestations of a claim show the text that was stored first
	Language  string // BCP 47, or ""
	GroupID   string // URN, or ""
	Topic     string // "technology:software", or ""

	Domain  string // consensus domain, canonical name
	Verdict attest.Verdict
	Issued  time.Time
	Expires time.Time // zero: never

	// DependsOn are IRIs of sources, and IDs or hashes ("sha256:…") of
	// attestations.
	DependsOn []string

	Original   []byte // bytes as they were received, for audit and feed only
	Projection []byte // what may be shown
}

// Identity is what attest.Relate compares.
func (r *Record) Identity() attest.Identity {
	return attest.Identity{Hash: r.Hash, Key: r.Key, Issued: r.Issued}
}

// Stored is a Record with what the store knows of it.
type Stored struct {
	Record
	// Status is Retracted if an event retracts its hash or its ID, otherwise
	// CascadePending if one retracts something that it depends on, or if it
	// depends on an attestation that does not stand: by its hash, or by the ID that
	// the same validator gave it.
	Status consensus.Status
	// SupersededBy is the hash of the renewal that took its place, or zero.
	SupersededBy attest.Hash
}

// A Disposition says what became of a record.
type Disposition uint8

const (
	Added     Disposition = iota + 1 // stored
	Renewed                          // added, and took the place of PutResult.Other
	Duplicate                        // not stored: PutResult.Other is the same or says the same
)

// A PutResult is what Put did with one record.
type PutResult struct {
	Disposition Disposition
	Status      consensus.Status // of the record, or of the duplicate if it has the same hash
	Other       attest.Hash      // what it renews or repeats, or zero
	Lookalike   attest.Hash      // of the same validator, looks like it (UTS #39) without saying the same, or zero
}

// A Query says which claims are wanted. Members that are set must all hold; of
// the words of Text a claim must have at least one. The zero Query matches
// nothing.
type Query struct {
	Text      string      // any bytes; words are found whole, without case and accents
	ClaimHash attest.Hash // zero: any
	GroupID   string
	Topic     string // the topic or any below it
	Domain    string // consensus domain of at least one attestation
	Limit     int    // greatest number of claims; 0 stands for 10, the most is 100
}

// Hits answers a Query.
type Hits struct {
	Claims []Claim // the best first
	// Cut says that there may be other claims that match: more than were asked
	// for, or more than the search has looked at, which is bounded.
	Cut bool
}

// A Claim is a distinct claim, which any number of attestations are about.
type Claim struct {
	Hash     attest.Hash
	Text     string // sanitised; third-party text
	Language string
	GroupID  string
	Topic    string
	Live     int     // attestations that stand (expiry is not considered)
	Total    int     // attestations that are not superseded
	Score    float64 // greater is better; comparable within one answer only
	// Match is the share of the query's words that the claim has, the rare ones
	// counting for more: from 0 to 1, which it is for a query without words.
	Match float64
}

// Attestations are those of one claim.
type Attestations struct {
	Claim   attest.Hash
	Records []Stored
	Cut     bool // there are more
}

// A CascadeKind says what a Cascade does.
type CascadeKind uint8

const (
	Retract CascadeKind = iota + 1 // withdraws a source or an attestation
	Reverse                        // takes a retraction back
)

// A Cascade is a cascade event that has been checked. Who may send one is not the
// store's business.
type Cascade struct {
	Hash   attest.Hash // of Original
	Kind   CascadeKind
	Target string // IRI of a source, or the ID or hash ("sha256:…") of an attestation
	At     time.Time

	Original   []byte
	Projection []byte

	// Against is whose attestation somebody else withdraws, or lets stand again; "":
	// nobody's. It is for Options.Evidence only.
	Against string
}

// A Change is what an event has changed.
type Change struct {
	Duplicate bool // the event was stored before
	Live      int  // attestations that stand again
	Pending   int  // attestations that became cascade-pending
	Retracted int  // attestations that became retracted
}

// A Cursor is a place in the feed of a store; zero is its beginning.
type Cursor uint64

// An Entry is one attestation or event of the feed.
type Entry struct {
	Cursor   Cursor      // the place behind this entry
	Event    CascadeKind // zero: an attestation
	Hash     attest.Hash
	Original []byte
}
