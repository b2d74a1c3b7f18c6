// SPDX-License-Identifier: Apache-2.0

package speed

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
)

// relay copies messages between two Conns without a look at them. It exists to
// be measured: it is what a proxy on our codec costs that checks nothing.
func relay(ctx context.Context, front, up wire.ReadConn) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var mu sync.Mutex
	shown := map[wire.ID]wire.ID{} // how the client spells the ids under way
	var work sync.WaitGroup
	work.Go(func() {
		defer stop()
		copyMessages(ctx, up, front, func(m *wire.Message) bool {
			mu.Lock()
			id, known := shown[m.ID]
			delete(shown, m.ID)
			mu.Unlock()
			m.Alias = id
			return known
		})
	})
	copyMessages(ctx, front, up, func(m *wire.Message) bool {
		if m.Kind == wire.Request {
			id := m.ID
			if !m.Alias.IsZero() {
				id = m.Alias
			}
			mu.Lock()
			shown[m.ID] = id
			mu.Unlock()
		}
		m.Alias, m.Route = wire.ID{}, mcpmsg.RouteOf(m.Method, m.Params, nil)
		return true
	})
	stop()
	front.Close()
	up.Close()
	work.Wait()
	return nil
}

func copyMessages(ctx context.Context, from, to wire.ReadConn, change func(*wire.Message) bool) {
	for {
		m, err := from.Read(ctx)
		var v *wire.Violation
		switch {
		case errors.As(err, &v):
			continue
		case errors.Is(err, io.EOF), err != nil:
			return
		}
		if !change(m) {
			m.Release()
		} else if to.Write(ctx, m) != nil {
			return
		}
	}
}
