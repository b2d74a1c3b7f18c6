// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"
)

const (
	exitFailed      = 1
	exitUsage       = 2
	exitUnreachable = 4
	exitRejected    = 11
)

// operator checks what a person is told: something, in plain characters.
func operator(t *testing.T, stderr string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(stderr, w) {
			t.Errorf("stderr does not say %q: %+q", w, stderr[max(0, len(stderr)-1000):])
		}
	}
	isClean(t, "stderr", stderr)
	if !utf8.ValidString(stderr) {
		t.Error("stderr is not UTF-8")
	}
}

// hostile starts a helper behind Pellucid and shakes hands with it.
func hostile(t *testing.T, role string) *session {
	t.Helper()
	m := mark()
	t.Cleanup(func() { gone(t, m) })
	s := start(t, newInstall(t).wrap(role, helperServer(t, role, m)...))
	s.initializeWith(`{}`)
	return s
}

const (
	misbehaveNow = `{"name":"size","arguments":{"n":-1}}`
	behave       = `{"name":"size","arguments":{"n":100}}`
)

func TestCannotStart(t *testing.T) {
	t.Parallel()
	in := newInstall(t)
	file := t.TempDir() + "/not-a-program"
	if err := os.WriteFile(file, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := "http://" + closed.Addr().String() + "/mcp"
	closed.Close()
	for _, c := range []struct {
		name string
		args []string
		code int
	}{
		{"unknown command", []string{"--name", "x", "--", "no-such-program-\u202e\x1b[31m"}, exitUnreachable},
		{"not executable", []string{"--name", "x", "--", file}, exitUnreachable},
		{"nobody listens", []string{"--name", "x", "--url", nobody}, exitUnreachable},
		{"no such host", []string{"--name", "x", "--url", "http://no-such-host.invalid/mcp"}, exitUnreachable},
		{"not a URL", []string{"--name", "x", "--url", "http://[::1"}, exitUsage},
		{"no server", []string{"--name", "x"}, exitUsage},
		{"two servers", []string{"--url", nobody, "--", "true"}, exitUsage},
		{"unknown profile", []string{"--profile", "lax", "--", "true"}, exitUsage},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := start(t, in.command(c.args...))
			if c.code == exitUnreachable {
				_, answer := s.request("initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"e2e","version":"1"}}`)
				if m, err := s.wait(answer); err == nil && m.Error == nil {
					t.Errorf("initialize: %+q, want an error", m.Result)
				} else if err != nil && !errors.Is(err, errGone) {
					t.Error(err)
				}
			}
			if code := s.code(); code != c.code {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
			operator(t, s.stderr.String(), "pellucid")
		})
	}
}

func TestServerDies(t *testing.T) {
	t.Parallel()
	t.Run("in the middle of a line", func(t *testing.T) {
		t.Parallel()
		s := hostile(t, "dying")
		m := s.call("tools/call", misbehaveNow)
		if m.Error == nil {
			t.Errorf("the call succeeded: %+q", m.Result)
		}
		if code := s.code(); code != exitFailed {
			t.Errorf("exit code %d, want %d", code, exitFailed)
		}
		operator(t, s.stderr.String(), "exit code 3")
	})
	t.Run("killed in mid-call", func(t *testing.T) {
		t.Parallel()
		m := mark()
		s := start(t, newInstall(t).wrap("everything", npmServer(t, "everything", "stdio", m)...))
		s.initializeWith(`{}`)
		_, answer := s.request("tools/call", `{"name":"trigger-long-running-operation","arguments":{"duration":30,"steps":3}}`)
		for _, pid := range survivors(m) {
			if pid != s.cmd.Process.Pid {
				kill(pid)
			}
		}
		r, err := s.wait(answer)
		if err != nil || r.Error == nil {
			t.Errorf("answer %+q, %v; want an error", r.Result, err)
		}
		if code := s.code(); code != exitFailed {
			t.Errorf("exit code %d, want %d", code, exitFailed)
		}
		operator(t, s.stderr.String(), "SIGKILL")
		gone(t, m)
	})
}

// TestHTTPServerDies: the same where the server is not Pellucid's child.
func TestHTTPServerDies(t *testing.T) {
	t.Parallel()
	url, server := httpEverything(t)
	s := start(t, newInstall(t).command("--name", "everything", "--url", url))
	s.initializeWith(`{}`)
	_, answer := s.request("tools/call", `{"name":"trigger-long-running-operation","arguments":{"duration":30,"steps":3}}`)
	s.result("ping", "")
	server.Kill()
	if m, err := s.wait(answer); err != nil || m.Error == nil {
		t.Errorf("answer %+q, %v; want an error", m.Result, err)
	}
	_, answer = s.request("tools/list", "")
	if m, err := s.wait(answer); err == nil && m.Error == nil {
		t.Errorf("a dead server answers %+q", m.Result)
	}
	code := s.exit()
	operator(t, s.stderr.String())
	t.Logf("exit code %d, stderr %q", code, s.stderr.tail())
}

// TestClientLeaves: however the client goes, nothing of the server stays.
func TestClientLeaves(t *testing.T) {
	t.Parallel()
	t.Run("closes its end", func(t *testing.T) {
		t.Parallel()
		m := mark()
		s := start(t, newInstall(t).wrap("everything", npmServer(t, "everything", "stdio", m)...))
		s.initialize()
		begin := time.Now()
		if code := s.exit(); code != 0 {
			t.Errorf("exit code %d, want 0", code)
		}
		t.Logf("ended after %v", time.Since(begin).Round(time.Millisecond))
		gone(t, m)
	})
	t.Run("closes its end in mid-call", func(t *testing.T) {
		t.Parallel()
		m := mark()
		s := start(t, newInstall(t).command(append([]string{"--name", "silent", "--timeout", "2s", "--"}, helperServer(t, "silent", m)...)...))
		t.Cleanup(func() { gone(t, m) })
		s.initializeWith(`{}`)
		s.request("tools/call", misbehaveNow)
		if code := s.exit(); code != 0 {
			t.Errorf("exit code %d, want 0", code)
		}
	})
	t.Run("of a server that will not go", func(t *testing.T) {
		t.Parallel()
		s := hostile(t, "stubborn") // ignores SIGTERM, and has a child
		if code := s.exit(); code != 0 {
			t.Errorf("exit code %d, want 0", code)
		}
	})
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		t.Run("signal "+strconv.Itoa(int(sig)), func(t *testing.T) {
			t.Parallel()
			s := hostile(t, "stubborn")
			s.cmd.Process.Signal(sig)
			s.code() // that it ends is what counts
		})
	}
	// The TypeScript and Python SDKs close the input, wait two seconds, ask, wait
	// two seconds and kill.
	for name, call := range map[string]string{"as SDKs do": "", "as SDKs do, in mid-call": misbehaveNow} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := hostile(t, "stubborn")
			if call != "" {
				s.request("tools/call", call)
			}
			s.in.Close()
			for _, sig := range []os.Signal{syscall.SIGTERM, os.Kill} {
				select {
				case <-s.exited:
				case <-time.After(2 * time.Second):
					s.cmd.Process.Signal(sig)
				}
			}
			s.code()
		})
	}
	t.Run("killed", func(t *testing.T) {
		t.Parallel()
		s := hostile(t, "silent")
		s.cmd.Process.Kill()
		s.code()
	})
}

// TestBabble: what a server says unasked reaches no client, and no terminal raw.
func TestBabble(t *testing.T) {
	t.Parallel()
	s := hostile(t, "babbler")
	s.result("tools/call", behave)
	if len(s.other) > 0 {
		t.Errorf("the client got %+q", s.other)
	}
	for _, m := range s.notes {
		t.Errorf("the client got %s %+q", m.Method, m.Params)
	}
	if code := s.exit(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	operator(t, s.stderr.String())
	t.Logf("%d bytes of stderr from 3 MB", len(s.stderr.String()))
}

// TestLongLine: a message beyond the limit is refused, by either side, and
// the session goes on.
func TestLongLine(t *testing.T) {
	t.Parallel()
	t.Run("from the server", func(t *testing.T) {
		s := hostile(t, "huge")
		m := s.call("tools/call", misbehaveNow)
		if m.Error == nil {
			t.Errorf("100 MB came through: %d bytes", len(m.Result))
		}
		s.result("tools/call", behave)
		t.Logf("peak %d MiB", peak(t, s)>>20)
		if code := s.exit(); code != 0 {
			t.Errorf("exit code %d, want 0", code)
		}
		operator(t, s.stderr.String())
	})
	t.Run("without end", func(t *testing.T) {
		s := hostile(t, "endless")
		m := s.call("tools/call", misbehaveNow)
		if m.Error == nil {
			t.Errorf("%d bytes came through", len(m.Result))
		}
		t.Logf("peak %d MiB", peak(t, s)>>20)
		s.exit()
	})
	t.Run("from the client", func(t *testing.T) {
		s := hostile(t, "size")
		s.send(`{"jsonrpc":"2.0","id":900,"method":"tools/call","params":{"x":"` + strings.Repeat("a", 100<<20) + `"}}`)
		s.result("tools/call", behave)
		t.Logf("peak %d MiB", peak(t, s)>>20)
		if code := s.exit(); code != 0 {
			t.Errorf("exit code %d, want 0", code)
		}
	})
}

// TestUnreadableList: a server whose list is no message, or too long for one, is rejected
// once, in words that are no server's, and its operator is told which list it was.
func TestUnreadableList(t *testing.T) {
	t.Parallel()
	for role, why := range map[string]string{
		"lie-huge":   "surface-too-large: tools/list",
		"lie-broken": "surface-not-json: tools/list",
		"lie-many":   "surface-too-large: tools/list",
	} {
		t.Run(role, func(t *testing.T) {
			m := mark()
			t.Cleanup(func() { gone(t, m) })
			s := start(t, newInstall(t).wrap("x", helperServer(t, role, m)...))
			got := s.call("initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"e2e","version":"1"}}`)
			if want := `{"code":7603,"message":"pellucid: the server is rejected, its operator knows why"}`; string(got.Error) != want {
				t.Errorf("%s", got.outcome())
			}
			if code := s.code(); code != exitRejected { // although the client is still there
				t.Errorf("exit code %d, want %d", code, exitRejected)
			}
			operator(t, s.stderr.String(), "server rejected", why)
			if lines := strings.Count(s.stderr.String(), "\n"); lines > 3 {
				t.Errorf("%d lines for one rejection", lines)
			}
		})
	}
}

// TestBrokenClient: what a client must not send is answered, not passed on.
func TestBrokenClient(t *testing.T) {
	t.Parallel()
	s := hostile(t, "size")
	for _, line := range []string{
		"not json", "{", "\x00", "[]", `{"jsonrpc":"2.0","id":null,"method":"ping"}`,
		`{"jsonrpc":"2.0","id":901,"id":902,"method":"ping"}`,
		`{"jsonrpc":"2.0","id":1.5,"method":"ping"}`,
		`{"jsonrpc":"2.0","id":903,"Method":"ping"}`,
		`{"jsonrpc":"2.0","id":904,"method":"ping"} trailing`,
		`{"jsonrpc":"2.0","id":905,"method":"p` + "\xff" + `"}`,
		`{"jsonrpc":"2.0","id":4711,"result":{}}`,
		strings.Repeat("[", 100000),
	} {
		s.send(line)
	}
	s.result("tools/call", behave)
	for _, line := range s.other {
		var m message
		if err := json.Unmarshal([]byte(line), &m); err != nil || m.Error == nil {
			t.Errorf("the client got %+q", line)
		}
	}
	if len(s.other) < 8 {
		t.Errorf("%d errors came: %+q", len(s.other), s.other)
	}
	if code := s.exit(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
}

// peak is the largest resident size of the process so far, in bytes; 0 where
// the system does not say.
func peak(t *testing.T, s *session) int {
	t.Helper()
	return status(s.cmd.Process.Pid, "VmHWM:")
}

func status(pid int, field string) int {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0
	}
	_, rest, _ := bytes.Cut(b, []byte(field))
	words := bytes.Fields(rest)
	if len(words) == 0 {
		return 0
	}
	n, _ := strconv.Atoi(string(words[0]))
	return n << 10
}
