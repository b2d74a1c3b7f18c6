// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/backoff"
)

// member is a server as part of a union.
type member struct {
	u  *union
	up *upstream // guarded by u.mu, like all that follows

	prefix  string
	tools   names
	prompts names

	run   *run // nil: not begun, or dead
	pause backoff.Waits
	next  time.Time // before which no other run is begun
}

func newMember(u *union, up *upstream) *member {
	return &member{u: u, up: up, prefix: prefixOf(&up.Server), tools: names{}, prompts: names{},
		pause: backoff.Waits{First: up.opt.firstWait, Most: up.opt.mostWait}}
}

var errAbsent = errors.New("fleet: server not available")

// awake returns the member's run once its server can be asked. The error is ctx's,
// or that the server is not there.
func (m *member) awake(ctx context.Context) (*run, error) {
	r := m.current()
	if r == nil {
		return nil, errAbsent
	}
	select {
	case <-r.greeted:
		return r, r.err
	case <-r.dead:
		return nil, errAbsent
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// current returns the run that there is, or begins one.
func (m *member) current() *run {
	u := m.u
	u.mu.Lock()
	defer u.mu.Unlock()
	if m.run != nil || u.over || u.ctx.Err() != nil || time.Now().Before(m.next) {
		return m.run
	}
	r := newRun(m, m.up)
	m.run = r
	u.work.Add(1) // until it has ended
	u.work.Go(r.begin)
	return r
}
