// SPDX-License-Identifier: Apache-2.0

// Package keyring keeps the secret keys of an installation: the current one, and others whose seals still open.
//
// A key has an id, which is derived from it and stands in front of everything that the key seals.
// So a new key can take over without an end of what the previous one has sealed. A use of the keys
// has a purpose; what is derived from a key for one purpose says nothing about another.
package keyring

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
)

// KeySize is the size of a key in bytes.
const KeySize = 32

// MaxKeys bounds the keys of a ring: each fence that is checked may be tried with all of them.
const MaxKeys = 16

// idSize is the size of the id of a key in bytes.
const idSize = 4

// A Key is one secret of an installation.
type Key struct {
	id     [idSize]byte
	secret [KeySize]byte
}

// NewKey makes a Key of exactly KeySize bytes, which must be random and secret.
func NewKey(secret []byte) (Key, error) {
	if len(secret) != KeySize {
		return Key{}, fmt.Errorf("keyring: key: want exactly %d bytes", KeySize)
	}
	k := Key{secret: [KeySize]byte(secret)}
	id := k.Derive("pellucid key id v1")
	copy(k.id[:], id)
	return k, nil
}

// ID returns eight hexadecimal digits, which name the key and tell nothing else about it.
func (k Key) ID() string { return hex.EncodeToString(k.id[:]) }

// Secret returns the key itself.
func (k Key) Secret() []byte { return k.secret[:] }

// Derive returns a key of KeySize bytes for one purpose.
func (k Key) Derive(purpose string) []byte {
	mac := hmac.New(sha256.New, k.secret[:])
	mac.Write([]byte(purpose))
	return mac.Sum(nil)
}

// String hides the key, so that no log line shows it.
func (k Key) String() string { return "keyring.Key(" + k.ID() + ")" }

// GoString hides the key, so that no log line shows it.
func (k Key) GoString() string { return k.String() }

// A Ring holds the keys of an installation. Several goroutines may use it.
type Ring struct{ keys atomic.Pointer[[]Key] }

// New makes a Ring. The first key is the current one; a key that is given twice is there once.
func New(keys ...Key) (*Ring, error) {
	r := &Ring{}
	return r, r.Set(keys)
}

// Set replaces all keys at once. On an error the ring keeps those that it has.
func (r *Ring) Set(keys []Key) error {
	var all []Key
	for _, k := range keys {
		i := slices.IndexFunc(all, func(other Key) bool { return other.id == k.id })
		switch {
		case i < 0:
			all = append(all, k)
		case all[i].secret != k.secret:
			return fmt.Errorf("keyring: two keys have the id %s", k.ID())
		}
	}
	if len(all) == 0 || len(all) > MaxKeys {
		return fmt.Errorf("keyring: %d keys: want 1 to %d", len(all), MaxKeys)
	}
	r.keys.Store(&all)
	return nil
}

// Keys returns all keys, the current one first. The caller must not change the list.
func (r *Ring) Keys() []Key { return *r.keys.Load() }

// Current returns the key that seals.
func (r *Ring) Current() Key { return r.Keys()[0] }

// Equal reports whether the ring holds these keys in this order.
func (r *Ring) Equal(keys []Key) bool { return slices.Equal(r.Keys(), keys) }

// The errors of Box.Open. A caller that tells a client which of them it was tells nothing secret.
var (
	ErrUnknownKey = errors.New("keyring: sealed with a key that is not in the ring")
	ErrForged     = errors.New("keyring: not sealed with a key of the ring, or changed since")
)

// Overhead is how many bytes longer what is sealed is than what it was made of.
const Overhead = idSize + 12 + 16

// A Box seals and opens for one purpose: key id ‖ nonce ‖ AES-256-GCM, with random nonces.
type Box struct {
	ring    *Ring
	purpose string
	aeads   sync.Map // [idSize]byte → cipher.AEAD: a key is derived once
}

// Box returns a Box for a purpose, which is a constant of the program with a version in it.
func (r *Ring) Box(purpose string) *Box { return &Box{ring: r, purpose: purpose} }

func (b *Box) aead(k Key) cipher.AEAD {
	if a, ok := b.aeads.Load(k.id); ok {
		return a.(cipher.AEAD)
	}
	block, err := aes.NewCipher(k.Derive(b.purpose))
	if err != nil {
		panic("keyring: " + err.Error()) // the size of the key is right
	}
	a, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic("keyring: " + err.Error()) // so is that of the block
	}
	b.aeads.Store(k.id, a)
	return a
}

// Seal encrypts plain with the current key. Open needs the same data.
func (b *Box) Seal(plain, data []byte) []byte {
	k := b.ring.Current()
	return b.aead(k).Seal(append(make([]byte, 0, Overhead+len(plain)), k.id[:]...), nil, plain, data)
}

// Open decrypts what Seal has made with any key of the ring.
func (b *Box) Open(sealed, data []byte) ([]byte, error) {
	if len(sealed) < Overhead {
		return nil, ErrForged
	}
	id := [idSize]byte(sealed)
	for _, k := range b.ring.Keys() {
		if k.id != id {
			continue
		}
		plain, err := b.aead(k).Open(nil, nil, sealed[idSize:], data)
		if err != nil {
			return nil, ErrForged
		}
		return plain, nil
	}
	return nil, ErrUnknownKey
}
