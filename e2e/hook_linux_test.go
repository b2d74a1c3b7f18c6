// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/waittest"
)

// A hookClient runs pellucid-hook as a host does, with a state folder of its own.
type hookClient struct {
	bin   string // pellucid
	home  string
	state string
}

func newHookClient(t testing.TB) *hookClient {
	t.Helper()
	bin, err := pellucid()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(bin + "-hook"); err != nil {
		t.Skip("PELLUCID_E2E_BIN has no pellucid-hook beside it: ", err)
	}
	h := &hookClient{bin: bin, home: t.TempDir()}
	h.state = filepath.Join(h.home, "state", "pellucid")
	t.Cleanup(func() {
		for _, pid := range h.residents() {
			syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	return h
}

// command returns a command with the variables of the client.
func (h *hookClient) command(program string, event []byte, args ...string) *exec.Cmd {
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Stdin = h.home, bytes.NewReader(event)
	cmd.Env = []string{"HOME=" + h.home, "XDG_STATE_HOME=" + filepath.Dir(h.state), "PATH=" + os.Getenv("PATH")}
	return cmd
}

// answer has an event of Claude Code answered.
func (h *hookClient) answer(event string) (string, error) {
	cmd := h.command(h.bin+"-hook", []byte(event), "claude-code")
	var says bytes.Buffer
	cmd.Stderr = &says
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, says.String())
	}
	return string(out), err
}

// sockets are those of the state folder at which a process listens.
func (h *hookClient) sockets() (names []string) {
	entries, _ := os.ReadDir(filepath.Join(h.state, "hook"))
	for _, e := range entries {
		if e.Type()&os.ModeSocket != 0 {
			names = append(names, filepath.Join(h.state, "hook", e.Name()))
		}
	}
	return names
}

// residents are the processes that listen.
func (h *hookClient) residents() (pids []int) {
	for _, name := range h.sockets() {
		c, err := net.Dial("unix", name)
		if err != nil {
			continue
		}
		raw, err := c.(*net.UnixConn).SyscallConn()
		if err == nil {
			raw.Control(func(fd uintptr) {
				if cred, err := syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED); err == nil && int(cred.Pid) != os.Getpid() {
					pids = append(pids, int(cred.Pid))
				}
			})
		}
		c.Close()
	}
	return pids
}

// start has a process listen, and returns its id.
func (h *hookClient) start(t testing.TB) int {
	t.Helper()
	if _, err := h.answer(shellEvent("start")); err != nil {
		t.Fatal(err)
	}
	waittest.Until(t, "a process listens", func() bool { return len(h.residents()) == 1 })
	return h.residents()[0]
}

// shellEvent is an event with hidden text in the output of a command.
func shellEvent(word string) string {
	return fmt.Sprintf(`{"hook_event_name":"PostToolUse","tool_name":"Bash","tool_response":{"stdout":"%s\u200b-ok","stderr":"","interrupted":false,"isImage":false}}`, word)
}

// checkShellAnswer checks the answer to a shellEvent.
func checkShellAnswer(word, answer string) error {
	var v struct {
		HookSpecificOutput struct{ UpdatedToolOutput struct{ Stdout string } }
	}
	if err := json.Unmarshal([]byte(answer), &v); err != nil || !strings.Contains(v.HookSpecificOutput.UpdatedToolOutput.Stdout, ">\n"+word+"-ok\n</pellucid-") {
		return fmt.Errorf("%s: %q %v", word, answer, err)
	}
	return nil
}

func (h *hookClient) check(t testing.TB, word string) {
	t.Helper()
	answer, err := h.answer(shellEvent(word))
	if err == nil {
		err = checkShellAnswer(word, answer)
	}
	if err != nil {
		t.Error(err)
	}
}

// TestHookKilled: of 200 events at a time each gets its own right answer and its record, although the process that answers is killed in
// between, and none is started twice.
func TestHookKilled(t *testing.T) {
	t.Parallel()
	h := newHookClient(t)
	first := h.start(t)
	const events = 200
	var done atomic.Int64
	var all sync.WaitGroup
	limit := make(chan struct{}, 64) // processes
	for i := range events {
		all.Go(func() {
			limit <- struct{}{}
			defer func() { <-limit }()
			h.check(t, fmt.Sprintf("event-%d", i))
			if done.Add(1) == 20 {
				syscall.Kill(first, syscall.SIGKILL)
			}
		})
	}
	all.Wait()
	waittest.Until(t, "another process listens", func() bool { r := h.residents(); return len(r) == 1 && r[0] != first })
	records, err := os.ReadFile(filepath.Join(h.state, "decisions.jsonl"))
	if n := bytes.Count(records, []byte("\n")); err != nil || n < events+1 || n > events+1+64 { // those under way are decided twice
		t.Errorf("%d records %v", n, err)
	}
	if len(h.sockets()) != 1 {
		t.Errorf("sockets of dead processes are left: %v", h.sockets())
	}
}

// TestHookStarts: 50 clients at a time start one process.
func TestHookStarts(t *testing.T) {
	t.Parallel()
	h := newHookClient(t)
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() { h.check(t, fmt.Sprint("start-", i)) })
	}
	all.Wait()
	waittest.Until(t, "one process listens", func() bool { return len(h.residents()) == 1 })
	if said, err := os.ReadFile(filepath.Join(h.state, "hook", "log")); err != nil || len(said) > 0 {
		t.Errorf("the log: %s %v", said, err)
	}
}

// TestHookStopped: a process that does not take an event loses its name: the client does without, and the next one starts another.
func TestHookStopped(t *testing.T) {
	t.Parallel()
	h := newHookClient(t)
	first := h.start(t)
	syscall.Kill(first, syscall.SIGSTOP)
	defer syscall.Kill(first, syscall.SIGKILL)
	h.check(t, "stopped")
	h.check(t, "next")
	waittest.Until(t, "another process listens", func() bool { r := h.residents(); return len(r) == 1 && r[0] != first })
}

// TestHookForeign: whatever is at the name of the socket, or wrong with its folder, the answer is right.
func TestHookForeign(t *testing.T) {
	t.Parallel()
	h := newHookClient(t)
	pid := h.start(t)
	name := h.sockets()[0]
	syscall.Kill(pid, syscall.SIGKILL)
	waittest.Until(t, "the process has ended", func() bool { return len(h.residents()) == 0 })
	for says, answer := range map[string]string{"nothing": "", "no number": "+zzzzzzzz", "a cut answer": "+00000100{}", "an answer that is too long": "+ffffffff{}", "a refusal": "-"} {
		os.Remove(name)
		l, err := net.Listen("unix", name)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				c.Write([]byte(answer))
				c.Close()
			}
		}()
		h.check(t, strings.ReplaceAll(says, " ", "-"))
		l.Close()
	}
	os.Remove(name)
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	h.check(t, "a-file")
	waittest.Until(t, "a process listens", func() bool { return len(h.residents()) == 1 })
	folder := filepath.Join(h.state, "hook")
	if err := os.Chmod(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	syscall.Kill(h.residents()[0], syscall.SIGKILL)
	h.check(t, "an-open-folder")
	waittest.Until(t, "no process stays in a folder that is open to others", func() bool { return len(h.residents()) == 0 })
}

// TestHookConfiguration: an event is treated by the configuration as it is now, and one that cannot be used is told to the user.
func TestHookConfiguration(t *testing.T) {
	t.Parallel()
	h := newHookClient(t)
	pid := h.start(t)
	config := filepath.Join(h.home, ".config", "pellucid", "pellucid.yaml")
	if err := os.MkdirAll(filepath.Dir(config), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct{ yaml, want string }{
		{"version: 1\nservers: {claude-code: {max_chars: 8}}\n", "cut by Pellucid"},
		{"version: 1\nservers: {claude-code: {max_chars: nonsense}}\n", "is not checked"},
		{"version: 1\n", "config-ok"},
	} {
		if err := os.WriteFile(config, []byte(x.yaml), 0o600); err != nil {
			t.Fatal(err)
		}
		if answer, err := h.answer(shellEvent("config")); err != nil || !strings.Contains(answer, x.want) {
			t.Errorf("%s: %s %v", x.yaml, answer, err)
		}
	}
	if err := os.Remove(config); err != nil {
		t.Fatal(err)
	}
	h.check(t, "none")
	if r := h.residents(); !slices.Equal(r, []int{pid}) {
		t.Errorf("another process answers: %v, before %d", r, pid)
	}
}

// TestHookVersions: a client is answered by the version of the program beside it alone.
func TestHookVersions(t *testing.T) {
	t.Parallel()
	h := newHookClient(t)
	folder := t.TempDir()
	for _, name := range []string{"pellucid", "pellucid-hook"} {
		b, err := os.ReadFile(filepath.Join(filepath.Dir(h.bin), name))
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, name), b, 0o700)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	h.bin = filepath.Join(folder, "pellucid")
	first := h.start(t)
	if err := os.Chtimes(h.bin, time.Time{}, time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	h.check(t, "other-version")
	waittest.Until(t, "a process of the other version listens", func() bool { return len(h.residents()) == 2 })
	if err := os.Remove(h.bin); err != nil {
		t.Fatal(err)
	}
	if answer, err := h.answer(shellEvent("gone")); err != nil || !strings.HasPrefix(answer, `{"systemMessage":"pellucid: `) {
		t.Errorf("without the program: %q %v, at first %d", answer, err, first)
	}
}

// TestHookHostile: hostile events get the answer of pellucid hook.
func TestHookHostile(t *testing.T) {
	t.Parallel()
	h := newHookClient(t)
	h.start(t)
	for name, event := range map[string]string{
		"empty":           "",
		"cut":             `{"hook_event_name":"PostToolUse","tool_name":"Bash","tool_resp`,
		"a list":          "[1]",
		"wrong types":     `{"hook_event_name":["PostToolUse"],"tool_name":1,"tool_response":null}`,
		"wrong response":  `{"hook_event_name":"PostToolUse","tool_name":{"a":1},"tool_response":7}`,
		"unknown version": `{"hook_event_name":"PostToolUse2","version":99,"tool_name":"Bash"}`,
		"not UTF-8":       "{\"hook_event_name\":\"PostToolUse\",\"tool_response\":\"\xff\xfe\"}",
		"deep":            `{"hook_event_name":"PostToolUse","tool_response":` + strings.Repeat("[", 1<<20),
		"100 MB":          `{"hook_event_name":"PostToolUse","tool_name":"Read","tool_response":"` + strings.Repeat("a", 100<<20) + `"}`,
	} {
		got, err := h.answer(event)
		want, errHook := h.command(h.bin, []byte(event[:min(len(event), 33<<20)]), "hook", "claude-code").Output()
		if err != nil || errHook != nil && !bytes.HasPrefix(want, []byte("{")) || got != string(want) || !json.Valid([]byte(got)) {
			t.Errorf("%s: %.200q %v, want %.200q %v", name, got, err, want, errHook)
		}
	}
	if n := len(h.residents()); n != 1 {
		t.Errorf("%d processes afterwards", n)
	}
}

// TestHookState: where no state can be kept one line says so, and the host goes on.
func TestHookState(t *testing.T) {
	t.Parallel()
	h := newHookClient(t)
	h.state = filepath.Join(h.home, "file", "pellucid")
	if err := os.WriteFile(filepath.Join(h.home, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	answer, err := h.answer(shellEvent("none"))
	if err != nil || !strings.HasPrefix(answer, `{"systemMessage":"pellucid: what the tools of this host return is not checked: `) {
		t.Errorf("%q %v", answer, err)
	}
}

// maxHookSize is what docs/install.md says of the client, in bytes.
const maxHookSize = 4 << 20

// TestHookSize: the client is small.
func TestHookSize(t *testing.T) {
	t.Parallel()
	h := newHookClient(t)
	info, err := os.Stat(h.bin + "-hook")
	if err != nil || info.Size() > maxHookSize {
		t.Errorf("%v %v", info.Size(), err)
	}
}

// BenchmarkHook prints what an event costs, beside an empty Go program in the same run.
func BenchmarkHook(b *testing.B) {
	h := newHookClient(b)
	empty := filepath.Join(b.TempDir(), "empty")
	if err := os.WriteFile(empty+".go", []byte("package main\n\nfunc main() {}\n"), 0o600); err != nil {
		b.Fatal(err)
	}
	if out, err := exec.Command("go", "build", "-ldflags", "-s -w", "-o", empty, empty+".go").CombinedOutput(); err != nil {
		b.Fatal(err, string(out))
	}
	h.start(b)
	event := []byte(shellEvent("bench"))
	programs := []struct {
		name, program string
		args          []string
	}{{"empty Go program", empty, nil}, {"pellucid-hook", h.bin + "-hook", []string{"claude-code"}}, {"pellucid hook", h.bin, []string{"hook", "claude-code"}}}
	took := make([][]time.Duration, len(programs))
	for b.Loop() {
		for i, p := range programs {
			cmd := h.command(p.program, event, p.args...)
			began := time.Now()
			if err := cmd.Run(); err != nil {
				b.Fatal(p.name, err)
			}
			took[i] = append(took[i], time.Since(began))
		}
	}
	for i, p := range programs {
		slices.Sort(took[i])
		median, first := took[i][len(took[i])/2], took[0][len(took[0])/2]
		b.Logf("%-16s median %5.1f ms, %5.1f ms more, %4.1f times", p.name, ms(median), ms(median-first), float64(median)/float64(first))
	}
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
