// SPDX-License-Identifier: Apache-2.0

//go:build unix

package state

import (
	"errors"
	"os"
	"syscall"
)

const closeBeforeRename = false

// place gives the file tmp the name path, unless that exists (fs.ErrExist).
func place(tmp, path string) error { return os.Link(tmp, path) }

// replace gives the file tmp the name path, in the place of what has it.
func replace(tmp, path string) error { return os.Rename(tmp, path) }

// openShared opens a file that another process may replace meanwhile.
func openShared(path string) (*os.File, error) { return os.Open(path) }

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
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
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
