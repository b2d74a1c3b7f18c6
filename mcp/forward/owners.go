// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/pellucid-mcp/pellucid/mcp/session"
)

// Which replica has which session, as the store says, and as this process remembers it.

// Claim makes a replica the owner of a session if the session's fence is still the one that was seen.
func Claim(ctx context.Context, store session.Store, s *session.Session, principal string, fence int64, self string) (bool, error) {
	claimed, err := store.ClaimSession(ctx, session.Record{ID: s.ID(), Server: s.Server, Fence: fence,
		Principal: session.PrincipalDigest(principal), Seen: time.Now(), Until: s.Until}, self)
	if err != nil {
		return false, fmt.Errorf("forward: claim a session: %w", err)
	}
	return claimed, nil
}

// Begun remembers that this replica owns a session that has just begun.
func (f *Forwarder) Begun(s *session.Session, self string, fence int64) {
	f.owners.set(s.ID(), owner{self, fence})
}

// owner returns the owner of a session, from memory if it is known.
func (f *Forwarder) owner(ctx context.Context, s *session.Session) (owner, error) {
	id := s.ID()
	if own, ok := f.owners.get(id); ok && time.Since(own.at) < f.o.trust {
		return own.owner, nil
	}
	ctx, stop := context.WithTimeout(ctx, f.o.wait)
	defer stop()
	before := f.told.Load()
	replica, fence, err := f.o.Store.SessionOwner(ctx, id)
	if err != nil {
		return owner{}, err
	}
	own := owner{replica, fence}
	if f.owners.set(id, own); f.told.Load() != before {
		f.owners.forget(id) // a claim was told meanwhile, perhaps of this session
	}
	return own, nil
}

// Released is told that this replica has let go of a session.
func (f *Forwarder) Released(id string) { f.owners.forget(id) }

// owner is a replica that has a session.
type owner struct {
	id    string // "": none
	fence int64
}

// maxOwners bounds what is remembered; what is forgotten is asked for again.
const maxOwners = 100_000

// owners remember who has which session.
type owners struct {
	mu  sync.RWMutex
	all map[string]remembered
}

// remembered is an owner, and when that was learnt.
type remembered struct {
	owner
	at time.Time
}

func (o *owners) get(id string) (remembered, bool) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	own, ok := o.all[id]
	return own, ok
}

func (o *owners) set(id string, own owner) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.all) >= maxOwners {
		clear(o.all)
	}
	o.all[id] = remembered{own, time.Now()}
}

// of returns the sessions of a replica.
func (o *owners) of(replica string) map[string]owner {
	o.mu.RLock()
	defer o.mu.RUnlock()
	out := map[string]owner{}
	for id, own := range o.all {
		if own.id == replica {
			out[id] = own.owner
		}
	}
	return out
}

func (o *owners) forget(id string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.all, id)
}
