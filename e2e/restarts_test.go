// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/programtest"
)

// counted is what a client of TestRestarts says at its end.
type counted struct {
	Answered, Hung int
	Cut            int // sessions that the SDK has ended because a connection broke
	Errors, News   map[string]int
	Ended          string
}

// TestRestarts has clients of official SDKs call without pause while the gateway is restarted, by SIGTERM and
// SIGKILL in turn. Its socket outlives it, as one of systemd does. No session ends, and no call hangs. One exception
// is the Python SDK's, which fastmcp uses: it ends a session where a connection breaks before the first byte of an
// answer, which a SIGKILL can do, and then begins another. Inspector begins a session for each call, and so meets restarts within initialize.
// $PELLUCID_RESTARTS is the number of minutes; `make restarts` sets it.
func TestRestarts(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows hands no sockets over")
	}
	programtest.Need(t)
	modules, python := filepath.Join("..", ".tools", "e2e", "node_modules"), filepath.Join("..", ".tools", "python", "bin", "python")
	server := filepath.Join(modules, "@modelcontextprotocol", "server-everything", "dist", "index.js")
	for _, file := range []string{server, python} {
		if _, err := os.Stat(file); err != nil {
			t.Skip("`make peers` and `make python` install the SDKs")
		}
	}
	length, every := 36*time.Second, 12*time.Second
	if n, err := strconv.ParseFloat(os.Getenv("PELLUCID_RESTARTS"), 64); err == nil {
		length, every = time.Duration(n*float64(time.Minute)), 20*time.Second
	} else if testing.Short() {
		t.Skip("takes a minute")
	}
	in := newInstall(t)
	config := filepath.Join(t.TempDir(), "pellucid.yaml")
	absolute, err := filepath.Abs(server)
	if err != nil {
		t.Fatal(err)
	}
	text := "version: 1\nhttp: {rate: 0}\nservers: {everything: {command: [node, " + strconv.Quote(absolute) + ", stdio]}}\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	socket, err := l.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	start := func() *exec.Cmd {
		cmd := exec.Command(in.bin, "up", "-c", config)
		cmd.Env = in.env()
		// systemd writes the pid between fork and exec; a shell can do that too.
		cmd.Args = append([]string{"sh", "-c", `LISTEN_PID=$$ LISTEN_FDS=1 exec "$0" "$@"`}, append([]string{cmd.Path}, cmd.Args[1:]...)...)
		cmd.Path = "/bin/sh"
		cmd.ExtraFiles = []*os.File{socket}
		cmd.Stdin, cmd.Stdout, cmd.Stderr = nil, nil, nil
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	gateway := start()
	defer func() { _ = gateway.Process.Kill(); _ = gateway.Wait() }()

	url := fmt.Sprintf("http://%s/mcp/everything", l.Addr())
	seconds := strconv.Itoa(int(length.Seconds()))
	clients := map[string]*exec.Cmd{
		"python":     exec.Command(python, "-B", filepath.Join("python", "restarts.py"), "sdk", url, seconds),
		"fastmcp":    exec.Command(python, "-B", filepath.Join("python", "restarts.py"), "fastmcp", url, seconds),
		"typescript": exec.Command("node", filepath.Join("node", "restarts.mjs"), modules, url, seconds),
	}
	over := make(chan struct{})
	inspected := make(chan inspections, 1)
	inspector := newInspector(t, in, nil)
	go func() { inspected <- inspector.callUntil(t, url, over) }()
	said, done := map[string]*bytes.Buffer{}, make(chan error, len(clients))
	for name, cmd := range clients {
		said[name] = &bytes.Buffer{}
		cmd.Stdout = said[name]
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		defer cmd.Process.Kill()
		go func() { done <- cmd.Wait() }()
	}
	restarts := 0
	next := time.After(every)
	late := time.After(length + 2*time.Minute)
	for left := len(clients); left > 0; {
		select {
		case <-next:
			signal := []os.Signal{syscall.SIGTERM, syscall.SIGKILL}[restarts%2]
			restarts++
			_ = gateway.Process.Signal(signal)
			_ = gateway.Wait()
			gateway = start()
			if r, err := http.Get("http://" + l.Addr().String() + "/healthz"); err == nil { // the socket waits until the gateway has started
				r.Body.Close()
			}
			next = time.After(every)
		case <-done:
			left--
		case <-late:
			t.Fatal("the clients do not end")
		}
	}
	close(over)
	calls := <-inspected
	t.Logf("inspector: %d calls answered, errors %q", calls.answered, calls.errors)
	if calls.answered == 0 || len(calls.errors) > restarts {
		t.Errorf("inspector: %d calls answered, %d failed at %d restarts", calls.answered, len(calls.errors), restarts)
	}
	for name, out := range said {
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		var c counted
		if err := json.Unmarshal([]byte(lines[len(lines)-1]), &c); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		t.Logf("%s: %d restarts, %d calls answered, %d sessions cut, errors %v, news %v", name, restarts, c.Answered, c.Cut, c.Errors, c.News)
		if kills := restarts / 2; c.Cut > kills {
			t.Errorf("%s: %d sessions ended at %d SIGKILLs", name, c.Cut, kills)
		}
		if c.Ended != "" || c.Hung > 0 || c.Answered == 0 {
			t.Errorf("%s: ended %.1500s, %d calls hung", name, c.Ended, c.Hung)
		}
		failed := 0
		for _, n := range c.Errors {
			failed += n
		}
		if failed > 2*restarts { // the call under way, and the one after it, whose connection was idle
			t.Errorf("%s: %d calls failed at %d restarts", name, failed, restarts)
		}
	}
}

// inspections are what the calls of Inspector came to.
type inspections struct {
	answered int
	errors   []string
}

// callUntil has Inspector call once after the other, each call in a session of its own, until over.
func (i *inspector) callUntil(t *testing.T, url string, over <-chan struct{}) (all inspections) {
	for n := 0; ; n++ {
		select {
		case <-over:
			return all
		case <-t.Context().Done():
			return all
		case <-time.After(time.Second): // its start takes as much of the machine as hundreds of calls
		}
		out, err := i.command(t.Context(), url, "--transport", "http",
			"--method", "tools/call", "--tool-name", "echo", "--tool-arg", fmt.Sprintf("message=call %d", n)).CombinedOutput()
		if err == nil && strings.Contains(string(out), fmt.Sprintf("call %d", n)) {
			all.answered++
		} else {
			all.errors = append(all.errors, fmt.Sprintf("%v: %.200s", err, out))
		}
	}
}
