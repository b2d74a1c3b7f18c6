// SPDX-License-Identifier: Apache-2.0

package state

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// KeySize is the size of a key in bytes.
const KeySize = 32

// Key returns the random key called name, making it on first use. However many
// processes ask at once, all get the same key. A key file of another size or
// open to other users is refused, not replaced: what was made with the old key
// would lose its meaning without a word.
func (d *Dir) Key(name string) ([]byte, error) {
	path, err := d.file(name)
	if err != nil {
		return nil, err
	}
	key, err := readKey(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err = makeKey(path); err == nil {
			key, err = readKey(path)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("state: key: %w", d.remedy(err))
	}
	return key, nil
}

func readKey(path string) ([]byte, error) {
	f, err := openShared(path, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	fi, err := private(f)
	if err != nil {
		return nil, err
	}
	if fi.Size() != KeySize {
		return nil, fmt.Errorf("%q has %d bytes, want %d: restore it from a backup, or remove it and lose what was made with it", path, fi.Size(), KeySize)
	}
	key := make([]byte, KeySize)
	if _, err := io.ReadFull(f, key); err != nil {
		return nil, err
	}
	return key, nil
}

// makeKey puts a complete key file in place unless one is there by then.
func makeKey(path string) error {
	key := make([]byte, KeySize)
	rand.Read(key) // never fails
	if err := put(path, key, nil, place); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncDir(filepath.Dir(path)) // by now the other process may not have done it
}
