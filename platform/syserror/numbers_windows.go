// SPDX-License-Identifier: Apache-2.0

package syserror

import (
	"syscall"

	"golang.org/x/sys/windows"
)

const (
	inUse    = windows.WSAEADDRINUSE
	notHere  = windows.WSAEADDRNOTAVAIL
	refused  = windows.WSAECONNREFUSED
	timedOut = windows.WSAETIMEDOUT
)

var lost = []syscall.Errno{windows.WSAECONNRESET, windows.WSAECONNABORTED, windows.ERROR_BROKEN_PIPE, windows.ERROR_NO_DATA}
