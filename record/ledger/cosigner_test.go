// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"crypto"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"time"
)

// A cosigner signs checkpoints as a witness does.
type cosigner struct {
	witness *Witness
	private crypto.Signer
}

// newCosigner makes a cosigner of an Ed25519 key that signs nothing else.
func newCosigner(name string, private crypto.Signer) (*cosigner, error) {
	s, err := NewSigner(name, private)
	if err != nil {
		return nil, err
	}
	return &cosigner{&Witness{*newKey(name, s.key.public, typeCosignature)}, private}, nil
}

// Witness is the public half.
func (c *cosigner) Witness() *Witness { return c.witness }

// Cosign returns the signature line for a checkpoint; now is when that is.
func (c *cosigner) Cosign(cp Checkpoint, now time.Time) ([]byte, error) {
	unix := uint64(max(now.Unix(), 0))
	sig, err := c.private.Sign(nil, cosigned([]byte(cp.text()), unix), crypto.Hash(0))
	if err != nil {
		return nil, fmt.Errorf("ledger: cosign: %w", err)
	}
	return signatureLine(c.witness.Name(), c.witness.KeyHash(), append(binary.BigEndian.AppendUint64(nil, unix), sig...)), nil
}

// signatureLine is one signature of a note.
func signatureLine(name string, hash uint32, sig []byte) []byte {
	raw := append([]byte{byte(hash >> 24), byte(hash >> 16), byte(hash >> 8), byte(hash)}, sig...)
	return []byte("\u2014 " + name + " " + base64.StdEncoding.EncodeToString(raw) + "\n")
}
