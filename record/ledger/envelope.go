// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"strconv"
	"strings"
)

// PayloadType is that of every envelope.
const PayloadType = "application/vnd.in-toto+json"

// The constant parts of an envelope.
const (
	envelopeStart = `{"payload":"`
	envelopeKey   = `","payloadType":"` + PayloadType + `","signatures":[{"keyid":"`
	envelopeSig   = `","sig":"`
	envelopeEnd   = `"}]}`
)

var errEnvelope = errors.New("ledger: envelope: it is not spelled as this format has it")

// appendPAE appends the bytes that a DSSE signature is made over.
func appendPAE(dst, statement []byte) []byte {
	dst = append(dst, "DSSEv1 "...)
	dst = strconv.AppendInt(dst, int64(len(PayloadType)), 10)
	dst = append(dst, " "+PayloadType+" "...)
	dst = strconv.AppendInt(dst, int64(len(statement)), 10)
	return append(append(dst, ' '), statement...)
}

// Sign puts a statement into a DSSE envelope: the leaf of the log.
//
//	{"payload":"<base64>","payloadType":"application/vnd.in-toto+json",
//	 "signatures":[{"keyid":"<origin>+<8 hex>","sig":"<base64>"}]}
//
// on one line, without white space.
func Sign(statement []byte, s *Signer) (envelope []byte, err error) {
	if len(statement) > maxStatement {
		return nil, errTooLong
	}
	dst := make([]byte, 0, 256+len(statement)*4/3+len(s.key.id))
	sig, err := s.Sign(appendPAE(dst, statement))
	if err != nil {
		return nil, err
	}
	e := Envelope{statement, s.key.id, sig}
	return e.append(dst), nil
}

// An Envelope is one that was parsed; its signature was not checked.
type Envelope struct {
	Statement []byte
	KeyID     string
	Signature []byte
}

func (e *Envelope) append(dst []byte) []byte {
	dst = base64.StdEncoding.AppendEncode(append(dst, envelopeStart...), e.Statement)
	dst = append(append(append(dst, envelopeKey...), e.KeyID...), envelopeSig...)
	return append(base64.StdEncoding.AppendEncode(dst, e.Signature), envelopeEnd...)
}

// UnverifiedStatement reads the statement of an envelope. It checks no signature: it is for
// a log that was verified, or is the caller's own.
func UnverifiedStatement(envelope []byte) (*Statement, error) {
	e, err := ParseEnvelope(envelope)
	if err != nil {
		return nil, err
	}
	return ParseStatement(e.Statement)
}

// ParseEnvelope reads an envelope, strictly: it must be spelled as Sign spells it.
func ParseEnvelope(b []byte) (*Envelope, error) {
	if len(b) > maxEnvelope {
		return nil, errEnvelope
	}
	rest, ok1 := bytes.CutPrefix(b, []byte(envelopeStart))
	payload, rest, ok2 := bytes.Cut(rest, []byte(envelopeKey))
	keyid, rest, ok3 := bytes.Cut(rest, []byte(envelopeSig))
	sig, ok4 := bytes.CutSuffix(rest, []byte(envelopeEnd))
	if !(ok1 && ok2 && ok3 && ok4) {
		return nil, errEnvelope
	}
	e := &Envelope{KeyID: string(keyid)}
	e.Statement, ok1 = decodeBase64(payload)
	e.Signature, ok2 = decodeBase64(sig)
	if !ok1 || !ok2 || !validKeyID(e.KeyID) || len(e.Signature) != ed25519.SignatureSize || len(e.Statement) > maxStatement {
		return nil, errEnvelope
	}
	return e, nil
}

func validKeyID(s string) bool {
	name, hash, ok := strings.Cut(s, "+")
	return ok && ValidOrigin(name) && len(hash) == 8 && lowerHex(hash)
}

// Verify reports whether the envelope is signed by k.
func (e *Envelope) Verify(k *Key) bool {
	return e.KeyID == k.id && k.Verify(appendPAE(make([]byte, 0, 64+len(e.Statement)), e.Statement), e.Signature)
}
