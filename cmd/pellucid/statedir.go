// SPDX-License-Identifier: Apache-2.0

package main

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

// openState opens the state directory.
func openState() (*state.Dir, error) {
	dir, err := state.Open()
	if err != nil {
		return nil, exit.With(exit.Config, err)
	}
	return dir, nil
}

// installKeyVar names where replicas have their one key from: env:NAME or file:PATH of
// 64 hexadecimal digits. Without it a state directory has a key of its own.
const installKeyVar = "PELLUCID_INSTALL_KEY"

// installKey is the secret of this installation, of which the keys of fences and of
// sealed state are made.
func installKey(dir *state.Dir) ([]byte, error) {
	ref := os.Getenv(installKeyVar)
	if ref == "" {
		key, err := dir.Key("install.key")
		if err != nil {
			return nil, exit.With(exit.Config, err)
		}
		return key, nil
	}
	text, err := rules.Options{Getenv: os.LookupEnv}.Resolve(ref)
	if err != nil {
		return nil, exit.With(exit.Config, fmt.Errorf("%s: %w", installKeyVar, err))
	}
	key, err := hex.DecodeString(text)
	if err != nil || len(key) != state.KeySize {
		return nil, exit.With(exit.Config, fmt.Errorf("%s: what it refers to is not %d hexadecimal digits", installKeyVar, 2*state.KeySize))
	}
	return key, nil
}

// chainKey authenticates records that wait for their signature.
func chainKey(dir *state.Dir) (*sequence.ChainKey, error) {
	secret, err := installKey(dir)
	if err != nil {
		return nil, err
	}
	return sequence.NewChainKey(secret), nil
}

// fenceKey is the installation's key of the fences.
func fenceKey(dir *state.Dir) (frame.Key, error) {
	secret, err := installKey(dir)
	if err != nil {
		return frame.Key{}, err
	}
	return frame.NewKey(secret)
}

// operatorKey is the operator's own key for cascade events, made on first use. An
// adapter on the same state believes it.
func operatorKey(dir *state.Dir) (attest.Key, error) {
	seed, err := dir.Key("operator.key")
	if err != nil {
		return attest.Key{}, exit.With(exit.Config, err)
	}
	return attest.GenerateKey(bytes.NewReader(seed))
}
