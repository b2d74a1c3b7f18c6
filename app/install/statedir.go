// SPDX-License-Identifier: Apache-2.0

// Package install is what one machine, or one team of replicas, keeps: the state directory and its keys, the store, the records and the pins.
package install

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"os"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/grounding/attest"
	"github.com/pellucid-mcp/pellucid/platform/state"
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

// KeyVar names where replicas have their one key from: env:NAME or file:PATH of
// 64 hexadecimal digits. Without it a state directory has a key of its own.
const KeyVar = "PELLUCID_INSTALL_KEY"

// Key is the secret of this installation, of which the keys of fences and of
// sealed state are made.
func Key(dir *state.Dir) ([]byte, error) {
	ref := os.Getenv(KeyVar)
	if ref == "" {
		key, err := dir.Key("install.key")
		if err != nil {
			return nil, exit.With(exit.Config, err)
		}
		return key, nil
	}
	text, err := rules.Options{Getenv: os.LookupEnv}.Resolve(ref)
	if err != nil {
		return nil, exit.With(exit.Config, fmt.Errorf("%s: %w", KeyVar, err))
	}
	key, err := hex.DecodeString(text)
	if err != nil || len(key) != state.KeySize {
		return nil, exit.With(exit.Config, fmt.Errorf("%s: what it refers to is not %d hexadecimal digits", KeyVar, 2*state.KeySize))
	}
	return key, nil
}

// chainKey authenticates records that wait for their signature.
func chainKey(dir *state.Dir) (*sequence.ChainKey, error) {
	secret, err := Key(dir)
	if err != nil {
		return nil, err
	}
	return sequence.NewChainKey(secret), nil
}

// FenceKey is the installation's key of the fences.
func FenceKey(dir *state.Dir) (frame.Key, error) {
	secret, err := Key(dir)
	if err != nil {
		return frame.Key{}, err
	}
	return frame.NewKey(secret)
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

// FactcheckSeed is what the keys of validators are made of that have no key of their own:
// those of imported fact checks.
func FactcheckSeed(dir *state.Dir) (seed [32]byte, err error) {
	b, err := dir.Key("factcheck.key")
	if err != nil {
		return seed, exit.With(exit.Config, err)
	}
	copy(seed[:], b)
	return seed, nil
}
