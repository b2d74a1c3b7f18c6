// SPDX-License-Identifier: Apache-2.0

// Package install is what one machine, or one team of replicas, keeps: the state directory and its keys, the store, the records and the pins.
package install

import (
	"bytes"
	"slices"
	"sync"
	"time"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/grounding/attest"
	"github.com/pellucid-mcp/pellucid/platform/keyring"
	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/record/index"
	"github.com/pellucid-mcp/pellucid/record/sequence"
	"github.com/pellucid-mcp/pellucid/text/frame"
)

// Open opens the state directory.
func Open() (*state.Dir, error) {
	dir, err := state.Open()
	if err != nil {
		return nil, exit.With(exit.Config, err)
	}
	return dir, nil
}

// chainKey authenticates records that wait for their signature.
func chainKey(dir *state.Dir) (*sequence.ChainKey, error) {
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
			panic("install: " + err.Error()) // the sizes are the same
		}
		all = append(all, f)
	}
	return all[0].Accepting(all[1:]...)
}

// OperatorKey is the operator's own key for cascade events, made on first use. An
// adapter on the same state believes it.
func OperatorKey(dir *state.Dir) (attest.Key, error) {
	seed, err := dir.Key("operator.key")
	if err != nil {
		return attest.Key{}, exit.With(exit.Config, err)
	}
	return attest.GenerateKey(bytes.NewReader(seed))
}
