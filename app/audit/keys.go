// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"golang.org/x/mod/sumdb/note"

	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/app/local"
	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/storage"
)

// keysOf are the public keys that the records of a log name, in the order of the records.
func keysOf(ctx context.Context, l *storage.Ledger) ([]*ledger.Key, error) {
	keys, err := l.Keys(ctx)
	if err == nil && len(keys) == 0 {
		err = install.ErrNoLog
	}
	return keys, err
}

// errFirst says that the log has a first record that names no key.
var errFirst = errors.New("ledger: the first record of the log does not name its key")

// firstKey is the key that the first record of the log names.
func firstKey(ctx context.Context, l *storage.Ledger) (*ledger.Key, error) {
	list, err := l.Entries(ctx, 0, 1)
	if errors.Is(err, ledger.ErrNotFound) {
		return nil, install.ErrNoLog
	} else if err != nil {
		return nil, err
	}
	st, err := ledger.UnverifiedStatement(list[0])
	if err != nil {
		return nil, errFirst
	}
	k, err := ledger.ParseKey(st.Key)
	if err != nil {
		return nil, errFirst
	}
	return k, nil
}

// NewKey makes a key for a log: its private half as evidence.key takes it, and its public half.
func NewKey(origin string) (private, public string, err error) {
	if !ledger.ValidOrigin(origin) {
		return "", "", errors.New("ledger: keygen: the name of a log is a label without +, such as example.com/log")
	}
	private, public, err = note.GenerateKey(rand.Reader, origin)
	if err != nil {
		return "", "", fmt.Errorf("ledger: keygen: %w", err)
	}
	return private, public, nil
}

// A Rotation is the record of a change of keys, and the public key that signs from then on.
type Rotation struct {
	Index int64  `json:"index"`
	Key   string `json:"key"`
}

// Rotate has another key sign the log. keys are asked for the present one and for the next one
// once there is a log: nil stands for a key of the state directory.
func Rotate(ctx context.Context, l *storage.Ledger, dir *state.Dir, keys func() (old, next *ledger.Signer, err error)) (*Rotation, error) {
	head, err := l.Head(ctx)
	if err != nil {
		return nil, err
	}
	ring, err := local.Keyring(dir, nil)
	if err != nil {
		return nil, err
	}
	old, next, err := keys()
	if err != nil {
		return nil, err
	}
	if next == nil {
		if next, err = ring.Next(head.Origin, head.Signer); err != nil {
			return nil, err
		}
	}
	seq, err := local.Carrier(l, dir, old)
	if err != nil {
		return nil, err
	}
	index, err := seq.Rotate(ctx, next)
	if err != nil {
		return nil, err
	}
	return &Rotation{index, next.Key().String()}, nil
}
