// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/pellucid-mcp/pellucid/app"
	"github.com/pellucid-mcp/pellucid/app/commandline"
	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/model/llm"
	"github.com/pellucid-mcp/pellucid/platform/egress"
)

// guardCmd is the guard, and what a person asks of its decisions.
type guardCmd struct {
	Serve  guardServeCmd  `cmd:"" default:"withargs" help:"Run the proxy. The word serve may be left out."`
	Report guardReportCmd `cmd:"" help:"Say how many calls the guard held, or would have held in audit mode, and which ones."`
}

func (guardCmd) Help() string {
	return `Begin with pellucid guard --upstream URL --mode audit, which holds nothing. After some days,
pellucid guard report says what enforce would have held. pellucid guard serve --help lists the
flags of the proxy.`
}

type guardServeCmd struct {
	Config   string `short:"c" placeholder:"FILE" help:"Configuration (docs/spec/config.md, \"Guard\"), of which guard, store, evidence and webhooks count here. Flags go before it."`
	Listen   string `default:"127.0.0.1:7421" placeholder:"ADDR" help:"Address to listen on (default ${default})."`
	Upstream string `placeholder:"URL" help:"URL of the provider, such as https://api.openai.com/v1 or https://api.anthropic.com."`
	stateDB
	Mode       string   `enum:"enforce,audit," default:"" placeholder:"MODE" help:"@guard.mode Default: enforce."`
	Fail       string   `enum:"closed,open," default:"" placeholder:"MODE" help:"@guard.fail Default: closed."`
	Buffer     bool     `help:"@guard.buffer"`
	Pass       []string `sep:"none" placeholder:"ROUTE" help:"Route to forward although its answers are not inspected, such as 'GET /v1/files/*?limit&after'; may be repeated."`
	Privileged []string `sep:"none" placeholder:"GLOB" help:"Tool whose calls always need a verdict; may be repeated."`
	ReadOnly   []string `sep:"none" placeholder:"GLOB" help:"Tool that only reads; may be repeated."`
	NoGuess    bool     `help:"Do not treat a tool as read-only because of its name or its approved definition."`
	Untrusted  []string `sep:"none" placeholder:"GLOB" help:"Tool whose description is third-party text too; may be repeated."`
	Key        string   `placeholder:"REF" help:"@guard.key REF is env:NAME or file:PATH."`
	AWS        bool     `name:"aws" help:"Sign requests for Amazon Bedrock, with the keys in AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, in the place of guard.aws."`
	Tokens     string   `placeholder:"FILE" help:"File of the bearer tokens of those who may use the guard (scope guard:ask). Needs a key (--key or --aws)."`
	commandline.HostFlags
	Calls      *int   `placeholder:"N" help:"Maximum number of calls of the model for one decision (default 12)."`
	Factor     *int   `placeholder:"N" help:"Maximum number of tokens for one decision, as a multiple of those of the held answer (default 5)."`
	Seconds    *int   `placeholder:"N" help:"Time limit for one decision, in seconds (default 60)."`
	Severity   *int   `placeholder:"N" help:"Severity (0 to 1000) from which a source is blamed and held (default 250)."`
	Quarantine string `enum:"text,tool,server,off," default:"" placeholder:"SCOPE" help:"@guard.quarantine.scope Default: text."`
	commandline.LogFlags
}

func (guardServeCmd) Help() string {
	return `A proxy in front of a model's provider, for clients of OpenAI's chat completions and
responses, Anthropic's messages and Google's generateContent, Amazon Bedrock's paths /openai/v1
and /anthropic among them: point their base URL here. Text passes through as it comes. Where the model
proposes a privileged tool call while third-party text is in the context, the call is held
until it is known whether the user's request asks for it, and where its values come from. One
that the user asked for goes on; for another the model answers again without the sentences
that led to it, or a reviewer decides. What was decided is in the ledger, and whole, for pellucid ccr replay, in
guard/ID.json in the state directory. Calls that wait for a person are in pellucid
quarantine. Exit codes: 0 ended by a signal, 1 failed, 2 wrong usage, 3 bad configuration.`
}

func (c *guardServeCmd) Validate() error {
	for _, of := range []struct {
		flag        string
		n           *int
		least, most int
	}{{"--calls", c.Calls, 1, 10_000}, {"--factor", c.Factor, 1, 1000}, {"--seconds", c.Seconds, 1, 3600}, {"--severity", c.Severity, 0, 1000}} {
		if of.n != nil && (*of.n < of.least || *of.n > of.most) {
			return fmt.Errorf("%s: want %d to %d", of.flag, of.least, of.most)
		}
	}
	switch {
	case c.Upstream != "" && !egress.IsHTTP(c.Upstream):
		return errors.New("--upstream: want http:// or https:// and a host")
	case c.Config == "" && c.Upstream == "":
		return errors.New("missing flags: --upstream=URL, or a configuration that names one")
	case c.Key != "" && c.AWS:
		return errors.New("--key and --aws exclude each other")
	case c.Config == "" && c.Tokens != "" && c.Key == "" && !c.AWS:
		return app.ErrGuardNeedsKey
	}
	var open error
	if (c.Key != "" || c.AWS) && c.Tokens == "" {
		open = app.ErrGuardSpent
	}
	return c.CheckHosts("--listen", c.Listen, nil, open)
}

func (c *guardServeCmd) Run(e *env) error {
	ctx, stop := exit.UntilSignal(syscall.SIGHUP)
	defer stop()
	log := c.Logger(e.Stderr)
	set, err := c.settings(e)
	if err != nil {
		return err
	}
	g, err := app.OpenGuard(ctx, set, log)
	if err != nil {
		return err
	}
	defer g.Close()
	return g.ListenAndServe(ctx, e.Stderr)
}

// settings reads the configuration and puts the command line on top of it.
func (c *guardServeCmd) settings(e *env) (*app.GuardSettings, error) {
	out := &app.GuardSettings{
		DB: c.DB, Listen: c.Listen, Hosts: c.AllowHost, Tokens: c.Tokens, Secret: e.secrets(), Severity: app.DefaultGuardSeverity,
	}
	if c.Config != "" {
		r, err := rules.Load(c.Config, e.references())
		if err != nil {
			return nil, exit.With(exit.Config, fmt.Errorf("guard: %w", err))
		}
		out.Store, out.Evidence, out.Webhooks, out.Servers = r.Store, r.Evidence, r.Webhooks, r.Servers
		out.TwoPersons = r.TwoPersons
		if r.Guard != nil {
			out.Guard = *r.Guard
		}
		if r.Reviewers != nil {
			out.Seal = r.Reviewers.Seal
		}
	}
	g := &out.Guard
	g.Upstream = cmp.Or(c.Upstream, g.Upstream)
	if g.Upstream == "" {
		return nil, exit.With(exit.Config, errors.New("guard: neither --upstream nor guard.upstream of the configuration says where the provider is"))
	}
	g.Audit = c.Mode == "audit" || c.Mode == "" && g.Audit
	g.FailOpen = c.Fail == "open" || c.Fail == "" && g.FailOpen
	g.Buffer = c.Buffer || g.Buffer
	g.NoGuess = c.NoGuess || g.NoGuess
	g.UntrustedTools = append(g.UntrustedTools[:len(g.UntrustedTools):len(g.UntrustedTools)], c.Untrusted...)
	g.Tools = append(c.tools(), g.Tools...)
	g.Pass = append(g.Pass[:len(g.Pass):len(g.Pass)], c.Pass...)
	set := func(to *int, flag *int) {
		if flag != nil {
			*to = *flag
		}
	}
	set(&g.Calls, c.Calls)
	set(&g.Factor, c.Factor)
	if c.Seconds != nil {
		g.Time = time.Duration(*c.Seconds) * time.Second
	}
	set(&out.Severity, g.Blame)
	set(&out.Severity, c.Severity)
	if c.Severity != nil {
		g.Quarantine.From = nil
	}
	g.Quarantine.Scope = cmp.Or(c.Quarantine, g.Quarantine.Scope, "text")
	if c.AWS {
		var err error
		if g.AWS, err = rules.AWSFromEnv(e.references(), g.AWS); err != nil {
			return nil, exit.With(exit.Config, fmt.Errorf("guard: --aws: %w", err))
		}
	}
	switch {
	case c.AWS:
	case c.Key != "":
		g.AWS = nil
		secret := e.secrets()
		if _, err := secret.optional("guard: --key", c.Key); err != nil {
			return nil, err
		}
		out.Key = llm.NewKey(c.Key, func() (string, error) { return secret(c.Key) })
	case g.Key.Reveal() != "":
		out.Key = llm.NewKey(g.Key.String(), func() (string, error) { return g.Key.Reveal(), nil })
	}
	return out, nil
}

// tools are the rules of the command line, which go before those of the configuration.
func (c *guardServeCmd) tools() (out []rules.GuardTool) {
	for _, glob := range c.Privileged {
		out = append(out, rules.GuardTool{Tool: glob, Privilege: 1000})
	}
	for _, glob := range c.ReadOnly {
		out = append(out, rules.GuardTool{Tool: glob})
	}
	return out
}
