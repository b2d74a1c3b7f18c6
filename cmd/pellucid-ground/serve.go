// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"syscall"

	"github.com/pellucid-mcp/pellucid/app/commandline"
	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/app/grounding"
	"github.com/pellucid-mcp/pellucid/app/local"
)

type serveCmd struct {
	Stdio bool   `help:"Speak MCP on standard input and output, instead of HTTP."`
	HTTP  string `name:"http" placeholder:"ADDR" help:"Address to listen on (default 127.0.0.1:7420)."`
	storeFlags
	ruleFlags
	Profile        []string `sep:"none" placeholder:"FILE" help:"Consensus profile (CPML) that a query may name; may be repeated."`
	DefaultProfile string   `placeholder:"ID" help:"Identifier of the --profile for queries that name none (default: every domain alike)."`
	Validators     string   `placeholder:"FILE" help:"File with the reputation of validators and the trust in them (default: all count the same)."`
	Scores         string   `placeholder:"FILE" help:"Trust scores of validators, for profiles that take them, as pellucid trust --json prints them. The file is read again when it changes."`
	Issuer         []string `sep:"none" placeholder:"DID" help:"Issuer whose cascade events are accepted, in addition to the operator of this installation; may be repeated."`
	Tokens         string   `placeholder:"FILE" help:"File of the bearer tokens with their principals and scopes (ground:query, ground:ingest, ground:events)."`
	Token          string   `placeholder:"REF" help:"One bearer token with all scopes: env:NAME or file:PATH."`
	RequireToken   bool     `help:"Require a token for queries too."`
	commandline.HostFlags
	AllowOrigin []string `placeholder:"ORIGIN" help:"Origin of web pages that may send queries from a browser, such as https://grounding.example; may be repeated."`
	commandline.LogFlags
}

// defaultAddr is where the adapter listens if nobody says otherwise.
const defaultAddr = "127.0.0.1:7420"

func (serveCmd) Help() string {
	return `Serves the tools ground and attestation over MCP: at /ground/mcp, or with --stdio to
the one client that started it. With tokens it also takes attestations at
/ground/attestations and cascade events at /ground/events. What is refused is recorded in
refusals.jsonl in the state directory. Where there is no store, a demonstration set is
served, and nothing is kept. Exit codes: 0 ended by its client or a signal, 1 failed,
2 wrong usage, 3 bad configuration, 4 the store cannot be reached.`
}

func (c *serveCmd) Validate() error {
	switch {
	case c.Stdio && (c.HTTP != "" || c.Tokens != "" || c.Token != "" || c.RequireToken || len(c.AllowHost)+len(c.AllowOrigin) > 0):
		return errors.New("--stdio serves one client: --http, tokens, hosts and origins do not apply to it")
	case c.RequireToken && c.Tokens == "" && c.Token == "":
		return errors.New("--require-token needs --tokens or --token")
	}
	c.HTTP = cmp.Or(c.HTTP, defaultAddr)
	var open error
	if c.Tokens == "" && c.Token == "" {
		open = errors.New("an address that is not loopback needs --tokens or --token: without them every machine of the network could use the adapter")
	}
	return c.CheckHosts("--http", c.HTTP, c.AllowOrigin, open)
}

func (c *serveCmd) Run(e *env) error {
	ctx, stop := exit.UntilSignal(syscall.SIGHUP)
	defer stop()
	log := c.Logger(e.Stderr)
	dir, err := local.OpenState()
	if err != nil {
		return err
	}
	setup := c.setup()
	who, err := grounding.Tokens(c.Tokens, c.Token, e.resolve)
	if err != nil {
		return err
	}
	ring, err := local.Ring(dir)
	if err != nil {
		return err
	}
	go local.FollowKeys(ctx, dir, ring, log, nil)
	g, err := grounding.Open(ctx, dir, grounding.Plan{Setup: setup, DB: c.DB, Absent: c.absent(), Ring: ring, Log: log, Notice: e.Stderr})
	if err != nil {
		return err
	}
	defer g.Close()
	if c.Stdio {
		commandline.SayForClient(e.Stdin, e.Stderr, "pellucid-ground serve --stdio")
		return g.ServeStdio(ctx, e.Stdin, e.Stdout)
	}
	return g.ListenAndServe(ctx, grounding.Serving{Addr: c.HTTP, Hosts: c.AllowHost, Origins: c.AllowOrigin, Auth: who, Closed: c.RequireToken}, e.Stderr)
}

// absent: a demonstration is for looking at only. What others hand in has to be kept.
func (c *serveCmd) absent() grounding.Absent {
	if c.DB == "" && c.Tokens == "" && c.Token == "" {
		return grounding.ShowDemo
	}
	return grounding.MakeStore
}

func (c *serveCmd) setup() grounding.Setup {
	g := c.ruleFlags.setup()
	g.Profiles, g.Default, g.Validators, g.Scores, g.Issuers = c.Profile, c.DefaultProfile, c.Validators, c.Scores, c.Issuer
	return g
}
