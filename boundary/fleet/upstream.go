// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/pellucid-mcp/pellucid/boundary/gateway"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
)

// upstream is a Server and what is known of it.
type upstream struct {
	Server
	*condition
}

// condition is what stays of an upstream when only the treatment of its messages
// changes.
type condition struct {
	name string
	f    *Fleet
	opt  *Options
	log  *slog.Logger
	ctx  context.Context // ends with the server
	stop context.CancelFunc

	mu       sync.Mutex
	live     int
	failures int
	state    State
	since    time.Time
	why      string
	shared   *share
	term     context.Context // ends, and is replaced, when sessions have to end
	end      context.CancelFunc
}

func newUpstream(f *Fleet, s Server) *upstream {
	c := &condition{name: s.Name, f: f, opt: &f.opt, log: f.log.With("server", s.Name), state: Idle, since: time.Now()}
	c.ctx, c.stop = context.WithCancel(context.Background())
	c.term, c.end = context.WithCancel(context.Background())
	return &upstream{s, c}
}

// with is the same server under another configuration. Its Dialer stays, as its Identity
// does, and so does what the Dialer has learned of the server.
func (u *upstream) with(s Server) *upstream {
	s.Dial = u.Dial
	return &upstream{s, u.condition}
}

func (u *upstream) close() {
	u.stop()
	u.mu.Lock()
	sh := u.shared
	u.shared = nil
	u.mu.Unlock()
	if sh != nil {
		sh.close()
	}
}

// start begins to relay between a client and the server: see Fleet.Start.
func (u *upstream) start(ctx context.Context, c Client, ended func(error)) {
	if !u.f.begin() {
		c.Conn.Close()
		ended(ErrNoServer)
		return
	}
	ctx, stop := context.WithCancel(ctx)
	forget := context.AfterFunc(u.ctx, stop)
	term := u.until()
	done := func(err error) {
		forget()
		stop()
		if u.ctx.Err() != nil {
			err = ErrNoServer
		}
		ended(err)
		u.f.work.Done()
	}
	switch err := u.verify(ctx); {
	case err == nil:
		u.relay(ctx, term, c, u.connection(ctx, c.Principal), done)
	case u.ctx.Err() != nil:
		c.Conn.Close()
		done(ErrNoServer)
	case isRefusal(err):
		u.relay(ctx, term, c, newRefuser(ctx, err), func(error) { done(nil) })
	default:
		turnAway(ctx, c.Conn, err, func() { done(nil) })
	}
}

// relay begins a session of the gateway with the server behind up. It ends early with term, so that the client is told
// that the server is gone.
func (u *upstream) relay(ctx, term context.Context, c Client, up wire.Conn, done func(error)) {
	if t := u.opt.Translate; t != nil {
		up = t(u.Name, up, c.Era)
	}
	forget := context.AfterFunc(term, func() { up.Close() })
	cfg := u.Config(c.Principal)
	cfg.Union, cfg.Counts = c.union, c.counts
	gateway.Start(ctx, c.Conn, up, cfg, func(err error) {
		forget()
		done(err)
	})
}

// connection is that of a session.
func (u *upstream) connection(ctx context.Context, principal string) wire.Conn {
	if u.Shared {
		return u.session(principal)
	}
	return newLink(ctx, u, principal)
}

// begin admits work that Close waits for.
func (f *Fleet) begin() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.ended {
		f.work.Add(1)
	}
	return !f.ended
}

// session is the Conn of a session of the principal to the one connection that all share.
func (u *upstream) session(principal string) wire.Conn {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.shared == nil {
		u.shared = newShare(newLink(u.ctx, u, ""))
	}
	return u.shared.session(principal)
}

// dial makes a connection for a principal; release gives its room back. s may lose it to
// another session; nil: it may not.
func (u *upstream) dial(ctx context.Context, principal string, s sleeper) (conn wire.Conn, release func(), err error) {
	if !u.Child {
		conn, err = u.Dial(context.WithValue(ctx, principalKey{}, principal))
		return conn, func() {}, err
	}
	if release, err = u.f.pool.take(ctx, u.Name, principal, s); err != nil {
		return nil, nil, err
	}
	if conn, err = u.Dial(ctx); err != nil {
		release()
		return nil, nil, err
	}
	return conn, release, nil
}

func (c *condition) connected() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.live++; c.state == Idle {
		c.state, c.since = Up, time.Now()
	}
}

func (c *condition) disconnected() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.live--; c.live == 0 && c.state == Up {
		c.state, c.since = Idle, time.Now()
	}
}

// lost notes that a connection has ended, although its session goes on.
func (u *upstream) lost(err error, retry time.Duration) {
	u.log.Warn("connection to the server lost", append(u.gone(err), "next_attempt_in", retry.Round(100*time.Millisecond).String())...)
	u.failed(err)
}

// gone is what the log says of a server that has failed: why, and the end of what its processes
// wrote to their standard error.
func (u *upstream) gone(err error) []any {
	args := []any{"why", why(err)}
	if u.Said == nil {
		return args
	}
	if lines := u.Said(); len(lines) > 0 {
		args = append(args, "standard_error", lines)
	}
	return args
}

func (c *condition) failed(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failures++
	if c.why = why(err); c.state != Down {
		c.state, c.since = Down, time.Now()
	}
}

// heard notes that the server has said something, or that it could not be asked.
func (c *condition) heard(m *wire.Message) {
	if m.Local {
		if errors.Is(m.Cause, wire.ErrUnreachable) {
			c.failed(m.Cause)
		}
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failures = 0; c.state != Up {
		c.state, c.since, c.why = Up, time.Now(), ""
	}
}

func (c *condition) health() Health {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Health{Name: c.name, State: c.state, Connections: c.live, Failures: c.failures, Since: c.since, Why: c.why}
}
