// SPDX-License-Identifier: Apache-2.0

// Package privacy makes files for their owner alone, and says who else may use a file.
//
// On Unix the mode of a file says so, on Windows its access list. A list that is made here admits
// the user and the system, and what the directory above admits does not count. A disk without
// access lists, such as FAT, has none, and a network share may refuse one.
package privacy

import (
	"errors"
	"io/fs"
	"os"
)

// OpenFile is os.OpenFile with mode 0600: a file that it makes is for its owner alone.
func OpenFile(name string, flag int) (*os.File, error) {
	const mode = 0o600
	if flag&os.O_CREATE != 0 && flag&os.O_EXCL == 0 {
		f, err := OpenFile(name, flag|os.O_EXCL)
		if err == nil || !errors.Is(err, fs.ErrExist) {
			return f, err
		}
	}
	f, err := os.OpenFile(name, flag, mode)
	if err == nil && flag&os.O_EXCL != 0 {
		if err = Restrict(name); err != nil {
			return nil, errors.Join(err, f.Close(), os.Remove(name))
		}
	}
	return f, err
}

// WriteFile is os.WriteFile with mode 0600: a file that it makes is for its owner alone.
func WriteFile(name string, data []byte) error {
	f, err := OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}
