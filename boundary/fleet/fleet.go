// SPDX-License-Identifier: Apache-2.0

// Package fleet keeps the configured upstream servers of a gateway: it starts and restarts them, shares a process
// among sessions where it may, and offers all of them as one.
//
// Everything that a server says passes package gateway, whether a client talks to
// that server alone ([Fleet.Start]) or to all of them ([Fleet.StartAll]): the
// latter puts together what the gateways of the single servers have delivered.
package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pellucid-mcp/pellucid/boundary/gateway"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// A Server is a configured upstream.
type Server struct {
	Name   string // 1 to 64 of A-Z a-z 0-9 . _ -, the first a letter or digit
	Prefix string // of its names where all servers are one; "" = Name
	// Identity stands for everything that Dial depends on: a server whose Identity
	// has changed is another server.
	Identity string

	Dial   Dialer
	Child  bool // Dial starts a process, of which there may be so many
	Shared bool // one connection for all sessions

	// Said is the end of what its processes wrote to their standard error, for the log when
	// the server has failed; nil: unknown.
	Said func() []string
	// Stray describes the lines that its processes wrote to their standard output and that were no messages, if any. It may be nil.
	Stray func() string

	// Config says how its messages are treated, for a session that begins now.
	Config func(principal string) gateway.Config

	// Verify checks what the server says of itself, and returns when that is done. No
	// session of the server begins before it returns, or after an error. Several
	// goroutines may call it; it remembers the result. nil: the server is not checked.
	Verify func(ctx context.Context) error
}

// A Client is the connection that a session serves.
type Client struct {
	Conn      wire.Conn // closed when the session ends
	Era       wire.Era  // in which it speaks
	Principal string    // who it is, for Config
	// May says which servers it may see where all are one; nil: every one.
	May func(server string) bool

	union  bool            // it is one of several servers that a client sees as one
	counts *gateway.Counts // of those servers together
}

// Options of a [Fleet]. The zero value is the default.
type Options struct {
	Children int // processes at one time; 0 = 256
	// PerServer and PerPrincipal are how many of those one server may have, and the
	// sessions of one principal that has a name; 0 = all, and a quarter.
	PerServer, PerPrincipal int
	// patience is what a server gets to contribute to an answer that all servers
	// give together; 0 = 10 s.
	patience time.Duration
	// firstWait and mostWait bound the pause before a server that has ended is
	// started again; 0 = 0.5 s and 1 min.
	firstWait, mostWait time.Duration

	// Translate makes a Conn to a server speak as the client does; nil: all servers
	// speak as all clients.
	Translate func(server string, conn wire.Conn, client wire.Era) wire.Conn

	Version string       // of this program, for clients of all servers
	Log     *slog.Logger // nil: none
}

// Fleet is the servers that there are at present. It is safe for concurrent use.
type Fleet struct {
	opt  Options
	log  *slog.Logger
	pool *pool // of processes

	ctx    context.Context // ends with Close
	stop   context.CancelFunc
	mu     sync.Mutex
	list   []*upstream     // in the order of the configuration
	unions map[*union]bool // that are told when it changes
	warned map[string]bool // see warnOnce
	ended  bool
	work   sync.WaitGroup
}

// Errors of Start.
var (
	// ErrNoServer: there is no server of that name, or not any more.
	ErrNoServer = errors.New("fleet: no such server")
)

const (
	firstWait = 500 * time.Millisecond
	mostWait  = time.Minute
	// steady is how long a server must have run to be as good as new.
	steady = time.Minute
)

// New returns a Fleet without servers.
func New(opt Options) *Fleet {
	opt.Children = cmp.Or(opt.Children, 256)
	opt.PerServer = cmp.Or(opt.PerServer, opt.Children)
	opt.PerPrincipal = cmp.Or(opt.PerPrincipal, max(opt.Children/4, 1))
	opt.patience = cmp.Or(opt.patience, 10*time.Second)
	opt.firstWait = cmp.Or(opt.firstWait, firstWait)
	opt.mostWait = cmp.Or(opt.mostWait, mostWait)
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	f := &Fleet{opt: opt, log: opt.Log, pool: newPool(&opt), unions: map[*union]bool{}, warned: map[string]bool{}}
	f.ctx, f.stop = context.WithCancel(context.Background())
	return f
}

// validName reports whether a server may be called so.
func validName(s string) bool {
	if len(s) == 0 || len(s) > 64 || strings.IndexByte("._-", s[0]) >= 0 {
		return false
	}
	for i := range len(s) {
		if !isNameByte(s[i]) {
			return false
		}
	}
	return true
}

func isNameByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("._-", c) >= 0
}

// Set says which servers there are from now on. Sessions of those that are no
// more, or have another Identity, end; all others go on. The error lists every
// mistake, and then nothing has changed.
func (f *Fleet) Set(servers []Server) error {
	if err := check(servers); err != nil {
		return err
	}
	f.mu.Lock()
	if f.ended {
		f.mu.Unlock()
		return errors.New("fleet: closed")
	}
	old := f.list
	f.list = make([]*upstream, len(servers))
	for i, s := range servers {
		k := slices.IndexFunc(old, func(u *upstream) bool {
			return u.Name == s.Name && u.Identity == s.Identity && u.Shared == s.Shared
		})
		if k < 0 {
			f.list[i] = newUpstream(f, s)
			continue
		}
		f.list[i] = old[k].with(s)
		old = slices.Delete(slices.Clone(old), k, k+1)
	}
	f.mu.Unlock()
	f.Announce()
	closeAll(old)
	return nil
}

// closeAll closes servers at once: each may take its time.
func closeAll(list []*upstream) {
	var work sync.WaitGroup
	for _, u := range list {
		work.Go(u.close)
	}
	work.Wait()
}

// check reports every fault of a list of servers.
func check(servers []Server) error {
	var errs []error
	names, prefixes := map[string]bool{}, map[string]string{}
	for i, s := range servers {
		switch {
		case !validName(s.Name):
			errs = append(errs, fmt.Errorf("fleet: server %d: its name is not 1 to 64 of A-Z a-z 0-9 . _ -, the first a letter or digit", i+1))
			continue
		case names[s.Name]:
			errs = append(errs, fmt.Errorf("fleet: server %s: there are two of that name", s.Name))
			continue
		case s.Prefix != "" && !validName(s.Prefix):
			errs = append(errs, fmt.Errorf("fleet: server %s: its prefix is not 1 to 64 of A-Z a-z 0-9 . _ -, the first a letter or digit", s.Name))
			continue
		}
		names[s.Name] = true
		p := prefixOf(&s)
		if other, there := prefixes[p]; there {
			errs = append(errs, fmt.Errorf("fleet: servers %s and %s would have the same prefix %s_", other, s.Name, p))
		}
		prefixes[p] = s.Name
		if s.Dial == nil || s.Config == nil {
			errs = append(errs, fmt.Errorf("fleet: server %s: incomplete", s.Name))
		}
	}
	return errors.Join(errs...)
}

// get returns the server called name, and those that there are.
func (f *Fleet) get(name string) *upstream {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, u := range f.list {
		if u.Name == name {
			return u
		}
	}
	return nil
}

func (f *Fleet) all() []*upstream {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.list
}

// Start begins to relay between a client and one server, and returns when the server has been
// checked. ended is told once why that is over: the client is gone (nil), the server is no more
// (ErrNoServer), or ctx has ended. Nothing is left of the session then.
func (f *Fleet) Start(ctx context.Context, name string, c Client, ended func(error)) {
	u := f.get(name)
	if u == nil {
		c.Conn.Close()
		ended(fmt.Errorf("%w: %s", ErrNoServer, finding.Quote(name)))
		return
	}
	u.start(ctx, c, ended)
}

// Children is how many processes run.
func (f *Fleet) Children() int { return f.pool.len() }

// Health is how a server does.
type Health struct {
	Name        string
	State       State
	Connections int       // to it
	Failures    int       // since it last answered
	Since       time.Time // of State
	Why         string    // of Down and Rejected, and what else is wrong; for the operator, escaped
}

// A State is that of a server.
type State string

// The states.
const (
	Idle State = "idle" // no session has needed it yet, or none does now
	Up   State = "up"
	Down State = "down" // it could not be reached, or ended, and has not answered since
	// Rejected: what it says of itself was refused, so that no client can use it.
	Rejected State = "rejected"
)

// Health is how every server does, in the order of the configuration.
func (f *Fleet) Health() []Health {
	list := f.all()
	out := make([]Health, len(list))
	for i, u := range list {
		out[i] = u.health()
		if out[i].Why == "" && u.Stray != nil {
			out[i].Why = u.Stray()
		}
	}
	return out
}

// Close ends every session and connection. It returns when nothing is left of
// them, or with ctx's error when that ends before.
func (f *Fleet) Close(ctx context.Context) error {
	f.mu.Lock()
	f.ended = true
	list := f.list
	f.list = nil
	f.mu.Unlock()
	f.stop()
	done := make(chan struct{})
	go func() {
		defer close(done)
		closeAll(list)
		f.work.Wait()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
