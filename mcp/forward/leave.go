// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/backoff"
	"github.com/pellucid-mcp/pellucid/platform/peer"
	"github.com/pellucid-mcp/pellucid/platform/replica"
)

// How a replica ends, in this order: Leave, Drain, and Farewell once no client can reach it any more.

// Leave has other replicas serve what is new, because this one is about to end. A client that listens
// here for messages of another replica's session has to ask another replica.
func (f *Forwarder) Leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.leaving = true
	for s := range f.under {
		if s.stream {
			s.stop(errLeaving)
		}
	}
}

// lastStream is how long a client may listen that has asked a replica which is about to end.
const lastStream = 100 * time.Millisecond

// Drain waits until every request that was sent to another replica is answered, and no longer than ctx.
func (f *Forwarder) Drain(ctx context.Context) {
	f.drained(ctx, func(s *sending) bool { return !s.stream })
}

const drainPoll = 20 * time.Millisecond

// drained waits until no request of a kind is under way to other replicas, and no longer than ctx.
func (f *Forwarder) drained(ctx context.Context, kind func(*sending) bool) {
	some := func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		for s := range f.under {
			if kind(s) {
				return true
			}
		}
		return false
	}
	for some() && backoff.Sleep(ctx, drainPoll) == nil {
	}
}

// farewellWait bounds the wait for the other replicas.
const farewellWait = 2 * time.Second

// Farewell tells the other replicas that this one answers no more requests. It returns when each has said that
// none of its requests is on the way here. Without it a request could be on a connection just when the connection
// is closed, and nobody would know whether it was carried out. A replica that does not answer is not waited for.
func (f *Forwarder) Farewell() {
	ctx, stop := context.WithTimeout(f.ctx, farewellWait)
	defer stop()
	self := f.o.Member.ID()
	var all sync.WaitGroup
	for _, to := range f.o.Member.Others() {
		all.Go(func() {
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+to.Address+"/", http.NoBody)
			if err != nil {
				return
			}
			r.Header.Set(headerTo, to.ID)
			r.Header.Set(headerFrom, self)
			r.Header.Set(headerEnds, "1")
			if resp, _, err := peer.Send(f.o.Out, r); err == nil {
				resp.Body.Close()
			}
		})
	}
	all.Wait()
}

// maxEnded bounds the replicas that are remembered as having ended.
const maxEnded = 1024

// ended answers Farewell of another replica.
func (f *Forwarder) ended(ctx context.Context, id string) {
	if !replica.ValidID(id) {
		return
	}
	f.mu.Lock()
	if len(f.gone) >= maxEnded {
		clear(f.gone) // what is sent to one of these finds that nothing listens
	}
	f.gone[id] = true
	f.mu.Unlock()
	ctx, stop := context.WithTimeout(ctx, farewellWait)
	defer stop()
	f.drained(ctx, func(s *sending) bool { return s.owner == id })
}

// hasEnded reports whether a replica has said that it answers no more requests.
func (f *Forwarder) hasEnded(id string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.gone[id]
}
