// SPDX-License-Identifier: Apache-2.0

//go:build unix

package listen

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"syscall"
)

// firstInherited is the number of the first descriptor that a parent hands over.
const firstInherited = 3

// Inherited returns the socket that the process was started with, by the protocol of systemd's socket
// units (LISTEN_PID, LISTEN_FDS); nil if there is none. The socket outlives the process: connections
// that come while the program restarts wait, and are not refused. Server processes that this program
// starts do not get it.
func Inherited() (net.Listener, error) {
	pid, fds := os.Getenv("LISTEN_PID"), os.Getenv("LISTEN_FDS")
	if pid == "" || pid != strconv.Itoa(os.Getpid()) {
		return nil, nil
	}
	for _, name := range []string{"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"} {
		os.Unsetenv(name)
	}
	if fds != "1" {
		return nil, fmt.Errorf("the process was started with %q sockets (LISTEN_FDS), want 1: name one address in the socket unit", fds)
	}
	syscall.CloseOnExec(firstInherited)
	f := os.NewFile(firstInherited, "inherited socket")
	defer f.Close() // the listener has its own
	l, err := net.FileListener(f)
	if err != nil {
		return nil, fmt.Errorf("the socket that the process was started with cannot be listened on: %w", err)
	}
	if _, is := l.Addr().(*net.TCPAddr); !is {
		l.Close()
		return nil, fmt.Errorf("the socket that the process was started with is not a TCP socket: use ListenStream= with a port")
	}
	return l, nil
}
