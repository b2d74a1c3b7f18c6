// SPDX-License-Identifier: Apache-2.0

package state

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/windows"
)

// place gives the file tmp the name path, unless that exists (fs.ErrExist).
func place(tmp, path string) error {
	from, err := windows.UTF16PtrFromString(tmp)
	if err != nil {
		return err
	}
	to, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return err
	}
	return windows.MoveFile(from, to)
}

// patience is for a file that another program has open without sharing it.
const patience = 5 * time.Second

var errOpen = errors.New("another program has it open: close it there, then try again")

// replace gives the file tmp the name path, in the place of what has it. A reader that
// has the old one open without sharing its deletion is waited for.
func replace(tmp, path string) error {
	for began := time.Now(); ; time.Sleep(2 * time.Millisecond) {
		err := os.Rename(tmp, path)
		if err == nil || !errors.Is(err, windows.ERROR_SHARING_VIOLATION) && !errors.Is(err, fs.ErrPermission) {
			return err
		}
		if time.Since(began) < patience {
			continue
		}
		if h, open := create(path, windows.DELETE, windows.OPEN_EXISTING); errors.Is(open, windows.ERROR_SHARING_VIOLATION) {
			return errOpen
		} else if open == nil {
			windows.CloseHandle(h)
		}
		return err
	}
}

// create opens a file that others may meanwhile read, write, rename and remove.
func create(path string, access, how uint32) (windows.Handle, error) {
	p, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return 0, err
	}
	const share = windows.FILE_SHARE_READ | windows.FILE_SHARE_WRITE | windows.FILE_SHARE_DELETE
	return windows.CreateFile(p, access, share, nil, how, windows.FILE_ATTRIBUTE_NORMAL|windows.FILE_FLAG_BACKUP_SEMANTICS, 0)
}

// Vacate frees the name of a file, which may be read or run meanwhile: nothing is put in the place of
// such a file, but it can have another name. It is removed, if not now, then by the next call.
func Vacate(path string) error {
	const mark = ".gone-"
	err := os.Rename(path, path+mark+rand.Text())
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	entries, _ := os.ReadDir(filepath.Dir(path))
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), filepath.Base(path)+mark) {
			_ = os.Remove(filepath.Join(filepath.Dir(path), e.Name()))
		}
	}
	return err
}

// openShared opens a file that another process may rename, replace or remove meanwhile, which
// package os keeps it from. One that is open and not shared is waited for.
func openShared(path string, flag int) (*os.File, error) {
	access, how := uint32(windows.GENERIC_READ), uint32(windows.OPEN_EXISTING)
	if flag&os.O_RDWR != 0 {
		access |= windows.GENERIC_WRITE
	}
	if flag&os.O_CREATE != 0 {
		how = windows.OPEN_ALWAYS
	}
	for began := time.Now(); ; time.Sleep(2 * time.Millisecond) {
		h, err := create(path, access, how)
		if err == nil {
			return os.NewFile(uintptr(h), path), nil
		}
		if !errors.Is(err, windows.ERROR_SHARING_VIOLATION) || time.Since(began) > patience {
			return nil, &fs.PathError{Op: "open", Path: path, Err: err}
		}
	}
}

func syncDir(string) error { return nil }

// lock locks path. With wait it waits until no other process holds path; the system frees it for a
// holder that dies. What is locked is a byte far behind the end: others may read and write the file.
func lock(path string, wait bool) (*os.File, error) {
	f, err := openShared(path, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, err
	}
	how := uint32(windows.LOCKFILE_EXCLUSIVE_LOCK)
	if !wait {
		how |= windows.LOCKFILE_FAIL_IMMEDIATELY
	}
	if err := windows.LockFileEx(windows.Handle(f.Fd()), how, 0, 1, 0, &windows.Overlapped{OffsetHigh: 1 << 30}); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
