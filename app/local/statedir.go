// SPDX-License-Identifier: Apache-2.0

// Package local opens what one machine keeps: the state directory, the keys in it and a database.
package local

import (
	"crypto/rand"
	"encoding/hex"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/platform/keyring"
	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/record/index"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/record/sequence"
	"github.com/pellucid-mcp/pellucid/storage"
	"github.com/pellucid-mcp/pellucid/text/frame"
)

// OpenState opens the state directory.
func OpenState() (*state.Dir, error) {
	dir, err := state.Open()
	if err != nil {
		return nil, exit.With(exit.Config, err)
	}
	return dir, nil
}

// ChainKey authenticates records that wait for their signature.
func ChainKey(dir *state.Dir) (*sequence.ChainKey, error) {
	keys, err := Keys(dir)
	if err != nil {
		return nil, err
	}
	return sequence.NewChainKey(keys[0].Secret(), Secrets(keys[1:])...), nil
}

// IndexKey returns the key under which the index of a log finds persons and contents. It follows the keys of the
// installation, as far as KeyPoll says; where they cannot be read it stays as it is.
func IndexKey(dir *state.Dir) (func() *index.Key, error) {
	keys, err := Keys(dir)
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	now, looked := index.NewKey(keys[0].Secret(), Secrets(keys[1:])...), time.Now()
	return func() *index.Key {
		mu.Lock()
		defer mu.Unlock()
		if time.Since(looked) < KeyPoll {
			return now
		}
		looked = time.Now()
		if read, err := Keys(dir); err == nil && !slices.Equal(read, keys) {
			keys, now = read, index.NewKey(read[0].Secret(), Secrets(read[1:])...)
		}
		return now
	}, nil
}

// FenceKey is the installation's key of the fences, which verifies those of previous keys too.
func FenceKey(dir *state.Dir) (frame.Key, error) {
	ring, err := Ring(dir)
	if err != nil {
		return frame.Key{}, err
	}
	return FenceOf(ring), nil
}

// FenceOf is the key of the fences, as the ring is now.
func FenceOf(ring *keyring.Ring) frame.Key {
	var all []frame.Key
	for _, k := range ring.Keys() {
		f, err := frame.NewKey(k.Secret())
		if err != nil {
			panic("local: " + err.Error()) // the sizes are the same
		}
		all = append(all, f)
	}
	return all[0].Accepting(all[1:]...)
}

// Keyring finds the keys of a log: the one that is given, those of the state directory, and those that
// replicas share.
func Keyring(dir *state.Dir, given *ledger.Signer) (*sequence.Keyring, error) {
	out := &sequence.Keyring{Dir: dir, Given: given}
	if os.Getenv(KeyVar) == "" {
		return out, nil
	}
	keys, err := Keys(dir)
	if err != nil {
		return nil, err
	}
	out.Shared = Secrets(keys)
	return out, nil
}

// Carrier carries a log on for a verb, with a key that is given or those of the installation.
func Carrier(l *storage.Ledger, dir *state.Dir, given *ledger.Signer) (*sequence.Sequencer, error) {
	keys, err := Keyring(dir, given)
	if err != nil {
		return nil, err
	}
	return sequence.New(sequence.Options{Store: l, Keys: keys, Chain: l.Chain(), Seen: &sequence.Seen{Dir: dir}}), nil
}

// NewOrigin returns a name for a log that has not begun, which no other log has.
func NewOrigin() string {
	var b [8]byte
	rand.Read(b[:]) // never fails
	return "pellucid/" + hex.EncodeToString(b[:])
}
