// SPDX-License-Identifier: Apache-2.0

package attest

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/mr-tron/base58"

	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// The multicodec prefixes of an Ed25519 key (Controlled Identifiers 1.0, Multikey).
const (
	publicPrefix = "\xed\x01"
	secretPrefix = "\x80\x26"
)

// maxMultibase bounds a base58 string, which takes quadratic time to decode. A
// signature, the longest that is read, has 88 characters and its prefix.
const maxMultibase = 128

// multibase58 is base58btc with its multibase prefix.
func multibase58(b []byte) string { return "z" + base58.Encode(b) }

func parseMultibase58(s string) ([]byte, error) {
	if len(s) < 2 || len(s) > maxMultibase || s[0] != 'z' {
		return nil, errors.New("not base58btc in multibase")
	}
	b, err := base58.Decode(s[1:])
	if err != nil {
		return nil, errors.New("not base58btc in multibase") // the cause quotes the text
	}
	return b, nil
}

// multikey decodes 32 bytes behind a multicodec prefix.
func multikey(s, prefix string) ([]byte, error) {
	b, err := parseMultibase58(s)
	if err != nil {
		return nil, err
	}
	raw, ok := bytes.CutPrefix(b, []byte(prefix))
	if !ok || len(raw) != ed25519.PublicKeySize {
		return nil, errors.New("not an Ed25519 key")
	}
	return raw, nil
}

// A Key is an Ed25519 private key, named by its own did:key. The zero Key signs
// nothing.
type Key struct{ private ed25519.PrivateKey }

// GenerateKey makes a Key of 32 bytes of random, which must be unpredictable.
func GenerateKey(random io.Reader) (Key, error) {
	var seed [ed25519.SeedSize]byte
	if _, err := io.ReadFull(random, seed[:]); err != nil {
		return Key{}, fmt.Errorf("attest: generate key: %w", err)
	}
	return Key{ed25519.NewKeyFromSeed(seed[:])}, nil
}

// ParseKey reads what Secret returns.
func ParseKey(secret string) (Key, error) {
	seed, err := multikey(secret, secretPrefix)
	if err != nil {
		return Key{}, fmt.Errorf("attest: parse secret key: %w", err)
	}
	return Key{ed25519.NewKeyFromSeed(seed)}, nil
}

// Secret is the secretKeyMultibase of the key.
func (k Key) Secret() string {
	return multibase58(append([]byte(secretPrefix), k.private.Seed()...))
}

// Public is the publicKeyMultibase of the key.
func (k Key) Public() string {
	return multibase58(append([]byte(publicPrefix), k.private.Public().(ed25519.PublicKey)...))
}

// DID is the key's did:key.
func (k Key) DID() string { return "did:key:" + k.Public() }

// Method is the DID URL of the key's verification method.
func (k Key) Method() string { return k.DID() + "#" + k.Public() }

// String hides the key, so that no log line shows it.
func (Key) String() string { return "attest.Key" }

// GoString hides the key, so that no log line shows it.
func (Key) GoString() string { return "attest.Key" }

// A KeyResolver finds the key of a verification method.
type KeyResolver interface {
	// ResolveKey returns the Ed25519 key of method, a DID URL with a fragment, if
	// the document of its DID lists it for assertionMethod; ErrNotAuthorised if
	// that is not so for certain; any other error if it cannot be known now.
	ResolveKey(ctx context.Context, method string) (ed25519.PublicKey, error)
}

// ErrNotAuthorised means that a DID does not let the key assert anything.
var ErrNotAuthorised = errors.New("attest: not a key for assertions of this DID")

// DIDKey resolves did:key, which needs nothing but itself. A document of did:key
// has one key, listed for every relationship.
type DIDKey struct{}

// ResolveKey implements KeyResolver.
func (DIDKey) ResolveKey(_ context.Context, method string) (ed25519.PublicKey, error) {
	did, fragment, _ := strings.Cut(method, "#")
	id, ok := strings.CutPrefix(did, "did:key:")
	if !ok || fragment != id {
		return nil, ErrNotAuthorised
	}
	key, err := multikey(id, publicPrefix)
	if err != nil {
		return nil, ErrNotAuthorised
	}
	return key, nil
}

// documentLimits bound a DID document.
var documentLimits = strictjson.Limits{Bytes: 1 << 18, Depth: 32, Values: 8192, FoldedNames: true}

// DocumentKey finds the key of method, a DID URL, in the DID document doc, as a
// KeyResolver that fetches documents has to: the document must be that of the
// DID, and list the method, which it controls itself, for assertionMethod. The
// error wraps ErrNotAuthorised or is a *Refusal: not JSON.
func DocumentKey(doc []byte, method string) (ed25519.PublicKey, error) {
	var d strictjson.Doc
	if err := d.Reset(doc, documentLimits); err != nil {
		return nil, refuseJSON(err)
	}
	root := d.Root()
	did, _, _ := strings.Cut(method, "#")
	if root.Get("id").Text() != did || did == "" {
		return nil, fmt.Errorf("%w: the document is of another", ErrNotAuthorised)
	}
	for m := range root.Get("assertionMethod").Elements() {
		if m.Kind() == '"' && absolute(did, m.Text()) == method {
			for v := range root.Get("verificationMethod").Elements() {
				if absolute(did, v.Get("id").Text()) == method {
					return methodKey(did, v)
				}
			}
		}
		if m.Kind() == '{' && absolute(did, m.Get("id").Text()) == method {
			return methodKey(did, m)
		}
	}
	return nil, fmt.Errorf("%w: not listed for assertionMethod", ErrNotAuthorised)
}

// absolute resolves "#key-1", which DID Core allows within a document.
func absolute(did, id string) string {
	if strings.HasPrefix(id, "#") {
		return did + id
	}
	return id
}

// methodKey reads the forms in which an Ed25519 key stands in a document.
func methodKey(did string, v strictjson.Value) (ed25519.PublicKey, error) {
	if v.Get("controller").Text() != did {
		return nil, fmt.Errorf("%w: another controls the key", ErrNotAuthorised)
	}
	switch v.Get("type").Text() {
	case "Multikey", "Ed25519VerificationKey2020":
		key, err := multikey(v.Get("publicKeyMultibase").Text(), publicPrefix)
		if err == nil {
			return key, nil
		}
	case "JsonWebKey", "JsonWebKey2020":
		jwk := v.Get("publicKeyJwk")
		key, err := base64.RawURLEncoding.Strict().DecodeString(jwk.Get("x").Text())
		if err == nil && jwk.Get("kty").Text() == "OKP" && jwk.Get("crv").Text() == "Ed25519" && len(key) == ed25519.PublicKeySize {
			return key, nil
		}
	}
	return nil, fmt.Errorf("%w: no Ed25519 key", ErrNotAuthorised)
}
