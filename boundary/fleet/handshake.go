// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"

	"github.com/pellucid-mcp/pellucid/mcp/wire"
)

// Ask implements wire.Greeted.
func (c *life) Ask(ctx context.Context, m *wire.Message) (*wire.Message, error) {
	id := m.ID
	if err := c.conn.Write(ctx, m); err != nil {
		return nil, err
	}
	return c.answer(ctx, id)
}

// Notify implements wire.Greeted.
func (c *life) Notify(ctx context.Context, m *wire.Message) error { return c.conn.Write(ctx, m) }

// answer waits until id is answered. Whatever else a process says before it
// has been greeted goes nowhere.
func (c *life) answer(ctx context.Context, id wire.ID) (*wire.Message, error) {
	for {
		a, err := c.await(ctx)
		switch {
		case errors.Is(err, context.DeadlineExceeded):
			return nil, errors.New("fleet: the server did not answer in time")
		case err != nil:
			return nil, err
		case a.v != nil && a.v.ID == id && !id.IsZero():
			return nil, errors.New("fleet: the server's answer was not acceptable: " + a.v.Reason)
		case a.v != nil:
			continue
		}
		if a.m.Kind == wire.Request {
			if err := c.conn.Write(ctx, refusal(a.m.ID, wire.ID{}, wire.CodeNoMethod, textNoMethod)); err != nil {
				return nil, err
			}
			continue
		}
		if a.m.ID == id && (a.m.Kind == wire.Response || a.m.Kind == wire.ErrorResponse) {
			return a.m, nil
		}
	}
}
