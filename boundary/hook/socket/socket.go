// SPDX-License-Identifier: Apache-2.0

// Package socket carries events of an agent's host from a small client to a resident process, which answers them.
//
// The process listens at a Unix socket in a folder that its user alone may enter, so each side knows whose program the
// other one is. The name of the socket is a digest of the program, of the variables by which it finds its files, and of
// the version of the messages: a client never meets a process that would answer otherwise than the program beside it.
//
// A client sends "HOST BYTES\n" and an event of so many bytes. The answer is "+" once the event is there, later the number of
// bytes of the answer as 8 hexadecimal digits, and the answer. Whenever the connection ends before, the client does
// without: it runs the program.
package socket

import (
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/state"
)

// MaxEvent bounds an event, in bytes. One that is longer is cut behind the next byte, which shows it.
const MaxEvent = 32 << 20

// Times of an answer. Hosts wait for ten seconds.
const (
	AcceptWait = 2 * time.Second // in which a process has to take an event
	DecideWait = 6 * time.Second // in which an event has to be decided
)

// Enter makes the folder of the sockets the working directory, so that the address of a socket is only its name: paths of
// many folders are too long for one. It returns the folder.
func Enter() (string, error) {
	dir, err := state.Open()
	if err == nil {
		dir, err = dir.Sub("hook")
	}
	if err == nil {
		err = os.Chdir(dir.Path())
	}
	var info fs.FileInfo
	if err == nil {
		info, err = os.Stat(".")
	}
	switch {
	case err != nil:
		return "", fmt.Errorf("socket: %w", err)
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 || !isOurs(info):
		return "", fmt.Errorf("socket: %w: %q must belong to this user and be closed to others: run chmod 700 on it", state.ErrUnsafe, dir.Path())
	}
	return dir.Path(), nil
}

// StartedFile is the file that keeps clients from starting several processes for a socket. The process removes it once it
// listens.
func StartedFile(name string) string { return name + ".started" }
