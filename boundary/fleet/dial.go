// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/platform/child"
	"github.com/pellucid-mcp/pellucid/platform/intake"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// ServerLimits are those of a server's messages. A server's lone surrogates are a
// common slip and are mended; a client's are refused.
var ServerLimits = strictjson.Limits{MendSurrogates: true}

// A Dialer opens a connection to a server.
type Dialer func(ctx context.Context) (wire.Conn, error)

// childWait is the time that a server gets for each step of its end. Clients close our
// input, send SIGTERM after two seconds and SIGKILL after four. By then the server
// must have ended: no process is left that could end it.
const childWait = 700 * time.Millisecond

// stopWait bounds the end of a child, whatever it does.
const stopWait = 8 * time.Second

// Child is the Conn to a server that was started for it.
type Child struct {
	wire.Conn // of its pipes
	proc      *child.Process
	ending    sync.Once
	closed    atomic.Bool   // by this side
	gone      chan struct{} // closed when it has ended
	exit      child.Exit
	left      error // why something is left of it
}

// Start runs a stdio server. room gives memory for a line; if it is nil, lines are not counted. Its waits are 0.7 s
// where c does not say. The error wraps child.ErrStart.
func Start(c child.Command, room func() *intake.Room) (*Child, error) {
	if c.CloseWait == 0 {
		c.CloseWait = childWait
	}
	if c.TermWait == 0 {
		c.TermWait = childWait
	}
	proc, err := child.Start(c)
	if err != nil {
		return nil, err
	}
	lines := wire.NewLines(proc.Stdout, proc.Stdin, wire.LinesOptions{Limits: ServerLimits, Stray: c.Stray, Room: room})
	return &Child{Conn: lines, proc: proc, gone: make(chan struct{})}, nil
}

// Start implements wire.Conn. Ended comes when the child has ended.
func (c *Child) Start(r wire.Receiver) { c.Conn.Start(&childReceiver{r, c}) }

type childReceiver struct {
	wire.Receiver
	c *Child
}

// Ended implements wire.Receiver.
func (r *childReceiver) Ended(err error) {
	if r.c.closed.Load() {
		err = wire.ErrClosed
	}
	r.c.ending.Do(func() { go r.c.end() })
	<-r.c.gone
	if r.c.left != nil {
		err = r.c.left
	}
	r.Receiver.Ended(err)
}

// AllowBatches hands on what wire.AllowBatches says.
func (c *Child) AllowBatches(on bool) { wire.AllowBatches(c.Conn, on) }

// Close begins to stop the child, and then closes its pipes.
func (c *Child) Close() error {
	c.closed.Store(true)
	c.ending.Do(func() { go c.end() })
	return nil
}

// errLeft: something is left of a child.
var errLeft = errors.New("fleet: the server could not be stopped")

func (c *Child) end() {
	defer close(c.gone)
	ctx, stop := context.WithTimeout(context.Background(), stopWait)
	defer stop()
	var ended bool
	if c.exit, ended = c.proc.Stop(ctx); !ended {
		c.left = errLeft
	}
	if err := c.Conn.Close(); err != nil && ended {
		c.left = fmt.Errorf("%w: its pipes: %w", errLeft, err)
	}
}

// Exit says how the child ended. It waits for that, and may be called once Close or Ended was.
func (c *Child) Exit() child.Exit {
	<-c.gone
	return c.exit
}

// Command dials by starting a process. room is memory for what it sends, as in wire.HTTPOptions.
func Command(c child.Command, room func(principal string) *intake.Room) Dialer {
	return func(ctx context.Context) (wire.Conn, error) {
		var line func() *intake.Room
		if room != nil {
			line = func() *intake.Room { return room(principalOf(ctx)) }
		}
		conn, err := Start(c, line)
		if err != nil {
			return nil, err
		}
		return conn, nil
	}
}

// URL dials a server at a URL. Nothing is sent before the first message. The Dialer
// remembers the era of the server, and its transport where t leaves that open. credentials, if
// not nil, are those with which a connection for a principal authorizes its requests. The error is
// one of the URL.
func URL(t wire.Transport, url string, o wire.HTTPOptions, credentials func(principal string) wire.Credentials) (Dialer, error) {
	if _, err := wire.NewHTTP(url, o); err != nil {
		return nil, err
	}
	o.Pool = wire.NewPool(o) // for the connections of all sessions
	first, second := dialer(wire.NewHTTP, url, o, credentials), dialer(wire.NewSSE, url, o, credentials)
	switch t {
	case wire.StreamableHTTP:
		return remembering(first, nil), nil
	case wire.HTTPWithSSE:
		return remembering(second, nil), nil
	}
	return remembering(first, second), nil
}

// dialer dials with one transport.
func dialer[C wire.Conn](open func(string, wire.HTTPOptions) (C, error), url string, o wire.HTTPOptions, credentials func(principal string) wire.Credentials) Dialer {
	return func(ctx context.Context) (wire.Conn, error) {
		o := o
		if credentials != nil {
			o.Credentials = credentials(principalOf(ctx))
		}
		o.Principal = principalOf(ctx)
		conn, err := open(url, o)
		if err != nil {
			return nil, err
		}
		return conn, nil
	}
}

// principalKey is the key of the principal that a Dialer is called for.
type principalKey struct{}

func principalOf(ctx context.Context) string {
	principal, _ := ctx.Value(principalKey{}).(string)
	return principal
}

// Talk calls talk with a connection of its own.
func (d Dialer) Talk(ctx context.Context, talk func(context.Context, wire.ReadConn) error) error {
	conn, err := d.Read(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	return talk(ctx, conn)
}

// Read dials a connection that is read.
func (d Dialer) Read(ctx context.Context) (wire.ReadConn, error) {
	conn, err := d(ctx)
	if err != nil {
		return nil, err
	}
	return read(conn), nil
}

// read lets conn be read. Close returns when nothing is left of it.
func read(conn wire.Conn) wire.ReadConn {
	c := &whole{Conn: conn, gone: make(chan struct{})}
	return &readWhole{wire.Pull(c), c}
}

// readWhole is a whole that is read.
type readWhole struct {
	wire.ReadConn
	whole *whole
}

// Close implements wire.ReadConn.
func (r *readWhole) Close() error {
	err := r.ReadConn.Close()
	<-r.whole.gone
	return err
}

// AllowBatches hands on what wire.AllowBatches says.
func (r *readWhole) AllowBatches(on bool) { wire.AllowBatches(r.ReadConn, on) }

// whole is a Conn that closes gone when its Receiver was told the end.
type whole struct {
	wire.Conn
	gone chan struct{}
}

type wholeReceiver struct {
	wire.Receiver
	gone chan struct{}
}

// Start implements wire.Conn.
func (c *whole) Start(r wire.Receiver) { c.Conn.Start(&wholeReceiver{r, c.gone}) }

// AllowBatches hands on what wire.AllowBatches says.
func (c *whole) AllowBatches(on bool) { wire.AllowBatches(c.Conn, on) }

// Ended implements wire.Receiver.
func (r *wholeReceiver) Ended(err error) {
	r.Receiver.Ended(err)
	close(r.gone)
}
