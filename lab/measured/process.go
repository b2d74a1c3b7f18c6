// SPDX-License-Identifier: Apache-2.0

// Package measured starts the program that a measurement is about, and holds sessions with it.
package measured

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/backoff"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// Process is a process whose memory is measured from outside.
type Process struct {
	cmd   *exec.Cmd
	stdin io.Closer
	dir   string // removed when it has ended
	Addr  string // at which it serves
	done  chan struct{}
	once  sync.Once
	ended error // of Wait; complete once done is closed

	stacks stackCount // complete once done is closed
	last   string     // line of its standard error
}

// Start starts a process and waits until a line of its standard error says, behind
// the prefix, where it serves. env nil is that of this process.
func Start(ctx context.Context, args, env []string, dir, prefix string) (*Process, error) {
	p := &Process{cmd: exec.CommandContext(ctx, args[0], args[1:]...), dir: dir, done: make(chan struct{})}
	p.cmd.Env = env
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("measured: %w", err)
	}
	p.stdin = stdin
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		return nil, fmt.Errorf("measured: %w", err)
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("measured: %w", err)
	}
	at := make(chan string, 1)
	go func() {
		defer close(p.done)
		p.read(stderr, prefix, at)
		p.ended = p.cmd.Wait()
	}()
	select {
	case p.Addr = <-at:
		return p, nil
	case <-p.done:
		err = errors.New("measured: a process ended at its start: " + p.LastLine())
	case <-time.After(20 * time.Second):
		err = errors.New("measured: a process does not start")
	}
	p.Kill()
	return nil, err
}

// Up starts "program up" with a configuration in dir, which is removed when the process has ended. more is
// added to the environment, from which everything that would change the process is left out.
func Up(ctx context.Context, program, dir, config string, more ...string) (*Process, error) {
	file := filepath.Join(dir, "pellucid.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		os.RemoveAll(dir)
		return nil, fmt.Errorf("measured: %w", err)
	}
	env := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "PELLUCID_") })
	env = append(append(env, "PELLUCID_STATE="+filepath.Join(dir, "state")), more...)
	return Start(ctx, []string{program, "up", "-c", file}, env, dir, "Serving streamable HTTP, of every revision, at ")
}

// read reads the standard error of the process to its end.
func (p *Process) read(stderr io.Reader, prefix string, at chan<- string) {
	p.stacks.by = map[string]int{}
	for r := bufio.NewReaderSize(stderr, 64<<10); ; {
		line, err := r.ReadSlice('\n')
		text := string(bytes.TrimRight(line, "\r\n"))
		if addr, ok := strings.CutPrefix(text, prefix); ok {
			select {
			case at <- strings.TrimSuffix(addr, ":"):
			default:
			}
		} else if text != "" {
			p.last = text
		}
		p.stacks.line(text)
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}

// stackCount counts the goroutines of a dump by the function in which they wait.
type stackCount struct {
	by     map[string]int
	inside bool // a goroutine's stack
}

func (c *stackCount) line(text string) {
	switch {
	case strings.HasPrefix(text, "goroutine ") && !strings.HasPrefix(text, "goroutine 0 "):
		c.inside = true
	case text == "":
		c.inside = false
	case c.inside && text[0] != '\t':
		name := text
		if i := strings.LastIndexByte(text, '('); i > 0 && !strings.HasPrefix(text, "created by ") {
			name = text[:i]
		}
		for _, below := range []string{"runtime.", "internal/", "sync.", "net.", "bufio.", "io.", "context."} {
			if strings.HasPrefix(name, below) {
				return
			}
		}
		c.by[strings.TrimPrefix(name, "github.com/pellucid-mcp/pellucid/")]++
		c.inside = false
	}
}

// LastLine returns the last line of the standard error of a process that ends, escaped and cut.
func (p *Process) LastLine() string {
	select {
	case <-p.done:
		return finding.Quote(p.last)
	case <-time.After(time.Second):
		return "it does not end"
	}
}

// Interrupt asks the process to end, waits for it, and returns how it ended.
func (p *Process) Interrupt() error {
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
		return fmt.Errorf("measured: %w", err)
	}
	<-p.done
	p.Kill()
	return p.ended
}

// Quit ends the process, which prints the stacks of its goroutines first.
func (p *Process) Quit() (map[string]int, error) {
	if err := p.cmd.Process.Signal(syscall.SIGQUIT); err != nil {
		return nil, fmt.Errorf("measured: ask for stacks: %w", err)
	}
	select {
	case <-p.done:
		p.Kill()
		return p.stacks.by, nil
	case <-time.After(2 * time.Minute):
		return nil, errors.New("measured: a process does not finish to print its stacks")
	}
}

// Kill ends the process. It may be called again.
func (p *Process) Kill() {
	p.once.Do(func() {
		_ = p.cmd.Process.Kill()
		p.stdin.Close()
		<-p.done
		if p.dir != "" {
			os.RemoveAll(p.dir)
		}
	})
}

func (p *Process) path(file string) string {
	return "/proc/" + strconv.Itoa(p.cmd.Process.Pid) + "/" + file
}

// Files counts the open descriptors.
func (p *Process) Files() (int, error) {
	list, err := os.ReadDir(p.path("fd"))
	if err != nil {
		return 0, fmt.Errorf("measured: %w", err)
	}
	return len(list), nil
}

// Resident reads the memory of the process.
func (p *Process) Resident() (r Memory, err error) {
	for file, want := range map[string]map[string]*int64{
		"status":       {"VmRSS": &r.RSS, "RssAnon": &r.Anon, "VmHWM": &r.Peak},
		"smaps_rollup": {"Pss": &r.PSS},
	} {
		text, err := os.ReadFile(p.path(file))
		if err != nil {
			return r, fmt.Errorf("measured: %w", err)
		}
		for line := range strings.Lines(string(text)) {
			name, rest, _ := strings.Cut(line, ":")
			if v := want[name]; v != nil {
				n, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
				if err != nil {
					return r, fmt.Errorf("measured: %s: %w", p.path(file), err)
				}
				*v = n << 10
			}
		}
	}
	return r, nil
}

// ResetPeak lets Peak begin anew.
func (p *Process) ResetPeak() error {
	if err := os.WriteFile(p.path("clear_refs"), []byte("5"), 0o200); err != nil {
		return fmt.Errorf("measured: %w", err)
	}
	return nil
}

// Settled returns the memory once it has stayed within 1 % for some seconds, or after most.
func (p *Process) Settled(ctx context.Context, most time.Duration) (Memory, error) {
	const step, steady = 250 * time.Millisecond, 12 // samples: three seconds
	var since []int64
	for begin := time.Now(); ; {
		r, err := p.Resident()
		if err != nil {
			return r, err
		}
		if since = append(since, r.Anon); len(since) > steady {
			since = since[1:]
			low, high := since[0], since[0]
			for _, v := range since {
				low, high = min(low, v), max(high, v)
			}
			if high-low <= high/100 {
				return r, nil
			}
		}
		if time.Since(begin) > most {
			return r, nil
		}
		if err := backoff.Sleep(ctx, step); err != nil {
			return r, err
		}
	}
}

// Memory is the memory of a process, in bytes.
type Memory struct {
	RSS  int64 `json:"rss"`
	Anon int64 `json:"anon"` // of RSS: what is no page of a file
	PSS  int64 `json:"pss"`
	Peak int64 `json:"peak"` // of RSS
}
