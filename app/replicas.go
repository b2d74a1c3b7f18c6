// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/app/local"
	"github.com/pellucid-mcp/pellucid/boundary/meter"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/mcp/forward"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/platform/auth"
	"github.com/pellucid-mcp/pellucid/platform/keyring"
	"github.com/pellucid-mcp/pellucid/platform/lease"
	"github.com/pellucid-mcp/pellucid/platform/listen"
	"github.com/pellucid-mcp/pellucid/platform/peer"
	"github.com/pellucid-mcp/pellucid/storage"
)

// replicas are what this gateway needs as one of several on the same store. A gateway that is the only
// one has none.
type replicas struct {
	label     string
	lease     *lease.Lease
	keys      *peer.Keys
	l         net.Listener // for other replicas
	forwarder *forward.Forwarder

	stop context.CancelFunc // of renewing the lease
	done chan struct{}
}

// joinWait is how long a replica waits at its start for a process that has its name: longer than the lease of one
// that was killed lasts.
const joinWait = 10 * time.Second

// joinReplicas makes this gateway one of several, where the rules say so.
func (b *Gateway) joinReplicas(r *rules.Rules) error {
	if !r.Replicas.Set() {
		return nil
	}
	x := &replicas{label: r.Replicas.Name.Reveal(), done: make(chan struct{})}
	var err error
	if x.keys, err = peer.NewKeys(local.Secrets(b.ring.Keys())...); err != nil {
		return exit.With(exit.Config, fmt.Errorf("up: replicas: %w", err))
	}
	raw, err := listen.At("replicas.listen", r.Replicas.Listener())
	if err != nil {
		return fmt.Errorf("up: %w", err)
	}
	x.l = x.keys.Listen(raw)
	x.lease = lease.New(lease.Options{Store: b.store, Kind: storage.ReplicaLease, Name: x.label, Address: r.Replicas.Address.Reveal(), Lost: b.closeSessions, Log: b.log})
	ctx, stop := context.WithTimeout(context.Background(), joinWait)
	defer stop()
	if err := x.lease.Join(ctx); err != nil {
		x.l.Close()
		if errors.Is(err, lease.ErrTaken) {
			return exit.With(exit.Config, fmt.Errorf("up: replicas.name: another replica has the name %q: give each a name of its own", x.label))
		}
		return local.OpenError(fmt.Errorf("up: %w", err))
	}
	x.forwarder = forward.New(forward.Options{Lease: x.lease, Label: x.label, Store: b.store, Open: b.known.Open, Out: x.keys.Transport(),
		Caller: callerOf, Erasable: principalID, Counted: b.meter.Forwarded, Log: b.log})
	b.sealer.Home = x.label
	run, end := context.WithCancel(context.Background())
	x.stop = end
	go func() { defer close(x.done); x.lease.Run(run) }()
	b.replicas = x
	b.health.Add("replica", func(context.Context) error {
		if !x.lease.Held() {
			return meter.State("lapsed")
		}
		return nil
	})
	return nil
}

// leave frees the lease of this replica. It does nothing for a gateway that is the only one.
func (x *replicas) leave() error {
	if x == nil {
		return nil
	}
	x.stop()
	<-x.done
	x.l.Close()
	ctx, stop := context.WithTimeout(context.Background(), 2*time.Second)
	defer stop()
	return x.lease.Release(ctx)
}

// rekey puts other keys in force for connections between replicas.
func (x *replicas) rekey(keys []keyring.Key) {
	if x == nil {
		return
	}
	_ = x.keys.Set(local.Secrets(keys)...) // keys of this size can be derived
}

// gauges are the numbers of the replicas.
func (x *replicas) gauges() meter.Replicas {
	if x == nil {
		return meter.Replicas{}
	}
	return meter.Replicas{Live: func() int64 { return int64(len(x.lease.Others()) + 1) }}
}

// sessionHolder is the name under which this replica owns sessions, "" for a gateway that is the only one.
func (b *Gateway) sessionHolder() string {
	if b.replicas == nil {
		return ""
	}
	return b.replicas.lease.Holder()
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
	self, err := c.b.replicas.lease.Await(ctx)
	if err != nil {
		return "", err
	}
	claimed, err := forward.Claim(ctx, c.b.store, s, principalID(o.Principal), 0, self)
	if err != nil || !claimed {
		return "", errors.Join(err, errors.New("up: a session that has just begun cannot be claimed"))
	}
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

// closeSessions closes the sessions here that another replica may have taken over.
func (b *Gateway) closeSessions() {
	for _, f := range b.allFronts() {
		if f == nil { // the gateway is about to start
			continue
		}
		f.CloseIf(func(token string) bool {
			_, err := b.known.Open(token)
			return err == nil
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
	err := b.store.ReleaseSessions(ctx, b.sessionHolder(), time.Now(), before, func(id string) bool { return open[id] })
	if err != nil && ctx.Err() == nil {
		b.log.Warn("sessions that are not open any more could not be released for other replicas", "error", err)
	}
}

// giveAway has other replicas serve what is new. The gateway is about to end.
func (x *replicas) giveAway() {
	if x == nil {
		return
	}
	ctx, stop := context.WithTimeout(context.Background(), 2*time.Second)
	defer stop()
	_ = x.lease.Look(ctx) // which replicas run now; else those of the last look
	x.forwarder.Leave()
}

// awaitOthers waits until what other replicas answer has been answered, and no longer than ctx.
func (x *replicas) awaitOthers(ctx context.Context) {
	if x != nil {
		x.forwarder.Drain(ctx)
	}
}

// A caller is what replicas tell each other of the principal of a request.
type caller struct {
	ID     string          `json:"id"`
	Scopes []string        `json:"scopes,omitempty"`
	Claims json.RawMessage `json:"claims,omitempty"`
}

// callerOf is the principal of a request, "" where callers are not known.
func callerOf(r *http.Request) string {
	p, ok := auth.FromContext(r.Context())
	if !ok {
		return ""
	}
	b, err := json.Marshal(caller{p.ID, p.Scopes, p.Claims})
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
	return auth.As(r, auth.Principal{ID: c.ID, Scopes: c.Scopes, Claims: c.Claims})
}

// servePeer serves a request that another replica has sent. That one has authenticated it, and counted it
// against the limits. What the principal may do is decided by the rules that are in force here.
func (b *Gateway) servePeer(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimSuffix(r.URL.Path, "/")
	name, named := strings.CutPrefix(path, "/mcp/")
	front, may := b.union, true
	if named {
		b.mu.Lock()
		front = b.fronts[name]
		b.mu.Unlock()
		may = front != nil && b.may(sessionOwner(r))(name)
	} else if path != "/mcp" {
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
