// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/pellucid-mcp/pellucid/app"
	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/platform/resident"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/frame"
)

// wrapCmd puts one server behind the boundary, with this process's standard
// input and output as the client's end.
type wrapCmd struct {
	Profile   string        `enum:"faithful,mcp" default:"faithful" help:"@defaults.profile"`
	Name      string        `default:"server" help:"Name of the server in frames and records."`
	Frame     string        `enum:"fence,meta,llm" default:"fence" help:"@defaults.frame"`
	LLM       llmFlags      `embed:"" prefix:"llm-"`
	Validate  string        `enum:"enforce,audit,off" default:"enforce" help:"@defaults.validate"`
	Env       []string      `sep:"none" placeholder:"NAME[=VALUE]" help:"Environment variable for the server, in addition to those that every server gets (docs/environment.md). Without a value, the value of this process is passed on."`
	Cwd       string        `placeholder:"DIR" help:"@servers.cwd"`
	URL       string        `name:"url" help:"Wrap the server at this URL instead of a command. Write env:VAR or file:PATH if the URL contains a secret."`
	Transport string        `enum:"auto,http,sse" default:"auto" help:"@servers.transport"`
	Header    []string      `sep:"none" placeholder:"NAME=env:VAR" help:"HTTP header for the server, with its value from a variable (env:VAR) or a file (file:PATH)."`
	Bearer    string        `placeholder:"env:VAR" help:"Token for the server, sent as Authorization: Bearer, with its value from a variable (env:VAR) or a file (file:PATH)."`
	Timeout   time.Duration `default:"10m" help:"@defaults.timeout"`
	MaxChars  int           `name:"max-chars" default:"1048576" help:"@defaults.max_chars"`
	Pins      string        `enum:"enforce,audit,off" default:"enforce" help:"Check what the server says of itself before its first message passes, and pin it. enforce holds later changes until pellucid pins approve, audit only records them, off scrubs but does not check."`
	Pin       string        `placeholder:"NAME" help:"@servers.pin"`
	Wide      bool          `default:"true" negatable:"" help:"Withhold a tool, prompt or resource for every hidden character of its description, except those that emoji and languages need. --no-wide looks only for the 151 characters of the published set SUSPICIOUS_UNICODE; text hidden in other characters then counts as clean."`
	Review    reviewFlags   `embed:""`
	Sampling  bool          `name:"dangerously-allow-sampling" help:"@servers.dangerously_allow_sampling"`
	Evidence  string        `enum:"off,best-effort,required" default:"off" help:"@evidence.mode"`
	Classify  bool          `help:"Judge results with the local classifier after their delivery. A suspected result is logged and recorded; nothing is held."`
	Policy    string        `placeholder:"PRESET|FILE" completion:"files" help:"Apply a policy to calls and results: observe, standard, strict, or a configuration file, of which only the policy is read (docs/spec/policy.md). Implies --quarantine."`
	tlsFlags
	tokenFlags
	framingFlags
	holdFlags
	logFlags

	Command []string `arg:"" optional:"" passthrough:"" help:"The server's program and arguments, after --."`
}

func (wrapCmd) Help() string {
	return `The server is started for this one client, and ends with it. Log lines go to standard error. A
client that closes its side, as a script does at the end of its input, still gets the answers to
its requests, each within --timeout, as long as it reads them. Exit codes: 0 the client has left,
or a signal came; 1 the server ended, or something failed; 2 wrong usage; 3 the state directory, a
key, a variable or a policy cannot be used; 4 the server cannot be started or reached, or the
database; 11 the server is rejected for what it says of itself.`
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
	if e.Getenv("GOGC") == "" && e.Getenv("GOMEMLIMIT") == "" {
		debug.SetGCPercent(wrapGC)
		debug.SetMemoryLimit(wrapMemory)
	}
	log := c.logger(e.Stderr)
	r, err := c.compile(e.references(), log)
	if err != nil {
		return exit.With(exit.Config, err)
	}
	o := app.WrapOptions{Database: c.DB, Called: c.called(r.Servers[0].URL.Reveal()), Login: c.loginName(), Hold: c.holdFlags.wanted() || r.Policy != nil, Log: log}
	if out, is := e.Stdout.(*os.File); is {
		o.Unread = func(ctx context.Context) bool { return terminal.Unread(ctx, out) }
	}
	w, err := app.OpenWrap(r, o)
	if err != nil {
		return err
	}
	defer w.Close()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // a client that reads no more is an error of Write: what is open is closed
	resident.DropStartup()                                  // a relay is one of many, and stays
	sayForClient(e, "wrap")
	return w.Run(ctx, wire.NewLines(e.Stdin, e.Stdout, wire.LinesOptions{}))
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
	case c.URL == "" && (len(c.Header) > 0 || c.Bearer != "" || c.Transport != "auto" || c.tlsFlags != tlsFlags{}):
		return errors.New("wrap: --header, --bearer, --transport, --client-cert, --client-key and --ca are for --url")
	case c.Bearer != "" && slices.ContainsFunc(c.Header, isAuthorization):
		return errors.New("wrap: --bearer and --header Authorization exclude each other")
	case slices.ContainsFunc(c.Env, isNoVariable):
		return errors.New("wrap: --env: want NAME=VALUE, or NAME alone to pass it on")
	case slices.ContainsFunc(c.Header, func(spec string) bool { return !isHeader(spec) }):
		return errors.New("wrap: --header: want NAME=env:VAR or NAME=file:PATH")
	case c.Timeout <= 0:
		return errors.New("wrap: --timeout must be positive")
	case c.MaxChars < rules.MinChars || c.MaxChars > rules.MaxChars:
		return fmt.Errorf("wrap: --max-chars must be %d to %d", rules.MinChars, rules.MaxChars)
	case c.Pins == "off" && (c.Pin != "" || !c.Wide || c.Review.given()):
		return errors.New("wrap: with --pins off nothing is checked: --pin, --no-wide and --review-… have no meaning")
	case c.Pin != "" && !rules.IsPinName(c.Pin):
		return errors.New("wrap: --pin must be at most 256 printable characters of ASCII")
	case !frame.IsLabel(c.Name):
		return errors.New("wrap: --name must be 1 to 128 of A-Z a-z 0-9 . _ / : @ + -, and begin with a letter or digit")
	}
	if err := c.framingFlags.check(c.Frame); err != nil {
		return err
	}
	return c.LLM.check(c.Frame == "llm")
}

// isNoVariable reports whether spec is neither NAME nor NAME=VALUE.
func isNoVariable(spec string) bool { return spec == "" || spec[0] == '=' }

// isHeader reports whether spec is NAME=REFERENCE, where NAME may be that of a header.
func isHeader(spec string) bool {
	name, _, found := strings.Cut(spec, "=")
	return found && name != "" && strings.Trim(name, tokenChars) == ""
}

// isAuthorization reports whether spec is of the header that --bearer makes.
func isAuthorization(spec string) bool {
	name, _, _ := strings.Cut(spec, "=")
	return strings.EqualFold(name, "Authorization")
}

// tokenChars are those of a header's name (RFC 9110, 5.6.2).
const tokenChars = "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
