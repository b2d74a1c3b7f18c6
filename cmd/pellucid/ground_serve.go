// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"syscall"

	"github.com/pellucid-mcp/pellucid/app"
	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
)

type groundServeCmd struct {
	Stdio bool   `help:"Speak MCP on standard input and output, instead of HTTP."`
	HTTP  string `name:"http" placeholder:"ADDR" help:"Address to listen on (default 127.0.0.1:7420)."`
	groundDB
	groundRules
	Profile        []string `sep:"none" placeholder:"FILE" help:"Consensus profile (CPML) that a query may name; may be repeated."`
	DefaultProfile string   `placeholder:"ID" help:"@ground.default_profile"`
	Validators     string   `placeholder:"FILE" help:"@ground.validators"`
	Issuer         []string `sep:"none" placeholder:"DID" help:"Issuer whose cascade events are accepted, in addition to the operator of this installation; may be repeated."`
	Tokens         string   `placeholder:"FILE" help:"File of the bearer tokens with their principals and scopes (ground:query, ground:ingest, ground:events)."`
	Token          string   `placeholder:"REF" help:"One bearer token with all scopes: env:NAME or file:PATH."`
	RequireToken   bool     `help:"Require a token for queries too."`
	hostFlags
	AllowOrigin []string `placeholder:"ORIGIN" help:"Origin of web pages that may send queries from a browser, such as https://app.example; may be repeated."`
	logFlags
}

// groundAddr is where the adapter listens if nobody says otherwise.
const groundAddr = "127.0.0.1:7420"

func (groundServeCmd) Help() string {
	return `Serves the tools ground and attestation over MCP: at /ground/mcp, or with --stdio to
the one client that started it. With tokens it also takes attestations at
/ground/attestations and cascade events at /ground/events. What is refused is recorded in
refusals.jsonl in the state directory. Where there is no store, a demonstration set is
served, and nothing is kept. Exit codes: 0 ended by its client or a signal, 1 failed,
2 wrong usage, 3 bad configuration, 4 the store cannot be reached.`
}

func (c *groundServeCmd) Validate() error {
	switch {
	case c.Stdio && (c.HTTP != "" || c.Tokens != "" || c.Token != "" || c.RequireToken || len(c.AllowHost)+len(c.AllowOrigin) > 0):
		return errors.New("--stdio serves one client: --http, tokens, hosts and origins do not apply to it")
	case c.RequireToken && c.Tokens == "" && c.Token == "":
		return errors.New("--require-token needs --tokens or --token")
	}
	c.HTTP = cmp.Or(c.HTTP, groundAddr)
	var open error
	if c.Tokens == "" && c.Token == "" {
		open = errors.New("an address that is not loopback needs --tokens or --token: without them every machine of the network could use the adapter")
	}
	return c.check("--http", c.HTTP, c.AllowOrigin, open)
}

func (c *groundServeCmd) Run(e *env) error {
	ctx, stop := exit.UntilSignal(syscall.SIGHUP)
	defer stop()
	log := c.logger(e.Stderr)
	dir, err := install.Open()
	if err != nil {
		return err
	}
	setup := c.setup()
	if err := compiled(setup, e.references()); err != nil {
		return err
	}
	who, err := app.GroundTokens(c.Tokens, c.Token, e.secrets())
	if err != nil {
		return err
	}
	ring, err := install.Ring(dir)
	if err != nil {
		return err
	}
	go install.FollowKeys(ctx, dir, ring, log, nil)
	g, err := app.OpenGround(ctx, dir, app.GroundPlan{Rules: setup, DB: c.DB, Absent: c.absent(), Ring: ring, Log: log, Notice: e.Stderr})
	if err != nil {
		return err
	}
	defer g.Close()
	if c.Stdio {
		sayForClient(e, "ground serve --stdio")
		return g.ServeStdio(ctx, e.Stdin, e.Stdout)
	}
	return g.ListenAndServe(ctx, app.GroundServing{Addr: c.HTTP, Hosts: c.AllowHost, Origins: c.AllowOrigin, Auth: who, Closed: c.RequireToken}, e.Stderr)
}

// absent: a demonstration is for looking at only. What others hand in has to be kept.
func (c *groundServeCmd) absent() app.Absent {
	if c.DB == "" && c.Tokens == "" && c.Token == "" {
		return app.ShowDemo
	}
	return app.MakeStore
}

// setup is what the flags say, as the section ground of a file would say it.
func (c *groundServeCmd) setup() *rules.Ground {
	g := c.groundRules.setup()
	g.Profiles, g.Default, g.Validators, g.Issuers = c.Profile, c.DefaultProfile, c.Validators, c.Issuer
	return g
}
