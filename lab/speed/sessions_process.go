// SPDX-License-Identifier: Apache-2.0

package speed

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/backoff"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// watched is a process whose memory is measured from outside.
type watched struct {
	cmd   *exec.Cmd
	stdin io.Closer
	dir   string // removed when it has ended; "" = none
	addr  string // at which it serves
	done  chan struct{}
	once  sync.Once

	stacks stackCount // complete once done is closed
	last   string     // line of its standard error
}

// startWatched starts a process and waits until a line of its standard error says, behind
// the prefix, where it serves. env nil is that of this process.
func startWatched(ctx context.Context, args, env []string, dir, prefix string) (*watched, error) {
	p := &watched{cmd: exec.CommandContext(ctx, args[0], args[1:]...), dir: dir, done: make(chan struct{})}
	p.cmd.Env = env
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("speed: %w", err)
	}
	p.stdin = stdin
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		return nil, fmt.Errorf("speed: %w", err)
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("speed: %w", err)
	}
	at := make(chan string, 1)
	go func() {
		defer close(p.done)
		p.read(stderr, prefix, at)
		_ = p.cmd.Wait() // how it ended: by our signal
	}()
	select {
	case p.addr = <-at:
		return p, nil
	case <-p.done:
		err = errors.New("speed: a process ended at its start: " + finding.Quote(p.last))
	case <-time.After(startWait):
		err = errors.New("speed: a process does not start")
	}
	p.kill()
	return nil, err
}

// read reads the standard error of the process to its end.
func (p *watched) read(stderr io.Reader, prefix string, at chan<- string) {
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

// quit ends the process, which prints the stacks of its goroutines first.
func (p *watched) quit() (map[string]int, error) {
	if err := p.cmd.Process.Signal(syscall.SIGQUIT); err != nil {
		return nil, fmt.Errorf("speed: ask for stacks: %w", err)
	}
	select {
	case <-p.done:
		p.kill()
		return p.stacks.by, nil
	case <-time.After(2 * time.Minute):
		return nil, errors.New("speed: a process does not finish to print its stacks")
	}
}

// kill ends the process. It may be called again.
func (p *watched) kill() {
	p.once.Do(func() {
		_ = p.cmd.Process.Kill()
		p.stdin.Close()
		<-p.done
		if p.dir != "" {
			os.RemoveAll(p.dir)
		}
	})
}

func (p *watched) path(file string) string {
	return "/proc/" + strconv.Itoa(p.cmd.Process.Pid) + "/" + file
}

// files counts the open descriptors.
func (p *watched) files() (int, error) {
	list, err := os.ReadDir(p.path("fd"))
	if err != nil {
		return 0, fmt.Errorf("speed: %w", err)
	}
	return len(list), nil
}

// resident reads the memory of the process.
func (p *watched) resident() (r Resident, err error) {
	for file, want := range map[string]map[string]*int64{
		"status":       {"VmRSS": &r.RSS, "RssAnon": &r.Anon, "VmHWM": &r.Peak},
		"smaps_rollup": {"Pss": &r.PSS},
	} {
		text, err := os.ReadFile(p.path(file))
		if err != nil {
			return r, fmt.Errorf("speed: %w", err)
		}
		for line := range strings.Lines(string(text)) {
			name, rest, _ := strings.Cut(line, ":")
			if v := want[name]; v != nil {
				n, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
				if err != nil {
					return r, fmt.Errorf("speed: %s: %w", p.path(file), err)
				}
				*v = n << 10
			}
		}
	}
	return r, nil
}

// resetPeak lets Peak begin anew.
func (p *watched) resetPeak() error {
	if err := os.WriteFile(p.path("clear_refs"), []byte("5"), 0o200); err != nil {
		return fmt.Errorf("speed: %w", err)
	}
	return nil
}

// settled returns the memory once it has stayed within 1 % for some seconds, or after most.
func (p *watched) settled(ctx context.Context, most time.Duration) (Resident, error) {
	const step, steady = 250 * time.Millisecond, 12 // samples: three seconds
	var since []int64
	for begin := time.Now(); ; {
		r, err := p.resident()
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

// loadAverage is that of the last minute; 0 where it cannot be read.
func loadAverage() float64 {
	text, _ := os.ReadFile("/proc/loadavg")
	first, _, _ := strings.Cut(string(text), " ")
	v, _ := strconv.ParseFloat(first, 64)
	return v
}
