// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"syscall"

	"github.com/pellucid-mcp/pellucid/app"
	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/model/guard"
	"github.com/pellucid-mcp/pellucid/platform/auth"
	"github.com/pellucid-mcp/pellucid/platform/listen"
	"github.com/pellucid-mcp/pellucid/platform/loopback"
	"github.com/pellucid-mcp/pellucid/record/hold"
)

type guardCmd struct {
	Config   string `short:"c" placeholder:"FILE" completion:"files" help:"Configuration (docs/spec/config.md, \"Guard\"), of which guard, store and evidence count here. What is said on the command line goes before it."`
	Listen   string `default:"127.0.0.1:7421" placeholder:"ADDR" help:"Listen there (default ${default})."`
	Upstream string `placeholder:"URL" help:"The provider, such as https://api.openai.com/v1 or https://api.anthropic.com."`
	stateDB
	Mode       string   `enum:"enforce,audit," default:"" help:"enforce holds privileged calls; audit holds nothing, and records what would have been held (default enforce)."`
	Fail       string   `enum:"closed,open," default:"" help:"What happens to a call that could not be decided: closed refuses it, open lets it through (default closed)."`
	Buffer     bool     `help:"Hold every answer whole: a streamed one can be repaired then, and text comes only at its end."`
	Pass       []string `sep:"none" placeholder:"ROUTE" help:"Route that is forwarded although nothing inspects its answers, such as 'GET /v1/files/*?limit&after'; may be repeated."`
	Privileged []string `sep:"none" placeholder:"GLOB" help:"Tool whose calls need a verdict, whatever else is said; may be repeated."`
	ReadOnly   []string `sep:"none" placeholder:"GLOB" help:"Tool that only looks; may be repeated."`
	NoGuess    bool     `help:"Do not take tools for read-only whose name says so, or the surface that was approved."`
	Untrusted  []string `sep:"none" placeholder:"GLOB" help:"Tool whose description is a stranger's text as well; may be repeated."`
	Key        string   `placeholder:"REF" help:"Key for the provider: env:NAME or file:PATH. Without it, clients bring their own."`
	Tokens     string   `placeholder:"FILE" completion:"files" help:"Who may ask, with which bearer token (scope guard:ask). Needs a key."`
	hostFlags
	Calls      *int   `placeholder:"N" help:"Calls of the model that one decision may take (default 12)."`
	Factor     *int   `placeholder:"N" help:"Tokens that one decision may take, as a multiple of what the held answer has cost (default 3)."`
	Seconds    *int   `placeholder:"N" help:"Time that one decision may take (default 60)."`
	Severity   *int   `placeholder:"N" help:"From this severity on (0 to 1000), a source is blamed and withheld (default 250)."`
	Quarantine string `enum:"text,tool,server,off," default:"" help:"What gateways on the same database hold once a text has taken control: that text, all results of its tool, or of its server (default text)."`
	Workers    int    `placeholder:"N" help:"Run audits as jobs in the database, which has to be Postgres, and work on so many of them at the same time. Several guards share them, and one that dies loses none. Needs audit mode and a key."`
	logFlags
}

// scopeGuard is what a token needs for this verb's server.
const scopeGuard = "guard:ask"

func (guardCmd) Help() string {
	return `A proxy in front of a model's provider, for clients of OpenAI's chat completions and
responses and Anthropic's messages: point their base URL here. Text passes through as it
comes. Where the model proposes a privileged tool call while text of strangers is in the
context, the call is held, and the model is asked again with pieces of it withheld: a call
that was the user's goes on, one that some text has caused does not. What was decided is in
the ledger, and whole, for pellucid ccr replay, in guard/ID.json in the state directory.
Calls that wait for a person are in pellucid quarantine. Exit codes: 0 ended by a signal,
1 failed, 2 wrong usage, 3 bad configuration.`
}

// Validate is called by kong; its error is one of usage.
func (c *guardCmd) Validate() error {
	for _, of := range []struct {
		flag        string
		n           *int
		least, most int
	}{{"--calls", c.Calls, 1, 10_000}, {"--factor", c.Factor, 1, 1000}, {"--seconds", c.Seconds, 1, 3600}, {"--severity", c.Severity, 0, 1000}, {"--workers", &c.Workers, 0, 1000}} {
		if of.n != nil && (*of.n < of.least || *of.n > of.most) {
			return fmt.Errorf("%s: want %d to %d", of.flag, of.least, of.most)
		}
	}
	switch {
	case c.Upstream != "" && !rules.IsHTTP(c.Upstream):
		return errors.New("--upstream: want http:// or https:// and a host")
	case c.Config == "" && c.Upstream == "":
		return errors.New("missing flags: --upstream=URL, or a configuration that names one")
	case c.Config == "" && c.Tokens != "" && c.Key == "":
		return errNeedsKey
	}
	var open error
	if c.Key != "" && c.Tokens == "" {
		open = errSpent
	}
	return c.check("--listen", c.Listen, nil, open)
}

var (
	errNeedsKey = errors.New("--tokens needs --key: without it, a client's key is the provider's")
	errSpent    = errors.New("an address that is not loopback needs --tokens with --key: anybody could spend it")
)

func (c *guardCmd) Run(e *env) error {
	ctx, stop := exit.UntilSignal(syscall.SIGHUP)
	defer stop()
	log := c.logger(e.Stderr)
	set, err := c.settings(e)
	if err != nil {
		return err
	}
	o, err := set.options()
	if err != nil {
		return exit.With(exit.Config, err)
	}
	if o.Auth, err = c.who(e, o); err != nil {
		return err
	}
	o.Scope, o.Log = scopeGuard, log
	dir, err := install.Open()
	if err != nil {
		return err
	}
	db := cmp.Or(c.DB, install.Database(set.store.Path), install.Database(set.store.URL.Reveal()))
	s, err := db.Open(ctx, dir, true)
	if err != nil {
		return err
	}
	defer s.Close()
	kept, err := dir.Sub("guard")
	if err != nil {
		return exit.With(exit.Config, err)
	}
	set.evidence.Mode = rules.Required // whatever becomes of results, a decision is nothing without its record
	records := install.OpenRecords(s, dir, &set.evidence, install.PollSeldom, log)
	defer records.Close()
	fence, err := install.FenceKey(dir)
	if err != nil {
		return err
	}
	o.Frame = &fence
	if o.Policy.Guess {
		hints := &toolHints{}
		hints.follow(ctx, s, log)
		o.Policy.Hints = hints.of
	}
	trail := guardTrail{records, kept}
	o.Hooks.Sink, o.Hooks.Blame = trail, trail.blame
	o.Hooks.Desk = hold.New(s, hold.Options{Evidence: records.Held, Seal: set.seal})
	if q := set.guard.Quarantine; q.Scope != "off" {
		o.Hooks.Quarantine = blockade{hold.NewBlocks(s, hold.BlockOptions{Keep: q.For, Evidence: records.Block}), q.Scope}
	}
	g, done, err := c.withWorkers(ctx, *o, string(db), log)
	if err != nil {
		return err
	}
	defer done()
	return c.serve(ctx, e.Stderr, g, o.Mode, log)
}

// who is by whom the guard may be asked; nil: by whoever can connect.
func (c *guardCmd) who(e *env, o *guard.Options) (auth.Authenticator, error) {
	switch {
	case c.Tokens == "" && !o.Key.IsZero() && !loopback.Listener(c.Listen):
		return nil, exit.With(exit.Config, fmt.Errorf("guard: %w", errSpent))
	case c.Tokens == "":
		return nil, nil
	case o.Key.IsZero():
		return nil, exit.With(exit.Config, fmt.Errorf("guard: %w", errNeedsKey))
	}
	secret := e.secrets()
	who, err := app.ReadTokens(c.Tokens, secret)
	if err != nil {
		return nil, exit.With(exit.Config, fmt.Errorf("guard: --tokens: %w", err))
	}
	return who, nil
}

// serve listens until ctx ends.
func (c *guardCmd) serve(ctx context.Context, stderr io.Writer, g *guard.Guard, m guard.Mode, log *slog.Logger) error {
	mode := "enforce"
	if m == guard.Audit {
		mode = "audit"
	}
	local := auth.Local(c.AllowHost, nil, g)
	// A ServeMux would redirect what is not spelled plainly.
	open := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && r.RequestURI == "/healthz" {
			_, _ = io.WriteString(w, "ok\n") // the client has gone
			return
		}
		local.ServeHTTP(w, r)
	})
	announce := func(addr string) {
		fmt.Fprintf(stderr, "The guard answers at http://%s/v1 (%s).\n"+
			"  OpenAI     OPENAI_BASE_URL=http://%[1]s/v1\n"+
			"  Anthropic  ANTHROPIC_BASE_URL=http://%[1]s\n"+
			"  end        Ctrl-C\n", addr, mode)
	}
	if err := listen.Serve(ctx, "--listen", c.Listen, open, listen.ShutdownWait, announce, log); err != nil {
		return fmt.Errorf("guard: %w", err)
	}
	wait, done := context.WithTimeout(context.Background(), listen.ShutdownWait)
	defer done()
	if err := g.Close(wait); err != nil {
		log.Warn("a run of the audit has been cut")
	}
	return nil
}
