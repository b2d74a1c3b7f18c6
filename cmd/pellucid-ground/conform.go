// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/grounding/conform"
	"github.com/pellucid-mcp/pellucid/grounding/corpus"
	"github.com/pellucid-mcp/pellucid/platform/egress"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
)

// conformCmd scores any grounding adapter against the adversarial corpus.
type conformCmd struct {
	URL       string        `name:"url" help:"Streamable HTTP endpoint of the adapter."`
	Feed      string        `default:"loaded" placeholder:"HOW" help:"How to load attestations into the adapter: http=URL, command=CMD, or ${default}."`
	FeedToken string        `placeholder:"REF" help:"Bearer token for http=URL: env:NAME or file:PATH."`
	Token     string        `placeholder:"REF" help:"Bearer token for --url: env:NAME or file:PATH."`
	Tool      string        `default:"ground" help:"Name of the adapter's tool."`
	Scope     string        `enum:"literal,mixed" default:"literal" help:"Scope of confusable characters in the configuration of the adapter: ${enum}."`
	Policy    string        `enum:"replace,reject,flag" default:"replace" help:"Policy for confusable characters in the configuration of the adapter: ${enum}."`
	Family    []string      `placeholder:"FAMILY" help:"Use only the vectors of these families."`
	Timeout   time.Duration `default:"30s" help:"Time limit for one query."`
	Dump      bool          `help:"Print the signed attestations, one per line, and do nothing else. Load them into the adapter yourself."`
	JSON      bool          `name:"json" help:"Print the report as JSON: passed, failed, vectors[]."`

	Command []string `arg:"" optional:"" passthrough:"" help:"The adapter's program and arguments, after --."`
}

func (conformCmd) Help() string {
	return `Loads each vector of the corpus into the adapter as a signed attestation, queries it, and
checks the answer against the Veritas grounding RFC. The adapter must accept validators that
it does not know (their keys are did:key) and the built-in consensus domains.

--feed says how to load attestations. http=URL posts each one there; a status of 4xx, or a reply
with "accepted": false, means that it was refused. command=CMD runs CMD, split at
blanks, with each attestation on its standard input; exit code 0 means accepted and 1
refused, and the first word of its output is the reason. loaded loads nothing: the adapter
already has what --dump prints. Exit codes: 0 every MUST passed, 1 one did not, 2
wrong usage, 3 a token is missing, 4 the adapter cannot be reached.`
}

func (c *conformCmd) Validate() error {
	if len(c.Command) > 0 && c.Command[0] == "--" {
		c.Command = c.Command[1:]
	}
	for _, f := range c.Family {
		if !slices.Contains(corpus.Families, f) {
			return fmt.Errorf("--family is one of %s", strings.Join(corpus.Families, ", "))
		}
	}
	switch {
	case c.Dump && (c.URL != "" || len(c.Command) > 0):
		return errors.New("--dump does nothing else")
	case !c.Dump && c.URL == "" && len(c.Command) == 0:
		return errors.New("say which adapter: --url URL or -- COMMAND ARG…")
	case c.URL != "" && len(c.Command) > 0:
		return errors.New("--url and a command exclude each other")
	case c.Token != "" && c.URL == "":
		return errors.New("--token is for --url")
	case c.URL != "" && !egress.IsHTTP(c.URL):
		return errors.New("--url: want http:// or https:// and a host")
	case c.Timeout <= 0:
		return errors.New("--timeout must be positive")
	}
	if how, _, _ := strings.Cut(c.Feed, "="); how != "http" && c.FeedToken != "" {
		return errors.New("--feed-token is for --feed http=URL")
	}
	if _, ok := conform.ParseFeeder(c.Feed, ""); !ok {
		return errors.New("--feed is http=URL, command=CMD or loaded")
	}
	return nil
}

func (c *conformCmd) Run(e *env) error {
	vectors, err := conform.Vectors(c.Family...)
	if err != nil {
		return err
	}
	if c.Dump {
		return conform.Dump(e.Stdout, vectors, c.scope())
	}
	ctx, stop := exit.UntilSignal()
	defer stop()
	feedToken, err := e.secret("conform: --feed-token", c.FeedToken)
	if err != nil {
		return err
	}
	feed, _ := conform.ParseFeeder(c.Feed, feedToken)
	token, err := e.secret("conform: --token", c.Token)
	if err != nil {
		return err
	}
	s, err := conform.Dial(ctx, conform.Target{URL: c.URL, Command: c.Command, Tool: c.Tool, Token: token, Timeout: c.Timeout}, feed)
	if err != nil && ctx.Err() == nil {
		return exit.With(exit.Unreachable, err)
	} else if err != nil {
		return errNotScored
	}
	defer s.Close()
	rep, err := c.score(ctx, e, s, vectors)
	if err != nil && ctx.Err() != nil {
		return errNotScored
	} else if err != nil {
		return err
	}
	if c.JSON {
		err = terminal.WriteJSON(e.Stdout, rep)
	} else {
		err = rep.WriteText(e.Stdout)
	}
	if err == nil && !rep.Conforms {
		return exit.With(exit.Failed, nil)
	}
	return err
}

var errNotScored = errors.New("conform: interrupted, so there is no report")

func (c *conformCmd) scope() corpus.Scope {
	if c.Scope == "mixed" {
		return corpus.Mixed
	}
	return corpus.Literal
}

func (c *conformCmd) score(ctx context.Context, e *env, a conform.Adapter, vectors []corpus.Vector) (*conform.Report, error) {
	var p conform.Progress
	b := terminal.NewBar(e.Stderr, e.Getenv, "conform", int64(len(vectors)))
	defer b.Done()
	r := conform.Runner{Adapter: a, Scope: c.scope(), Confusables: conform.Confusables(c.Policy), Vectors: vectors,
		Each: func(res *conform.Result) { b.At(p.Add(res), p.String()) }}
	return r.Run(ctx)
}
