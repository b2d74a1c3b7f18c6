// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"time"
)

// An inbox is where the streams of an upstream leave what they have read. It ends
// with its context.
type inbox struct {
	ctx context.Context
	in  chan incoming // closed once the session is gone
}

// Read returns the next message of any of the upstream's streams.
func (b *inbox) Read(ctx context.Context) (*Message, error) {
	select {
	case <-b.ctx.Done():
		return nil, ErrClosed
	default:
	}
	select {
	case in, ok := <-b.in:
		if !ok {
			return nil, ErrSessionGone
		}
		return in.m, in.err
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-b.ctx.Done():
		return nil, ErrClosed
	}
}

func (b *inbox) deliver(m *Message, err error) {
	select {
	case b.in <- incoming{m, err}:
	case <-b.ctx.Done():
	}
}

// acknowledged waits until the upstream has taken a notification, but not for long;
// late is called where it takes longer than that.
func (b *inbox) acknowledged(ctx context.Context, taken <-chan struct{}, wait time.Duration, late func()) error {
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-taken:
	case <-t.C:
		late()
	case <-ctx.Done():
		return ctx.Err()
	case <-b.ctx.Done():
		return ErrClosed
	}
	return nil
}
