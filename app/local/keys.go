// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/platform/keyring"
	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/platform/valueref"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// The keys of an installation. The key in install.key seals; every other one, in a file
// install-ID.key, only opens what it has sealed. Replicas have their keys from KeyVar instead.

// KeyVar names where replicas have their keys from: env:NAME or file:PATH of 64 hexadecimal digits
// each, with spaces between them, on one line. The first key seals. Without it a state directory has keys of
// its own.
const KeyVar = "PELLUCID_INSTALL_KEY"

const (
	CurrentKey = "install.key"
	otherKeys  = "install-" // and the id of the key, and .key
)

// KeysGiven reports whether the keys come from KeyVar.
func KeysGiven() bool { return os.Getenv(KeyVar) != "" }

// Keys are the keys of this installation, of which those of fences, session ids, sealed state and
// records that wait are derived. The first is the current one, which is made on first use.
func Keys(dir *state.Dir) ([]keyring.Key, error) {
	read := fileKeys
	if KeysGiven() {
		read = givenKeys
	}
	keys, err := read(dir)
	if err == nil {
		_, err = keyring.New(keys...)
	}
	if err != nil {
		return nil, exit.With(exit.Config, err)
	}
	return keys, nil
}

func givenKeys(*state.Dir) (keys []keyring.Key, err error) {
	text, err := valueref.Source{}.Resolve(os.Getenv(KeyVar))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", KeyVar, err)
	}
	for _, one := range strings.Fields(text) {
		secret, err := hex.DecodeString(one)
		if err != nil || len(secret) != keyring.KeySize {
			return nil, fmt.Errorf("%s: want keys of %d hexadecimal digits each, with spaces between them", KeyVar, 2*keyring.KeySize)
		}
		k, err := keyring.NewKey(secret)
		if err != nil {
			return nil, err
		}
		keys = append(keys, k)
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("%s: what it refers to is empty", KeyVar)
	}
	return keys, nil
}

func fileKeys(dir *state.Dir) ([]keyring.Key, error) {
	secret, err := dir.Key(CurrentKey)
	if err != nil {
		return nil, err
	}
	current, err := keyring.NewKey(secret)
	if err != nil {
		return nil, err
	}
	keys := []keyring.Key{current}
	names, err := dir.Names()
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if !strings.HasPrefix(name, otherKeys) || !strings.HasSuffix(name, ".key") {
			continue
		}
		secret, err := dir.Read(name, keyring.KeySize)
		if errors.Is(err, fs.ErrNotExist) {
			continue // retired meanwhile
		}
		if err != nil {
			return nil, err
		}
		k, err := keyring.NewKey(secret)
		if err != nil || keyFile(k) != name {
			return nil, fmt.Errorf("%s is not the key that its name says: remove it, or restore it from a backup", finding.Quote(dir.File(name)))
		}
		keys = append(keys, k)
	}
	return keys, nil
}

func keyFile(k keyring.Key) string { return otherKeys + k.ID() + ".key" }

// Ring is a ring of the installation's keys, which FollowKeys keeps up to date.
func Ring(dir *state.Dir) (*keyring.Ring, error) {
	keys, err := Keys(dir)
	if err != nil {
		return nil, err
	}
	return keyring.New(keys...)
}

// Secrets are the keys themselves.
func Secrets(keys []keyring.Key) (all [][]byte) {
	for _, k := range keys {
		all = append(all, k.Secret())
	}
	return all
}

// KeyPoll is how often a running process looks for changed keys. A new key is used only when every
// process must have seen it.
const KeyPoll = time.Second

// FollowKeys keeps the ring up to date until ctx ends. Where the keys cannot be read the ring stays as
// it is. changed, if not nil, is called with each new list.
func FollowKeys(ctx context.Context, dir *state.Dir, ring *keyring.Ring, log *slog.Logger, changed func([]keyring.Key)) {
	tick := time.NewTicker(KeyPoll)
	defer tick.Stop()
	failing := ""
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		keys, err := Keys(dir)
		if err == nil && !ring.Equal(keys) {
			if err = ring.Set(keys); err == nil {
				log.Info("the keys of the installation have changed", "current", keys[0].ID(), "keys", len(keys))
				if changed != nil {
					changed(keys)
				}
			}
		}
		text := ""
		if err != nil {
			text = err.Error()
		}
		if text != "" && text != failing {
			log.Error("the keys of the installation cannot be read: the previous ones stay in use", "error", err)
		}
		failing = text
	}
}

// errGiven is why a verb does not change the keys.
func errGiven(do string) error {
	return exit.With(exit.Usage, fmt.Errorf("keys: the keys come from %s: %s", KeyVar, do))
}

// RotateKey makes a new key and has it take over. Running processes learn of the new key first, and
// the function waits until they must know it, so that what one seals another opens.
func RotateKey(ctx context.Context, dir *state.Dir) (before, now keyring.Key, err error) {
	if KeysGiven() {
		return before, now, errGiven("add a new key behind the current one, restart or wait until every replica knows it (`pellucid doctor` shows the ids), then move it to the front, and remove the previous one when no session is as old")
	}
	unlock, err := dir.Lock("install.key.lock")
	if err != nil {
		return before, now, exit.With(exit.Config, err)
	}
	defer unlock.Close()
	keys, err := Keys(dir)
	if err != nil {
		return before, now, err
	}
	if len(keys) >= keyring.MaxKeys {
		return before, now, exit.With(exit.Failed, fmt.Errorf("keys: there are %d keys already: retire some first", len(keys)))
	}
	secret := make([]byte, keyring.KeySize)
	rand.Read(secret) // never fails
	if now, err = keyring.NewKey(secret); err != nil {
		return before, now, err
	}
	before = keys[0]
	if err := dir.Write(keyFile(now), secret); err != nil {
		return before, now, exit.With(exit.Config, err)
	}
	select {
	case <-time.After(3 * KeyPoll):
	case <-ctx.Done():
		return before, now, errors.Join(ctx.Err(), dir.Remove(keyFile(now)))
	}
	err = dir.Write(keyFile(before), before.Secret())
	if err == nil {
		err = dir.Write(CurrentKey, now.Secret())
	}
	if err == nil {
		err = dir.Remove(keyFile(now))
	}
	if err != nil {
		return before, now, exit.With(exit.Config, err)
	}
	return before, now, nil
}

// RetireKey removes a key that is not the current one. What it has sealed does not open any more.
func RetireKey(dir *state.Dir, id string) error {
	if KeysGiven() {
		return errGiven("remove the key there")
	}
	unlock, err := dir.Lock("install.key.lock")
	if err != nil {
		return exit.With(exit.Config, err)
	}
	defer unlock.Close()
	keys, err := Keys(dir)
	if err != nil {
		return err
	}
	for i, k := range keys {
		switch {
		case k.ID() != id:
		case i == 0:
			return exit.With(exit.Failed, errors.New("keys: this is the current key: rotate first"))
		default:
			if err := dir.Remove(keyFile(k)); err != nil {
				return exit.With(exit.Config, err)
			}
			return nil
		}
	}
	return exit.With(exit.Failed, fmt.Errorf("keys: no key has the id %s", finding.Quote(id)))
}
