// SPDX-License-Identifier: Apache-2.0

// Command pellucid is the trust boundary for the Model Context Protocol: third-party text goes in, clean text and a record of every decision come out.
package main

import (
	"errors"
	"io"
	"os"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/pellucid-mcp/pellucid/app/commandline"
	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/boundary/protect"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
)

// cli is the command line: one field for each verb. A verb is in the file of its name,
// and where that would be long, in others whose names begin with it: wrap_hold.go. The
// rest belongs to several verbs: flags that they share, what they read and how they answer.
type cli struct {
	Protect protectCmd `cmd:"" group:"first" help:"Change an MCP client's configuration so that all its servers run behind the boundary."`
	Check   checkCmd   `cmd:"" group:"first" help:"Check what servers say of themselves, before a client uses them."`
	Doctor  doctorCmd  `cmd:"" group:"first" help:"Check this installation."`
	Up      upCmd      `cmd:"" group:"first" help:"Serve every configured server behind the boundary, over HTTP."`
	Console consoleCmd `cmd:"" group:"first" help:"Open the web console: see what was decided, and decide about what waits."`
	Explain explainCmd `cmd:"" group:"first" help:"Say what happened to one call, why, and what you can do now; write its proof."`

	Wrap   wrapCmd   `cmd:"" group:"desktop" help:"Put one MCP server behind the boundary; the client uses standard input and output."`
	Hook   hookCmd   `cmd:"" group:"desktop" help:"Answer one event of an agent's host: the output of its own tools passes the boundary."`
	Login  loginCmd  `cmd:"" group:"desktop" help:"Log in to a remote server, by OAuth in a browser or on another device."`
	Logout logoutCmd `cmd:"" group:"desktop" help:"Revoke and remove the login to a remote server."`
	Demo   demoCmd   `cmd:"" group:"desktop" help:"Show poisoned and honest results, before and after, in a terminal."`

	Pins       pinsCmd       `cmd:"" group:"review" help:"Review what servers have changed in what they say of themselves; approve or block it."`
	Quarantine quarantineCmd `cmd:"" group:"review" help:"Review held results: show, release or deny them."`
	Guard      guardCmd      `cmd:"" group:"review" help:"Run a proxy to a model's provider that holds tool calls caused by third-party text, and report what it held."`
	Ccr        ccrCmd        `cmd:"" group:"review" help:"Find the piece of a context that took control of a model."`

	Policy   policyCmd   `cmd:"" group:"operate" help:"Test the rules of a policy, and try them on recorded decisions."`
	Webhooks webhooksCmd `cmd:"" group:"operate" help:"List and test messages to receivers that are told what waits for a reviewer."`
	Keys     keysCmd     `cmd:"" group:"operate" help:"Make, rotate and retire keys."`
	Store    storeCmd    `cmd:"" group:"operate" help:"Migrate and back up the store."`
	Forget   forgetCmd   `cmd:"" group:"operate" help:"Erase the stored data of one principal or reviewer, or the pin of a server."`

	Ledger ledgerCmd `cmd:"" group:"audit" help:"Show and verify the record of decisions."`
	Trust  trustCmd  `cmd:"" group:"audit" help:"Show the trust scores of servers, or compute them again from the log."`

	Scrub    scrubCmd    `cmd:"" group:"text" help:"Clean third-party text, and show what was hidden in it; check URIs."`
	Classify classifyCmd `cmd:"" group:"text" help:"Print how much a text looks like an injection, by the classifiers."`

	Version versionCmd `cmd:"" group:"program" help:"Print the versions of this program and of its rules."`
}

// verbGroups say who uses the verbs, in the order of their help.
var verbGroups = []kong.Group{
	{Key: "first", Title: "The first six:"},
	{Key: "desktop", Title: "On your machine:"},
	{Key: "review", Title: "For reviewers:"},
	{Key: "operate", Title: "For operators:"},
	{Key: "audit", Title: "For auditors:"},
	{Key: "text", Title: "For texts:"},
	{Key: "program", Title: "This program:"},
}

// env is what a verb may touch of the world outside.
type env struct {
	Stdin  io.Reader
	Stdout io.Writer // what was asked for, and nothing else
	Stderr io.Writer // messages to people
	Getenv func(string) string
}

func main() {
	os.Exit(run(os.Args[1:], &env{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv}))
}

// run parses args, runs the verb and returns the code to exit with.
func run(args []string, e *env) int {
	var c cli
	k, err := newParser(&c, e)
	if err != nil {
		return report(e, err)
	}
	if len(args) == 0 {
		args = []string{"--help"}
		k.Stdout, k.Exit = e.Stderr, func(int) { os.Exit(exit.Usage) }
	}
	switch args = helpArguments(k, args); {
	case len(args) == 1 && args[0] == "--version": // what people try first
		args[0] = "version"
	case len(args) > 0 && args[0] == "wrap":
		args, c.Wrap.FormerFlags = protect.WithoutFormer(args)
	case formerIn(args) != "":
		return report(e, exit.With(exit.Usage, errors.New(formerIn(args))))
	}
	ctx, err := k.Parse(args)
	if err != nil {
		return report(e, exit.With(exit.Usage, commandline.Usage(err)))
	}
	return report(e, ctx.Run(e))
}

func newParser(c *cli, e *env) (*kong.Kong, error) {
	return kong.New(c, append(commandline.Options("pellucid",
		"The trust boundary for the Model Context Protocol: third-party text goes in, evidence comes out.", e.Stdout, e.Stderr),
		kong.ExplicitGroups(verbGroups),
		kong.Vars{"clients": strings.Join(protect.Clients(), ","), "listed": strings.Join(protect.Clients(), ", ")},
		kong.ValueFormatter(helpOf),
	)...)
}

// helpOf is the help of a flag. "@PATH" at its start stands for what the member of the
// configuration at PATH means.
func helpOf(v *kong.Value) string {
	help := kong.DefaultHelpValueFormatter(v)
	path, member := strings.CutPrefix(help, "@")
	if !member {
		return help
	}
	path, rest, _ := strings.Cut(path, " ")
	return strings.TrimSpace(rules.Help()[path].Text + " " + rest)
}

// report tells a person what went wrong, if anything did, and returns the exit code.
func report(e *env, err error) int { return commandline.Report("pellucid", e.Stderr, err) }
