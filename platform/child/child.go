// SPDX-License-Identifier: Apache-2.0

// Package child runs a stdio server as a child process that cannot outlive, flood or hang its owner.
package child

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"time"

	"github.com/pellucid-mcp/pellucid/text/finding"
)

// ErrStart is wrapped by every error of [Start]: nothing was run.
var ErrStart = errors.New("child: cannot start")

// Command says what to run.
type Command struct {
	Args []string // program and arguments; the program is looked up in this process's PATH
	Dir  string   // working directory; empty = this process's

	// Inherit names variables that the child gets from this process's
	// environment beside those of [Passed], also where one carries a secret. Env is
	// added last, as NAME=value. Nothing else of the environment is passed on.
	Inherit []string
	Env     []string

	// Stderr is called with each line of the child's standard error, ASCII
	// only, escaped and cut; not concurrently. It should return soon. nil
	// drops the lines.
	Stderr func(line string)

	// Stray is called with the first line of the standard output that is not a message, escaped and cut. It may be nil.
	Stray func(excerpt string)

	CloseWait time.Duration // from closing stdin to SIGTERM; 0 = 2 s
	TermWait  time.Duration // from SIGTERM to SIGKILL; 0 = 2 s

	drain time.Duration // see output.limit; 0 = drainLimit
}

// A stage says how far Stop had to go.
type stage string

// The stages, in their order.
const (
	byItself   stage = "by itself"
	stdinEnd   stage = "after its input was closed"
	terminated stage = "after a request to terminate"
	killed     stage = "killed"
)

// Exit says how a child ended.
type Exit struct {
	code   int    // exit code; -1 if a signal ended it
	signal string // the signal's name, or empty
	stage  stage
}

func (e Exit) String() string {
	if e.signal != "" {
		return fmt.Sprintf("ended by signal (%s), %s", e.signal, e.stage)
	}
	return fmt.Sprintf("exit code %d, %s", e.code, e.stage)
}

// Process is a running or ended child.
type Process struct {
	// Stdin and Stdout are the child's. Stdout reaches its end soon after the
	// child ended, even where another process still holds the pipe open.
	Stdin  io.WriteCloser
	Stdout io.ReadCloser

	cmd   Command
	group group
	done  chan struct{} // closed when exit is set
	exit  Exit

	mu     sync.Mutex
	stage  stage
	reaped bool
	stop   sync.Once
}

const (
	defaultWait = 2 * time.Second
	// selfWait is for a child that ends by itself: its output ends a moment before it is seen to have ended.
	selfWait = 20 * time.Millisecond
	// afterKill bounds the wait for a process that the system does not end at
	// once (it sleeps in a device, say).
	afterKill = 5 * time.Second
)

// pipes are the child's three streams, both ends of each.
type pipes struct{ stdinR, stdinW, stdoutR, stdoutW, stderrR, stderrW *os.File }

func (p *pipes) closeChildEnds() { closeAll(p.stdinR, p.stdoutW, p.stderrW) }
func (p *pipes) closeOurEnds()   { closeAll(p.stdinW, p.stdoutR, p.stderrR) }

func closeAll(files ...*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close()
		}
	}
}

func openPipes() (p pipes, err error) {
	for _, ends := range [...][2]**os.File{{&p.stdinR, &p.stdinW}, {&p.stdoutR, &p.stdoutW}, {&p.stderrR, &p.stderrW}} {
		if *ends[0], *ends[1], err = os.Pipe(); err != nil {
			p.closeChildEnds()
			p.closeOurEnds()
			return pipes{}, err
		}
	}
	return p, nil
}

// Start runs the command. Its error wraps [ErrStart].
func Start(c Command) (*Process, error) {
	if len(c.Args) == 0 || c.Args[0] == "" {
		return nil, fmt.Errorf("%w: no command", ErrStart)
	}
	p, err := openPipes()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrStart, err)
	}
	cmd := exec.Command(c.Args[0], c.Args[1:]...)
	cmd.Dir = c.Dir
	cmd.Env, _ = environ(runtime.GOOS, os.Environ(), c.Inherit, c.Env)
	// Files, not readers: Wait must not wait for whoever else holds the pipes.
	cmd.Stdin, cmd.Stdout, cmd.Stderr = p.stdinR, p.stdoutW, p.stderrW

	proc := &Process{Stdin: p.stdinW, cmd: c, done: make(chan struct{}), stage: byItself}
	proc.Stdout = &output{f: p.stdoutR, done: proc.done, limit: or(c.drain, drainLimit)}
	started := make(chan error, 1)
	go proc.run(cmd, &p, started)
	if err := <-started; err != nil {
		p.closeOurEnds()
		return nil, startError(&c, err)
	}
	return proc, nil
}

// startError says what was not found: the system does not tell a missing working
// directory from a missing program.
func startError(c *Command, err error) error {
	quoted := finding.Quote(c.Args[0])
	if c.Dir != "" {
		if where := directory(c.Dir); where != nil {
			return fmt.Errorf("%w: working directory %s: %w", ErrStart, finding.Quote(c.Dir), where)
		}
	}
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return fmt.Errorf("%w: %s: no such program in PATH", ErrStart, quoted)
	case errors.Is(err, os.ErrNotExist): // of a script that may be its interpreter
		return fmt.Errorf("%w: %s: no such program", ErrStart, quoted)
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("%w: %s: not executable: %w", ErrStart, quoted, bare(err))
	}
	return fmt.Errorf("%w: %s: %w", ErrStart, quoted, bare(err))
}

// directory says why a command cannot be started in dir; nil: it may be.
func directory(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return bare(err)
	}
	defer d.Close()
	if fi, err := d.Stat(); err == nil && !fi.IsDir() {
		return errors.New("not a directory")
	}
	return nil
}

// bare is err without the paths that os and os/exec put into its text raw.
func bare(err error) error {
	var pe *os.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	var ee *exec.Error
	if errors.As(err, &ee) {
		return ee.Err
	}
	return err
}

// run starts the child and sees it off. It keeps the thread that started the
// child, because on Linux the child is told of that thread's end.
func (p *Process) run(cmd *exec.Cmd, fs *pipes, started chan<- error) {
	lockThread()
	g, err := startGroup(cmd)
	fs.closeChildEnds()
	if err != nil {
		started <- err
		return
	}
	p.group = g
	stderr := make(chan struct{})
	go func() {
		defer close(stderr)
		tap := stderrTap{emit: p.cmd.Stderr}
		tap.drain(&output{f: fs.stderrR, done: p.done, limit: or(p.cmd.drain, drainLimit)})
		fs.stderrR.Close()
	}()
	started <- nil

	if !waitEnd(g) {
		_ = cmd.Wait()
	}
	p.mu.Lock()
	e := reap(cmd, g) // under the lock: signal must not meet a group id that is free again
	e.stage = p.stage
	p.exit, p.reaped = e, true
	p.mu.Unlock()
	g.close()
	close(p.done)
	<-stderr
}

// Done is closed when the child has ended and been reaped.
func (p *Process) Done() <-chan struct{} { return p.done }

// Exit says how the child ended; it waits for that.
func (p *Process) Exit() Exit {
	<-p.done
	return p.exit
}

// Stop ends the child and every process of its group: it sees whether the child ends by itself, closes the child's
// input, waits, asks it to terminate, waits, kills it. When ctx ends the waits
// are cut short. ok is false if even a killed child did not end in time. The
// caller still closes Stdout.
func (p *Process) Stop(ctx context.Context) (e Exit, ok bool) {
	p.stop.Do(func() { p.wind(ctx) })
	select {
	case <-p.done:
		return p.exit, true
	case <-time.After(afterKill):
		return Exit{code: -1, stage: killed}, false
	}
}

func (p *Process) wind(ctx context.Context) {
	if !p.ended(ctx, selfWait) {
		p.reach(stdinEnd)
	}
	p.Stdin.Close()
	if p.ended(ctx, or(p.cmd.CloseWait, defaultWait)) {
		return
	}
	p.reach(terminated)
	if p.signal(p.group.terminate) && p.ended(ctx, or(p.cmd.TermWait, defaultWait)) {
		return
	}
	p.reach(killed)
	p.signal(p.group.kill)
}

// signal calls f unless the child has been reaped and its ids may be another's.
func (p *Process) signal(f func() bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.reaped || f()
}

func (p *Process) reach(s stage) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stage = s
}

func (p *Process) ended(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-p.done:
		return true
	case <-ctx.Done():
	case <-t.C:
	}
	return false
}

func or(d, def time.Duration) time.Duration {
	if d > 0 {
		return d
	}
	return def
}

// output is the reading end of a pipe that ends with the child: once the child
// is gone, a pipe that stays silent for outputGrace, or is not empty after
// limit, is at its end, whoever else may write to it.
type output struct {
	f     *os.File
	done  <-chan struct{}
	limit time.Duration
	once  sync.Once
	end   time.Time // set when the child is seen to be gone
}

const (
	outputGrace = 250 * time.Millisecond
	drainLimit  = 30 * time.Second
)

func (o *output) Read(p []byte) (int, error) {
	o.once.Do(func() {
		go func() { // wakes a Read that is under way
			<-o.done
			o.f.SetReadDeadline(time.Now().Add(outputGrace))
		}()
	})
	select {
	case <-o.done:
		now := time.Now()
		if o.end.IsZero() {
			o.end = now.Add(o.limit)
		}
		if now.After(o.end) {
			return 0, io.EOF
		}
		o.f.SetReadDeadline(now.Add(outputGrace))
	default:
	}
	n, err := o.f.Read(p)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		// If the machine stopped this process until now, the pipe has not been looked at.
		o.f.SetReadDeadline(time.Now().Add(outputGrace))
		n, err = o.f.Read(p)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = io.EOF
	}
	return n, err
}

func (o *output) Close() error { return o.f.Close() }
