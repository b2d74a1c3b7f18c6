// SPDX-License-Identifier: Apache-2.0

//go:build unix

package terminal

import (
	"context"
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

func obeysEscapes(*os.File) bool { return true }

// unreadEvery is after how long a watch looks whether it is still wanted.
const unreadEvery = 200 * time.Millisecond

// Unread waits until what is written to f has no reader any more, as a pipe whose other end is closed, and
// reports true; or false, when ctx ends or that cannot be known. Nothing is written.
func Unread(ctx context.Context, f *os.File) bool {
	raw, err := f.SyscallConn()
	if err != nil {
		return false
	}
	for ctx.Err() == nil {
		gone, failed := false, false
		err := raw.Control(func(fd uintptr) {
			list := []unix.PollFd{{Fd: int32(fd)}} // without an event: errors are told in any case
			n, err := unix.Poll(list, int(unreadEvery.Milliseconds()))
			gone = n > 0 && list[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0
			failed = err != nil && !errors.Is(err, unix.EINTR) || n > 0 && !gone
		})
		switch {
		case gone:
			return true
		case failed, err != nil:
			return false
		}
	}
	return false
}
