package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/pellucid-mcp/pellucid/finding"
	"github.com/pellucid-mcp/pellucid/frame"
	"github.com/pellucid-mcp/pellucid/gateway"
	"github.com/pellucid-mcp/pellucid/internal/child"
	"github.com/pellucid-mcp/pellucid/internal/state"
	"github.com/pellucid-mcp/pellucid/internal/strictjson"
	"github.com/pellucid-mcp/pellucid/internal/wire"
)

// wrapCmd puts one server behind the boundary, with this process's standard
// input and output as the client's end.
type wrapCmd struct {
	Profile string        `enum:"auto,mcp,faithful" default:"auto" help:"How text is scrubbed: mcp, faithful (removals only), or auto: faithful if the server declares a tool that writes."`
	Name    string        `default:"server" help:"Name of the server in frames and records."`
	Frame   string        `enum:"fence,meta" default:"fence" help:"fence puts the text of tools between tags; meta marks it in _meta only, for programs that parse it."`
	Env     []string      `sep:"none" placeholder:"NAME[=VALUE]" help:"Environment variable for the server, beside the harmless ones that it always gets; without a value it is passed on from this process."`
	Cwd     string        `placeholder:"DIR" help:"Working directory of the server."`
	URL     string        `name:"url" help:"Wrap the streamable HTTP server at this URL instead of a command."`
	Header  []string      `sep:"none" placeholder:"NAME=env:VAR" help:"HTTP header for the server, its value taken from a variable (env:VAR) or file (file:PATH)."`
	Timeout time.Duration `default:"10m" help:"How long the server may be silent about a request."`
	logFlags

	Command []string `arg:"" optional:"" passthrough:"" help:"The server's program and arguments, behind --."`
}

// The collector runs often, since a relay's live heap is small and its garbage
// is one message at a time; and more often still where it would grow beyond
// what messages of a megabyte need. Neither is a bound: larger messages pass.
const (
	wrapGC     = 50
	wrapMemory = 14 << 20
)

func (c *wrapCmd) Run(e *env) error {
	if len(c.Command) > 0 && c.Command[0] == "--" {
		c.Command = c.Command[1:]
	}
	if err := c.check(); err != nil {
		return withCode(exitUsage, err)
	}
	if e.Getenv("GOGC") == "" && e.Getenv("GOMEMLIMIT") == "" {
		debug.SetGCPercent(wrapGC)
		debug.SetMemoryLimit(wrapMemory)
	}
	log := c.logger(e.Stderr)
	cfg, journal, err := c.config(log)
	if err != nil {
		return withCode(exitConfig, err)
	}
	defer journal.Close()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	front := wire.NewLines(e.Stdin, e.Stdout, wire.LinesOptions{})
	if c.URL != "" {
		return c.wrapURL(ctx, front, cfg, e)
	}
	return c.wrapCommand(ctx, front, cfg)
}

func (c *wrapCmd) check() error {
	switch {
	case c.URL == "" && len(c.Command) == 0:
		return errors.New("wrap: say what to wrap: -- COMMAND ARG… or --url URL")
	case c.URL != "" && len(c.Command) > 0:
		return errors.New("wrap: --url and a command exclude each other")
	case c.URL != "" && (c.Cwd != "" || len(c.Env) > 0):
		return errors.New("wrap: --cwd and --env are for a command, not for --url")
	case c.URL == "" && len(c.Header) > 0:
		return errors.New("wrap: --header is for --url")
	case c.Timeout <= 0:
		return errors.New("wrap: --timeout must be positive")
	case !frame.IsLabel(c.Name):
		return errors.New("wrap: --name must be 1 to 128 of A-Z a-z 0-9 . _ / : @ + -, and begin with a letter or digit")
	}
	return nil
}

// config opens the state that the gateway needs.
func (c *wrapCmd) config(log *slog.Logger) (gateway.Config, *state.Journal, error) {
	profiles := map[string]gateway.Profile{"auto": gateway.Auto, "mcp": gateway.MCP, "faithful": gateway.Faithful}
	cfg := gateway.Config{Name: c.Name, Profile: profiles[c.Profile], Timeout: c.Timeout, Log: log}
	if c.Frame == "meta" {
		cfg.Frame = frame.KindMeta
	}
	dir, err := state.Open()
	if err != nil {
		return cfg, nil, err
	}
	if cfg.Key, err = fenceKey(dir); err != nil {
		return cfg, nil, err
	}
	journal, err := dir.Journal("decisions.jsonl", state.JournalOptions{})
	if err != nil {
		return cfg, nil, err
	}
	cfg.Sink = &journalSink{j: journal}
	return cfg, journal, nil
}

// journalSink keeps decisions as lines of a journal.
type journalSink struct {
	j   *state.Journal
	buf []byte
}

func (s *journalSink) Record(d gateway.Decision) error {
	s.buf = d.AppendJSON(s.buf[:0])
	return s.j.Append(s.buf)
}

// A server's lone surrogates are a common slip and are mended; a client's are refused.
var serverLimits = strictjson.Limits{MendSurrogates: true}

func (c *wrapCmd) wrapURL(ctx context.Context, front wire.Conn, cfg gateway.Config, e *env) error {
	header, err := secretHeaders(c.Header, e.secrets())
	if err != nil {
		front.Close()
		return withCode(exitConfig, err)
	}
	up, err := wire.NewHTTP(c.URL, wire.HTTPOptions{
		Header: header, Limits: serverLimits, ProxyFromEnvironment: true,
		Notice: func(line string) { cfg.Log.Warn("server: " + line) },
	})
	if err != nil {
		front.Close()
		return withCode(exitUsage, err)
	}
	err = gateway.Run(ctx, front, up, cfg)
	switch {
	case err == nil, ctx.Err() != nil:
		return nil
	case errors.Is(err, wire.ErrUnreachable):
		return withCode(exitUnreachable, err)
	}
	return err
}

// secretHeaders resolves NAME=env:VAR and NAME=file:PATH.
func secretHeaders(specs []string, secret secrets) (http.Header, error) {
	h := http.Header{}
	for _, spec := range specs {
		name, ref, found := strings.Cut(spec, "=")
		if !found || name == "" {
			return nil, errors.New("wrap: --header: want NAME=env:VAR or NAME=file:PATH")
		}
		value, err := secret(ref)
		if err != nil {
			return nil, fmt.Errorf("wrap: --header %s: %w", finding.Quote(name), err)
		}
		h.Add(name, value)
	}
	return h, nil
}

func (c *wrapCmd) wrapCommand(ctx context.Context, front wire.Conn, cfg gateway.Config) error {
	cmd := child.Command{Args: c.Command, Dir: c.Cwd, CloseWait: childWait, TermWait: childWait,
		Stderr: func(line string) { cfg.Log.Info("server: " + line) }}
	for _, spec := range c.Env {
		if strings.Contains(spec, "=") {
			cmd.Env = append(cmd.Env, spec)
		} else {
			cmd.Inherit = append(cmd.Inherit, spec)
		}
	}
	proc, err := child.Start(cmd)
	if err != nil {
		front.Close()
		return withCode(exitUnreachable, err)
	}
	up := &childConn{Lines: wire.NewLines(proc.Stdout, proc.Stdin, wire.LinesOptions{Limits: serverLimits}), proc: proc}
	err = gateway.Run(ctx, front, up, cfg)
	switch {
	case err == nil, ctx.Err() != nil:
		return nil
	case errors.Is(err, gateway.ErrUpstreamGone):
		return fmt.Errorf("wrap: the server ended: %s", up.exit)
	}
	return err
}

// childWait is what a server gets for each step of its end. Clients close our
// input, send SIGTERM after two seconds and SIGKILL after four; by then nothing
// of the server must be left, or nobody would end it.
const childWait = 700 * time.Millisecond

// childConn stops the child before the pipes are closed under it.
type childConn struct {
	*wire.Lines
	proc *child.Process
	exit child.Exit
}

const stopWait = 8 * time.Second

func (c *childConn) Close() error {
	ctx, stop := context.WithTimeout(context.Background(), stopWait)
	defer stop()
	exit, ended := c.proc.Stop(ctx)
	c.exit = exit
	err := c.Lines.Close()
	if !ended {
		return errors.New("wrap: the server could not be stopped")
	}
	return err
}
