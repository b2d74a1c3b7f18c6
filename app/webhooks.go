// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/boundary/meter"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/model/guard"
	"github.com/pellucid-mcp/pellucid/record/webhook"
	"github.com/pellucid-mcp/pellucid/storage"
)

// receivers are the webhooks of the rules in force.
type receivers struct{ all atomic.Pointer[receiverSet] }

type receiverSet struct {
	of   map[string]*rules.Webhook
	list []*webhook.Receiver // by name
}

func (rs *receivers) list() []*webhook.Receiver {
	if set := rs.all.Load(); set != nil {
		return set.list
	}
	return nil
}

// set replaces the receivers. One that stays as it was keeps its connections.
func (rs *receivers) set(of map[string]*rules.Webhook) error {
	old := rs.all.Load()
	if old == nil {
		old = &receiverSet{}
	}
	next := &receiverSet{of: of}
	kept := map[*webhook.Receiver]bool{}
	for _, name := range slices.Sorted(maps.Keys(of)) {
		at := slices.IndexFunc(old.list, func(r *webhook.Receiver) bool { return r.Name() == name })
		if at >= 0 && old.of[name].Equal(of[name]) {
			next.list, kept[old.list[at]] = append(next.list, old.list[at]), true
			continue
		}
		r, err := of[name].Receiver(name)
		if err != nil {
			return fmt.Errorf("webhooks: %s: %w", name, err)
		}
		next.list = append(next.list, r)
	}
	rs.all.Store(next)
	for _, r := range old.list {
		if !kept[r] {
			r.Close()
		}
	}
	return nil
}

// announce has the store keep messages for the receivers, and the sender deliver them.
func (rs *receivers) announce(store *storage.Store, s *webhook.Sender) *webhook.Sender {
	s.Store, s.Receivers = store, rs.list
	store.Tell(s)
	return s
}

// openWebhooks has receivers be told of what waits from now on; none are, until the rules are set.
func (b *Gateway) openWebhooks() {
	b.sender = b.hooks.announce(b.store, &webhook.Sender{Log: b.log, Count: b.meter.Webhook, Approved: webhook.Approved{
		Server: func(name string) bool { r := b.rules.Load(); return r != nil && r.Server(name) != nil },
		Tool:   b.meter.Approved,
	}})
}

// webhookGauges count the messages of all receivers; 0 where the store does not say.
func (b *Gateway) webhookGauges() meter.Webhooks {
	sum := func(of func(webhook.Summary) int64) (n int64) {
		ctx, stop := context.WithTimeout(context.Background(), time.Second)
		defer stop()
		all, err := b.store.MessageSummaries(ctx)
		if err != nil {
			return 0
		}
		for _, one := range all {
			n += of(one)
		}
		return n
	}
	return meter.Webhooks{
		Waiting: func() int64 { return sum(func(s webhook.Summary) int64 { return s.Waiting }) },
		GivenUp: func() int64 { return sum(func(s webhook.Summary) int64 { return s.GivenUp }) },
	}
}

// openWebhooks has receivers be told which calls wait and which sources are blocked, until the
// guard is closed. A tool of the guard is named by the model: no message repeats its name.
func (g *Guard) openWebhooks(ctx context.Context, store *storage.Store) error {
	var hooks receivers
	if err := hooks.set(g.set.Webhooks); err != nil {
		return exit.With(exit.Config, err)
	}
	if len(g.set.Webhooks) == 0 {
		return nil
	}
	sender := hooks.announce(store, &webhook.Sender{Log: g.log, Approved: webhook.Approved{Server: g.set.named}})
	ctx, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() { defer close(done); sender.Run(ctx) }()
	g.close = append(g.close, func() { stop(); <-done })
	return nil
}

// named reports whether a name is one of the configuration, or that under which the guard's
// calls wait.
func (s *GuardSettings) named(name string) bool {
	return name == guard.DeskServer || slices.ContainsFunc(s.Servers, func(known *rules.Server) bool { return known.Name == name })
}
