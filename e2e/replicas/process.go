// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// startWait bounds the start of a process.
const startWait = 60 * time.Second

// A process is one that this measurement has started. What it says stands in a file.
type process struct {
	cmd  *exec.Cmd
	done chan struct{}
	log  *os.File
}

func startProcess(cmd *exec.Cmd, log string) (*process, error) {
	f, err := os.OpenFile(log, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	if cmd.Stdout == nil {
		cmd.Stdout = f
	}
	cmd.Stderr = f
	cmd.WaitDelay = 5 * time.Second // a grandchild may keep the output open
	if err := cmd.Start(); err != nil {
		f.Close()
		return nil, fmt.Errorf("replicas: start %s: %w", filepath.Base(cmd.Path), err)
	}
	p := &process{cmd: cmd, done: make(chan struct{}), log: f}
	go func() {
		defer close(p.done)
		_ = cmd.Wait() // how it ended is read from its state
		f.Close()
	}()
	return p, nil
}

func (p *process) kill() {
	if p != nil {
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}

func (p *process) running() bool {
	if p == nil {
		return false
	}
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

func (p *process) signal(s syscall.Signal) { _ = p.cmd.Process.Signal(s) }

func (p *process) ended(ctx context.Context) error {
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(startWait):
		return errors.New("replicas: a replica does not end after SIGTERM")
	}
}

// startUpstream starts the server that is reached over HTTP.
func (r *rig) startUpstream(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, r.o.Python, "-B", filepath.Join(r.o.E2E, "python", "replicas_server.py"), r.seen("http"))
	out, in := io.Pipe()
	cmd.Stdout = in
	p, err := startProcess(cmd, filepath.Join(r.dir, "upstream.log"))
	if err != nil {
		return err
	}
	r.processes = append(r.processes, p)
	timer := time.AfterFunc(startWait, func() { in.CloseWithError(errors.New("replicas: the server does not start")) })
	defer timer.Stop()
	go func() { <-p.done; in.CloseWithError(io.ErrUnexpectedEOF) }()
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if port, ok := strings.CutPrefix(lines.Text(), "e2e-port "); ok {
			r.upstream = "http://127.0.0.1:" + port + "/mcp"
			go func() { _, _ = io.Copy(io.Discard, out) }()
			return nil
		}
	}
	return fmt.Errorf("replicas: the server does not say where it listens: %w", lines.Err())
}

// seen is the file in which a server writes down the calls that reached it.
func (r *rig) seen(server string) string { return filepath.Join(r.dir, "seen-"+server) }
