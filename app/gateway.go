// SPDX-License-Identifier: Apache-2.0

package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pellucid-mcp/pellucid/app/console"
	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/app/local"
	"github.com/pellucid-mcp/pellucid/boundary/admit"
	"github.com/pellucid-mcp/pellucid/boundary/fleet"
	"github.com/pellucid-mcp/pellucid/boundary/gateway"
	"github.com/pellucid-mcp/pellucid/boundary/meter"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/boundary/surface"
	"github.com/pellucid-mcp/pellucid/mcp/era"
	"github.com/pellucid-mcp/pellucid/mcp/session"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/platform/build"
	"github.com/pellucid-mcp/pellucid/platform/child"
	"github.com/pellucid-mcp/pellucid/platform/logs"
	"github.com/pellucid-mcp/pellucid/platform/loopback"
	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/record/webhook"
)

// Gateway is the running gateway: the rules in force, the servers behind it and
// the handler in front of them, each replaced in one step.
type Gateway struct {
	boundary

	opt    GatewayOptions
	src    *Source
	listen string
	bound  net.Listener // nil: Serve opens it

	inherited bool // bound outlives the process

	started  *rules.Rules // with which the process began
	dir      *state.Dir
	sealer   *era.Sealer
	known    *session.Book // of sessions, beyond this process
	health   meter.Health
	fleet    *fleet.Fleet
	admit    *admit.Admissions
	pages    atomic.Pointer[console.Console] // in force; nil: not served
	replicas *replicas                       // nil: this gateway is the only one
	hooks    receivers
	sender   *webhook.Sender

	handler atomic.Pointer[http.Handler]

	mu         sync.Mutex             // of what follows, and of reloading
	stderr     map[string]*child.Tail // of servers that are processes
	fronts     map[string]*wire.Front
	union      *wire.Front
	admissions []admit.Config // in force
	gone       sync.WaitGroup // of fronts that are ended
}

// idleMemory is the memory that a gateway needs beyond what its limit counts.
const idleMemory = 64 << 20

// GatewayOptions are what a gateway is run with beside its rules.
type GatewayOptions struct {
	Listen string // address, instead of what the rules say; "": that

	Database   string        // what $PELLUCID_DB says; the rules go before it
	References rules.Options // what stands behind a reference
	Stderr     io.Writer     // log lines, and what a person is told
	Bind       bool          // open the socket before all else, so that clients wait while the gateway starts
}

// OpenGateway makes everything that must be there before the first request.
func OpenGateway(o GatewayOptions, src *Source) (_ *Gateway, err error) {
	r, err := src.load(o.References)
	if err != nil {
		return nil, exit.With(exit.Config, fmt.Errorf("up: %w", err))
	}
	b := &Gateway{opt: o, src: src, listen: r.Listen, started: r, fronts: map[string]*wire.Front{}, stderr: map[string]*child.Tail{}}
	b.log = logs.New(o.Stderr, r.Telemetry.LogJSON, r.Telemetry.LogLevel)
	b.listen = cmp.Or(o.Listen, b.listen)
	if !loopback.Listener(b.listen) && !r.Auth.Set() { // that of a file was checked with the file
		return nil, exit.With(exit.Usage, errors.New("up: --listen: an address that is not loopback needs auth in the configuration: without it every machine of the network could use the gateway"))
	}
	defer func() {
		if err != nil {
			b.Close()
		}
	}()
	if o.Bind {
		if b.bound, b.inherited, err = bind(b.listen); err != nil {
			return nil, err
		}
	}
	if err := b.openState(r); err != nil {
		return nil, err
	}
	v := build.Read().Version
	b.fleet = fleet.New(fleet.Options{Log: b.log, Version: v, Translate: b.translate, Children: r.Limits.Children,
		PerServer: r.Limits.ChildrenPerServer, PerPrincipal: r.Limits.ChildrenPerPrincipal})
	b.admit = b.newAdmissions(admit.Options{Tools: b.meter.Approve,
		Back: func(string) { b.fleet.Announce() }, Out: func(server string) { b.fleet.Cut(server) }})
	b.union = b.front(r, "", b.serveAll)
	if err := b.meter.Watch(meter.Gauges{Sessions: b.sessions,
		Children: func() int64 { return int64(b.fleet.Children()) },
		Held:     b.waiting,
		Webhooks: b.webhookGauges(),
		Ledger:   b.ledgerGauges(),
		Replicas: b.replicas.gauges(),
		States:   b.states,
		Captures: b.capturesLost,
		Servers:  func() int64 { return int64(len(b.rules.Load().Servers)) }}); err != nil {
		return nil, err
	}
	if err := b.apply(r); err != nil {
		return nil, exit.With(exit.Config, err)
	}
	return b, nil
}

// waiting is how many results wait for a person; 1,000 stands for more. It is 0
// where the store does not say.
func (b *Gateway) waiting() int64 {
	ctx, stop := context.WithTimeout(context.Background(), time.Second)
	defer stop()
	items, err := b.queue.List(ctx, hold.Filter{State: hold.Held, Limit: 1000})
	if err != nil {
		return 0
	}
	return int64(len(items))
}

// openState opens what outlives the process.
func (b *Gateway) openState(r *rules.Rules) error {
	dir, err := local.OpenState()
	if err != nil {
		return err
	}
	b.dir = dir
	v := build.Read()
	m, err := meter.New(meter.Options{Version: v.Version, Commit: v.Commit})
	if err != nil {
		return exit.With(exit.Config, fmt.Errorf("up: telemetry: %w", err))
	}
	err = b.open(dir, r, needs{
		database: install.Database(cmp.Or(r.Store.Path, r.Store.URL.Reveal(), b.opt.Database)),
		store:    true, hold: true, decides: true, judges: &gateway.ShadowOptions{}, pins: pinsInStore,
		poll: install.PollOften, replica: true, meter: m,
	})
	if err != nil {
		return err
	}
	b.sealer = era.NewSealer(b.ring)
	b.known = session.NewBook(b.ring, b.store, session.BookOptions{Life: r.HTTP.SessionLife, Principal: principalID, Owner: b.sessionHolder, Label: r.Replicas.Name.Reveal()})
	b.watchStore()
	b.openWebhooks()
	return b.joinReplicas(r)
}

// Close lets go of everything. It waits for what is under way.
func (b *Gateway) Close() {
	if b.bound != nil {
		b.bound.Close()
	}
	b.gone.Wait()
	if b.fleet != nil {
		ctx, stop := context.WithTimeout(context.Background(), install.CloseWait)
		defer stop()
		_ = b.fleet.Close(ctx)
	}
	if b.admit != nil {
		b.admit.Close()
	}
	if err := b.replicas.leave(); err != nil {
		b.log.Warn("this replica could not be removed from the list: the others notice within a few seconds that it has ended", "error", err)
	}
	if n := b.closeJudges(install.CloseWait / 5); n > 0 {
		b.log.Warn("the gateway stopped before the classifiers in shadow mode had judged all answers", "answers", n)
	}
	b.close()
}

// apply puts rules in force, or changes nothing. What is under way keeps the rules
// that it began with, but for those of single tools.
func (b *Gateway) apply(r *rules.Rules) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.keepScores(r); err != nil {
		return err
	}
	in, err := b.entrance(r)
	if err != nil {
		return err
	}
	plugged, err := b.plug(r, in)
	if err != nil {
		return err
	}
	pages, err := b.console(r, in.who)
	if err != nil {
		return err
	}
	servers, admissions := make([]fleet.Server, len(r.Servers)), make([]admit.Config, len(r.Servers))
	for i, s := range r.Servers {
		if servers[i], err = b.server(s); err != nil {
			return fmt.Errorf("up: server %s: %w", s.Name, err)
		}
		admissions[i] = b.admission(s, s.Name, b.probe(s.Name))
	}
	if err := b.setReview(r, b.verifying); err != nil {
		return fmt.Errorf("up: %w", err)
	}
	unseat, err := b.setJudges(r)
	if err != nil {
		return fmt.Errorf("up: %w", err)
	}
	if err := b.hooks.set(r.Webhooks); err != nil {
		unseat()
		return fmt.Errorf("up: %w", err)
	}
	b.memory.Resize(int64(r.Limits.Memory))
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(int64(r.Limits.Memory) + idleMemory)
	}
	old := b.rules.Load()
	b.rules.Store(r) // before any session of a new server can ask for them
	b.admit.Set(admissions)
	if err := b.fleet.Set(servers); err != nil {
		b.rules.Store(old)
		b.admit.Set(b.admissions)
		unseat()
		if old != nil {
			_ = b.hooks.set(old.Webhooks) // which it took before
		}
		return err
	}
	b.admissions = admissions
	b.keepFronts(r)
	h := b.routes(r, in, plugged, pages)
	b.handler.Store(&h)
	b.pages.Store(pages)
	b.meter.Rules(r.Version())
	var deviations []string
	if kept := r.KeepsTokens(); kept != nil {
		deviations = append(deviations, "control_tokens:keep")
		b.log.Warn("control tokens are kept in what servers send: a model that reads its own in them takes them for the ends of messages", "servers", kept, "set_by", "control_tokens: keep, or profile: veritas-0.1")
	}
	if b.records != nil {
		b.records.Loaded(r.Version(), r.Effective(), b.scored, deviations)
	}
	b.admit.Tell()
	return nil
}

// server is what the fleet has to know of a configured server.
func (b *Gateway) server(s *rules.Server) (fleet.Server, error) {
	out := fleet.Server{Name: s.Name, Prefix: s.Prefix, Identity: identity(s), Config: b.config(s.Name), Verify: b.verify(s.Name),
		Child: s.Command != nil, Shared: s.Share == rules.Shared}
	var words *child.Tail
	if out.Child {
		words = b.stderr[s.Name] // processes may outlive a change of their treatment
		if words == nil {
			words = &child.Tail{}
			b.stderr[s.Name] = words
		}
		out.Stray = words.Stray
		c := command(s)
		out.Said = func() []string {
			lines := words.Lines()
			if names := c.Lacks(lines); len(names) > 0 {
				lines = append(lines, "(variables that it did not get: "+strings.Join(names, ", ")+")")
			}
			return lines
		}
	}
	var err error
	out.Dial, err = dialer(s, words, b.logins, s.Name, b.roomOf, b.log.With("server", s.Name))
	return out, err
}

// probe opens connections to a server of the fleet, to look at what it says of itself.
func (b *Gateway) probe(name string) surface.Connect {
	return func(ctx context.Context, talk func(context.Context, wire.ReadConn) error) error {
		return b.fleet.Probe(ctx, name, talk)
	}
}

// config is how a session's messages are treated. Rules of single tools are those in
// force at the time of each call.
func (b *Gateway) config(name string) func(principal string) gateway.Config {
	return func(principal string) gateway.Config {
		rule := func(tool string) *gateway.Rule {
			if s := b.rules.Load().Server(name); s != nil {
				return s.Rule(tool)
			}
			return &gateway.Rule{Denied: true} // its sessions are about to end
		}
		r := b.rules.Load()
		s, a := r.Server(name), b.admit.Server(name)
		if s == nil || a == nil {
			return gateway.Config{Name: name, Key: local.FenceOf(b.ring), Sink: b.sink, RequireEvidence: true, Tools: rule}
		}
		cfg := b.treatment(r, s, b.log.With("server", s.Name))
		cfg.Admission, cfg.Policy = a, b.policyOf(principal)
		cfg.Rules = func() []*gateway.Rule {
			if s := b.rules.Load().Server(name); s != nil {
				return s.Rules()
			}
			return []*gateway.Rule{{Denied: true}}
		}
		cfg.Observer, cfg.Hold, cfg.Blocks, cfg.Exceptions, cfg.Principal, cfg.Tools = b.meter, b.queue, b.blocks, b.excepts, principalID(principal), rule
		return cfg
	}
}

// translate lets a client of either era speak to the server. A legacy session begins
// with initialize, which shows what the server is. A modern one may begin with
// anything, so that the server itself is asked.
func (b *Gateway) translate(server string, conn wire.Conn, client wire.Era) wire.Conn {
	s := b.rules.Load().Server(server)
	o := era.Options{DangerouslyAllowSampling: s != nil && s.DangerouslyAllowSampling}
	if client == wire.Legacy {
		return era.Adapt(conn, o)
	}
	return era.Upstream(conn, o)
}
