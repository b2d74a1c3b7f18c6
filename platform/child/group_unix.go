// SPDX-License-Identifier: Apache-2.0

//go:build unix

package child

import (
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// group is the process group that the child leads.
type group struct {
	pgid int
	ends [2]*os.File // of the pipe by which the group ends with this process
}

func startGroup(cmd *exec.Cmd) (group, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(cmd.SysProcAttr)
	if err := cmd.Start(); err != nil {
		return group{}, err
	}
	g := group{pgid: cmd.Process.Pid}
	if err := g.endWithOwner(); err != nil {
		reap(cmd, g)
		return group{}, err
	}
	return g, nil
}

// terminate reports whether there is a point in waiting.
func (g group) terminate() bool { return unix.Kill(-g.pgid, unix.SIGTERM) == nil }
func (g group) kill() bool      { return unix.Kill(-g.pgid, unix.SIGKILL) == nil }
func (g group) close()          { closeAll(g.ends[:]...) }

// reap collects the ended child and ends what is left of its group.
func reap(cmd *exec.Cmd, g group) Exit {
	g.kill()
	// The state says all that there is to say; an error only repeats it.
	_ = cmd.Wait()
	if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return Exit{code: -1, signal: unix.SignalName(ws.Signal())}
	}
	return Exit{code: cmd.ProcessState.ExitCode()}
}
