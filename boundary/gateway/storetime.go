// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"sync"
	"time"
)

// One call waits for the store at most for Config.StorePatience in all, however often the store
// is asked for it. Each question still gets minStoreTime, so that a store that works again is
// noticed.
const (
	maxStoreTime = 900 * time.Millisecond // where there is no StorePatience
	minStoreTime = 30 * time.Millisecond
)

// A storeTime is what one call has waited for the store. The zero value is ready; nil is
// that of a message that belongs to no call.
type storeTime struct {
	most func() time.Duration // in all; nil: maxStoreTime
	mu   sync.Mutex
	used time.Duration
}

// left is how long the store may still be waited for.
func (s *storeTime) left() time.Duration {
	if s == nil {
		return maxStoreTime
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	most := maxStoreTime
	if s.most != nil {
		most = s.most()
	}
	return max(minStoreTime, most-s.used)
}

// within returns a context for one question to the store; done notes how long it took.
func (s *storeTime) within(parent context.Context) (ctx context.Context, done func()) {
	ctx, stop := context.WithTimeout(parent, s.left())
	began := time.Now()
	return ctx, func() {
		stop()
		s.spend(time.Since(began))
	}
}

func (s *storeTime) spend(d time.Duration) {
	if s != nil {
		s.mu.Lock()
		s.used += d
		s.mu.Unlock()
	}
}
