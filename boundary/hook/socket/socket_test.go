// SPDX-License-Identifier: Apache-2.0

package socket

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// echo answers an event with itself, and refuses one of the host "no".
func echo(_ context.Context, host string, event []byte) []byte {
	if host == "no" {
		return nil
	}
	return event
}

func anyMemory(context.Context, int64) (func(), error) { return func() {}, nil }

// serve serves a socket in a folder of its own until the test ends. ended is closed when Serve has returned.
func serve(t *testing.T, o Options) (path string, stop func(), ended chan struct{}) {
	t.Helper()
	t.Setenv("PELLUCID_STATE", t.TempDir())
	work, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	folder, err := Enter()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Chdir(work) })
	if err := os.WriteFile(StartedFile("s"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := Listen(folder, "s", o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(StartedFile("s")); err == nil {
		t.Error("other clients still take it for one that starts")
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended = make(chan struct{})
	go func() {
		defer close(ended)
		if err := s.Serve(ctx); err != nil {
			t.Error(err)
		}
	}()
	return filepath.Join(folder, "s"), cancel, ended
}

func send(t *testing.T, request string) string {
	t.Helper()
	c, err := net.Dial("unix", "s")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write([]byte(request)); err != nil {
		t.Fatal(err)
	}
	answer, _ := io.ReadAll(c)
	return string(answer)
}

// TestServe: an event gets its answer whole, or the client hears that no answer comes.
func TestServe(t *testing.T) {
	path, stop, ended := serve(t, Options{Answer: echo, Reserve: anyMemory, Idle: time.Hour})
	for request, want := range map[string]string{
		"host 2\n{}":                  "+00000002{}",
		"host 0\n":                    "+00000000",
		"no 2\n{}":                    "+",
		"host -1\n":                   "",
		"host 33554434\n":             "",
		"host 99999999999999999999\n": "",
		"host x\n":                    "",
		strings.Repeat("a", 10_000):   "",
	} {
		if got := send(t, request); got != want {
			t.Errorf("%.40q: %q, want %q", request, got, want)
		}
	}
	stop()
	<-ended
	if _, err := os.Lstat(path); err == nil {
		t.Error("the socket is left")
	}
}

// TestServeEnds: a server ends when no event comes, and leaves the name to another one that has it by then.
func TestServeEnds(t *testing.T) {
	for name, other := range map[string]bool{"idle": false, "another": true} {
		t.Run(name, func(t *testing.T) {
			idle := 10 * time.Millisecond
			path, _, ended := serve(t, Options{Answer: echo, Reserve: anyMemory, Idle: idle})
			if other {
				if err := os.Remove(path); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			<-ended
			if _, err := os.Lstat(path); (err == nil) != other {
				t.Errorf("the name is left: %v", err)
			}
		})
	}
}

// TestServeBusy: an event for which there is no memory is left to the client before that gives up.
func TestServeBusy(t *testing.T) {
	reserve := func(ctx context.Context, n int64) (func(), error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	_, stop, _ := serve(t, Options{Answer: echo, Reserve: reserve, Idle: time.Hour})
	defer stop()
	began := time.Now()
	if got := send(t, "host 2\n{}"); got != "" || time.Since(began) > AcceptWait {
		t.Errorf("%q after %v", got, time.Since(began))
	}
}

// TestEnter: a folder that others may enter is refused.
func TestEnter(t *testing.T) {
	work, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	defer os.Chdir(work)
	state := t.TempDir()
	t.Setenv("PELLUCID_STATE", state)
	folder, err := Enter()
	if err != nil || folder != filepath.Join(state, "hook") {
		t.Fatal(folder, err)
	}
	if err := os.Chmod(folder, 0o711); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(folder); err == nil && info.Mode().Perm() == 0o711 {
		if _, err := Enter(); err == nil || !strings.Contains(err.Error(), "chmod 700") {
			t.Errorf("a folder that is open to others: %v", err)
		}
	}
}

// FuzzHandle: whatever a client sends, it gets its own event back, or nothing.
func FuzzHandle(f *testing.F) {
	for _, request := range []string{"host 2\n{}", "host 2\n{", "no 1\nx", "h 0\n", "h 1\n", "\n", "a b c\n", "h 33554433\nx", "h +1\nx", "h 0x1\nx"} {
		f.Add([]byte(request))
	}
	f.Fuzz(func(t *testing.T, request []byte) {
		s := &Server{options: Options{Answer: echo, Reserve: anyMemory}}
		client, server := net.Pipe()
		go s.handle(t.Context(), server)
		go func() {
			client.Write(request)
			client.SetReadDeadline(time.Now().Add(20 * time.Millisecond)) // of a request that is not whole
		}()
		answer, _ := io.ReadAll(client)
		client.Close()
		_, event, _ := bytes.Cut(request, []byte("\n"))
		if rest, is := bytes.CutPrefix(answer, []byte("+")); is && len(rest) > 0 {
			var n int
			if _, err := fmt.Sscanf(string(rest), "%08x", &n); err != nil || len(rest) != 8+n || !bytes.HasPrefix(event, rest[8:]) {
				t.Errorf("%q: %q", request, answer)
			}
		} else if len(answer) > 1 {
			t.Errorf("%q: %q", request, answer)
		}
	})
}
