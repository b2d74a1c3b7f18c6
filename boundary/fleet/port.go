// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/pellucid-mcp/pellucid/mcp/wire"
)

// port is the reading half of a Conn whose other side is in this process:
// what is given to it, in whatever goroutine, Read returns.
type port struct {
	in     chan arrival
	poke   chan struct{} // there is something in own
	ended  chan struct{} // nothing more will be given
	closed chan struct{} // nobody reads any more

	mu    sync.Mutex
	own   []*wire.Message
	isEnd bool
	isOff bool
}

// arrival is what one Read returns.
type arrival struct {
	m   *wire.Message
	err error
}

func newPort() *port {
	return &port{in: make(chan arrival), poke: make(chan struct{}, 1),
		ended: make(chan struct{}), closed: make(chan struct{})}
}

// Read returns the next message, io.EOF behind the last, ErrClosed after Close.
func (p *port) Read(ctx context.Context) (*wire.Message, error) {
	for {
		if m, closed := p.next(); closed {
			return nil, wire.ErrClosed
		} else if m != nil {
			return m, nil
		}
		select {
		case a := <-p.in:
			return a.m, a.err
		case <-p.poke:
		case <-p.ended:
			if m, _ := p.next(); m != nil {
				return m, nil
			}
			return nil, io.EOF
		case <-p.closed:
			return nil, wire.ErrClosed
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (p *port) next() (m *wire.Message, closed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.isOff || len(p.own) == 0 {
		return nil, p.isOff
	}
	m = p.own[0]
	p.own[0] = nil
	p.own = p.own[1:]
	return m, false
}

// give waits until Read has taken m or err.
func (p *port) give(m *wire.Message, err error) bool {
	select {
	case p.in <- arrival{m, err}:
		return true
	case <-p.closed:
	case <-p.ended:
	}
	return false
}

// say lets Read return m without waiting for it. It reports false, and m is
// still the caller's, if there are limit messages waiting already.
func (p *port) say(m *wire.Message, limit int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.isOff || p.isEnd || len(p.own) >= limit {
		return false
	}
	p.own = append(p.own, m)
	select {
	case p.poke <- struct{}{}:
	default:
	}
	return true
}

// end lets Read return io.EOF once it has returned everything.
func (p *port) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.isEnd {
		p.isEnd = true
		close(p.ended)
	}
}

// off ends every Read.
func (p *port) off() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.isOff {
		p.isOff = true
		p.own = nil
		close(p.closed)
	}
}

func (p *port) isClosed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.isOff
}

// own gives a message that this package has put together its values; nil if it cannot.
func own(m *wire.Message) *wire.Message {
	if m.Parse() != nil {
		return nil
	}
	return m
}

// constant decodes an error response of constant text. cause is for the operator.
func constant(id wire.ID, code int, text string, cause error) *wire.Message {
	m := own(wire.NewError(id, errorObject(code, text)))
	if m == nil {
		panic("fleet: own error response is not valid") // constants only
	}
	if cause == nil {
		cause = errors.New("fleet: " + text)
	}
	m.Local, m.Cause = true, cause
	return m
}
