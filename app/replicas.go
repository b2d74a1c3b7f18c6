// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/boundary/meter"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/platform/build"
	"github.com/pellucid-mcp/pellucid/platform/keyring"
	"github.com/pellucid-mcp/pellucid/platform/listen"
	"github.com/pellucid-mcp/pellucid/platform/peer"
	"github.com/pellucid-mcp/pellucid/platform/replica"
	"github.com/pellucid-mcp/pellucid/platform/state"
)

// replicas are what this gateway needs as one of several on the same store. A gateway that is the only
// one has none.
type replicas struct {
	member *replica.Member
	keys   *peer.Keys
	out    *http.Transport // to other replicas
	l      net.Listener    // for other replicas

	stop context.CancelFunc // of renewing the lease
	done chan struct{}
}

// joinReplicas makes this gateway one of several, where the rules say so.
func (b *Gateway) joinReplicas(dir *state.Dir, r *rules.Rules) error {
	if !r.Replicas.Set() {
		return nil
	}
	x := &replicas{done: make(chan struct{})}
	var err error
	if x.keys, err = peer.NewKeys(install.Secrets(b.ring.Keys())...); err != nil {
		return exit.With(exit.Config, fmt.Errorf("up: replicas: %w", err))
	}
	raw, err := listen.At("replicas.listen", r.Replicas.Listener())
	if err != nil {
		return fmt.Errorf("up: %w", err)
	}
	x.l = x.keys.Listen(raw)
	ctx, stop := context.WithTimeout(context.Background(), install.CloseWait)
	defer stop()
	x.member, err = replica.Join(ctx, replica.Options{Store: b.store, Address: r.Replicas.Address.Reveal(), Key: x.keys.ID(),
		Release: build.Read().Version, Log: b.log})
	if err != nil {
		x.l.Close()
		return install.OpenError(fmt.Errorf("up: %w", err))
	}
	x.out = x.keys.Transport(x.keyOf)
	run, end := context.WithCancel(context.Background())
	x.stop = end
	go func() { defer close(x.done); x.member.Run(run) }()
	b.replicas = x
	b.watchReplicas()
	return nil
}

// keyOf is the key that the replica at an address uses, "" if none of them has the address.
func (x *replicas) keyOf(addr string) string {
	for _, r := range x.member.Others() {
		if r.Address == addr {
			return r.Key
		}
	}
	return ""
}

// leave removes this replica from the list. It does nothing for a gateway that is the only one.
func (x *replicas) leave() error {
	if x == nil {
		return nil
	}
	x.stop()
	<-x.done
	x.l.Close()
	x.out.CloseIdleConnections()
	ctx, stop := context.WithTimeout(context.Background(), 2*time.Second)
	defer stop()
	return x.member.Leave(ctx)
}

// rekey puts other keys in force for connections between replicas.
func (x *replicas) rekey(keys []keyring.Key) {
	if x == nil {
		return
	}
	_ = x.keys.Set(install.Secrets(keys)...) // keys of this size can be derived
}

// rulesInForce tells the other replicas which rules this one has.
func (x *replicas) rulesInForce(version string) {
	if x != nil {
		x.member.SetRules(version)
	}
}

// wake has the list of the replicas read soon.
func (x *replicas) wake() {
	if x != nil {
		x.member.Wake()
	}
}

// behind reports whether another replica has rules that came into force later.
func (x *replicas) behind() bool {
	own := x.member.Self().Generation
	for _, r := range x.member.Others() {
		if r.Generation > own {
			return true
		}
	}
	return false
}

// strangers is the number of replicas whose key this one does not have.
func (x *replicas) strangers() (n int64) {
	for _, r := range x.member.Others() {
		if !x.keys.Knows(r.Key) {
			n++
		}
	}
	return n
}

// watchReplicas has /readyz say how this replica stands with the others. A replica with older rules is
// ready: during a rolling upgrade each of them has older rules for a while.
func (b *Gateway) watchReplicas() {
	x := b.replicas
	b.health.Add("replica", func(context.Context) error {
		if !x.member.Holds(x.member.ID()) {
			return meter.State("lapsed")
		}
		return nil
	})
	b.health.Warn("rules", func(context.Context) error {
		if x.behind() {
			return meter.State("older-than-another-replica")
		}
		return nil
	})
	b.health.Warn("key", func(context.Context) error {
		if x.strangers() > 0 {
			return meter.State("another-replica-has-another-key")
		}
		return nil
	})
}

// gauges are the numbers of the replicas.
func (x *replicas) gauges() meter.Replicas {
	if x == nil {
		return meter.Replicas{}
	}
	return meter.Replicas{
		Live:      func() int64 { return int64(len(x.member.Others()) + 1) },
		Strangers: x.strangers,
		Behind: func() int64 {
			if x.behind() {
				return 1
			}
			return 0
		},
	}
}

// startPeers answers requests of other replicas until end is called.
func (b *Gateway) startPeers() (end func()) {
	if b.replicas == nil {
		return func() {}
	}
	srv := listen.NewServer(http.NotFoundHandler(), b.log)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := srv.Serve(b.replicas.l); !errors.Is(err, http.ErrServerClosed) {
			b.log.Error("other replicas cannot reach this one any more: restart it", "error", err)
		}
	}()
	return func() { srv.Close(); <-done }
}
