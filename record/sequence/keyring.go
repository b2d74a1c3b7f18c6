// SPDX-License-Identifier: Apache-2.0

package sequence

import (
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/record/ledger"
)

// A Keyring finds the keys of a log: the one that was given by reference; those that are derived from
// the keys of the installation, which all replicas share; and those that are derived from the secrets
// ledger.key, ledger-2.key, … of the state directory. The first of the secrets is made on first use.
// Each of several logs has a key of its own of the same secret.
type Keyring struct {
	Dir *state.Dir // nil: none
	// Given is a key from elsewhere. A new log begins with it, and no secret is made.
	Given *ledger.Signer
	// Shared are the keys of an installation that has replicas, the current one first. Without Given,
	// a new log begins with the first of them, and no secret is made.
	Shared [][]byte
}

var _ Keys = (*Keyring)(nil)

// maxSecrets bounds how often keys were rotated.
const maxSecrets = 1000

// First implements Keys.
func (r *Keyring) First(origin string) (*ledger.Signer, error) {
	switch {
	case r.Given != nil:
		return r.Given, nil
	case len(r.Shared) > 0:
		return derived(r.Shared[0], shared, origin)
	case r.Dir == nil:
		return nil, ErrNoKey
	}
	return r.derive(secretName(1), origin)
}

// Find implements Keys.
func (r *Keyring) Find(origin, keyid string) (*ledger.Signer, error) {
	if r.Given != nil && r.Given.Key().ID() == keyid {
		return r.Given, nil
	}
	for _, secret := range r.Shared {
		if key, err := derived(secret, shared, origin); err != nil || key.Key().ID() == keyid {
			return key, err
		}
	}
	for n := 1; r.Dir != nil && n <= maxSecrets; n++ {
		if !r.has(n) {
			break
		}
		key, err := r.derive(secretName(n), origin)
		if err != nil || key.Key().ID() == keyid {
			return key, err
		}
	}
	return nil, ErrNoKey
}

// errSharedNext: a key of the state directory would be on one machine alone.
var errSharedNext = errors.New("sequence: the log has the key of the installation already: rotate that first, or give another key")

// Next returns a key that takes over from the present one: that of the installation where replicas
// share one, else a new one of the state directory.
func (r *Keyring) Next(origin, present string) (*ledger.Signer, error) {
	if len(r.Shared) > 0 {
		key, err := derived(r.Shared[0], shared, origin)
		if err == nil && key.Key().ID() == present {
			return nil, errSharedNext
		}
		return key, err
	}
	if r.Dir == nil {
		return nil, ErrNoKey
	}
	for n := 1; n <= maxSecrets; n++ {
		if !r.has(n) {
			return r.derive(secretName(n), origin)
		}
	}
	return nil, errors.New("sequence: too many keys")
}

func secretName(n int) string {
	if n == 1 {
		return "ledger.key"
	}
	return fmt.Sprintf("ledger-%d.key", n)
}

func (r *Keyring) has(n int) bool {
	_, err := os.Stat(filepath.Join(r.Dir.Path(), secretName(n)))
	return !errors.Is(err, fs.ErrNotExist)
}

func (r *Keyring) derive(name, origin string) (*ledger.Signer, error) {
	secret, err := r.Dir.Key(name)
	if err != nil {
		return nil, err
	}
	return derived(secret, own, origin)
}

// The purposes of derived keys.
const (
	own    = "pellucid ledger 1 "
	shared = "pellucid ledger of an installation 1 "
)

func derived(secret []byte, purpose, origin string) (*ledger.Signer, error) {
	seed, err := hkdf.Key(sha256.New, secret, nil, purpose+origin, ed25519.SeedSize)
	if err != nil {
		return nil, fmt.Errorf("sequence: key: %w", err)
	}
	return ledger.NewSigner(origin, ed25519.NewKeyFromSeed(seed))
}
