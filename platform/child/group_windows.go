// SPDX-License-Identifier: Apache-2.0

package child

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// group is a Job Object that ends its processes when its last handle is closed,
// which the system does for us however we end.
type group struct{ job, process windows.Handle }

var ntResumeProcess = windows.NewLazySystemDLL("ntdll.dll").NewProc("NtResumeProcess")

// startGroup starts the child suspended, so that it cannot start another
// before it belongs to the job.
func startGroup(cmd *exec.Cmd) (g group, err error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{
		CreationFlags: windows.CREATE_SUSPENDED | windows.CREATE_NEW_PROCESS_GROUP,
		HideWindow:    true,
	}
	if err = quoteForBatch(cmd); err != nil {
		return group{}, err
	}
	if g.job, err = newJob(); err != nil {
		return group{}, err
	}
	if err = cmd.Start(); err != nil {
		windows.CloseHandle(g.job)
		return group{}, err
	}
	if err = g.adopt(cmd.Process.Pid); err != nil {
		cmd.Process.Kill()
		cmd.Wait()
		g.close()
		return group{}, err
	}
	return g, nil
}

// quoteForBatch has cmd.exe run a command that is a batch file, with its arguments quoted for it.
func quoteForBatch(cmd *exec.Cmd) error {
	at := cmd.Path
	if !filepath.IsAbs(at) {
		at = filepath.Join(cmd.Dir, at)
	}
	at, err := filepath.Abs(at)
	if err != nil {
		return err
	}
	if found, err := exec.LookPath(at); err == nil { // with the ending that PATHEXT gives it
		at = found
	}
	if _, err := os.Stat(at); cmd.Err != nil || err != nil || !isBatch(at) {
		return nil // exec reports a file that is missing
	}
	system, err := windows.GetSystemDirectory()
	if err != nil {
		return err
	}
	cmd.Path = filepath.Join(system, "cmd.exe")
	cmd.SysProcAttr.CmdLine, err = batchLine(cmd.Path, at, cmd.Args[1:])
	return err
}

func newJob() (windows.Handle, error) {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return 0, err
	}
	info := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{
		BasicLimitInformation: windows.JOBOBJECT_BASIC_LIMIT_INFORMATION{
			LimitFlags: windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE,
		},
	}
	_, err = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)))
	if err != nil {
		windows.CloseHandle(job)
		return 0, err
	}
	return job, nil
}

func (g *group) adopt(pid int) (err error) {
	const access = windows.PROCESS_SET_QUOTA | windows.PROCESS_TERMINATE | windows.PROCESS_SUSPEND_RESUME | windows.SYNCHRONIZE
	if g.process, err = windows.OpenProcess(access, false, uint32(pid)); err != nil {
		return err
	}
	if err = windows.AssignProcessToJobObject(g.job, g.process); err != nil {
		return err
	}
	if err = ntResumeProcess.Find(); err != nil {
		return err
	}
	if status, _, _ := ntResumeProcess.Call(uintptr(g.process)); status != 0 {
		return windows.NTStatus(status)
	}
	return nil
}

// terminate has no counterpart for a program without a window: go on to kill.
func (g group) terminate() bool { return false }
func (g group) kill() bool      { return windows.TerminateJobObject(g.job, 1) == nil }

func (g group) close() {
	windows.CloseHandle(g.job)
	if g.process != 0 {
		windows.CloseHandle(g.process)
	}
}

func lockThread() {}

// waitEnd returns when the process has ended; false if it cannot tell.
func waitEnd(g group) bool {
	_, err := windows.WaitForSingleObject(g.process, windows.INFINITE)
	return err == nil
}

func reap(cmd *exec.Cmd, g group) Exit {
	g.kill()
	_ = cmd.Wait()
	return Exit{code: cmd.ProcessState.ExitCode()}
}
