// SPDX-License-Identifier: Apache-2.0

//go:build unix

package child

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/pellucid-mcp/pellucid/platform/waittest"
)

// TestMain makes the test binary play the children.
func TestMain(m *testing.M) {
	if role := os.Getenv("CHILD_ROLE"); role != "" {
		os.Exit(play(role))
	}
	goleak.VerifyTestMain(m)
}

func play(role string) int {
	switch role {
	case "echo":
		io.Copy(os.Stdout, os.Stdin)
		return 0
	case "exit7":
		fmt.Println("last words")
		return 7
	case "env":
		env := os.Environ()
		slices.Sort(env)
		fmt.Println(strings.Join(env, "\n"))
		return 0
	case "cwd":
		d, _ := os.Getwd()
		fmt.Println(d)
		return 0
	case "deaf": // hears neither the end of input nor SIGTERM
		signal.Ignore(syscall.SIGTERM)
		fmt.Println("ready")
		time.Sleep(time.Hour)
	case "polite": // ends on SIGTERM only
		c := make(chan os.Signal, 1)
		signal.Notify(c, syscall.SIGTERM)
		fmt.Println("ready")
		<-c
		return 3
	case "flood":
		for range 100_000 {
			os.Stderr.WriteString("noise\n")
		}
		os.Stderr.WriteString(strings.Repeat("x", 1<<20))
		return 0
	case "stderr":
		os.Stderr.WriteString("plain\n\x1b[31mred\u202e\xff\\\r\n\nunended")
		return 0
	case "parent", "parent-exits": // a grandchild shares stdout
		g := exec.Command(os.Args[0])
		g.Env = append(os.Environ(), "CHILD_ROLE=deaf")
		g.Stdout = os.Stdout
		if err := g.Start(); err != nil {
			return 1
		}
		fmt.Println("grandchild", g.Process.Pid)
		if role == "parent" {
			io.Copy(io.Discard, os.Stdin)
		}
		return 0
	case "chatter":
		signal.Ignore(syscall.SIGPIPE) // it outlives whoever read it
		for range 600 {
			fmt.Println("still here")
			fmt.Fprintln(os.Stderr, "still here")
			time.Sleep(20 * time.Millisecond)
		}
		return 0
	case "daemon", "daemon-chatter": // a grandchild in a session of its own keeps stdout
		g := exec.Command(os.Args[0])
		g.Env = append(os.Environ(), "CHILD_ROLE=deaf")
		if role == "daemon-chatter" {
			g.Env = append(os.Environ(), "CHILD_ROLE=chatter")
			g.Stderr = os.Stderr
		}
		g.Stdout = os.Stdout
		g.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := g.Start(); err != nil {
			return 1
		}
		fmt.Println("grandchild", g.Process.Pid)
		return 0
	case "family": // ignores every signal, like its grandchild; neither inherits a descriptor
		signal.Ignore(syscall.SIGTERM, syscall.SIGIO, syscall.SIGHUP)
		g := exec.Command("/bin/sh", "-c", `trap "" TERM IO HUP; "$0" & wait; exec sleep 3600`, os.Args[0])
		g.Env = append(os.Environ(), "CHILD_ROLE=deaf")
		pids, _ := g.StdoutPipe() // not that of the family: it does not end it by EPIPE
		for fd := 10; fd < 256; fd++ {
			syscall.CloseOnExec(fd)
		}
		if g.Start() != nil {
			return 1
		}
		bufio.NewReader(pids).ReadString('\n') // the grandchild is ready
		fmt.Println("leader", os.Getpid())
		time.Sleep(time.Hour)
	case "owner": // starts a child from a thread that ends, and is killed
		var p *Process
		var wg sync.WaitGroup
		wg.Go(func() {
			runtime.LockOSThread() // and never unlocks it: the thread ends with the goroutine
			p, _ = Start(Command{Args: []string{os.Args[0]}, Env: []string{"CHILD_ROLE=family"}})
		})
		wg.Wait()
		if p == nil {
			return 1
		}
		leader, _ := bufio.NewReader(p.Stdout).ReadString('\n')
		for range 20 {
			wg.Go(runtime.LockOSThread)
		}
		wg.Wait()
		fmt.Print(leader)
		select {}
	}
	return 99
}

func start(t *testing.T, role string, c Command) *Process {
	t.Helper()
	c.Args = []string{os.Args[0]}
	// A binary built for coverage complains on stderr without GOCOVERDIR.
	c.Env = append(c.Env, "CHILD_ROLE="+role, "GOCOVERDIR="+t.TempDir())
	p, err := Start(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		p.Stop(ctx)
		p.Stdout.Close()
	})
	return p
}

func within(t *testing.T, d time.Duration, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(d):
		t.Fatalf("%s took more than %v", what, d)
	}
}

func line(t *testing.T, r io.Reader) string {
	t.Helper()
	s, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(s)
}

func alive(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return syscall.Kill(pid, 0) == nil && !os.IsNotExist(err)
	}
	_, after, _ := strings.Cut(string(b), ") ")
	return !strings.HasPrefix(after, "Z")
}

func gone(t *testing.T, pid int) {
	t.Helper()
	waittest.Until(t, fmt.Sprintf("process %d has ended", pid), func() bool { return !alive(pid) })
}

func pidOf(t *testing.T, s string) int {
	t.Helper()
	f := strings.Fields(s)
	pid, err := strconv.Atoi(f[len(f)-1])
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// grandchildOf returns the id that the child tells. The grandchild has the same
// standard output, and may be heard first.
func grandchildOf(t *testing.T, br *bufio.Reader) int {
	t.Helper()
	for {
		s, err := br.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(s, "grandchild") {
			return pidOf(t, s)
		}
	}
}

func TestEchoThenStop(t *testing.T) {
	p := start(t, "echo", Command{CloseWait: time.Minute}) // a busy machine may stop the child for a while
	io.WriteString(p.Stdin, "hello\n")
	if got := line(t, p.Stdout); got != "hello" {
		t.Errorf("echo = %q", got)
	}
	e, ok := p.Stop(t.Context())
	if want := (Exit{code: 0, stage: stdinEnd}); e != want || !ok {
		t.Errorf("Stop = %+v, %v; want %+v", e, ok, want)
	}
	if e2, _ := p.Stop(t.Context()); e2 != e {
		t.Errorf("second Stop = %+v", e2)
	}
}

func TestEnds(t *testing.T) {
	quick := Command{CloseWait: 50 * time.Millisecond, TermWait: 50 * time.Millisecond}
	slow := Command{CloseWait: 50 * time.Millisecond, TermWait: 10 * time.Second}
	for _, tt := range []struct {
		role string
		cmd  Command
		want Exit
	}{
		{"deaf", quick, Exit{code: -1, signal: "SIGKILL", stage: killed}},
		{"polite", slow, Exit{code: 3, stage: terminated}},
	} {
		t.Run(tt.role, func(t *testing.T) {
			p := start(t, tt.role, tt.cmd)
			line(t, p.Stdout)
			within(t, 30*time.Second, "Stop", func() {
				if e, ok := p.Stop(t.Context()); e != tt.want || !ok {
					t.Errorf("Stop = %+v, %v; want %+v", e, ok, tt.want)
				}
			})
		})
	}
}

func TestStopHasteners(t *testing.T) {
	p := start(t, "deaf", Command{CloseWait: time.Hour, TermWait: time.Hour})
	line(t, p.Stdout)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	within(t, 30*time.Second, "Stop with an ended context", func() { p.Stop(ctx) })
}

func TestEndsByItself(t *testing.T) {
	p := start(t, "exit7", Command{})
	all, err := io.ReadAll(p.Stdout)
	if err != nil || string(all) != "last words\n" {
		t.Errorf("stdout = %q, %v", all, err)
	}
	if e, want := p.Exit(), (Exit{code: 7, stage: byItself}); e != want {
		t.Errorf("Exit = %+v, want %+v", e, want)
	}
}

func TestGrandchildrenDie(t *testing.T) {
	for _, role := range []string{"parent", "parent-exits"} {
		t.Run(role, func(t *testing.T) {
			p := start(t, role, Command{})
			pid := grandchildOf(t, bufio.NewReader(p.Stdout))
			within(t, 30*time.Second, "Stop", func() { p.Stop(t.Context()) })
			gone(t, pid)
		})
	}
}

// What escaped the group keeps the pipes, silent or not, and still nobody waits for it.
func TestEscapedGrandchildHoldsNobody(t *testing.T) {
	for _, role := range []string{"daemon", "daemon-chatter"} {
		t.Run(role, func(t *testing.T) {
			p := start(t, role, Command{drain: 300 * time.Millisecond})
			br := bufio.NewReader(p.Stdout)
			pid := grandchildOf(t, br)
			defer syscall.Kill(pid, syscall.SIGKILL)
			within(t, 30*time.Second, "end of stdout", func() { io.Copy(io.Discard, br) })
			within(t, 30*time.Second, "Exit", func() { p.Exit() })
			if !alive(pid) {
				t.Error("the grandchild was to outlive its parent here: the test shows nothing")
			}
		})
	}
}

// TestOutputAfterPause: what a child wrote last is read, although this process was stopped
// until the pipe's deadline was over.
func TestOutputAfterPause(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close() // as a grandchild has it open
	done := make(chan struct{})
	defer close(done)
	o := &output{f: r, done: done, limit: drainLimit}
	defer o.Close()
	io.WriteString(w, "last words")
	if err := r.SetReadDeadline(time.Now().Add(-time.Second)); err != nil {
		t.Skip(err)
	}
	if b, err := io.ReadAll(o); string(b) != "last words" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
}

// TestGroupDiesWithOwner kills an owner, time and again. Its child, a shell and that one's child end, which hear
// neither the end of their input nor another signal.
func TestGroupDiesWithOwner(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("elsewhere a child gets the end of its input")
	}
	for range 10 {
		owner := exec.Command(os.Args[0])
		owner.Env = append(os.Environ(), "CHILD_ROLE=owner")
		out, err := owner.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := owner.Start(); err != nil {
			t.Fatal(err)
		}
		leader := strings.Fields(line(t, out))[1]
		group := func() (n int) {
			stats, _ := filepath.Glob("/proc/[0-9]*/stat")
			for _, name := range stats {
				b, _ := os.ReadFile(name)
				_, after, _ := strings.Cut(string(b), ") ")
				if f := strings.Fields(after); len(f) > 2 && f[2] == leader && f[0] != "Z" {
					n++
				}
			}
			return n
		}
		if n := group(); n != 3 {
			t.Errorf("%d processes before the owner's end, want 3", n)
		}
		owner.Process.Kill()
		owner.Wait()
		waittest.Until(t, "no process of the group is left", func() bool { return group() == 0 })
	}
}

// BenchmarkStart is what a child costs, from its start to its end.
func BenchmarkStart(b *testing.B) {
	for b.Loop() {
		p, err := Start(Command{Args: []string{"/bin/true"}})
		if err != nil {
			b.Fatal(err)
		}
		p.Exit()
		p.Stdin.Close()
		p.Stdout.Close()
	}
}

func TestEnvironment(t *testing.T) {
	t.Setenv("PELLUCID_TEST_SECRET", "s3cret")
	t.Setenv("PELLUCID_TEST_WANTED", "yes")
	t.Setenv("LANG", "C.UTF-8")
	p := start(t, "env", Command{Inherit: []string{"PELLUCID_TEST_WANTED"}, Env: []string{"EXTRA=1"}})
	all, _ := io.ReadAll(p.Stdout)
	got := strings.Split(strings.TrimSpace(string(all)), "\n")
	for _, kv := range []string{"EXTRA=1", "LANG=C.UTF-8", "PELLUCID_TEST_WANTED=yes"} {
		if !slices.Contains(got, kv) {
			t.Errorf("%s is missing", kv)
		}
	}
	for _, kv := range got {
		name, _, _ := strings.Cut(kv, "=")
		if n, _ := need(runtime.GOOS, name); n == nil && !slices.Contains([]string{"EXTRA", "PELLUCID_TEST_WANTED", "CHILD_ROLE", "GOCOVERDIR"}, name) {
			t.Errorf("%s was passed on unasked", name)
		}
	}
}

func TestWorkingDirectory(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p := start(t, "cwd", Command{Dir: dir})
	if got := line(t, p.Stdout); got != dir {
		t.Errorf("working directory = %q, want %q", got, dir)
	}
}

type lines struct {
	mu  sync.Mutex
	all []string
}

func (l *lines) add(s string) { l.mu.Lock(); l.all = append(l.all, s); l.mu.Unlock() }
func (l *lines) get() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.all)
}

func TestStderrIsEscaped(t *testing.T) {
	var got lines
	p := start(t, "stderr", Command{Stderr: got.add})
	p.Exit()
	want := []string{"plain", `\x1b[31mred\u202e\xff\\`, "unended"}
	waittest.Until(t, "every line came", func() bool { return len(got.get()) >= len(want) })
	if !slices.Equal(got.get(), want) {
		t.Errorf("stderr = %q, want %q", got.get(), want)
	}
}

func TestStderrFlood(t *testing.T) {
	var got lines
	p := start(t, "flood", Command{Stderr: got.add})
	began := time.Now()
	within(t, 30*time.Second, "a flooding child", func() { p.Exit() })
	var all []string
	waittest.Until(t, "the last line, which comes once the pipe has been silent", func() bool {
		all = got.get()
		return len(all) >= stderrBurst && strings.HasSuffix(all[len(all)-1], "]")
	})
	if len(all) < stderrBurst || float64(len(all)) > stderrBurst+400+stderrRate*time.Since(began).Seconds() {
		t.Errorf("%d lines came through", len(all))
	}
	if last := all[len(all)-1]; !strings.Contains(last, "lines dropped]") && !strings.Contains(last, "bytes more]") {
		t.Errorf("last line does not tell of the loss: %.80q", last)
	}
	for _, s := range all {
		if len(s) > maxStderrLine+100 {
			t.Errorf("a line of %d bytes", len(s))
		}
	}
}

func TestStartErrors(t *testing.T) {
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		cmd  Command
		want string
	}{
		{"none", Command{}, "child: cannot start: no command"},
		{"not found", Command{Args: []string{"no-such-\u202eprogram"}}, `child: cannot start: "no-such-\u202eprogram": no such program in PATH`},
		{"no such path", Command{Args: []string{dir + "/x"}}, `": no such program`},
		{"not executable", Command{Args: []string{plain}}, "not executable: permission denied"},
		{"no directory", Command{Args: []string{os.Args[0]}, Dir: dir + "/none"}, `working directory "`},
		{"a file for a directory", Command{Args: []string{os.Args[0]}, Dir: plain}, `: working directory "`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, err := Start(tt.cmd)
			if p != nil || !errors.Is(err, ErrStart) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Start = %v, %v; want %q", p, err, tt.want)
			}
		})
	}
}

func FuzzEscape(f *testing.F) {
	f.Add([]byte("a\u202e\x1b\xff\\\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, c := range escape(nil, b) {
			if c < ' ' || c > '~' {
				t.Fatalf("escape let %#x through", c)
			}
		}
	})
}
