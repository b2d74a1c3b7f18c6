// SPDX-License-Identifier: Apache-2.0

// Package keychain keeps small secrets of this program in the keychain of the system: the
// Keychain of macOS, the Credential Manager of Windows, the Secret Service of Linux and BSD.
package keychain

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/zalando/go-keyring"
)

// The errors of this package, to be compared with errors.Is. No other is returned, so nothing
// of the keychain's own words is repeated.
var (
	ErrAbsent   = errors.New("keychain: this session has no keychain")
	ErrNotFound = errors.New("keychain: it does not hold this secret")
	ErrLocked   = errors.New("keychain: it is locked, or does not answer")
)

// service names this program in the keychain.
const service = "pellucid"

// Here reports whether this session can have a keychain at all. It asks no other program.
func Here() bool {
	switch runtime.GOOS {
	case "darwin", "windows":
		return true
	}
	if os.Getenv("DBUS_SESSION_BUS_ADDRESS") != "" {
		return true
	}
	// Where the variable is missing, a client of D-Bus would start a bus of its own, without a keychain.
	dir := os.Getenv("XDG_RUNTIME_DIR")
	if dir == "" {
		return false
	}
	_, err := os.Stat(filepath.Join(dir, "bus"))
	return err == nil
}

// Get returns the secret of an account. The keychain may ask the user to unlock it, so it gets
// wait to answer.
func Get(account string, wait time.Duration) (string, error) {
	var secret string // not the result: a late answer must not write into it
	err := within(wait, func() (err error) {
		secret, err = keyring.Get(service, account)
		return err
	})
	if err != nil {
		return "", err
	}
	return secret, nil
}

// Set stores the secret of an account, in the place of one that is there.
func Set(account, secret string, wait time.Duration) error {
	return within(wait, func() error { return keyring.Set(service, account, secret) })
}

// within calls do in a goroutine of its own: a keychain that asks its user answers when the user
// does. The result of a call that takes too long is dropped.
func within(wait time.Duration, do func() error) error {
	if !Here() {
		return ErrAbsent
	}
	done := make(chan error, 1)
	go func() { done <- do() }()
	late := time.NewTimer(wait)
	defer late.Stop()
	select {
	case err := <-done:
		switch {
		case err == nil:
			return nil
		case errors.Is(err, keyring.ErrNotFound):
			return ErrNotFound
		case errors.Is(err, keyring.ErrUnsupportedPlatform), noService(err):
			return ErrAbsent
		}
		return ErrLocked
	case <-late.C:
		return ErrLocked
	}
}
