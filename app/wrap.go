// SPDX-License-Identifier: Apache-2.0

package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/app/local"
	"github.com/pellucid-mcp/pellucid/boundary/admit"
	"github.com/pellucid-mcp/pellucid/boundary/fleet"
	"github.com/pellucid-mcp/pellucid/boundary/gateway"
	"github.com/pellucid-mcp/pellucid/boundary/policy"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/boundary/surface"
	"github.com/pellucid-mcp/pellucid/mcp/era"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/platform/build"
	"github.com/pellucid-mcp/pellucid/platform/child"
)

// WrapOptions are what a Wrap is run with beside its rules.
type WrapOptions struct {
	Database install.Database // where the store is, if one is needed; pins are there too where it is named
	Called   string           // what people call the server
	Login    string           // what pellucid login calls it, as a word of a shell
	// Unread waits until the client no longer reads what it gets, or ctx ends, and says which; nil: that is not
	// watched. It is called once the client has closed its side.
	Unread func(ctx context.Context) bool
	Log    *slog.Logger
}

// A Wrap is a boundary with one server and one client. It opens only what its rules ask for.
type Wrap struct {
	boundary

	server *rules.Server
	called string // by people
	login  string // by pellucid login
	unread func(context.Context) bool
	stderr child.Tail
	sweeps func()                      // ends the sweeping of the queue; nil: there is no queue
	last   atomic.Pointer[fleet.Child] // the process that was started last
	cut    atomic.Pointer[admit.Conn]
	out    atomic.Bool // the server was rejected after all
}

// wrapJudges are enough for one client: one text at a time, and few that wait.
var wrapJudges = gateway.ShadowOptions{Workers: 1, Bytes: 8 << 20}

// OpenWrap opens what the rules of one server ask for.
func OpenWrap(r *rules.Rules, o WrapOptions) (_ *Wrap, err error) {
	s := r.Servers[0]
	w := &Wrap{server: s, called: o.Called, login: o.Login, unread: o.Unread}
	w.log = o.Log
	w.rules.Store(r)
	defer func() {
		if err != nil {
			w.Close()
		}
	}()
	n, err := w.needsOf(r, o.Database)
	if err != nil {
		return nil, err
	}
	switch {
	case s.Admission.Pins == policy.Off:
	case o.Database != "":
		n.pins = pinsInStore
	default:
		n.pins = pinsInFiles
	}
	if err := w.openFor(r, n); err != nil {
		return nil, err
	}
	if n.hold {
		w.keepSwept()
	}
	if n.pins == pinsNowhere {
		return w, nil
	}
	if err := w.setReview(r, w.verifying); err != nil {
		return nil, exit.With(exit.Usage, fmt.Errorf("wrap: the review: %w", err))
	}
	return w, nil
}

// needsOf returns the parts that the rules of one server ask for. It sets the classifiers.
func (b *boundary) needsOf(r *rules.Rules, database install.Database) (needs, error) {
	n := needs{database: database, store: database != "", hold: holds(r), decides: r.Policy != nil, poll: install.PollSeldom}
	if slices.ContainsFunc(r.Servers[0].All(), func(t *rules.Tool) bool { return len(t.Classifiers) > 0 }) {
		n.judges = &wrapJudges
		if _, err := b.setJudges(r); err != nil {
			return n, exit.With(exit.Config, err)
		}
	}
	return n, nil
}

// openFor opens the parts, and records which rules are in force.
func (b *boundary) openFor(r *rules.Rules, n needs) error {
	dir, err := local.OpenState()
	if err != nil {
		return err
	}
	if err := b.open(dir, r, n); err != nil {
		return exit.With(exit.Config, err)
	}
	if b.records != nil && r.Policy != nil {
		b.records.Rules(r.Version())
	}
	return nil
}

// holds reports whether results are kept that are withheld: where something may hold them, and
// where records are.
func holds(r *rules.Rules) bool {
	if r.Policy != nil || r.Reviewers != nil || r.Evidence.Mode != rules.NoEvidence {
		return true
	}
	return slices.ContainsFunc(r.Servers[0].All(), func(t *rules.Tool) bool {
		enforced := func(name string) bool { return r.Classifiers[name].Mode == policy.Enforce }
		return len(t.Rule.Hold) > 0 || len(t.Rule.Capture.Of) > 0 || !t.Rule.PassUnverifiable || slices.ContainsFunc(t.Classifiers, enforced)
	})
}

// keepSwept keeps the queue swept until sweeps is called.
func (w *Wrap) keepSwept() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); w.sweep(ctx, nil) }()
	w.sweeps = func() { cancel(); <-done }
}

// verifying tells the operator how far a review is.
func (w *Wrap) verifying(_ string, s surface.Step) {
	w.log.Info("a language model reviews the server", "part", s.Chunk, "of", s.Chunks, "tokens", s.Tokens)
}

// Close lets go of everything.
func (w *Wrap) Close() {
	if w.sweeps != nil {
		w.sweeps()
	}
	w.closeJudges(time.Second)
	w.close()
}

// Run relays between the client at front and the server until one of them is gone or ctx ends.
// It closes front. The server is checked before a word of it passes, unless its rules say that
// nothing is pinned. A client that has closed its side gets what it has asked for, as long as it reads.
func (w *Wrap) Run(ctx context.Context, front wire.Conn) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	client := &client{Conn: front, left: func() {
		if w.unread != nil && w.unread(ctx) {
			stop()
		}
	}}
	dial, err := dialer(w.server, &w.stderr, w.logins, w.login, w.roomOf, w.log)
	if err != nil {
		front.Close()
		return exit.With(exit.Usage, err)
	}
	dial = w.remember(dial)
	cfg := w.treatment(w.rules.Load(), w.server, w.log.With("server", w.server.Name))
	cfg.Hold, cfg.Blocks, cfg.Exceptions, cfg.Finish = w.queue, w.blocks, w.excepts, true
	if w.pins == nil {
		up, err := dial(ctx)
		if err != nil {
			front.Close()
			return exit.With(exit.Unreachable, err)
		}
		return w.ended(ctx, gateway.Run(ctx, client, w.translate(up), cfg))
	}
	all := w.newAdmissions(admit.Options{Alone: true, Out: w.reject})
	defer all.Close()
	all.Set([]admit.Config{w.admission(w.server, w.called, dial.Talk)})
	server := all.Server(w.server.Name)
	cfg.Admission = server
	up, err := server.Conn(ctx, dial, build.Read().Version)
	if err != nil {
		front.Close()
		return exit.With(exit.Unreachable, err)
	}
	w.cut.Store(up)
	err = gateway.Run(ctx, client, w.translate(up), cfg)
	if ctx.Err() == nil && (err == nil || errors.Is(err, gateway.ErrUpstreamGone)) {
		err = cmp.Or(up.Err(), err) // the client may have left before it heard of it
	}
	switch {
	case errors.Is(err, admit.ErrRejected):
		return exit.With(exit.Rejected, fmt.Errorf("wrap: %w", cmp.Or(up.Err(), err)))
	case w.out.Load():
		return exit.With(exit.Rejected, errors.New("wrap: the server was rejected after all: pellucid pins list says why"))
	}
	return w.ended(ctx, err)
}

// A client is the connection to it. left is called in a goroutine of its own once the client has closed its side.
type client struct {
	wire.Conn
	left func()
}

// Start implements wire.Conn.
func (c *client) Start(r wire.Receiver) { c.Conn.Start(leaving{r, c.left}) }

// AllowBatches hands on what [wire.AllowBatches] says.
func (c *client) AllowBatches(on bool) { wire.AllowBatches(c.Conn, on) }

type leaving struct {
	wire.Receiver
	left func()
}

// Ended implements wire.Receiver. It notes the end of the client's input before the relay learns of it.
func (l leaving) Ended(err error) {
	if errors.Is(err, io.EOF) {
		go l.left()
	}
	l.Receiver.Ended(err)
}

// translate lets a client of the other era speak to a server at a URL. A server that is a
// command has only this client, which falls back to initialize by itself.
func (w *Wrap) translate(up wire.Conn) wire.Conn {
	if w.server.Command != nil {
		return up
	}
	return era.Adapt(up, era.Options{DangerouslyAllowSampling: w.server.DangerouslyAllowSampling})
}

// reject ends the session of a server that no longer passes the check.
func (w *Wrap) reject(string) {
	w.out.Store(true)
	if conn := w.cut.Load(); conn != nil {
		conn.Cut()
	}
}

// remember keeps the process that dial starts, so that its end can be told.
func (w *Wrap) remember(dial fleet.Dialer) fleet.Dialer {
	return func(ctx context.Context) (wire.Conn, error) {
		conn, err := dial(ctx)
		if child, is := conn.(*fleet.Child); is {
			w.last.Store(child)
		}
		return conn, err
	}
}

// ended says in a person's words why the relay has ended.
func (w *Wrap) ended(ctx context.Context, err error) error {
	switch {
	case err == nil, ctx.Err() != nil, errors.Is(err, gateway.ErrFrontBroken) && errors.Is(err, wire.ErrPeerClosed):
		return nil
	case errors.Is(err, gateway.ErrUpstreamStuck):
		return errors.New("wrap: the server reads no messages and sends none")
	case errors.Is(err, child.ErrStart):
		return exit.With(exit.Unreachable, err)
	case errors.Is(err, wire.ErrUnreachable):
		return exit.With(exit.Unreachable, fmt.Errorf("wrap: the server cannot be reached: %s", surface.WhyUnreachable(err)))
	}
	child, gone := w.last.Load(), errors.Is(err, gateway.ErrUpstreamGone)
	refused, _ := errors.AsType[*surface.RefusedError](err)
	unanswered := refused != nil && refused.Reason == surface.NoAnswer
	closed := errors.Is(err, io.EOF) || errors.Is(err, wire.ErrPeerClosed)
	if child != nil && (gone || unanswered) {
		if gone || closed {
			child.Exit()
		}
		w.lastWords()
	}
	switch {
	case surface.WantsLogin(err):
		return fmt.Errorf("wrap: the server wants a login or a key (HTTP status 401): pellucid login %s", w.login)
	case child != nil && unanswered && closed:
		return fmt.Errorf("wrap: the server ended (%s) before it answered %s", child.Exit(), cmp.Or(refused.Method, "a request"))
	case child != nil && gone:
		return fmt.Errorf("wrap: the server ended: %s", child.Exit())
	case unanswered:
		return fmt.Errorf("wrap: the server did not answer %s: %s", cmp.Or(refused.Method, "a request"), surface.WhyUnreachable(err))
	}
	return err
}

// lastWords writes the last lines of the server's standard error, and the names of the variables
// that it asks for there and did not get.
func (w *Wrap) lastWords() {
	lines := w.stderr.Lines()
	// What a process wrote last is read a moment after its end is seen.
	for range 30 {
		if len(lines) > 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
		lines = w.stderr.Lines()
	}
	if len(lines) == 0 {
		return
	}
	w.log.Warn("the last lines of the server's standard error", "lines", lines)
	c := command(w.server)
	if names := c.Lacks(lines); len(names) > 0 {
		w.log.Warn("the server asks for variables that it did not get: pass on those that it needs by --env NAME", "names", names)
	}
}
