// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/pellucid-mcp/pellucid/app"
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
	Serve    consoleServeCmd    `cmd:"" default:"withargs" help:"Open the console of this installation in a browser. The word serve may be left out."`
	Link     consoleLinkCmd     `cmd:"" help:"Print a link that signs you in once to the console of a pellucid up on this machine."`
	Sessions consoleSessionsCmd `cmd:"" help:"List and end the sessions of the console."`
}

func (consoleCmd) Help() string {
	return `The console shows what was decided, and lets a person decide about what waits. For a team,
pellucid up serves it at /console/, with a login (docs/console.md). Exit codes of each verb: 0
done; 1 failed, or there is no such session; 2 wrong usage; 3 the state directory cannot be used;
4 the database cannot be reached.`
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

type consoleServeCmd struct {
	stateDB
	Listen    string `default:"127.0.0.1:0" placeholder:"ADDR" help:"Address to listen on, of this machine; port 0 is any that is free (default ${default})."`
	NoBrowser bool   `help:"Open no browser: print the link only."`
	signedBy
	logFlags
}

func (consoleServeCmd) Help() string {
	return `Serves the console of this installation: of every pellucid wrap, up and guard that uses the
same state directory or database. It listens on this machine only, and prints a link that signs
you in once, within two minutes. SIGINT ends it. Exit codes: 0 ended by a signal, 1 failed, 2
wrong usage, 3 the state directory cannot be used or the file of --db does not exist, 4 the database
cannot be reached.`
}

func (c *consoleServeCmd) Validate() error {
	if err := c.check(); err != nil {
		return err
	}
	return listen.CheckAddress("--listen", c.Listen)
}

func (c *consoleServeCmd) Run(e *env) error {
	if err := c.DB.Exists(); err != nil {
		return exit.With(exit.Config, err)
	}
	ctx, stop := exit.UntilSignal()
	defer stop()
	p := app.ConsolePlan{DB: c.DB, Listen: c.Listen, Person: c.person(e), Log: c.logger(e.Stderr), Notice: e.Stderr}
	if !c.NoBrowser {
		p.Open = openBrowser
	}
	return app.ServeConsole(ctx, p)
}

type consoleLinkCmd struct {
	stateDB
	URL string `name:"url" default:"http://127.0.0.1:7420" placeholder:"URL" help:"Where pellucid up is reached on this machine (default ${default})."`
	signedBy
}

func (consoleLinkCmd) Help() string {
	return `The link lasts two minutes and signs in once, as an admin. pellucid up takes it where it
listens on loopback and its public_url, if there is one, is on loopback too. Who can make such a
link can read the database anyway.`
}

func (c *consoleLinkCmd) Validate() error {
	base, _, err := egress.Base(c.URL, false)
	if u, bad := url.Parse(base); err != nil || bad != nil || u.Path != "" {
		return errors.New("--url: want a URL such as http://127.0.0.1:7420")
	}
	c.URL = base
	return c.check()
}

func (c *consoleLinkCmd) Run(e *env) error {
	return c.DB.With(func(ctx context.Context, s *storage.Store, _ *install.Records) error {
		link, err := app.ConsoleLink(ctx, s, c.URL, c.person(e))
		if err == nil {
			fmt.Fprintln(e.Stdout, link)
		}
		return err
	})
}

type consoleSessionsCmd struct {
	List   consoleListCmd   `cmd:"" help:"List who has signed in to the console."`
	Revoke consoleRevokeCmd `cmd:"" help:"End a session of the console."`
}

type consoleListCmd struct {
	stateDB
	JSON bool `name:"json" help:"Print one JSON object for each session, as JSON lines."`
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

func (c *consoleListCmd) Run(e *env) error {
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

type consoleRevokeCmd struct {
	reviewerFlags
	Name string `arg:"" help:"Name of the session: the 16 hexadecimal digits that list prints."`
}

func (c *consoleRevokeCmd) Run(e *env) error {
	return c.DB.With(func(ctx context.Context, s *storage.Store, kept *install.Records) error {
		person, err := app.RevokeConsole(ctx, s, kept, c.Name, c.who(e))
		if errors.Is(err, signin.ErrNone) {
			return errors.New("console: no such session, or it is over: pellucid console sessions list has those that go on")
		}
		switch {
		case err != nil:
			return err
		case c.JSON:
			return terminal.WriteJSON(e.Stdout, struct {
				Name   string `json:"name"`
				Person string `json:"person"`
				By     string `json:"by"`
			}{c.Name, person, c.who(e)})
		}
		fmt.Fprintf(e.Stderr, "The session of %s has ended.\n", terminal.Inline(person))
		return nil
	})
}
