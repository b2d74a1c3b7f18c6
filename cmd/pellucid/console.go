// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/pellucid-mcp/pellucid/app"
	"github.com/pellucid-mcp/pellucid/app/commandline"
	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/platform/egress"
	"github.com/pellucid-mcp/pellucid/platform/listen"
	"github.com/pellucid-mcp/pellucid/platform/signin"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/storage"
	"github.com/pellucid-mcp/pellucid/text/frame"
)

// consoleCmd is the web console for the person at this machine, and who has signed in.
type consoleCmd struct {
	stateDB
	Listen    string `default:"127.0.0.1:0" placeholder:"ADDR" help:"Address to listen on, of this machine; port 0 is any that is free (default ${default})."`
	NoBrowser bool   `help:"Open no browser: print the link only."`
	Link      bool   `xor:"what" help:"Serve nothing: print a link that signs you in once to a console that runs on this machine."`
	URL       string `name:"url" placeholder:"URL" help:"With --link: where the console is reached on this machine (default: where one of this state directory runs)."`
	Sessions  bool   `xor:"what" help:"Serve nothing: list who has signed in."`
	Revoke    string `xor:"what" placeholder:"NAME" help:"Serve nothing: end the session of this name, the 16 hexadecimal digits that --sessions prints."`
	JSON      bool   `name:"json" help:"Print what --sessions or --revoke says as JSON."`
	signedBy
	commandline.LogFlags
}

func (consoleCmd) Help() string {
	return `The console shows what was decided, and lets a person decide about what waits: of every pellucid wrap, up and
guard that uses the same state directory or database. It listens on this machine only, and prints a link that signs
you in once, within two minutes. SIGINT ends it. For a team, pellucid up serves it at /console/, with a login
(docs/console.md); --link, --sessions and --revoke are for that one too. A link signs in as an admin; pellucid up takes it
where it listens on loopback and its public_url, if there is one, is on loopback too. Who can make such a
link can read the database anyway. Exit codes: 0 done, or ended by a signal; 1 failed, or there is no such
session; 2 wrong usage; 3 the state directory cannot be used or the file of --db does not exist; 4 the database
cannot be reached.`
}

// signedBy says whom a link signs in.
type signedBy struct {
	By string `placeholder:"NAME" help:"Your name in records (default: the name of this user)."`
}

func (c *signedBy) check() error {
	if c.By != "" && !frame.IsLabel(c.By) {
		return errors.New("--by: want 1 to 128 of A-Z a-z 0-9 . _ / : @ + -")
	}
	return nil
}

func (c *signedBy) person(e *env) string { return (&reviewerFlags{By: c.By}).who(e) }

func (c *consoleCmd) Validate() error {
	if c.URL != "" {
		base, _, err := egress.Base(c.URL, false)
		if u, bad := url.Parse(base); err != nil || bad != nil || u.Path != "" {
			return errors.New("--url: want a URL such as http://127.0.0.1:7420")
		}
		c.URL = base
	}
	if err := c.check(); err != nil {
		return err
	}
	return listen.CheckAddress("--listen", c.Listen)
}

func (c *consoleCmd) Run(e *env) error {
	switch {
	case c.Link:
		return c.link(e)
	case c.Sessions:
		return c.sessions(e)
	case c.Revoke != "":
		return c.revoke(e)
	}
	if err := c.DB.Exists(); err != nil {
		return exit.With(exit.Config, err)
	}
	ctx, stop := exit.UntilSignal()
	defer stop()
	p := app.ConsolePlan{DB: c.DB, Listen: c.Listen, Person: c.person(e), Log: c.Logger(e.Stderr), Notice: e.Stderr}
	if !c.NoBrowser {
		p.Open = openBrowser
	}
	return app.ServeConsole(ctx, p)
}

// link prints a link that signs in once.
func (c *consoleCmd) link(e *env) error {
	if c.URL == "" {
		at, err := app.RunningConsole()
		if err != nil {
			return err
		}
		c.URL = at
	}
	return c.DB.With(func(ctx context.Context, s *storage.Store, _ *install.Records) error {
		link, err := app.ConsoleLink(ctx, s, c.URL, c.person(e))
		if err == nil {
			fmt.Fprintln(e.Stdout, link)
		}
		return err
	})
}

// A sessionReport is a session of the console for a program.
type sessionReport struct {
	Name   string   `json:"name"`
	Person string   `json:"person"`
	How    string   `json:"how"`
	Scopes []string `json:"scopes"`
	Began  string   `json:"began"`
	Seen   string   `json:"seen"`
	Until  string   `json:"until"`
}

func newSessionReport(s *signin.Session) sessionReport {
	const layout = "2006-01-02T15:04:05Z"
	r := sessionReport{Name: s.Name, Person: s.Person, How: string(s.How), Scopes: s.Scopes, Began: s.Began.UTC().Format(layout), Seen: s.Seen.UTC().Format(layout), Until: s.Until.UTC().Format(layout)}
	if r.Scopes == nil {
		r.Scopes = []string{}
	}
	return r
}

// sessions lists who has signed in.
func (c *consoleCmd) sessions(e *env) error {
	return c.DB.With(func(ctx context.Context, s *storage.Store, _ *install.Records) error {
		all, err := (&signin.Book{Store: s}).List(ctx)
		switch {
		case err != nil:
			return err
		case c.JSON:
			return terminal.WriteJSONLines(e.Stdout, all, newSessionReport)
		case len(all) == 0:
			fmt.Fprintln(e.Stderr, "No one has signed in.")
			return nil
		}
		fmt.Fprintf(e.Stdout, "%-16s  %-6s  %-17s  %-17s  %s\n", "session", "by", "since", "last used", "person")
		for _, x := range all {
			fmt.Fprintf(e.Stdout, "%-16s  %-6s  %-17s  %-17s  %s\n", x.Name, x.How, terminal.Minute(x.Began), terminal.Minute(x.Seen), terminal.Inline(strings.TrimSpace(x.Person)))
		}
		return nil
	})
}

// revoke ends a session.
func (c *consoleCmd) revoke(e *env) error {
	return c.DB.With(func(ctx context.Context, s *storage.Store, kept *install.Records) error {
		person, err := app.RevokeConsole(ctx, s, kept, c.Revoke, c.person(e))
		if errors.Is(err, signin.ErrNone) {
			return errors.New("console: no such session, or it is over: pellucid console --sessions has those that go on")
		}
		switch {
		case err != nil:
			return err
		case c.JSON:
			return terminal.WriteJSON(e.Stdout, struct {
				Name   string `json:"name"`
				Person string `json:"person"`
				By     string `json:"by"`
			}{c.Revoke, person, c.person(e)})
		}
		fmt.Fprintf(e.Stderr, "The session of %s has ended.\n", terminal.Inline(person))
		return nil
	})
}
