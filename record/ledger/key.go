// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"crypto"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/pellucid-mcp/pellucid/text/frame"
)

// The signature types of C2SP signed-note that are used here.
const (
	typeEd25519     = 0x01
	typeCosignature = 0x04
)

// A Key is a public key of a log, as C2SP signed-note has it: a name, which is the
// origin of the log, and an Ed25519 key. It is a note.Verifier.
type Key struct {
	name   string
	hash   uint32
	public ed25519.PublicKey
	id     string
}

var (
	errVerifierKey = errors.New("ledger: key: it is no verifier key of that type: name+hash+base64")
	errPrivateKey  = errors.New("ledger: key: it is no private key: PRIVATE+KEY+name+hash+base64")
	errOrigin      = errors.New(`ledger: key: an origin has 1 to 128 letters, digits and any of "@._/:-"`)
	errNotEd25519  = errors.New("ledger: key: it is no Ed25519 key")
)

// ParseKey reads a C2SP vkey of type 0x01: name+hash+key.
func ParseKey(vkey string) (*Key, error) { return parseKey(vkey, typeEd25519) }

func parseKey(vkey string, kind byte) (*Key, error) {
	name, material, ok := splitKey(vkey, ed25519.PublicKeySize)
	if !ok || material[0] != kind {
		return nil, errVerifierKey
	}
	k := newKey(name, material[1:], kind)
	if k.encode(kind) != vkey {
		return nil, errVerifierKey
	}
	return k, nil
}

// splitKey takes name, "+", 8 hex digits, "+" and base64 apart: a type and size bytes.
func splitKey(s string, size int) (name string, material []byte, ok bool) {
	name, rest, ok := strings.Cut(s, "+")
	if !ok || !ValidOrigin(name) || len(rest) < 9 || rest[8] != '+' {
		return "", nil, false
	}
	material, ok = decodeBase64([]byte(rest[9:]))
	return name, material, ok && len(material) == 1+size
}

// ValidOrigin reports whether a log may be called so: a label (frame.IsLabel) without
// the + that ends it in a key.
func ValidOrigin(s string) bool { return frame.IsLabel(s) && !strings.Contains(s, "+") }

func newKey(name string, public ed25519.PublicKey, kind byte) *Key {
	h := sha256.New()
	h.Write([]byte(name))
	h.Write([]byte{'\n', kind})
	h.Write(public)
	sum := h.Sum(nil)
	return &Key{name, binary.BigEndian.Uint32(sum), public, name + "+" + hex.EncodeToString(sum[:4])}
}

func (k *Key) encode(kind byte) string {
	return k.id + "+" + base64.StdEncoding.EncodeToString(append([]byte{kind}, k.public...))
}

// decodeBase64 reads standard base64 in its one canonical spelling.
func decodeBase64(b []byte) ([]byte, bool) {
	out, err := base64.StdEncoding.Strict().AppendDecode(nil, b)
	// The decoder passes over line breaks, so the length must tell.
	return out, err == nil && base64.StdEncoding.EncodedLen(len(out)) == len(b)
}

// String is the vkey.
func (k *Key) String() string { return k.encode(typeEd25519) }

// ID is the keyid of envelopes: the name, "+" and the hash in 8 hex digits, with
// which the vkey begins.
func (k *Key) ID() string { return k.id }

// Name is the origin of the log.
func (k *Key) Name() string { return k.name }

// KeyHash is the key ID of signed notes.
func (k *Key) KeyHash() uint32 { return k.hash }

// Verify reports whether sig is the key's signature of msg.
func (k *Key) Verify(msg, sig []byte) bool { return ed25519.Verify(k.public, msg, sig) }

// Equal reports whether both are the same key under the same name.
func (k *Key) Equal(l *Key) bool { return k.id == l.id && k.public.Equal(l.public) }

// A Signer signs the records and checkpoints of a log. It is a note.Signer, and
// safe for concurrent use if its private key is (an ed25519.PrivateKey is).
type Signer struct {
	key     *Key
	private crypto.Signer
}

// NewSigner makes a Signer of an Ed25519 private key, which may live elsewhere.
// The origin names the log for ever: a URL without its scheme, say example.com/log.
func NewSigner(origin string, private crypto.Signer) (*Signer, error) {
	if !ValidOrigin(origin) {
		return nil, errOrigin
	}
	public, ok := private.Public().(ed25519.PublicKey)
	if !ok || len(public) != ed25519.PublicKeySize {
		return nil, errNotEd25519
	}
	return &Signer{newKey(origin, public, typeEd25519), private}, nil
}

const privatePrefix = "PRIVATE+KEY+"

// ParseSigner reads a private key for a log as it is kept in a file: one line without its
// line feed, "PRIVATE+KEY+" name "+" hash "+" base64, as golang.org/x/mod/sumdb/note has it.
// Errors do not quote it.
func ParseSigner(skey string) (*Signer, error) {
	rest, ok := strings.CutPrefix(skey, privatePrefix)
	if !ok {
		return nil, errPrivateKey
	}
	name, material, ok := splitKey(rest, ed25519.SeedSize)
	if !ok || material[0] != typeEd25519 {
		return nil, errPrivateKey
	}
	s, err := NewSigner(name, ed25519.NewKeyFromSeed(material[1:]))
	if err != nil || !strings.HasPrefix(rest, s.key.id+"+") {
		return nil, errPrivateKey
	}
	return s, nil
}

// Key is the public half.
func (s *Signer) Key() *Key { return s.key }

// Name is the origin of the log.
func (s *Signer) Name() string { return s.key.name }

// KeyHash is the key ID of signed notes.
func (s *Signer) KeyHash() uint32 { return s.key.hash }

// Sign signs msg as it is.
func (s *Signer) Sign(msg []byte) ([]byte, error) {
	sig, err := s.private.Sign(nil, msg, crypto.Hash(0))
	if err != nil {
		return nil, fmt.Errorf("ledger: sign: %w", err)
	}
	if len(sig) != ed25519.SignatureSize {
		return nil, errNotEd25519
	}
	return sig, nil
}
