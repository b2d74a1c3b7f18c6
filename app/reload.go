// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/pellucid-mcp/pellucid/app/local"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/platform/backoff"
	"github.com/pellucid-mcp/pellucid/platform/loopback"
	"github.com/pellucid-mcp/pellucid/storage"
)

// follow applies every new version of the rules, until ctx ends. Nothing of what it
// does beside that uses the store once it has returned.
func (b *Gateway) follow(ctx context.Context) {
	var beside sync.WaitGroup
	defer beside.Wait()
	beside.Go(func() { b.sweep(ctx, b.unswept) })
	beside.Go(func() { b.sweepSessions(ctx) })
	beside.Go(func() { local.FollowKeys(ctx, b.dir, b.ring, b.log, b.replicas.rekey) })
	beside.Go(func() { b.sender.Run(ctx) })
	beside.Go(func() { b.verifyAll(ctx) })
	beside.Go(func() { b.endRefused(ctx) })
	beside.Go(func() { b.store.Watch(ctx, b.log, b.changed) })
	b.src.follow(ctx, b.opt.References, b.rules.Load(), func(r *rules.Rules) {
		if b.take(r) {
			beside.Go(func() { b.verifyAll(ctx) })
			beside.Go(func() { b.endRefused(ctx) })
		}
	}, b.untaken)
}

// endRefused ends the sessions of the console that the rules in force would not begin. Until it has done so, the console
// refuses them.
func (b *Gateway) endRefused(ctx context.Context) {
	pages := b.pages.Load()
	if pages == nil {
		return
	}
	ctx, stop := context.WithTimeout(ctx, time.Minute)
	defer stop()
	if err := pages.EndRefused(ctx); err != nil && ctx.Err() == nil {
		b.log.Warn("sessions of the console could not be compared with the configuration: those that it does not allow are refused, and stay in the list", "error", err)
	}
}

// changed is told that another process may have changed the store. It does not wait.
func (b *Gateway) changed(c storage.Changed) {
	any := c == storage.AnyChanged
	if any || c == storage.PinsChanged {
		b.admit.Wake()
	}
	if any || c == storage.BlocksChanged {
		b.blocks.Forget()
	}
	if any || c == storage.ExceptionsChanged {
		b.excepts.Forget()
	}
}

// sweepSessionsEvery is how often the store is freed of records of sessions that are not needed.
const sweepSessionsEvery = time.Minute

// sweepSessions keeps the store free of sessions whose time is over, until ctx ends.
func (b *Gateway) sweepSessions(ctx context.Context) {
	for backoff.Sleep(ctx, sweepSessionsEvery) == nil {
		b.releaseSessions(ctx, time.Now().Add(-sweepSessionsEvery))
		if err := b.known.Sweep(ctx); err != nil && ctx.Err() == nil {
			b.log.Warn("records of old sessions could not be removed from the store", "error", err)
		}
	}
}

// unswept logs that what has expired is still in the store.
func (b *Gateway) unswept(err error) {
	b.log.Warn("what has expired could not be removed from the store: held results, exceptions, approvals or sign-ins", "error", err)
}

// take applies rules if they differ from those in force. It reports whether it has.
func (b *Gateway) take(r *rules.Rules) bool {
	old := b.rules.Load()
	if rules.Equal(old, r) {
		b.log.Info("configuration read: nothing has changed")
		return false
	}
	if !loopback.Listener(b.listen) && !r.Auth.Set() {
		b.untaken(errors.New("up: an address that is not loopback needs auth"))
		return false
	}
	if err := b.apply(r); err != nil {
		b.untaken(err)
		return false
	}
	d := rules.Diff(old, r)
	b.log.Info("configuration in force", "version", r.Version(), "sessions_ended", d.Ended, "servers_added", d.Added, "servers_with_new_rules", d.Ruled, "sections", d.Sections)
	if waiting := rules.Diff(b.started, r).Restart; len(waiting) > 0 {
		b.log.Warn("restart the gateway: some changed members of the configuration are read at start only", "members", waiting)
	}
	return true
}

// untaken tells the operator why rules are not in force.
func (b *Gateway) untaken(err error) {
	if errors.Is(err, rules.ErrUnwatched) {
		b.log.Warn("the configuration cannot be watched: changes take effect late", "error", err)
		return
	}
	const refused = "configuration refused: the previous one stays in force until you correct the file"
	var problems rules.Problems
	if !errors.As(err, &problems) {
		b.log.Error(refused, "error", err)
	}
	for _, p := range problems {
		b.log.Error(refused, "error", p.String())
	}
}

// follow reads the rules again whenever they may have changed, or the operator asks by
// SIGHUP, until ctx ends.
func (s *Source) follow(ctx context.Context, o rules.Options, current *rules.Rules, apply func(*rules.Rules), problem func(error)) {
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGHUP)
	defer signal.Stop(asked)
	if s.path != "" {
		rules.Watcher{Path: s.path, Options: o, Current: current, Asked: asked, Apply: apply, Problem: problem}.Run(ctx)
		return
	}
	for {
		select {
		case <-asked:
			apply(current) // the demonstration's never change
		case <-ctx.Done():
			return
		}
	}
}
