// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"bytes"
	"crypto/ed25519"
	"encoding/binary"
	"fmt"
	"math"
	"time"
)

// A Witness is the public key of a party that cosigns checkpoints: a vkey of type
// 0x04 (C2SP tlog-cosignature, Ed25519). It is a note.Verifier.
type Witness struct{ key Key }

// ParseWitness reads a vkey of type 0x04.
func ParseWitness(vkey string) (*Witness, error) {
	k, err := parseKey(vkey, typeCosignature)
	if err != nil {
		return nil, err
	}
	return &Witness{*k}, nil
}

// String is the vkey.
func (w *Witness) String() string { return w.key.encode(typeCosignature) }

// Name is what the witness calls itself.
func (w *Witness) Name() string { return w.key.name }

// KeyHash is the key ID of signed notes.
func (w *Witness) KeyHash() uint32 { return w.key.hash }

// Verify reports whether sig, a time and a signature, is the witness's for a
// checkpoint's text.
func (w *Witness) Verify(text, sig []byte) bool {
	if len(sig) != 8+ed25519.SignatureSize || binary.BigEndian.Uint64(sig) > math.MaxInt64 {
		return false
	}
	return ed25519.Verify(w.key.public, cosigned(text, binary.BigEndian.Uint64(sig)), sig[8:])
}

// SameKey reports whether both are the same key, whatever their names are.
func (w *Witness) SameKey(v *Witness) bool { return w.key.public.Equal(v.key.public) }

// Signed reports whether line is a signature line of a note, with its line feed, that holds the
// witness's cosignature for a checkpoint's text.
func (w *Witness) Signed(text, line []byte) bool {
	rest, ok := bytes.CutPrefix(line, []byte("\u2014 "+w.Name()+" "))
	rest, ended := bytes.CutSuffix(rest, []byte{'\n'})
	raw, canonical := decodeBase64(rest)
	return ok && ended && canonical && len(raw) == 4+8+ed25519.SignatureSize && binary.BigEndian.Uint32(raw) == w.KeyHash() && w.Verify(text, raw[4:])
}

// cosigned is what a cosignature is made over.
func cosigned(text []byte, unix uint64) []byte {
	return append(fmt.Appendf(nil, "cosignature/v1\ntime %d\n", unix), text...)
}

func cosignedAt(sig []byte) time.Time {
	return time.Unix(int64(binary.BigEndian.Uint64(sig)), 0).UTC()
}
