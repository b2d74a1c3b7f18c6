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

// A Keyring finds the keys of a log: those that were given by reference, and those
// that it derives from the secrets ledger.key, ledger-2.key, … of the state directory.
// The first of them is made on first use; each of several logs has a key of its own of
// the same secret.
type Keyring struct {
	Dir *state.Dir // nil: none
	// Given is a key from elsewhere. With it, no secret is made.
	Given *ledger.Signer
}

var _ Keys = (*Keyring)(nil)

// maxSecrets bounds how often keys were rotated.
const maxSecrets = 1000

// First implements Keys.
func (r *Keyring) First(origin string) (*ledger.Signer, error) {
	if r.Given != nil {
		return r.Given, nil
	}
	if r.Dir == nil {
		return nil, ErrNoKey
	}
	return r.derive(secretName(1), origin)
}

// Find implements Keys.
func (r *Keyring) Find(origin, keyid string) (*ledger.Signer, error) {
	if r.Given != nil && r.Given.Key().ID() == keyid {
		return r.Given, nil
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

// Next makes a key that the log has not had yet.
func (r *Keyring) Next(origin string) (*ledger.Signer, error) {
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
	seed, err := hkdf.Key(sha256.New, secret, nil, "pellucid ledger 1 "+origin, ed25519.SeedSize)
	if err != nil {
		return nil, fmt.Errorf("sequence: key: %w", err)
	}
	return ledger.NewSigner(origin, ed25519.NewKeyFromSeed(seed))
}
