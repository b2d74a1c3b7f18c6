// SPDX-License-Identifier: Apache-2.0

//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package child

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

func dieWithParent(*syscall.SysProcAttr) {}
func lockThread()                        {}

// endWithOwner does nothing here: the child of a killed owner reads the end of its input.
func (*group) endWithOwner() error { return nil }

// waitEnd returns when the child has ended, and leaves it to be reaped; false
// if it cannot tell.
func waitEnd(g group) bool {
	kq, err := unix.Kqueue()
	if err != nil {
		return false
	}
	defer unix.Close(kq)
	var change unix.Kevent_t
	unix.SetKevent(&change, g.pgid, unix.EVFILT_PROC, unix.EV_ADD|unix.EV_ONESHOT)
	change.Fflags = unix.NOTE_EXIT
	events := make([]unix.Kevent_t, 1)
	for {
		// ESRCH: it is a zombie already.
		if _, err := unix.Kevent(kq, []unix.Kevent_t{change}, events, nil); !errors.Is(err, unix.EINTR) {
			return true
		}
	}
}
