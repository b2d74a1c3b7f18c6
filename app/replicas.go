// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/boundary/meter"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/mcp/forward"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/platform/auth"
	"github.com/pellucid-mcp/pellucid/platform/build"
	"github.com/pellucid-mcp/pellucid/platform/keyring"
	"github.com/pellucid-mcp/pellucid/platform/listen"
	"github.com/pellucid-mcp/pellucid/platform/peer"
	"github.com/pellucid-mcp/pellucid/platform/replica"
	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// replicas are what this gateway needs as one of several on the same store. A gateway that is the only
// one has none.
type replicas struct {
	member    *replica.Member
	keys      *peer.Keys
	ring      []keyring.Key   // of which keys are made
	out       *http.Transport // to other replicas
	l         net.Listener    // for other replicas
	forwarder *forward.Forwarder
	share     *auth.Share // of the rate limits of principals

	namesakes, others atomic.Int64 // of which the log tells: Namesakes and strangers

	stop context.CancelFunc // of renewing the lease
	done chan struct{}
}

// joinReplicas makes this gateway one of several, where the rules say so.
func (b *Gateway) joinReplicas(dir *state.Dir, r *rules.Rules) error {
	if !r.Replicas.Set() {
		return nil
	}
	x := &replicas{done: make(chan struct{}), share: auth.NewShare(b.ring.Current().Derive("pellucid rate limit v1"))}
	x.ring = b.ring.Keys()
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
		Release: build.Read().Version, Log: b.log, Exchange: func(told map[string][]byte) []byte { x.follow(b.ring); return x.share.Exchange(told) }, Changed: func() {
			if x.forwarder != nil { // else it is about to look itself
				x.forwarder.Changed()
				x.complain(b.log)
			}
		}})
	if err != nil {
		x.l.Close()
		return install.OpenError(fmt.Errorf("up: %w", err))
	}
	x.out = x.keys.Transport(x.keyOf)
	x.forwarder = forward.New(forward.Options{Member: x.member, Store: b.store, Open: b.known.Open, Out: x.out, MaxBody: r.HTTP.MaxBody,
		Caller: callerOf, Erasable: principalID, Drop: b.dropSession, Counted: b.meter.Forwarded, Log: b.log})
	x.complain(b.log)
	b.sealer.Home = x.member.ID
	run, end := context.WithCancel(context.Background())
	x.stop = end
	go func() { defer close(x.done); x.member.Run(run) }()
	b.replicas = x
	b.watchReplicas()
	return nil
}

// follow shows other replicas the keys of the installation as they are now. Only the goroutine that renews
// the lease calls it.
func (x *replicas) follow(ring *keyring.Ring) {
	if ring.Equal(x.ring) || x.keys.Set(install.Secrets(ring.Keys())...) != nil {
		return
	}
	x.ring = ring.Keys()
	x.member.SetKey(x.keys.ID())
}

// limits are those of a principal, which replicas hold together.
func (x *replicas) limits(l auth.Limits) auth.Limits {
	if x != nil {
		l.Share = x.share
	}
	return l
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
	x.forwarder.Close()
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

// complain has the log tell of processes on this database that cannot work with this one.
func (x *replicas) complain(log *slog.Logger) {
	if n := x.strangers(); x.others.Swap(n) < n {
		log.Error("another installation uses this database: a gateway with another "+install.KeyVar+" is on it. Sessions cannot go from one to the other, and neither can open what the other has sealed. Give each installation a database of its own; replicas of one need the same key",
			"gateways", n, "first", x.stranger())
	}
	if n := x.member.Namesakes(); x.namesakes.Swap(n) < n {
		log.Error("another gateway on this database has the address of this one: requests for it arrive here, or the other way round. Give each replica a replicas.address of its own",
			"address", x.member.Self().Address, "gateways", n)
	}
}

// stranger is the address of a replica whose key this one does not have, for the log.
func (x *replicas) stranger() string {
	for _, r := range x.member.Others() {
		if !x.keys.Knows(r.Key) {
			return finding.Quote(r.Address)
		}
	}
	return ""
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
	b.health.Warn("address", func(context.Context) error {
		if x.member.Namesakes() > 0 {
			return meter.State("another-replica-has-this-address")
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
		Namesakes: x.member.Namesakes,
		Behind: func() int64 {
			if x.behind() {
				return 1
			}
			return 0
		},
	}
}

// replicaID is the id of this replica, "" for a gateway that is the only one.
func (b *Gateway) replicaID() string {
	if b.replicas == nil {
		return ""
	}
	return b.replicas.member.ID()
}

// registry knows the sessions with a server beyond this process.
func (b *Gateway) registry(server string) wire.Registry {
	r := b.known.Server(server)
	if b.replicas == nil {
		return r
	}
	return claiming{r, b}
}

// claiming is a registry that claims every session that begins here.
type claiming struct {
	wire.Registry
	b *Gateway
}

// Name implements wire.Registry.
func (c claiming) Name(ctx context.Context, o wire.Opening) (string, error) {
	token, err := c.Registry.Name(ctx, o)
	if err != nil {
		return "", err
	}
	s, err := c.b.known.Open(token)
	if err != nil {
		return "", err
	}
	x := c.b.replicas
	self, err := x.member.Lease(ctx)
	if err != nil {
		return "", err
	}
	claimed, err := forward.Claim(ctx, c.b.store, s, principalID(o.Principal), 0, self)
	if err != nil || !claimed {
		return "", errors.Join(err, errors.New("up: a session that has just begun cannot be claimed"))
	}
	x.forwarder.Begun(s, self, 1)
	return token, nil
}

// forwarder brings requests to the replicas that have their sessions; nil for a gateway that is the
// only one.
func (b *Gateway) forwarder() wire.Forwarder {
	if b.replicas == nil {
		return nil
	}
	return b.replicas.forwarder
}

// dropSession ends a session here that another replica has claimed.
func (b *Gateway) dropSession(id string) {
	for _, f := range b.allFronts() {
		f.DropIf(func(token string) bool {
			s, err := b.known.Open(token)
			return err == nil && s.ID() == id
		})
	}
}

// openSessions are the sessions that are open here or on their way back, by the ids that the store knows.
func (b *Gateway) openSessions() map[string]bool {
	open := map[string]bool{}
	for _, f := range b.allFronts() {
		for _, token := range f.IDs() {
			if s, _ := b.known.Open(token); s != nil {
				open[s.ID()] = true
			}
		}
	}
	return open
}

// releaseSessions lets go of the sessions that this replica has claimed before a time, and that are not open here
// any more: they were idle, or made room for others. Their next request brings them back at the replica where
// it arrives.
func (b *Gateway) releaseSessions(ctx context.Context, before time.Time) {
	if b.replicas == nil {
		return
	}
	open := b.openSessions()
	released, err := b.store.ReleaseSessions(ctx, b.replicas.member.ID(), time.Now(), before, func(id string) bool { return open[id] })
	if err != nil && ctx.Err() == nil {
		b.log.Warn("sessions that are not open any more could not be released for other replicas", "error", err)
	}
	for _, id := range released {
		b.replicas.forwarder.Released(id)
	}
	open = b.openSessions()
	for _, id := range released {
		if open[id] { // it came back meanwhile, and may come back at another replica too
			b.dropSession(id)
		}
	}
}

// giveAway has other replicas serve what is new. The gateway is about to end.
func (x *replicas) giveAway() {
	if x != nil {
		x.forwarder.Leave()
	}
}

// awaitOthers waits until what other replicas answer has been answered, and no longer than ctx.
func (x *replicas) awaitOthers(ctx context.Context) {
	if x != nil {
		x.forwarder.Drain(ctx)
	}
}

// endForwarding is after the last request of a client.
func (x *replicas) endForwarding() {
	if x != nil {
		x.forwarder.Farewell()
		x.forwarder.Close()
	}
}

// claimed is told that a replica has claimed a session.
func (x *replicas) claimed(id, by string) {
	if x != nil {
		x.forwarder.Claimed(id, by)
	}
}

// A caller is what replicas tell each other of the principal of a request.
type caller struct {
	ID     string   `json:"id"`
	Scopes []string `json:"scopes,omitempty"`
}

// callerOf is the principal of a request, "" where callers are not known.
func callerOf(r *http.Request) string {
	p, ok := auth.FromContext(r.Context())
	if !ok {
		return ""
	}
	b, err := json.Marshal(caller{p.ID, p.Scopes})
	if err != nil {
		return ""
	}
	return string(b)
}

// asCaller is the request as the principal makes it whom another replica has authenticated.
func asCaller(r *http.Request, said string) (*http.Request, bool) {
	if said == "" {
		return r, true
	}
	var c caller
	if json.Unmarshal([]byte(said), &c) != nil {
		return nil, false
	}
	return auth.As(r, auth.Principal{ID: c.ID, Scopes: c.Scopes})
}

// servePeer serves a request that another replica has sent. That one has authenticated it, and counted it
// against the limits. What the principal may do is decided by the rules that are in force here.
func (b *Gateway) servePeer(w http.ResponseWriter, r *http.Request) {
	name, named := strings.CutPrefix(r.URL.Path, "/mcp/")
	front, may := b.union, true
	if named {
		b.mu.Lock()
		front = b.fronts[name]
		b.mu.Unlock()
		may = front != nil && b.may(sessionOwner(r))(name)
	} else if r.URL.Path != "/mcp" {
		may = false
	}
	if _, known := auth.FromContext(r.Context()); !may || known != b.rules.Load().Auth.Set() {
		w.WriteHeader(http.StatusMisdirectedRequest) // it has other rules than this replica
		return
	}
	front.ServeHTTP(w, r)
}

// startPeers answers requests of other replicas until end is called.
func (b *Gateway) startPeers() (end func()) {
	if b.replicas == nil {
		return func() {}
	}
	srv := listen.NewServer(b.replicas.forwarder.Handler(asCaller, http.HandlerFunc(b.servePeer)), b.log)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := srv.Serve(b.replicas.l); !errors.Is(err, http.ErrServerClosed) {
			b.log.Error("other replicas cannot reach this one any more: restart it", "error", err)
		}
	}()
	return func() {
		ctx, stop := context.WithTimeout(context.Background(), 2*time.Second) // its requests are answered, or cut by now
		defer stop()
		if srv.Shutdown(ctx) != nil {
			srv.Close()
		}
		<-done
	}
}
