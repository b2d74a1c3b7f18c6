// SPDX-License-Identifier: Apache-2.0

//go:build unix

package socket

import (
	"io/fs"
	"os"
	"syscall"
)

// isOurs reports whether a file belongs to this user.
func isOurs(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}
