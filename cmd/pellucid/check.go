// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/alecthomas/kong"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/boundary/preflight"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/boundary/surface"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// checkCmd looks at what servers say of themselves before a client does.
type checkCmd struct {
	Server  string        `placeholder:"NAME" help:"Check only the server of this name. With a command: name of the server for people. With --surface: server whose pin the surface is compared with."`
	Surface string        `placeholder:"DUMP" help:"Check this saved surface, and start no server."`
	Files   string        `placeholder:"DIR" help:"Check the files of this folder that tell an agent what to do (AGENTS.md, CLAUDE.md, skills, rules, entries of MCP servers), and start no server."`
	Dump    string        `placeholder:"FILE" help:"Save the surface of the server into this file; only one server may be checked."`
	Wide    bool          `default:"true" negatable:"" help:"Reject every hidden character of a description, except those that emoji and languages need. --no-wide rejects only the 151 characters of the published set SUSPICIOUS_UNICODE; text hidden in other characters then counts as clean."`
	Yes     bool          `short:"y" help:"Start the configured servers without asking."`
	NoPin   bool          `help:"Compare with the pins, but change none of them."`
	Env     []string      `sep:"none" placeholder:"NAME[=VALUE]" help:"Environment variable for the command, in addition to those that every server gets (docs/environment.md). Without a value, the value of this process is passed on."`
	Timeout time.Duration `default:"2m" help:"Time limit for a server to start and to send its whole surface."`
	JSON    bool          `name:"json" help:"Print the report as JSON."`
	Config  string        `short:"c" placeholder:"FILE" help:"Configuration of pellucid up. It names the servers to check, unless the command line does, and the model of the review."`
	Review  reviewFlags   `embed:""`
	pinDB

	Args []string `arg:"" optional:"" name:"file" help:"Configurations of clients, or saved surfaces. Instead of files: -- and the command of one server."`

	files, command []string
	typed          bool         // there was a --
	configuration  *rules.Rules // of Config
}

func (checkCmd) Help() string {
	return `Starts or reaches each server, lists everything that it says of itself, calls no tool, and
ends it. The servers are those of FILE, or the one command after --; by default all servers of
this user's clients and of the project in this directory. Hidden text rejects a server. What a
server says at first is pinned; later changes wait for pellucid pins. Wording that
manipulates, texts that the classifier of this program takes for orders to a model, and names
that another server has too, are reported; they reject nothing. With
--review-model, or a review in --config, a language model judges the words too. It gets them
as data, and no tools. Any answer other than OK rejects the server. An OK is stored, so that
an unchanged server is not judged again. A command of a configuration is shown, and started
only after confirmation. A server that a file has disabled is skipped unless --server names it.
The text of a report is third-party text: read it, and do not paste it into a model. Exit codes:
0 clean; 1 failed, a file cannot be read or nothing was checked; 2 wrong usage, or no terminal
for the confirmation; 3 a file is neither a configuration nor a saved surface; 10 changed; 11
rejected; 12 a server cannot be reached. If several apply, the first of 11, 10, 12.`
}

// Run checks servers one after the other.
func (c *checkCmd) Run(e *env, k *kong.Context) error {
	c.split(k.Args)
	if err := c.usage(); err != nil {
		return exit.With(exit.Usage, err)
	}
	if err := c.configure(e); err != nil {
		return err
	}
	review, err := c.reviewRules(e)
	if err != nil {
		return err
	}
	targets, err := c.targets(e)
	if err != nil {
		return codedPreflight(err)
	}
	if c.Dump != "" && len(targets) != 1 {
		return exit.With(exit.Usage, fmt.Errorf("check: --dump is for one server, and there are %d: say which with --server", len(targets)))
	}
	if err := terminal.CanWrite(c.Dump); err != nil && c.Dump != "-" {
		return fmt.Errorf("check: %w", err)
	}
	if err := c.ask(e, targets); err != nil {
		return err
	}
	ctx, stop := exit.UntilSignal()
	defer stop()
	progress := preflight.NewProgress(e.Stderr, targets)
	checker, done, err := c.checker(ctx, review, progress)
	if err != nil {
		progress.Done()
		return err
	}
	defer done()
	r, err := checker.Run(ctx, targets)
	progress.Done()
	if err != nil {
		return codedPreflight(err)
	}
	if err := e.answer("check", c.JSON, r, r.Write); err != nil {
		return err
	}
	return exitOf(r)
}

// codedPreflight gives an error of package preflight its exit code.
func codedPreflight(err error) error {
	switch {
	case errors.Is(err, preflight.ErrUsage):
		return exit.With(exit.Usage, err)
	case errors.Is(err, preflight.ErrFormat):
		return exit.With(exit.Config, err)
	}
	return err
}

// exitOf is what the worst conclusion makes of the process.
func exitOf(r *preflight.Report) error {
	switch r.Conclusion {
	case string(surface.Clean):
		return nil
	case string(surface.Rejected):
		return exit.With(exit.Rejected, nil)
	case string(surface.Differs):
		return exit.With(exit.Changed, nil)
	case preflight.Unreachable:
		return exit.With(exit.NoServer, nil)
	}
	return errors.New("check: nothing was checked")
}

// split tells files from the command: kong makes one list of both.
func (c *checkCmd) split(args []string) {
	c.files = c.Args
	if i := slices.Index(args, "--"); i >= 0 {
		c.typed = true
		at := max(0, len(c.Args)-len(args[i+1:]))
		c.files, c.command = c.Args[:at], c.Args[at:]
	}
}

// usage refuses what contradicts itself on the command line.
func (c *checkCmd) usage() error {
	ways := 0
	for _, given := range []bool{len(c.files) > 0, len(c.command) > 0, c.Surface != "", c.Files != ""} {
		if given {
			ways++
		}
	}
	switch {
	case c.typed && len(c.command) == 0:
		return errors.New("check: there is no command behind --")
	case ways > 1:
		return errors.New("check: files, --files, --surface and a command exclude each other")
	case len(c.Env) > 0 && len(c.command) == 0:
		return errors.New("check: --env is for a command")
	case slices.ContainsFunc(c.Env, isNoVariable):
		return errors.New("check: --env: want NAME=VALUE, or NAME alone to pass it on")
	case c.Timeout <= 0:
		return errors.New("check: --timeout must be positive")
	}
	return nil
}

// configure reads what --config names. Its pins and verdicts are those of the gateway.
func (c *checkCmd) configure(e *env) (err error) {
	if c.Config == "" {
		return nil
	}
	if c.configuration, err = rules.Load(c.Config, e.references()); err != nil {
		return exit.With(exit.Config, fmt.Errorf("check: %w", err))
	}
	if at := c.configuration.Store; c.DB == "" {
		c.DB = install.Database(cmp.Or(at.Path, at.URL.Reveal()))
	}
	return nil
}

// writeFile writes what others may read as well: it is no secret.
func writeFile(path string, b []byte) error {
	if err := os.WriteFile(path, b, 0o666); err != nil {
		return fmt.Errorf("check: write %s: %w", finding.Quote(path), terminal.WithoutPath(err))
	}
	return nil
}
