// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"

	"github.com/pellucid-mcp/pellucid/app"
	"github.com/pellucid-mcp/pellucid/app/commandline"
	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/platform/logs"
	"github.com/pellucid-mcp/pellucid/platform/resident"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/frame"
)

// wrapCmd puts one server behind the boundary, with this process's standard
// input and output as the client's end.
type wrapCmd struct {
	Name      string   `default:"server" help:"Name of the server in frames, records and the configuration."`
	Env       []string `sep:"none" placeholder:"NAME[=VALUE]" help:"Environment variable for the server, in addition to those that every server gets (docs/environment.md). Without a value, the value of this process is passed on."`
	Cwd       string   `placeholder:"DIR" help:"@servers.cwd"`
	URL       string   `name:"url" help:"Wrap the server at this URL instead of a command. Write env:VAR or file:PATH if the URL contains a secret."`
	Header    []string `sep:"none" placeholder:"NAME=env:VAR" help:"HTTP header for the server, with its value from a variable (env:VAR) or a file (file:PATH)."`
	Bearer    string   `placeholder:"env:VAR" help:"Token for the server, sent as Authorization: Bearer, with its value from a variable (env:VAR) or a file (file:PATH)."`
	Transport string   `enum:",auto,http,sse" default:"" placeholder:"WORD" help:"@servers.transport"`
	Timeout   string   `placeholder:"TIME" help:"@defaults.timeout Default: 10m."`
	Config    string   `short:"c" placeholder:"FILE" help:"Configuration (default: pellucid.yaml in your configuration folder, if it exists). A flag goes before it."`
	Profile   string   `enum:",faithful,mcp,veritas-0.1" default:"" placeholder:"NAME" help:"@defaults.profile"`
	Frame     string   `enum:",fence,meta,llm" default:"" placeholder:"KIND" help:"@defaults.frame"`
	Policy    string   `placeholder:"PRESET|FILE" help:"Apply a policy to calls and results: observe, standard, strict, or a configuration file, of which only the policy is read (docs/spec/policy.md)."`
	Evidence  string   `enum:",off,best-effort,required" default:"" placeholder:"MODE" help:"@evidence.mode Default: off, unless the configuration has evidence."`
	LogLevel  string   `enum:",debug,info,warn,error" default:"" placeholder:"LEVEL" help:"@telemetry.log Default: info."`
	Set       []string `sep:"none" placeholder:"PATH=VALUE" help:"Set any other member of the configuration (docs/spec/config.md): one of servers.NAME, such as max_chars=4000000, hold=hidden-tag,hidden-bidi or admission.pins=audit, or one of the file, such as review.model=M. May be repeated."`

	Command []string `arg:"" optional:"" passthrough:"" help:"The server's program and arguments, after --."`

	FormerFlags []string `kong:"-"` // warnings about flags of an earlier release
}

func (wrapCmd) Help() string {
	return `The server is started for this one client, and ends with it. Of the configuration, defaults and
servers.NAME count, and what these name; a mistake elsewhere in it is a warning. If servers.NAME has a command
or a URL, none is needed here. pellucid.yaml in the working directory is not read. Log lines go to standard error. A
client that closes its side, as a script does at the end of its input, still gets the answers to
its requests, each within --timeout, as long as it reads them. Exit codes: 0 the client has left,
or a signal came; 1 the server ended, or something failed; 2 wrong usage; 3 the state directory, a
key, a variable, the configuration or a policy cannot be used; 4 the server cannot be started or reached, or the
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
	r, err := c.compile(e.references())
	if err != nil {
		return err
	}
	log := logs.New(e.Stderr, r.Telemetry.LogJSON, r.Telemetry.LogLevel)
	c.warn(e, r, log)
	for _, said := range c.FormerFlags {
		log.Warn("a flag of an earlier release still works; pellucid protect rewrites the entries of your clients", "flag", said)
	}
	o := app.WrapOptions{Database: install.Database(cmp.Or(r.Store.Path, r.Store.URL.Reveal(), e.Getenv("PELLUCID_DB"))),
		Called: c.called(r.Servers[0]), Login: c.loginName(r.Servers[0]), Log: log}
	if out, is := e.Stdout.(*os.File); is {
		o.Unread = func(ctx context.Context) bool { return terminal.Unread(ctx, out) }
	}
	w, err := app.OpenWrap(r.Rules, o)
	if err != nil {
		return err
	}
	defer w.Close()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // a client that reads no more is an error of Write: what is open is closed
	resident.DropStartup()                                  // a relay is one of many, and stays
	commandline.SayForClient(e.Stdin, e.Stderr, "pellucid wrap")
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
	case c.URL != "" && len(c.Command) > 0:
		return errors.New("wrap: --url and a command exclude each other")
	case c.URL != "" && (c.Cwd != "" || len(c.Env) > 0):
		return errors.New("wrap: --cwd and --env are for a command, not for --url")
	case len(c.Command) > 0 && (len(c.Header) > 0 || c.Bearer != "" || c.Transport != ""):
		return errors.New("wrap: --header, --bearer and --transport are for --url")
	case c.Bearer != "" && slices.ContainsFunc(c.Header, isAuthorization):
		return errors.New("wrap: --bearer and --header Authorization exclude each other")
	case slices.ContainsFunc(c.Env, isNoVariable):
		return errors.New("wrap: --env: want NAME=VALUE, or NAME alone to pass it on")
	case slices.ContainsFunc(c.Header, func(spec string) bool { return !isHeader(spec) }):
		return errors.New("wrap: --header: want NAME=env:VAR or NAME=file:PATH")
	case slices.ContainsFunc(c.Set, func(spec string) bool { return !strings.Contains(spec, "=") }):
		return errors.New("wrap: --set: want PATH=VALUE, such as max_chars=4000000")
	case !frame.IsLabel(c.Name):
		return errors.New("wrap: --name must be 1 to 128 of A-Z a-z 0-9 . _ / : @ + -, and begin with a letter or digit")
	}
	return nil
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
