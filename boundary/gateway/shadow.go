// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// ShadowOptions bound a Shadow. The zero value of each is its default.
type ShadowOptions struct {
	Workers int   // answers that are judged at one time; 4
	waiting int   // answers that wait; 256
	Bytes   int64 // of those that wait or are judged; 8 MiB
}

// A Shadow asks classifiers about answers that have been delivered. Whoever delivers
// never waits for it: what does not fit is not asked about, and that is recorded. It
// may serve any number of sessions.
type Shadow struct {
	o       ShadowOptions
	jobs    chan shadowJob
	ctx     context.Context
	stop    context.CancelFunc
	done    sync.WaitGroup
	bytes   atomic.Int64
	pending atomic.Int64
	dropped atomic.Int64

	mu     sync.RWMutex // of closed, against sending
	closed bool
}

type shadowJob struct {
	bytes int64
	due   time.Time // set by offer
	work  func(context.Context)
	free  func()
}

// NewShadow starts one.
func NewShadow(o ShadowOptions) *Shadow {
	o.Workers = cmp.Or(max(o.Workers, 0), 4)
	o.waiting = cmp.Or(max(o.waiting, 0), 256)
	o.Bytes = cmp.Or(max(o.Bytes, 0), 8<<20)
	s := &Shadow{o: o, jobs: make(chan shadowJob, o.waiting)}
	s.ctx, s.stop = context.WithCancel(context.Background())
	for range o.Workers {
		s.done.Go(s.run)
	}
	return s
}

// Dropped is how many answers nobody was asked about.
func (s *Shadow) Dropped() int64 { return s.dropped.Load() }

// Pending is how many answers wait or are judged.
func (s *Shadow) Pending() int64 { return s.pending.Load() }

// Close judges what waits, as far as ctx lets it, and drops the rest.
func (s *Shadow) Close(ctx context.Context) {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.jobs)
	}
	s.mu.Unlock()
	defer context.AfterFunc(ctx, s.stop)()
	s.done.Wait()
	s.stop()
}

// offer takes a job, or says that it has not.
func (s *Shadow) offer(j shadowJob) bool {
	if s == nil {
		return false
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	j.due = time.Now().Add(shadowWait)
	if !s.closed && s.bytes.Add(j.bytes) <= s.o.Bytes {
		s.pending.Add(1)
		select {
		case s.jobs <- j:
			return true
		default:
		}
		s.pending.Add(-1)
	}
	if !s.closed {
		s.bytes.Add(-j.bytes)
	}
	s.dropped.Add(1)
	return false
}

// shadowWait is what an answer has to get to the client before it is judged: a worker
// that begins at once takes the processor that was about to send it.
const shadowWait = 2 * time.Millisecond

func (s *Shadow) run() {
	for j := range s.jobs {
		time.Sleep(time.Until(j.due))
		j.work(s.ctx)
		j.free()
		s.bytes.Add(-j.bytes)
		s.pending.Add(-1)
	}
}
