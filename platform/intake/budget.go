// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"context"
	"sync"
)

// A Budget is a Share that can be waited for. The zero Budget has nothing.
type Budget struct {
	share *Share
	total int64

	mu    sync.Mutex
	freed chan struct{} // closed once something has been given back
}

// NewBudget returns a Budget of so much.
func NewBudget(total int64) *Budget {
	return &Budget{share: NewShare(total), total: total, freed: make(chan struct{})}
}

// Wait takes n for who, or all that there is if that is less, as soon as it is there, and
// returns what gives it back. The error is ErrFull or ErrGreedy, once ctx is done.
func (b *Budget) Wait(ctx context.Context, who string, n int64) (give func(), err error) {
	n = min(n, b.total)
	for {
		b.mu.Lock()
		freed := b.freed
		b.mu.Unlock()
		if err = b.share.Take(who, n); err == nil {
			return func() { b.give(who, n) }, nil
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return nil, err
		}
	}
}

func (b *Budget) give(who string, n int64) {
	b.share.Give(who, n)
	b.mu.Lock()
	defer b.mu.Unlock()
	close(b.freed)
	b.freed = make(chan struct{})
}
