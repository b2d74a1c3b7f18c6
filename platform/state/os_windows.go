// SPDX-License-Identifier: Apache-2.0

package state

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// closeBeforeRename: Windows renames no file that is open.
const closeBeforeRename = true

// place gives the file tmp the name path, unless that exists (fs.ErrExist).
func place(tmp, path string) error {
	from, err := syscall.UTF16PtrFromString(tmp)
	if err != nil {
		return err
	}
	to, err := syscall.UTF16PtrFromString(path)
	if err != nil {
		return err
	}
	return syscall.MoveFile(from, to)
}

// replace gives the file tmp the name path, in the place of what has it. A reader that
// has the old one open without sharing its deletion is waited for.
func replace(tmp, path string) error {
	for began := time.Now(); ; time.Sleep(2 * time.Millisecond) {
		err := os.Rename(tmp, path)
		if err == nil || !errors.Is(err, errSharing) && !errors.Is(err, fs.ErrPermission) || time.Since(began) > lockPatience {
			return err
		}
	}
}

// openShared opens a file that another process may replace meanwhile: not while its
// rename is under way.
func openShared(path string) (*os.File, error) {
	for began := time.Now(); ; time.Sleep(2 * time.Millisecond) {
		f, err := os.Open(path)
		if err == nil || !errors.Is(err, errSharing) || time.Since(began) > lockPatience {
			return f, err
		}
	}
}

func syncDir(string) error { return nil }

const (
	lockPatience       = 5 * time.Second
	errSharing         = syscall.Errno(32) // ERROR_SHARING_VIOLATION
	errLockUnavailable = syscall.Errno(33) // ERROR_LOCK_VIOLATION
)

// lock locks path. With wait it waits until no other process holds path, which is held by opening it
// and sharing nothing.
func lock(path string, wait bool) (*os.File, error) {
	p, err := syscall.UTF16PtrFromString(path)
	if err != nil {
		return nil, err
	}
	for began := time.Now(); ; time.Sleep(2 * time.Millisecond) {
		h, err := syscall.CreateFile(p, syscall.GENERIC_READ|syscall.GENERIC_WRITE, 0, nil, syscall.OPEN_ALWAYS, syscall.FILE_ATTRIBUTE_NORMAL, 0)
		if err == nil {
			return os.NewFile(uintptr(h), path), nil
		}
		if !errors.Is(err, errSharing) && !errors.Is(err, errLockUnavailable) || !wait || time.Since(began) > lockPatience {
			return nil, err
		}
	}
}
