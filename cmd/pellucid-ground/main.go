// SPDX-License-Identifier: Apache-2.0

// Command pellucid-ground is the Veritas grounding adapter: an MCP server that answers with signed attestations and the verdict composed of them.
package main

import (
	"fmt"
	"io"
	"os"

	"github.com/alecthomas/kong"

	"github.com/pellucid-mcp/pellucid/app/commandline"
	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/grounding/attest"
	"github.com/pellucid-mcp/pellucid/platform/build"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/platform/valueref"
)

// cli is the command line: one field for each verb, which is in the file of its name.
type cli struct {
	Serve   serveCmd   `cmd:"" help:"Answer queries over MCP, and accept attestations."`
	Import  importCmd  `cmd:"" help:"Check attestations and store them."`
	Query   queryCmd   `cmd:"" help:"Query the store, without a server."`
	Retract retractCmd `cmd:"" help:"Retract a source or an attestation, and everything that depends on it."`
	Reverse reverseCmd `cmd:"" help:"Take a retraction back."`
	Export  exportCmd  `cmd:"" help:"Print what the store holds, as JSON lines."`
	Attest  attestCmd  `cmd:"" help:"Make a key, and sign and check attestations."`
	Conform conformCmd `cmd:"" help:"Score any grounding adapter against the adversarial corpus."`
	Version versionCmd `cmd:"" help:"Print the versions of this program and of its formats."`
}

// env is the part of the world outside that a verb may use.
type env struct {
	Stdin  io.Reader
	Stdout io.Writer // what was asked for, and nothing else
	Stderr io.Writer // messages to people
	Getenv func(string) string
}

// secret returns the value of a reference, or "" where there is none. A secret never stands on the command line, where every
// user of the machine can read it.
func (e *env) secret(flag, ref string) (string, error) {
	if ref == "" {
		return "", nil
	}
	value, err := e.resolve(ref)
	if err != nil {
		return "", exit.With(exit.Config, fmt.Errorf("%s: %w", flag, err))
	}
	return value, nil
}

func (e *env) resolve(ref string) (string, error) {
	return valueref.Source{Getenv: func(name string) (string, bool) {
		value := e.Getenv(name)
		return value, value != ""
	}}.Resolve(ref)
}

func main() {
	os.Exit(run(os.Args[1:], &env{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv}))
}

// run parses args, runs the verb and returns the code to exit with.
func run(args []string, e *env) int {
	report := func(err error) int { return commandline.Report("pellucid-ground", e.Stderr, err) }
	var c cli
	k, err := newParser(&c, e)
	if err != nil {
		return report(err)
	}
	switch {
	case len(args) == 0:
		args = []string{"--help"}
		k.Stdout, k.Exit = e.Stderr, func(int) { os.Exit(exit.Usage) }
	case len(args) == 1 && args[0] == "--version": // what people try first
		args = []string{"version"}
	case args[0] == "help":
		args = append(args[1:len(args):len(args)], "--help")
	}
	ctx, err := k.Parse(args)
	if err != nil {
		return report(exit.With(exit.Usage, commandline.Usage(err)))
	}
	return report(ctx.Run(e))
}

func newParser(c *cli, e *env) (*kong.Kong, error) {
	return kong.New(c, commandline.Options("pellucid-ground",
		"The Veritas grounding adapter: signed attestations, and the verdict composed of them, over MCP.", e.Stdout, e.Stderr)...)
}

type versionCmd struct {
	JSON bool `name:"json" help:"Print the versions as JSON."`
}

func (c *versionCmd) Run(e *env) error {
	v := build.Read()
	if c.JSON {
		return terminal.WriteJSON(e.Stdout, struct {
			build.Versions
			Attestation string `json:"attestation"`
		}{v, string(attest.V03)})
	}
	_, err := fmt.Fprintf(e.Stdout, "pellucid-ground %s\nattestation %s\nsanitation %s\nUnicode %s\n%s %s\n", v.Version, attest.V03, v.Sanitation, v.Unicode, v.Go, v.Platform)
	return err
}
