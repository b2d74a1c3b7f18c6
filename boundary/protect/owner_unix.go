// SPDX-License-Identifier: Apache-2.0

//go:build unix

package protect

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// ours refuses a file whose owner is another user, unless this is root: what takes
// its place would not be theirs any more, and what it says not ours to run.
func ours(info fs.FileInfo) error {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || os.Geteuid() == 0 || int(st.Uid) == os.Geteuid() {
		return nil
	}
	return errors.New("it belongs to another user")
}

// keepOwner gives tmp the owner and the group of the file that it replaces.
func (f *file) keepOwner(tmp *os.File) error {
	want, ok := f.info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	now, err := tmp.Stat()
	if err != nil {
		return err
	}
	if st, ok := now.Sys().(*syscall.Stat_t); ok && st.Uid == want.Uid && st.Gid == want.Gid {
		return nil
	}
	return tmp.Chown(int(want.Uid), int(want.Gid)) // this may take bits of the mode away
}
