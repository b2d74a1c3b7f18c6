// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// A RejectedError is the error of a Server.Verify for a server that must not be used. Every
// client gets the same answer as for a server that does not exist.
type RejectedError struct{ Why error }

func (e *RejectedError) Error() string { return "fleet: the server is rejected: " + e.Why.Error() }

// Unwrap returns why the server is rejected.
func (e *RejectedError) Unwrap() error { return e.Why }

func isRejected(err error) bool {
	_, is := errors.AsType[*RejectedError](err)
	return is
}

// Verify checks a server by its Server.Verify, and notes in its Health what came of it.
// The error is ErrNoServer, ctx's, or that of Server.Verify.
func (f *Fleet) Verify(ctx context.Context, name string) error {
	u := f.get(name)
	if u == nil {
		return fmt.Errorf("%w: %s", ErrNoServer, finding.Quote(name))
	}
	return u.verify(ctx)
}

// Announce tells the clients of all servers that lists may have changed: a server is
// there that was not.
func (f *Fleet) Announce() {
	f.mu.Lock()
	unions := slices.Collect(maps.Keys(f.unions))
	f.mu.Unlock()
	for _, u := range unions {
		u.changed()
	}
}

// Cut ends the sessions of a server, and the process or connection that they share.
// Requests under way are answered with a constant error. A new session finds the
// server in the state that Verify reports by then.
func (f *Fleet) Cut(name string) {
	if u := f.get(name); u != nil {
		u.cut()
	}
}

// cut ends the sessions of the server, and the connection that they share.
func (c *condition) cut() {
	c.mu.Lock()
	end := c.end
	c.term, c.end = context.WithCancel(context.Background())
	sh := c.shared
	c.shared = nil
	c.mu.Unlock()
	end()
	if sh != nil {
		sh.close()
	}
}

// until returns what ends when the sessions that begin now have to.
func (c *condition) until() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.term
}

// Said is the end of what the server's processes wrote to their standard error, if that is known.
func (f *Fleet) Said(name string) []string {
	if u := f.get(name); u != nil && u.Said != nil {
		return u.Said()
	}
	return nil
}

// Probe opens a connection to a server that belongs to no session, for a check of the
// server, and closes it when talk returns.
func (f *Fleet) Probe(ctx context.Context, name string, talk func(context.Context, wire.ReadConn) error) error {
	u := f.get(name)
	if u == nil {
		return fmt.Errorf("%w: %s", ErrNoServer, finding.Quote(name))
	}
	if !f.begin() {
		return ErrNoServer
	}
	defer f.work.Done()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(u.ctx, stop)()
	conn, release, err := u.dial(ctx, "", nil)
	if err != nil {
		return err
	}
	defer release()
	whole := read(conn)
	err = talk(ctx, whole)
	if closeErr := whole.Close(); closeErr != nil {
		u.log.Error("a server process could not be stopped", "error", closeErr)
	}
	return err
}

// verify checks the server, unless it has no check, and keeps the outcome as its state.
func (u *upstream) verify(ctx context.Context) error {
	if u.Verify == nil {
		return nil
	}
	err := u.Verify(ctx)
	rejected, is := errors.AsType[*RejectedError](err)
	switch {
	case err == nil:
		u.admitted()
	case is:
		u.rejected(rejected.Why)
	case ctx.Err() == nil:
		u.failed(err)
	}
	return err
}

// rejected notes why the server must not be used.
func (c *condition) rejected(reason error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.why = why(reason); c.state != Rejected {
		c.state, c.since = Rejected, time.Now()
	}
}

// admitted notes that it may be, after all.
func (c *condition) admitted() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state == Rejected || c.state == Down && c.live == 0 {
		c.state, c.since, c.why, c.failures = Idle, time.Now(), "", 0
	}
}

// Pauses of turning a client away: what it asks in a burst is all answered, and then
// its session ends, so that the next one finds the server as it is by then.
const (
	turnAwayRest = 2 * time.Second
	turnAwayMost = 30 * time.Second
)

// turnedAway is a client whose every request is answered with a constant error.
type turnedAway struct {
	front      wire.Conn
	ctx        context.Context
	stop       context.CancelFunc
	code       int
	text       string
	rest, most *time.Timer
	ended      func()
}

// turnAway begins to turn a client away.
func turnAway(ctx context.Context, front wire.Conn, reason error, ended func()) {
	t := &turnedAway{front: front, code: wire.CodeAbsent, text: textAbsent, ended: ended}
	if isRejected(reason) {
		t.code, t.text = wire.CodeRejected, textRejected
	}
	t.ctx, t.stop = context.WithCancel(ctx)
	context.AfterFunc(t.ctx, func() { front.Close() })
	t.rest, t.most = time.AfterFunc(turnAwayRest, t.stop), time.AfterFunc(turnAwayMost, t.stop)
	front.Start(t)
}

// Message implements wire.Receiver.
func (t *turnedAway) Message(m *wire.Message) {
	t.rest.Reset(turnAwayRest)
	id, shown, isRequest := m.ID, m.ID, m.Kind == wire.Request
	if !m.Alias.IsZero() {
		shown = m.Alias
	}
	m.Release()
	if isRequest && t.front.Write(t.ctx, refusal(id, shown, t.code, t.text)) != nil {
		t.stop()
	}
}

// Violation implements wire.Receiver.
func (t *turnedAway) Violation(*wire.Violation) { t.rest.Reset(turnAwayRest) }

// Ended implements wire.Receiver.
func (t *turnedAway) Ended(error) {
	t.rest.Stop()
	t.most.Stop()
	t.stop()
	t.ended()
}
