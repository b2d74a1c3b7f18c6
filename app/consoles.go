// SPDX-License-Identifier: Apache-2.0

package app

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/pellucid-mcp/pellucid/app/audit"
	"github.com/pellucid-mcp/pellucid/app/console"
	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/app/explain"
	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/app/local"
	"github.com/pellucid-mcp/pellucid/boundary/fleet"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/boundary/surface"
	"github.com/pellucid-mcp/pellucid/platform/auth"
	"github.com/pellucid-mcp/pellucid/platform/capture"
	"github.com/pellucid-mcp/pellucid/platform/egress"
	"github.com/pellucid-mcp/pellucid/platform/listen"
	"github.com/pellucid-mcp/pellucid/platform/loopback"
	"github.com/pellucid-mcp/pellucid/platform/signin"
	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/storage"
)

// consoleParts are what the pages of a console read, wherever it is served.
type consoleParts struct {
	log     *slog.Logger
	store   *storage.Store
	records *install.Records // nil: evidence is off
	sealer  *capture.Sealer
	flag    string      // " --db X", which printed commands need to find the store
	two     func() bool // a release needs two persons now; nil: only items say so
}

// options are those of the console without the ways of signing in.
func (p consoleParts) options() console.Options {
	o := console.Options{Log: p.log, SignIns: &signin.Book{Store: p.store}, Flag: p.flag, Record: p.record, Held: p.held, Blocked: p.blocked}
	pins := surface.NewPins(p.store, nil)
	var queue hold.Options
	exceptions := hold.ExceptionOptions{TwoPersons: p.two}
	if p.records != nil {
		queue.Evidence, exceptions.Evidence = p.records.Held, p.records.Exception
	}
	o.Queue, o.Exceptions, o.Captures, o.Sealer = hold.New(p.store, queue), hold.NewExceptions(p.store.Exceptions(), exceptions), p.store, p.sealer
	if p.records != nil {
		o.Ledger, pins = p.store.Ledger(), pins.WithEvidence(p.records.Pin)
	}
	o.Journal = audit.JournalOfMachine
	o.Flagged = audit.FlaggedOfMachine
	o.Statement = audit.GuardStatement
	o.Case = p.exportCase
	o.Explain = func(ctx context.Context, id string) (*explain.Explanation, error) {
		dir, err := local.OpenState()
		if err != nil {
			return nil, err
		}
		src := explain.From(p.store, dir)
		src.Flag = p.flag
		return explain.Of(ctx, src, id)
	}
	o.Pins = []console.Pins{pins}
	if files, err := install.PinFiles(); err == nil { // those of wrap; else the page shows those of the store
		o.Pins = append(o.Pins, surface.NewPins(files, nil))
	}
	return o
}

// exportCase writes the case of a decision, signed where the key of the log is here. What is encrypted stays so.
func (p consoleParts) exportCase(ctx context.Context, id ledger.ID, w io.Writer) error {
	dir, err := local.OpenState()
	if err != nil {
		return err
	}
	o := audit.CaseOptions{Statement: audit.GuardStatement}
	if p.records != nil {
		o.Key = p.records.Signer()
	}
	made, err := audit.NewCase(ctx, p.store, dir, id, o)
	if err != nil {
		return err
	}
	return terminal.WriteJSON(w, made)
}

func (p consoleParts) held(ctx context.Context) (out []console.Waiting, err error) {
	sums, err := p.store.HeldSums(ctx, time.Now())
	for _, s := range sums {
		out = append(out, console.Waiting{Server: s.Server, N: s.N, Since: s.Oldest})
	}
	return out, err
}

func (p consoleParts) blocked(ctx context.Context) (out []console.Waiting, err error) {
	list, err := p.store.Blocks().List(ctx, time.Now(), false)
	for i := range list {
		out = append(out, console.Waiting{Server: list[i].Server, N: 1, Since: list[i].Since})
	}
	return out, err
}

// record makes a record of what a person did. A name is in it as a digest only.
func (p consoleParts) record(_ context.Context, a console.Act) {
	if p.records == nil {
		return
	}
	e := &ledger.Event{Time: time.Now(), Kind: ledger.ConsoleUsed, Verdict: a.Did, Rule: string(a.How), Reason: a.Why, Actor: "person"}
	role := ledger.By
	if a.Did == console.DidRevoke {
		role = ledger.Principal // who ended the session may be another person
	}
	for _, who := range []struct {
		role ledger.Role
		name string
	}{{role, a.Person}, {ledger.By, a.By}} {
		if who.name != "" {
			e.Subjects = append(e.Subjects, ledger.Subject{Role: who.role, Digest: sha256.Sum256([]byte(who.name))})
		}
	}
	p.records.Note(e)
}

// console is the console of the gateway by the rules; nil where they have none.
func (b *Gateway) console(r *rules.Rules, who auth.Authenticator) (*console.Console, error) {
	if r.Console == nil {
		return nil, nil
	}
	o := consoleParts{b.log, b.store, b.records, b.questions(), b.flag, b.twoPersons}.options()
	o.Rules, o.Health = b.rules.Load, func() []fleet.Health { return b.fleet.Health() }
	o.SignIns.Idle, o.SignIns.Life = signin.DefaultIdle, signin.DefaultLife
	o.Proxies, o.Memory = r.HTTP.Proxies(), b.memory
	o.URL, o.Links, o.Tokens = r.PublicURL, r.Console.Links, who
	for _, g := range r.Console.Grants {
		role, _ := console.ParseRole(g.Role)
		o.Grants = append(o.Grants, console.Grant{Scope: g.Scope, Role: role, Servers: g.Servers})
	}
	if p := r.Console.OpenID; p != nil {
		_, plain, err := egress.Base(p.Issuer, false)
		if err != nil {
			return nil, fmt.Errorf("up: console: %w", err)
		}
		o.OpenID = &console.OpenID{Issuer: p.Issuer, ClientID: p.ClientID, Secret: p.ClientSecret.Reveal(), Scopes: p.Scopes, Name: p.Name, Groups: p.Groups,
			Client: &http.Client{Transport: egress.Transport(egress.Options{LoopbackOnly: plain}), Timeout: 10 * time.Second,
				CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	}
	c, err := console.New(o)
	if err != nil {
		return nil, fmt.Errorf("up: %w", err)
	}
	return c, nil
}

// ConsolePlan is a console for the person at this machine.
type ConsolePlan struct {
	DB     install.Database
	Listen string
	Person string // who is signed in by the link
	Log    *slog.Logger
	Notice io.Writer
	// Open shows a file in a browser; nil: the link is printed only. The file forwards to the link: Open may start a
	// program with the path, and every user of the machine can read the arguments of a program.
	Open func(ctx context.Context, file string)
}

// ServeConsole serves the console of this installation on loopback until ctx ends.
func ServeConsole(ctx context.Context, p ConsolePlan) error {
	if !loopback.Listener(p.Listen) {
		return exit.With(exit.Usage, errors.New("console: --listen: want an address of this machine, such as 127.0.0.1:7422; for other machines, pellucid up serves the console with a login (docs/console.md)"))
	}
	dir, err := local.OpenState()
	if err != nil {
		return err
	}
	store, err := p.DB.Open(ctx, dir, true)
	if err != nil {
		return err
	}
	defer store.Close()
	ring, err := local.Ring(dir)
	if err != nil {
		return err
	}
	opened := OpenPage{Dir: dir}
	defer opened.Remove()
	c := &storeConsole{dir: dir, parts: consoleParts{log: p.Log, store: store, sealer: &capture.Sealer{Keys: ring}, flag: p.DB.Flag("")}, signedIn: opened.Remove}
	if err := c.look(ctx); err != nil {
		return local.OpenError(err)
	}
	defer func() { c.parts.records.Close() }()
	var link error
	release := func() {}
	defer func() { release() }()
	err = listen.Serve(ctx, "--listen", cmp.Or(p.Listen, "127.0.0.1:0"), auth.Local(auth.LocalOptions{}, c), time.Second, func(addr string) {
		release = publishConsole(addr, p.Log)
		var url string
		if url, link = ConsoleLink(ctx, store, "http://"+addr, p.Person); link != nil {
			return
		}
		fmt.Fprintf(p.Notice, "The console is at http://%s%s\nThis link signs you in once, within two minutes:\n  %s\nend    Ctrl-C\n", addr, console.Base, url)
		if p.Open == nil {
			return
		}
		file, err := opened.Write(url)
		if err != nil {
			p.Log.Warn("console: no browser is opened, since the file for it cannot be written", "error", err)
			return
		}
		p.Open(ctx, file)
	}, p.Log)
	return errors.Join(link, err)
}

// A storeConsole is the console of a store that other processes fill. The first of them that keeps evidence may start
// after it: from then on pages show the log, and what a person decides is in it.
type storeConsole struct {
	dir      *state.Dir
	signedIn func() // a link was spent

	mu    sync.Mutex
	parts consoleParts
	now   *console.Console
}

// look makes the console, and makes it anew once the store has a log.
func (c *storeConsole) look(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.now != nil && c.parts.records != nil {
		return nil
	}
	records, err := install.RecordsOf(ctx, c.parts.store, c.dir)
	if err != nil || c.now != nil && records == nil {
		return err
	}
	parts := c.parts
	parts.records = records
	o := parts.options()
	o.Links = true
	note := o.Record
	o.Record = func(ctx context.Context, a console.Act) {
		if a.Did == console.DidSignIn && a.How == signin.ByLink {
			c.signedIn()
		}
		note(ctx, a)
	}
	made, err := console.New(o)
	if err != nil {
		records.Close()
		return err
	}
	c.now, c.parts = made, parts
	return nil
}

// ServeHTTP implements http.Handler. A store that is away is told by the page.
func (c *storeConsole) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := c.look(r.Context()); err != nil {
		c.parts.log.Warn("console: the log of the store cannot be read", "error", err)
	}
	c.mu.Lock()
	now := c.now
	c.mu.Unlock()
	now.ServeHTTP(w, r)
}

// Files of the state directory. The process that serves a console holds the lock, and has written where.
const (
	consoleLock    = "console.lock"
	consoleAddress = "console.addr"
)

// publishConsole says at which address this process serves a console, until release. An earlier one goes first.
func publishConsole(addr string, log *slog.Logger) (release func()) {
	dir, err := local.OpenState()
	if err != nil {
		log.Warn("pellucid console --link does not find this console", "error", err)
		return func() {}
	}
	lock, err := dir.TryLock(consoleLock)
	if err != nil {
		return func() {} // another console says where it is
	}
	if host, port, bad := net.SplitHostPort(addr); bad == nil {
		if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
			addr = net.JoinHostPort("127.0.0.1", port)
		}
	}
	if err := dir.Write(consoleAddress, []byte(addr)); err != nil {
		log.Warn("pellucid console --link does not find this console", "error", err)
	}
	return func() { lock.Close() }
}

// RunningConsole returns the base URL of the console that a process of this state directory serves now.
func RunningConsole() (string, error) {
	dir, err := local.OpenState()
	if err != nil {
		return "", err
	}
	lock, err := dir.TryLock(consoleLock)
	if err == nil {
		lock.Close()
		return "", errors.New("console: no console of this state directory runs: start pellucid console, or name the address with --url")
	}
	addr, err := dir.Read(consoleAddress, 256)
	if err != nil {
		return "", err
	}
	return "http://" + string(addr), nil
}

// ConsoleLink makes a link that signs the person in to the console at base.
func ConsoleLink(ctx context.Context, s *storage.Store, base, person string) (string, error) {
	secret, err := (&signin.Book{Store: s}).NewLink(ctx, person)
	if err != nil {
		return "", err
	}
	return base + console.Base + "link?t=" + secret, nil
}

// RevokeConsole ends the session of that name for the person by, and returns whose it was.
func RevokeConsole(ctx context.Context, s *storage.Store, kept *install.Records, name, by string) (person string, err error) {
	book := &signin.Book{Store: s}
	all, err := book.List(ctx)
	if err != nil {
		return "", err
	}
	for _, x := range all {
		if x.Name == name {
			if err := book.End(ctx, name); err != nil {
				return "", err
			}
			consoleParts{records: kept}.record(ctx, console.Act{Did: console.DidRevoke, How: x.How, Person: x.Person, By: by})
			return x.Person, nil
		}
	}
	return "", signin.ErrNone
}
