// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/boundary/hook/socket"
)

// Times of a process that stays.
const (
	startWait  = time.Second             // in which it should listen: clients wait for it
	startAgain = 10 * time.Second        // after which another one is started, if it does not listen
	answerWait = 7500 * time.Millisecond // in which it has to answer: behind it there is still time to run pellucid hook
)

// version is that of the messages.
const version = "1"

// socketName returns the name of the socket at which a process of the program answers for clients with these variables. The
// working directory counts if apart: a variable of ours may be a relative path.
func socketName(program string, environ []string, workDir string) (name string, apart bool, err error) {
	info, err := os.Stat(program)
	if err != nil {
		return "", false, err
	}
	sum := fnv.New64a()
	fmt.Fprintln(sum, version, program, info.Size(), info.ModTime().UnixNano())
	environ = slices.Sorted(slices.Values(environ))
	for _, v := range environ {
		name, _, _ := strings.Cut(v, "=")
		ours := strings.HasPrefix(name, "PELLUCID_")
		if apart = apart || ours; ours || slices.Contains(folders, name) {
			fmt.Fprintln(sum, v)
		}
	}
	if apart {
		fmt.Fprintln(sum, workDir)
	}
	return fmt.Sprintf("%016x", sum.Sum64()), apart, nil
}

// folders are the variables by which a program finds its files.
var folders = []string{"APPDATA", "HOME", "LOCALAPPDATA", "USERPROFILE", "XDG_CONFIG_HOME", "XDG_STATE_HOME"}

// sendEvent returns the answer of the process at a socket of the working directory to an event of the host. If none
// listens, one of all clients calls start, and the others wait for it. On an error the client has to do without the process.
func sendEvent(name, host string, event []byte, began time.Time, start func() error) ([]byte, error) {
	c, err := connect(name, start)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return exchange(c, host, event, began)
}

func dial(name string) (net.Conn, error) { return net.DialTimeout("unix", name, socket.AcceptWait) }

func connect(name string, start func() error) (net.Conn, error) {
	c, err := dial(name)
	if err == nil {
		return c, nil
	}
	f, err := os.OpenFile(socket.StartedFile(name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return awaitStart(name)
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		return nil, err
	}
	if c, err := dial(name); err == nil { // meanwhile another client has started it
		return c, os.Remove(socket.StartedFile(name))
	}
	_ = os.Remove(name) // of a process that was killed
	removeStale()
	return nil, errors.Join(errStarted, start())
}

// removeStale removes the sockets of other processes that were killed.
func removeStale() {
	entries, _ := os.ReadDir(".")
	for _, e := range entries {
		if e.Type()&fs.ModeSocket != 0 {
			if c, err := dial(e.Name()); err != nil {
				_ = os.Remove(e.Name())
			} else {
				c.Close()
			}
		}
	}
}

var errStarted = errors.New("a process was started just now")

func awaitStart(name string) (c net.Conn, err error) {
	for wait := time.Millisecond; ; wait = min(2*wait, 20*time.Millisecond) {
		if c, err = dial(name); err == nil {
			return c, nil
		}
		info, gone := os.Stat(socket.StartedFile(name))
		if gone != nil {
			return dial(name)
		}
		switch age := time.Since(info.ModTime()).Abs(); {
		case age > startAgain:
			return nil, errors.Join(err, os.Remove(socket.StartedFile(name)))
		case age > startWait:
			return nil, err
		}
		time.Sleep(wait)
	}
}

// exchange asks the process at the other end of c. A process that does not take the event in time loses its name, so that
// the next client starts another one.
func exchange(c net.Conn, host string, event []byte, began time.Time) ([]byte, error) {
	err := c.SetDeadline(time.Now().Add(socket.AcceptWait))
	if err == nil {
		_, err = c.Write(fmt.Appendf(nil, "%s %d\n", host, len(event)))
	}
	if err == nil {
		_, err = c.Write(event)
	}
	var head [1 + 8]byte
	if err == nil {
		_, err = io.ReadFull(c, head[:1])
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil, errors.Join(err, os.Remove(c.RemoteAddr().String()))
	}
	if err == nil {
		err = c.SetDeadline(began.Add(answerWait))
	}
	if err == nil {
		_, err = io.ReadFull(c, head[1:])
	}
	var n uint32
	if err == nil {
		_, err = fmt.Sscanf(string(head[:]), "+%08x", &n)
	}
	if err != nil {
		return nil, err
	}
	answer, err := io.ReadAll(io.LimitReader(c, int64(n)))
	if err == nil && len(answer) < int(n) {
		err = io.ErrUnexpectedEOF
	}
	return answer, err
}
