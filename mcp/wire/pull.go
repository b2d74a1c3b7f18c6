// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"errors"
	"sync"
	"time"
)

// pullAhead is how many messages wait for a Read: a Write may call the Receiver before it returns,
// and who reads often writes first.
const pullAhead = 16

// Pull starts c and lets it be read. What is not read holds up its stream.
func Pull(c Conn) ReadConn {
	p := &pulled{Conn: c, in: make(chan incoming, pullAhead), ended: make(chan struct{}), closed: make(chan struct{})}
	c.Start(p)
	return p
}

type incoming struct {
	m   *Message
	err error
}

type pulled struct {
	Conn
	in     chan incoming
	over   error // why nothing comes any more; read once ended is closed
	ended  chan struct{}
	close  sync.Once
	closed chan struct{}
}

// Read returns the next message of any stream.
func (p *pulled) Read(ctx context.Context) (*Message, error) {
	select {
	case <-p.closed: // before a message that happens to be ready
		return nil, ErrClosed
	default:
	}
	select {
	case in := <-p.in:
		return in.m, in.err
	case <-p.ended:
		select {
		case in := <-p.in: // that came before
			return in.m, in.err
		default:
		}
		return nil, p.over
	case <-p.closed:
		return nil, ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Message implements Receiver.
func (p *pulled) Message(m *Message) { p.give(incoming{m: m}) }

// Violation implements Receiver.
func (p *pulled) Violation(v *Violation) { p.give(incoming{err: v}) }

// Ended implements Receiver.
func (p *pulled) Ended(err error) {
	p.over = err
	close(p.ended)
}

func (p *pulled) give(in incoming) {
	select {
	case p.in <- in:
	case <-p.closed:
		if in.m != nil {
			in.m.Release()
		}
	}
}

// closeWait is how long Close of what Pull returns waits for the end of the Conn: longer than any
// transport of this package takes.
const closeWait = 5 * time.Second

// Close ends the Conn and every Read, and returns when the Conn has ended.
func (p *pulled) Close() error {
	p.close.Do(func() { close(p.closed) })
	err := p.Conn.Close()
	t := time.NewTimer(closeWait)
	defer t.Stop()
	select {
	case <-p.ended:
	case <-t.C:
	}
	return err
}

// Push lets a goroutine read c, from Start until nothing comes any more.
func Push(c ReadConn) Conn { return &pushed{ReadConn: c} }

type pushed struct{ ReadConn }

// Start implements Conn.
func (p *pushed) Start(r Receiver) { go p.read(r) }

func (p *pushed) read(r Receiver) {
	for {
		m, err := p.Read(context.Background()) // Close ends it
		var v *Violation
		switch {
		case err == nil:
			r.Message(m)
		case errors.As(err, &v):
			r.Violation(v)
		default:
			r.Ended(err)
			return
		}
	}
}

// AllowBatches hands on what [AllowBatches] says.
func (p *pulled) AllowBatches(on bool) { AllowBatches(p.Conn, on) }

// AllowBatches hands on what [AllowBatches] says.
func (p *pushed) AllowBatches(on bool) { AllowBatches(p.ReadConn, on) }
