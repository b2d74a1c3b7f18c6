// SPDX-License-Identifier: Apache-2.0

//go:build !windows

package syserror

import "syscall"

const (
	inUse    = syscall.EADDRINUSE
	notHere  = syscall.EADDRNOTAVAIL
	refused  = syscall.ECONNREFUSED
	timedOut = syscall.ETIMEDOUT
)

var lost = []syscall.Errno{syscall.ECONNRESET, syscall.EPIPE}
