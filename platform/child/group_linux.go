// SPDX-License-Identifier: Apache-2.0

package child

import (
	"errors"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// dieWithParent makes the system kill the child when the starting thread ends: see Process.run. It works before
// endWithOwner has run, and on a system without such signals.
func dieWithParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGKILL }

// endWithOwner makes the system kill the whole group when this process has ended for any reason. Only this process
// has the two ends of a pipe, and it uses neither; the system closes one of them first and signals the owner of
// the other, which is the group. No process has to watch, and the child can neither see nor close them.
func (g *group) endWithOwner() error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	g.ends = [2]*os.File{r, w}
	for _, f := range g.ends {
		_, owner := unix.FcntlInt(f.Fd(), unix.F_SETOWN, -g.pgid)
		_, sig := unix.FcntlInt(f.Fd(), unix.F_SETSIG, int(unix.SIGKILL))
		flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFL, 0)
		if owner == nil && sig == nil && err == nil { // else the system has no such signals
			_, _ = unix.FcntlInt(f.Fd(), unix.F_SETFL, flags|unix.O_ASYNC)
		}
	}
	return nil
}

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
