// SPDX-License-Identifier: Apache-2.0

//go:build unix

package listen

import (
	"bufio"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// inheritor is set in the process that TestInherited starts: it says what it has inherited, and serves one connection.
const inheritor = "PELLUCID_TEST_INHERITED"

// TestInherited: a process gets the socket that is meant for it, and no other.
func TestInherited(t *testing.T) {
	if os.Getenv(inheritor) != "" {
		inherit()
		return
	}
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	local, err := net.Listen("unix", t.TempDir()+"/s")
	if err != nil {
		t.Fatal(err)
	}
	defer local.Close()
	socket, err := tcp.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	other, err := local.(*net.UnixListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	for _, tt := range []struct {
		name, pid, fds string
		file           *os.File
		want           string
	}{
		{"ours", "$$", "1", socket, "socket " + tcp.Addr().String()},
		{"nothing", "", "", socket, "none"},
		{"of another process", "1", "1", socket, "none"},
		{"two", "$$", "2", socket, "error the process was started with \"2\" sockets (LISTEN_FDS), want 1: name one address in the socket unit"},
		{"no number", "$$", "x", socket, "error the process was started with \"x\" sockets (LISTEN_FDS), want 1: name one address in the socket unit"},
		{"not TCP", "$$", "1", other, "error the socket that the process was started with is not a TCP socket: use ListenStream= with a port"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cmd := exec.Command("sh", "-c", `LISTEN_PID=`+tt.pid+` LISTEN_FDS=`+tt.fds+` exec "$0" -test.run='^TestInherited$'`, os.Args[0])
			cmd.Env = append(os.Environ(), inheritor+"=1")
			cmd.ExtraFiles = []*os.File{tt.file}
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer cmd.Wait()
			line, err := bufio.NewReader(out).ReadString('\n')
			if got := strings.TrimSpace(line); err != nil || got != tt.want {
				t.Errorf("%q, %v, want %q", got, err, tt.want)
			}
			if !strings.HasPrefix(line, "socket ") {
				return
			}
			c, err := net.Dial("tcp", tcp.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if b, err := io.ReadAll(c); err != nil || string(b) != strconv.Itoa(cmd.Process.Pid) {
				t.Errorf("%q, %v: not from the process that has the socket", b, err)
			}
		})
	}
}

func inherit() {
	l, err := Inherited()
	switch {
	case err != nil:
		os.Stdout.WriteString("error " + err.Error() + "\n")
	case l == nil:
		os.Stdout.WriteString("none\n")
	case os.Getenv("LISTEN_PID") != "" || os.Getenv("LISTEN_FDS") != "":
		os.Stdout.WriteString("a server process would get the socket too\n")
	default:
		os.Stdout.WriteString("socket " + l.Addr().String() + "\n")
		if c, err := l.Accept(); err == nil {
			io.WriteString(c, strconv.Itoa(os.Getpid()))
			c.Close()
		}
	}
	os.Exit(0)
}
