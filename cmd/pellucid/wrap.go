// SPDX-License-Identifier: Apache-2.0

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
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/pellucid-mcp/pellucid/app"
	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/boundary/classifiers"
	"github.com/pellucid-mcp/pellucid/boundary/classify"
	"github.com/pellucid-mcp/pellucid/boundary/fleet"
	"github.com/pellucid-mcp/pellucid/boundary/gateway"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/boundary/surface"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/platform/child"
	"github.com/pellucid-mcp/pellucid/platform/resident"
	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/storage"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/frame"
)

// wrapCmd puts one server behind the boundary, with this process's standard
// input and output as the client's end.
type wrapCmd struct {
	Profile   string        `enum:"faithful,mcp" default:"faithful" help:"How text is scrubbed: faithful (removals only), or mcp (the text becomes NFKC too, which changes digits, fractions and some scripts)."`
	Name      string        `default:"server" help:"Name of the server in frames and records."`
	Frame     string        `enum:"fence,meta,llm" default:"fence" help:"fence puts the text of tools between tags; meta marks it in _meta only, for programs that parse it; llm puts it into the envelope of text that an external language model has written."`
	LLM       llmFlags      `embed:"" prefix:"llm-"`
	Validate  string        `enum:"enforce,audit,off" default:"enforce" help:"What becomes of structured content that its tool's outputSchema refuses: enforce withholds it, audit records it."`
	Env       []string      `sep:"none" placeholder:"NAME[=VALUE]" help:"Environment variable for the server, beside the harmless ones that it always gets; without a value it is passed on from this process."`
	Cwd       string        `placeholder:"DIR" help:"Working directory of the server."`
	URL       string        `name:"url" help:"Wrap the server at this URL instead of a command; env:VAR or file:PATH where the URL holds a secret."`
	Transport string        `enum:"auto,http,sse" default:"auto" help:"What the server at the URL speaks: http, streamable HTTP; sse, the HTTP+SSE of 2024-11-05; auto, the second if it does not speak the first."`
	Header    []string      `sep:"none" placeholder:"NAME=env:VAR" help:"HTTP header for the server, its value taken from a variable (env:VAR) or file (file:PATH)."`
	Timeout   time.Duration `default:"10m" help:"How long the server may be silent about a request."`
	Pins      string        `enum:"enforce,audit,off" default:"enforce" help:"Check what the server says of itself before a word of it passes, and pin it: enforce holds what differs later until pellucid pins approve, audit records it, off scrubs and checks nothing."`
	Pin       string        `placeholder:"NAME" help:"Pin the server under this name, and not under its identity, which is a digest of its command or URL: for two servers that have the same command and say different things."`
	Wide      bool          `default:"true" negatable:"" help:"Reject every hidden character of a description, but for those of emoji and languages; with --no-wide only the 151 of the published set SUSPICIOUS_UNICODE, so that a text hidden in others counts as clean."`
	Review    reviewFlags   `embed:""`
	Sampling  bool          `name:"dangerously-allow-sampling" help:"Let the server put words before the client's model: they are scrubbed and marked, which does not make them harmless."`
	Evidence  string        `enum:"off,best-effort,required" default:"off" help:"Record decisions in the ledger: best-effort counts what cannot be written, required withholds results then; off appends lines to decisions.jsonl."`
	Classify  bool          `help:"Have the model that comes with the program judge results behind their delivery; what it suspects is logged and recorded, and changes nothing."`
	Policy    string        `placeholder:"PRESET|FILE" completion:"files" help:"Decide about calls and results by a policy: observe, standard, strict, or that of a configuration, of which nothing else is read (see docs/spec/policy.md); implies --quarantine."`
	tokenFlags
	framingFlags
	holdFlags
	logFlags

	store  *storage.Store   // nil: nothing needs it
	kept   *install.Records // nil: there is no ledger
	policy *wrapPolicy      // nil: none is wanted
	stderr *child.Tail      // of a server that is a process; nil: of another

	Command []string `arg:"" optional:"" passthrough:"" help:"The server's program and arguments, behind --."`
}

func (wrapCmd) Help() string {
	return `The server is started for this one client, and ends with it. What is logged goes to
standard error. Exit codes: 0 the client has left, or a signal came; 1 the server ended, or
something failed; 2 wrong usage; 3 the state directory, a key, a variable or a policy
cannot be used; 4 the server cannot be started or reached, or the database; 11 what the
server says of itself is rejected.`
}

// The collector runs often, since a relay's live heap is small and its garbage
// is one message at a time; and more often still where it would grow beyond
// what messages of a megabyte need. Neither is a bound: larger messages pass.
const (
	wrapGC     = 50
	wrapMemory = 14 << 20
)

func (c *wrapCmd) Run(e *env) error {
	if err := c.command(); err != nil {
		return exit.With(exit.Usage, err)
	}
	if err := c.check(); err != nil {
		return exit.With(exit.Usage, err)
	}
	var reviewer *rules.Review
	if c.Review.given() {
		var err error
		if reviewer, err = c.Review.rules("wrap", e.references()); err != nil {
			return err
		}
	}
	if e.Getenv("GOGC") == "" && e.Getenv("GOMEMLIMIT") == "" {
		debug.SetGCPercent(wrapGC)
		debug.SetMemoryLimit(wrapMemory)
	}
	log := c.logger(e.Stderr)
	cfg, done, err := c.config(log)
	if err != nil {
		return exit.With(exit.Config, err)
	}
	defer done()
	admission, err := c.admissions(reviewer, log)
	if err != nil {
		return err
	}
	defer admission.close()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	resident.DropStartup() // a relay is one of many, and stays
	sayForClient(e, "wrap")
	front := wire.NewLines(e.Stdin, e.Stdout, wire.LinesOptions{})
	if c.URL != "" {
		return c.wrapURL(ctx, front, cfg, e, admission)
	}
	return c.wrapCommand(ctx, front, cfg, admission)
}

// command takes the -- off the command. Without it, what begins with a dash is a flag
// that there is not.
func (c *wrapCmd) command() error {
	switch {
	case len(c.Command) == 0:
	case c.Command[0] == "--":
		c.Command = c.Command[1:]
	case strings.HasPrefix(c.Command[0], "-"):
		return fmt.Errorf("wrap: unknown flag %s: see pellucid wrap --help; the server's command stands behind --", finding.Quote(c.Command[0]))
	}
	return nil
}

func (c *wrapCmd) check() error {
	switch {
	case c.URL == "" && len(c.Command) == 0:
		return errors.New("wrap: say what to wrap: -- COMMAND ARG… or --url URL")
	case c.URL != "" && len(c.Command) > 0:
		return errors.New("wrap: --url and a command exclude each other")
	case c.URL != "" && (c.Cwd != "" || len(c.Env) > 0):
		return errors.New("wrap: --cwd and --env are for a command, not for --url")
	case c.URL == "" && (len(c.Header) > 0 || c.Transport != "auto"):
		return errors.New("wrap: --header and --transport are for --url")
	case slices.ContainsFunc(c.Env, isNoVariable):
		return errors.New("wrap: --env: want NAME=VALUE, or NAME alone to pass it on")
	case slices.ContainsFunc(c.Header, func(spec string) bool { return !isHeader(spec) }):
		return errors.New("wrap: --header: want NAME=env:VAR or NAME=file:PATH")
	case c.Timeout <= 0:
		return errors.New("wrap: --timeout must be positive")
	case c.Pins == "off" && (c.Pin != "" || !c.Wide || c.Review.given()):
		return errors.New("wrap: with --pins off nothing is checked: --pin, --no-wide and --review-… have no meaning")
	case len(c.Pin) > maxPinName || strings.ContainsFunc(c.Pin, func(r rune) bool { return r < ' ' || r > '~' }):
		return errors.New("wrap: --pin must be at most 256 printable characters of ASCII")
	case !frame.IsLabel(c.Name):
		return errors.New("wrap: --name must be 1 to 128 of A-Z a-z 0-9 . _ / : @ + -, and begin with a letter or digit")
	}
	if err := c.framingFlags.check(c.Frame); err != nil {
		return err
	}
	return c.LLM.check(c.Frame == "llm")
}

// config opens the state that the gateway needs; done closes it.
func (c *wrapCmd) config(log *slog.Logger) (cfg gateway.Config, done func(), err error) {
	profiles := map[string]gateway.Profile{"mcp": gateway.MCP, "faithful": gateway.Faithful}
	cfg = gateway.Config{Name: c.Name, Profile: profiles[c.Profile], Timeout: c.Timeout, Log: log}
	modes := map[string]gateway.Mode{"enforce": gateway.Enforce, "audit": gateway.Audit, "off": gateway.Off}
	cfg.Validation = gateway.Validation{Mode: modes[c.Validate], PassUnverifiable: true}
	cfg.Framing = c.framingFlags.read()
	if cfg.Tokens, err = c.tokenFlags.read("wrap"); err != nil {
		return cfg, nil, err
	}
	switch c.Frame {
	case "meta":
		cfg.Frame = frame.KindMeta
	case "llm":
		cfg.Frame = frame.KindLLM
		if cfg.LLM, err = c.LLM.compile(); err != nil {
			return cfg, nil, exit.With(exit.Usage, err)
		}
	}
	cfg.DangerouslyAllowSampling = c.Sampling
	if c.policy, err = c.readPolicy(); err != nil {
		return cfg, nil, err
	}
	c.Quarantine = c.Quarantine || c.policy != nil
	codes, err := c.holdFlags.read()
	if err != nil {
		return cfg, nil, exit.With(exit.Usage, err)
	}
	dir, err := state.Open()
	if err != nil {
		return cfg, nil, err
	}
	if cfg.Key, err = install.FenceKey(dir); err != nil {
		return cfg, nil, err
	}
	if done, err = c.keep(&cfg, dir, log); err != nil {
		return cfg, nil, err
	}
	if codes != nil {
		rule := gateway.Rule{Frame: cfg.Frame, LLM: cfg.LLM, Framing: cfg.Framing, Validation: cfg.Validation, Hold: codes}
		cfg.Tools = func(string) *gateway.Rule { return &rule }
	}
	return cfg, done, nil
}

// keep opens the queue and the record of decisions. Several processes may share a
// store: one of them carries its ledger on.
func (c *wrapCmd) keep(cfg *gateway.Config, dir *state.Dir, log *slog.Logger) (done func(), err error) {
	var closers []func()
	done = func() {
		for _, f := range slices.Backward(closers) {
			f()
		}
	}
	var s *storage.Store
	if c.Evidence != "off" || c.holdFlags.wanted() || c.DB != "" {
		if s, err = c.DB.Open(context.Background(), dir, true); err != nil {
			return nil, err
		}
		closers = append(closers, func() { s.Close() })
		c.store = s
	}
	var o hold.Options
	if c.Evidence == "off" {
		journal, err := dir.Journal("decisions.jsonl", state.JournalOptions{})
		if err != nil {
			done()
			return nil, err
		}
		closers = append(closers, func() { journal.Close() })
		cfg.Sink = &app.JournalSink{J: journal}
	} else {
		e := &rules.Evidence{Mode: rules.BestEffort}
		if cfg.RequireEvidence = c.Evidence == "required"; cfg.RequireEvidence {
			e.Mode = rules.Required
		}
		r, stop, err := c.records(s, dir, e, log)
		if err != nil {
			done()
			return nil, err
		}
		closers = append(closers, stop)
		c.kept, cfg.Sink, o.Evidence = r, r, r.Held
	}
	if c.Classify {
		stop, err := c.classify(cfg, log)
		if err != nil {
			done()
			return nil, err
		}
		closers = append(closers, stop)
	}
	if c.holdFlags.wanted() {
		queue, stop := c.holdFlags.open(s, o)
		closers = append(closers, stop)
		cfg.Hold, cfg.Blocks = queue, hold.NewBlocks(s, hold.BlockOptions{})
	}
	switch {
	case c.policy == nil:
	case c.Evidence == "off":
		c.policy.session(cfg)
	default:
		cfg.Policy = c.policy
	}
	repeats := gateway.NewRepeats(cfg.Sink)
	closers = append(closers, repeats.Close)
	cfg.Sink = repeats
	return done, nil
}

// classify has the local model judge results behind their delivery.
func (c *wrapCmd) classify(cfg *gateway.Config, log *slog.Logger) (stop func(), err error) {
	r, err := rules.Parse([]byte("version: 1\n"), rules.Options{})
	if err != nil {
		return nil, err
	}
	j, err := classifiers.New(r, nil)
	if err != nil {
		return nil, err
	}
	shadow := gateway.NewShadow(gateway.ShadowOptions{Workers: 1, Octets: 8 << 20})
	cfg.Classifiers = &gateway.Classifiers{Shadow: shadow, Of: func(tool string) []*classify.Member { return j.Members("", tool) }}
	switch sink := cfg.Sink.(type) {
	case *install.Records:
		cfg.Classifiers.Record = sink.Classified
	case *app.JournalSink:
		cfg.Classifiers.Record = func(v gateway.Classified) {
			if err := sink.J.Append(v.AppendJSON(nil)); err != nil {
				log.Error("verdict not recorded", "error", err, "evidence", v.Of.String())
			}
		}
	}
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		shadow.Close(ctx)
		j.CloseAllBut(nil)
	}, nil
}

func (c *wrapCmd) wrapURL(ctx context.Context, front wire.Conn, cfg gateway.Config, e *env, a *admission) error {
	header, err := secretHeaders(c.Header, e.secrets())
	if err != nil {
		front.Close()
		return exit.With(exit.Config, err)
	}
	address, err := c.address(e.secrets())
	if err != nil {
		front.Close()
		return exit.With(exit.Config, err)
	}
	options := wire.HTTPOptions{
		Header: header, Limits: fleet.ServerLimits, ProxyFromEnvironment: true,
		Notice: func(line string) { cfg.Log.Warn("server: " + line) },
	}
	dial, err := fleet.URL(wire.Transport(slices.Index(wire.TransportWords, c.Transport)), address, options)
	if err != nil {
		front.Close()
		return exit.With(exit.Usage, err)
	}
	if a != nil {
		return a.run(ctx, front, cfg, dial, c.called(address), surface.URLIdentity(address))
	}
	up, err := dial(ctx)
	if err != nil {
		front.Close()
		return err
	}
	err = gateway.Run(ctx, front, up, cfg)
	switch {
	case err == nil, ctx.Err() != nil:
		return nil
	case errors.Is(err, wire.ErrUnreachable):
		return exit.With(exit.Unreachable, fmt.Errorf("wrap: the server cannot be reached: %s", surface.WhyUnreachable(err)))
	}
	return err
}

// address is the URL, which may be given by reference: a key in its query is a secret.
func (c *wrapCmd) address(secret secrets) (string, error) {
	if !strings.HasPrefix(c.URL, "env:") && !strings.HasPrefix(c.URL, "file:") {
		return c.URL, nil
	}
	value, err := secret(c.URL)
	if err != nil {
		return "", fmt.Errorf("wrap: --url: %w", err)
	}
	return value, nil
}

// isNoVariable reports whether spec is neither NAME nor NAME=VALUE.
func isNoVariable(spec string) bool { return spec == "" || spec[0] == '=' }

// isHeader reports whether spec is NAME=REFERENCE, where NAME may be that of a header.
func isHeader(spec string) bool {
	name, _, found := strings.Cut(spec, "=")
	return found && name != "" && strings.Trim(name, tokenChars) == ""
}

// tokenChars are those of a header's name (RFC 9110, 5.6.2).
const tokenChars = "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// secretHeaders resolves what isHeader has found to be such.
func secretHeaders(specs []string, secret secrets) (http.Header, error) {
	h := http.Header{}
	for _, spec := range specs {
		name, ref, _ := strings.Cut(spec, "=")
		value, err := secret(ref)
		if err != nil {
			return nil, fmt.Errorf("wrap: --header %s: %w", finding.Quote(name), err)
		}
		h.Add(name, value)
	}
	return h, nil
}

func (c *wrapCmd) wrapCommand(ctx context.Context, front wire.Conn, cfg gateway.Config, a *admission) error {
	c.stderr = &child.Tail{}
	cmd := child.Command{Args: c.Command, Dir: c.Cwd, Stderr: func(line string) {
		c.stderr.Add(line)
		cfg.Log.Debug("server: " + line)
	}}
	for _, spec := range c.Env {
		if strings.Contains(spec, "=") {
			cmd.Env = append(cmd.Env, spec)
			continue
		}
		if _, set := os.LookupEnv(spec); !set {
			cfg.Log.Warn("a variable of --env is not set: the server does not get it", "name", finding.Quote(spec))
		}
		cmd.Inherit = append(cmd.Inherit, spec)
	}
	if a != nil {
		return a.run(ctx, front, cfg, fleet.Command(cmd), c.called(""), surface.LocalIdentity(c.Command, c.Cwd))
	}
	up, err := fleet.Start(cmd)
	if err != nil {
		front.Close()
		return exit.With(exit.Unreachable, err)
	}
	err = gateway.Run(ctx, front, up, cfg)
	switch {
	case err == nil, ctx.Err() != nil:
		return nil
	case errors.Is(err, gateway.ErrUpstreamGone):
		c.lastWords(cfg.Log)
		return fmt.Errorf("wrap: the server ended: %s", up.Exit())
	}
	return err
}

// lastWords logs the end of what a server that has failed wrote to its standard error.
func (c *wrapCmd) lastWords(log *slog.Logger) {
	if c.stderr == nil {
		return
	}
	if lines := c.stderr.Lines(); len(lines) > 0 {
		log.Warn("the end of what the server wrote to its standard error", "lines", lines)
	}
}
