// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"time"

	"github.com/pellucid-mcp/pellucid/mcp/wire"
)

// A refuser is a server that has refused to be initialized when it was checked: it answers every request of a client
// with the error that the server has given. The gateway inspects that like each of its answers.
type refuser struct {
	why  error // of wire.RefusedWith
	live context.Context
	stop context.CancelFunc
	rest *time.Timer
	asks chan wire.ID
}

func newRefuser(ctx context.Context, why error) *refuser {
	r := &refuser{why: why, asks: make(chan wire.ID, 64)}
	r.live, r.stop = context.WithTimeout(ctx, turnAwayMost)
	r.rest = time.AfterFunc(turnAwayRest, r.stop)
	return r
}

// isRefusal reports whether err has the words of a server that has refused to be initialized.
func isRefusal(err error) bool {
	m := wire.AnswerTo(wire.IntID(0), err)
	return m != nil && !m.Local
}

// Start implements wire.Conn.
func (r *refuser) Start(to wire.Receiver) {
	go func() {
		defer r.rest.Stop()
		for {
			select {
			case id := <-r.asks:
				to.Message(wire.AnswerTo(id, r.why))
			case <-r.live.Done():
				to.Ended(wire.ErrClosed)
				return
			}
		}
	}()
}

// Write implements wire.Conn.
func (r *refuser) Write(ctx context.Context, m *wire.Message) error {
	id, isRequest := m.ID, m.Kind == wire.Request
	m.Release()
	if !isRequest {
		return nil
	}
	r.rest.Reset(turnAwayRest)
	select {
	case r.asks <- id:
		return nil
	case <-r.live.Done():
		return wire.ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close implements wire.Conn.
func (r *refuser) Close() error {
	r.stop()
	return nil
}
