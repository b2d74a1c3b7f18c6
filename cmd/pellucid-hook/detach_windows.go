// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os/exec"
	"syscall"
)

// detach has the process go on when the host ends. A host whose job object lets no process out ends it, and the next client starts another one.
func detach(cmd *exec.Cmd) {
	const detachedProcess, newGroup = 0x8, 0x200
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: detachedProcess | newGroup, HideWindow: true}
}
