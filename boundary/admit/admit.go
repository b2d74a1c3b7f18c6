// SPDX-License-Identifier: Apache-2.0

// Package admit says which words of each server of a gateway may be seen: it has a server checked before its first session begins, and follows what persons decide.
//
// A server is checked by surface.Gate over a connection of its own. What came of it is
// a table of digests, one for each item that may be seen, against which the boundary
// holds every answer of every session (gateway.Admission). Decisions are read from the
// store, so that it does not matter which process took them.
package admit

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/pellucid-mcp/pellucid/boundary/descriptions"
	"github.com/pellucid-mcp/pellucid/boundary/policy"
	"github.com/pellucid-mcp/pellucid/boundary/surface"
)

// A Settings is what the operator wants of one server.
type Settings struct {
	// Mode is for an item that differs from its pin: Enforce, Audit, or Off, where nothing is
	// pinned. In each of them what holds hidden text is withheld.
	Mode      policy.Mode
	HoldFirst bool // also the first surface waits for a person
	Narrow    bool // pass 1 looks for the 151 characters of SUSPICIOUS_UNICODE only
	// RejectHidden rejects a server in whose definitions text is hidden, instead of
	// withholding the items that hold it.
	RejectHidden bool
	// HoldShadows holds an item that may be taken for another server's, or talks about
	// it; else that is only told.
	HoldShadows bool
	// Descriptions are judged and what is flagged is told; HoldDescriptions holds the item
	// too, unless a person has approved it.
	Descriptions, HoldDescriptions bool
	// DangerouslyAllow are the items whose hidden text a person has accepted.
	DangerouslyAllow []surface.Digest
	// Tolerates are the parts of items whose change holds none of them.
	Tolerates surface.Tolerated
	Timeout   time.Duration // of a check, without pass 2; 0 = 2 min
}

func (p *Settings) rules() surface.Rules {
	return surface.Rules{Narrow: p.Narrow, Reject: p.RejectHidden, DangerouslyAllow: p.DangerouslyAllow, Tolerates: p.Tolerates}
}

// A Config is one server.
type Config struct {
	Name      string // in the gateway
	Called    string // by people, in the pin
	Pin       string // that it is pinned under; "" = Name
	Flag      string // " --db X", which the commands in log lines need to find the pins; "" where they find them without
	Transport string // descriptor of how it is reached, without secrets
	// Identity stands for all that a connection depends on: a server whose Identity
	// has changed is checked anew.
	Identity string
	Settings Settings
	// Collect lists the server's surface over a connection of its own.
	// bare: as a client without capabilities; else as one that has all of them.
	Collect func(ctx context.Context, bare bool) (*surface.Surface, error)
}

func (c *Config) diffCommand(items ...surface.Key) string {
	return surface.DiffCommand(c.Called, c.Pin, c.Flag, items...)
}

// Options are shared by all servers. Pins has to be set unless every Mode is Off.
type Options struct {
	Pins *surface.Pins
	// Versions returns the version of every pin that there is, by server: cheap, for it
	// is asked often.
	Versions func(ctx context.Context) (map[string]int64, error)
	// Version returns that of one server's pin, 0 if not found, and is called instead
	// of Versions where it is set: by a program that has one server only.
	Version func(ctx context.Context, server string) (int64, error)
	// Review is asked before each check what makes pass 2, see surface.Gate; nil, or
	// what returns nil: nothing does.
	Review func() func(server, transport string) *surface.Review
	// Describe judges what servers say of themselves; nil: nothing does. Described gets each
	// verdict of a classifier that has flagged an item or could not judge it; it may be nil.
	Describe  *descriptions.Judge
	Described func(server string, v *descriptions.Findings)
	// Tools gets, for every server, the tools that are approved. It may be nil.
	Tools func(byServer map[string][]string)
	// Back gets the name of a server that was admitted after an earlier check could not
	// reach it. It may be nil.
	Back func(server string)
	// Out gets the name of a server whose sessions must end, because the server was
	// rejected or must be checked again. It may be nil.
	Out func(server string)
	// Alone says that this process has one server only. Surfaces are then not compared
	// with each other, and need not be kept.
	Alone bool
	Log   *slog.Logger  // nil: none
	every time.Duration // pause between two looks at the store; 0 = 1 s
}

// Admissions are those of the servers that there are at present. They are safe for
// concurrent use.
type Admissions struct {
	opt    Options
	log    *slog.Logger
	ctx    context.Context // ends with Close
	stop   context.CancelFunc
	work   sync.WaitGroup
	wake   chan struct{} // a look is due
	shadow chan struct{} // held while servers are compared

	mu   sync.Mutex
	list map[string]*Server
	told map[string]bool // shadows that were reported

	unread map[string]bool // servers whose pins cannot be read, as the log says already; "": those of all servers
}

// Reasons for which no session of a server begins, beside ctx's and those of Collect.
var (
	// ErrRejected: the surface has hidden text, the review rejected it, or it is not a valid surface.
	ErrRejected  = errors.New("admit: rejected")
	errForgotten = errors.New("admit: no such server")
)

// A RejectedError is ErrRejected with its reason.
type RejectedError struct{ Why error }

func (e *RejectedError) Error() string { return ErrRejected.Error() + ": " + e.Why.Error() }

// Unwrap returns ErrRejected and the reason.
func (e *RejectedError) Unwrap() []error { return []error{ErrRejected, e.Why} }

// New returns Admissions without servers. Close must be called.
func New(opt Options) *Admissions {
	opt.every = cmp.Or(opt.every, time.Second)
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	if opt.Tools == nil {
		opt.Tools = func(map[string][]string) {}
	}
	if opt.Described == nil {
		opt.Described = func(string, *descriptions.Findings) {}
	}
	if opt.Back == nil {
		opt.Back = func(string) {}
	}
	if opt.Out == nil {
		opt.Out = func(string) {}
	}
	a := &Admissions{opt: opt, log: opt.Log, list: map[string]*Server{}, told: map[string]bool{}, unread: map[string]bool{}, shadow: make(chan struct{}, 1), wake: make(chan struct{}, 1)}
	a.ctx, a.stop = context.WithCancel(context.Background())
	a.work.Go(a.follow)
	return a
}

// Close ends all checks and looks at the store.
func (a *Admissions) Close() {
	a.stop()
	a.work.Wait()
}

// Set says which servers there are from now on. What is known of one stays where its
// Identity does.
func (a *Admissions) Set(list []Config) {
	for _, s := range a.set(list) {
		if s.table.Swap(newTable()) != nil { // whatever session is left sees nothing more
			a.opt.Out(s.config().Name)
		}
	}
}

// set returns the servers that are no longer followed.
func (a *Admissions) set(list []Config) (over []*Server) {
	a.mu.Lock()
	defer a.mu.Unlock()
	old := a.list
	a.list = map[string]*Server{}
	for _, c := range list {
		c.Pin = cmp.Or(c.Pin, c.Name)
		c.Settings.Timeout = cmp.Or(c.Settings.Timeout, defaultTimeout)
		s := old[c.Name]
		if s == nil || !s.becomes(c) {
			s = newServer(a, c)
		}
		a.list[c.Name] = s
	}
	for name, s := range old {
		if a.list[name] != s {
			over = append(over, s)
		}
	}
	return over
}

const defaultTimeout = 2 * time.Minute

// Server returns the server of that name; nil if not found.
func (a *Admissions) Server(name string) *Server {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.list[name]
}

// Verify returns nil once the server may be reached; it is checked if it has not been.
func (a *Admissions) Verify(ctx context.Context, name string) error {
	s := a.Server(name)
	if s == nil {
		return errForgotten
	}
	return s.verify(ctx)
}

func (a *Admissions) all() map[string]*Server {
	a.mu.Lock()
	defer a.mu.Unlock()
	return maps.Clone(a.list)
}

// follow looks at the store now and then, until Close.
func (a *Admissions) follow() {
	tick := time.NewTicker(a.opt.every)
	defer tick.Stop()
	for {
		select {
		case <-a.ctx.Done():
			return
		case <-tick.C:
			a.look()
		case <-a.wake:
			a.look()
		}
	}
}

// Wake has the store looked at soon, because another process has changed a pin. It does not block.
func (a *Admissions) Wake() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// look writes down what sessions have seen, and reads what persons have decided.
func (a *Admissions) look() {
	servers := a.all()
	pinned := false
	for _, s := range servers {
		s.write(a.ctx)
		s.retry()
		pinned = pinned || s.pinned()
	}
	if !pinned {
		return
	}
	ctx, stop := context.WithTimeout(a.ctx, storeWait)
	defer stop()
	versions, err := a.versions(ctx, servers)
	if a.readable("", err); err != nil {
		return
	}
	for _, s := range servers {
		s.reread(ctx, versions[s.config().Pin])
	}
}

// readable tells of pins that cannot be read, once until they can be again. Only look and
// what it calls may call it.
func (a *Admissions) readable(server string, err error) {
	switch {
	case err == nil:
		delete(a.unread, server)
	case a.unread[server] || a.ctx.Err() != nil:
	case server == "":
		a.unread[server] = true
		a.log.Warn("pins cannot be read: what was approved before stays in force", "error", err)
	default:
		a.unread[server] = true
		a.log.Warn("pin cannot be read: what was approved before stays in force", "server", server, "error", err)
	}
}

// versions returns the versions of the pins of servers, by what they are pinned under.
func (a *Admissions) versions(ctx context.Context, servers map[string]*Server) (map[string]int64, error) {
	if a.opt.Version == nil {
		return a.opt.Versions(ctx)
	}
	out := map[string]int64{}
	for _, s := range servers {
		pin := s.config().Pin
		version, err := a.opt.Version(ctx, pin)
		if err != nil {
			return nil, err
		}
		out[pin] = version
	}
	return out, nil
}

// storeWait bounds what the store may take for one look.
const storeWait = 30 * time.Second

// Tell tells who wants to know which servers there are, and which of their tools have
// approved names.
func (a *Admissions) Tell() {
	out := map[string][]string{}
	for name, s := range a.all() {
		out[name] = s.tools()
	}
	a.opt.Tools(out)
}
