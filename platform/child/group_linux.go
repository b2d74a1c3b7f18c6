// SPDX-License-Identifier: Apache-2.0

package child

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// ownerFile is the number of the descriptor in the child that [diesWithOwner] gives it: past those that shells use
// and that Node.js hides from its own children.
const ownerFile = 50

// diesWithOwner has the system kill the group of the child once this process is gone, however it ended: the child
// inherits the reading end of a pipe whose writing end, the result, is here alone, and when that closes the system
// signals the group of started (fcntl F_SETOWN and F_SETSIG). No process has to watch. A child that closes what it
// inherits is ended alone, by the parent-death signal, which tells of the end of the starting thread: see Process.run.
func diesWithOwner(cmd *exec.Cmd) (here *os.File, started func(), err error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	cmd.ExtraFiles = make([]*os.File, ownerFile-2)
	cmd.ExtraFiles[ownerFile-3] = r
	return w, func() {
		defer r.Close()
		if cmd.Process == nil {
			return
		}
		// A system without these calls, as a sandbox, is left with the parent-death signal.
		_, _ = unix.FcntlInt(r.Fd(), unix.F_SETOWN, -cmd.Process.Pid)
		_, _ = unix.FcntlInt(r.Fd(), unix.F_SETSIG, int(unix.SIGKILL))
		if flags, err := unix.FcntlInt(r.Fd(), unix.F_GETFL, 0); err == nil {
			_, _ = unix.FcntlInt(r.Fd(), unix.F_SETFL, flags|unix.O_ASYNC)
		}
	}, nil
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
