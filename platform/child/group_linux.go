// SPDX-License-Identifier: Apache-2.0

package child

import (
	"errors"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// dieWithParent makes the system end the child when we are killed without a
// chance to stop it. It is bound to the starting thread: see Process.run.
func dieWithParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGTERM }

// lockThread is not undone: the thread ends with the goroutine, after the child.
func lockThread() { runtime.LockOSThread() }

// waitEnd returns when the child has ended, and leaves it to be reaped; false
// if it cannot tell.
func waitEnd(g group) bool {
	for {
		err := unix.Waitid(unix.P_PID, g.pgid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return err == nil
		}
	}
}
