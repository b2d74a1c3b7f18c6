package main

import (
	"encoding/hex"
	"fmt"
	"os"

	"github.com/pellucid-mcp/pellucid/internal/rules"
	"github.com/pellucid-mcp/pellucid/internal/state"
)

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
			return nil, withCode(exitConfig, err)
		}
		return key, nil
	}
	text, err := rules.Options{Getenv: os.LookupEnv}.Resolve(ref)
	if err != nil {
		return nil, withCode(exitConfig, fmt.Errorf("%s: %w", installKeyVar, err))
	}
	key, err := hex.DecodeString(text)
	if err != nil || len(key) != state.KeySize {
		return nil, withCode(exitConfig, fmt.Errorf("%s: what it refers to is not %d hexadecimal digits", installKeyVar, 2*state.KeySize))
	}
	return key, nil
}
