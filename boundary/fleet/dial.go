// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"time"

	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/platform/child"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// ServerLimits are those of a server's messages. A server's lone surrogates are a
// common slip and are mended; a client's are refused.
var ServerLimits = strictjson.Limits{MendSurrogates: true}

// A Dialer opens a connection to a server.
type Dialer func(ctx context.Context) (wire.ReadConn, error)

// childWait is what a server gets for each step of its end. Clients close our
// input, send SIGTERM after two seconds and SIGKILL after four; by then nothing
// of the server must be left, or nobody would end it.
const childWait = 700 * time.Millisecond

// stopWait bounds the end of a child, whatever it does.
const stopWait = 8 * time.Second

// Child is the Conn to a server that was started for it.
type Child struct {
	*wire.Lines
	proc *child.Process
	exit child.Exit
}

// Start runs a stdio server. Its waits are 0.7 s where c does not say. The error
// wraps child.ErrStart.
func Start(c child.Command) (*Child, error) {
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
	return &Child{Lines: wire.NewLines(proc.Stdout, proc.Stdin, wire.LinesOptions{Limits: ServerLimits}), proc: proc}, nil
}

// Close stops the child before the pipes are closed under it.
func (c *Child) Close() error {
	ctx, stop := context.WithTimeout(context.Background(), stopWait)
	defer stop()
	exit, ended := c.proc.Stop(ctx)
	c.exit = exit
	err := c.Lines.Close()
	if !ended {
		return errors.New("fleet: the server could not be stopped")
	}
	return err
}

// Exit says how the child ended; it may be called once Close has returned.
func (c *Child) Exit() child.Exit { return c.exit }

// Command dials by starting a process.
func Command(c child.Command) Dialer {
	return func(context.Context) (wire.ReadConn, error) {
		conn, err := Start(c)
		if err != nil {
			return nil, err
		}
		return conn, nil
	}
}

// URL dials a server at a URL. Nothing is sent before the first message. The Dialer
// remembers the era of the server, and its transport where t leaves that open. The error is
// one of the URL.
func URL(t wire.Transport, url string, o wire.HTTPOptions) (Dialer, error) {
	first, err := streamable(url, o)
	if err != nil {
		return nil, err
	}
	second, err := withSSE(url, o)
	switch {
	case err != nil:
		return nil, err
	case t == wire.StreamableHTTP:
		return remembering(first, nil), nil
	case t == wire.HTTPWithSSE:
		return remembering(second, nil), nil
	}
	return remembering(first, second), nil
}

// Talk calls talk with a connection of its own.
func (d Dialer) Talk(ctx context.Context, talk func(context.Context, wire.ReadConn) error) error {
	conn, err := d(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	return talk(ctx, conn)
}

// streamable dials a streamable HTTP server.
func streamable(url string, o wire.HTTPOptions) (Dialer, error) {
	if _, err := wire.NewHTTP(url, o); err != nil {
		return nil, err
	}
	return func(context.Context) (wire.ReadConn, error) {
		conn, err := wire.NewHTTP(url, o)
		if err != nil {
			return nil, err
		}
		return wire.Pull(conn), nil
	}, nil
}
