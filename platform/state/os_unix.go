// SPDX-License-Identifier: Apache-2.0

//go:build unix

package state

import (
	"errors"
	"os"
	"syscall"
)

// place gives the file tmp the name path, unless that exists (fs.ErrExist).
func place(tmp, path string) error { return os.Link(tmp, path) }

// replace gives the file tmp the name path, in the place of what has it.
func replace(tmp, path string) error { return os.Rename(tmp, path) }

// Vacate frees the name of a file where the system puts none in the place of one that is read or run.
func Vacate(string) error { return nil }

// openShared opens a file that another process may rename, replace or remove meanwhile.
func openShared(path string, flag int) (*os.File, error) { return os.OpenFile(path, flag, 0o600) }

func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// lock locks path. With wait it waits until no other process holds path; the system frees it for a
// holder that dies.
func lock(path string, wait bool) (*os.File, error) {
	f, err := openShared(path, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, err
	}
	how := syscall.LOCK_EX
	if !wait {
		how |= syscall.LOCK_NB
	}
	for {
		if err = syscall.Flock(int(f.Fd()), how); !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
