// SPDX-License-Identifier: Apache-2.0

// Package ledger is the signed, append-only, provable record of what the boundary decided.
//
// One event is one record. Its life:
//
//	Event.Seal        what happened  →  a Sealed: the statement, and the opening of its digests
//	(a store keeps the Sealed in the transaction of the change that it describes)
//	Sign              statement      →  envelope: the leaf
//	Tree.Append       leaf hashes    →  tiles
//	SignCheckpoint    size and root  →  checkpoint
//
// A statement is an in-toto Statement v1 in canonical JSON (RFC 8785). Every
// string in it is a label, a constant or hexadecimal: nothing that a third party
// wrote. An envelope is a DSSE envelope over it, one Ed25519 signature, one
// spelling. The tree is that of RFC 6962, its tiles and paths are those of C2SP
// tlog-tiles, checkpoints are C2SP tlog-checkpoint, cosignatures C2SP
// tlog-cosignature (Ed25519), proofs C2SP tlog-proof. docs/spec/evidence.md gives
// every layout with a worked example.
//
// Digests are salted: a leaf holds HMAC-SHA-256 under a random salt of the record,
// so that a reader of the public log cannot guess a short answer. The salt and the
// plain digests are the record's opening, which stays in the database. With the
// opening, a reader can check what was received and delivered. Without it, after it
// was erased, this cannot be checked.
//
// A verified log shows that the holder of its key wrote these records, all of them,
// in this order, and that they are unchanged. It does not show that the records are
// true, nor that every event was recorded. Only cosignatures of witnesses show that
// two readers see the same log.
//
// It is part of the public API. An auditor needs the reading half:
//
//	key, err := ledger.ParseKey(vkey)
//	report, err := ledger.VerifyExport(ctx, os.DirFS(dir), ledger.VerifyOptions{Keys: []*ledger.Key{key}})
//
// or, for one record, ParseProof and Proof.Verify; and Opening.Check for what a record's
// salted digests stand for. The writing half makes the same bytes: the readers refuse
// every other spelling.
package ledger

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"

	"golang.org/x/mod/sumdb/tlog"
)

// Bounds of a log. A tlog-tiles entry has 16 bits for its length.
const (
	maxStatement  = 16 << 10 // bytes of a statement
	maxEnvelope   = 32 << 10 // bytes of an envelope
	maxCheckpoint = 16 << 10 // bytes of a checkpoint with its cosignatures
	maxSize       = 1 << 52  // records of a log
)

// An ID names a record: 128 random bits, those that placeholders and provenance
// quote. It says nothing of when the record was made or where it stands.
type ID [16]byte

// String is 32 hex digits.
func (id ID) String() string { return hex.EncodeToString(id[:]) }

// ParseID reads what String wrote.
func ParseID(s string) (ID, error) {
	var id ID
	if len(s) != 2*len(id) || !lowerHex(s) {
		return ID{}, errors.New("ledger: an id has 32 hex digits in lower case")
	}
	hex.Decode(id[:], []byte(s))
	return id, nil
}

// A Digest is the plain SHA-256 of some content.
type Digest [sha256.Size]byte

// A Salt hides the digests of one record. It is random, and used once.
type Salt [32]byte

// A Hash is a node of the Merkle tree.
type Hash = tlog.Hash

// LeafHash is the hash of an envelope as a leaf (RFC 6962).
func LeafHash(envelope []byte) Hash { return tlog.RecordHash(envelope) }

func lowerHex(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
