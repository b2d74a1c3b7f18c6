// SPDX-License-Identifier: Apache-2.0

package app

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/boundary/admit"
	"github.com/pellucid-mcp/pellucid/boundary/classifiers"
	"github.com/pellucid-mcp/pellucid/boundary/fleet"
	"github.com/pellucid-mcp/pellucid/boundary/gateway"
	"github.com/pellucid-mcp/pellucid/boundary/meter"
	"github.com/pellucid-mcp/pellucid/boundary/reviewer"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/boundary/surface"
	"github.com/pellucid-mcp/pellucid/boundary/validate"
	"github.com/pellucid-mcp/pellucid/mcp/era"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/platform/build"
	"github.com/pellucid-mcp/pellucid/platform/child"
	"github.com/pellucid-mcp/pellucid/platform/intake"
	"github.com/pellucid-mcp/pellucid/platform/loopback"
	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/record/trust"
	"github.com/pellucid-mcp/pellucid/storage"
	"github.com/pellucid-mcp/pellucid/text/frame"
)

// Gateway is the running gateway: the rules in force, the servers behind it and
// the handler in front of them, each replaced in one step.
type Gateway struct {
	opt    GatewayOptions
	src    *Source
	listen string
	log    *slog.Logger

	key      frame.Key
	sealer   *era.Sealer
	journal  *state.Journal   // nil: evidence is not off
	records  *install.Records // nil: it is
	requires bool             // that a result is recorded before it is delivered
	store    *storage.Store
	queue    *hold.Queue
	blocks   *hold.Blocks
	sink     *gateway.Repeats
	memory   *intake.Budget
	schemas  validate.Cache
	Meter    *meter.Meter
	trust    *trust.Book
	scored   trust.Options // by which scores are made until the next start
	scores   trustFile     // where there is no ledger
	follows  func()        // ends the following of the ledger; nil: there is none
	health   meter.Health
	fleet    *fleet.Fleet
	admit    *admit.Admissions
	pins     *surface.Pins
	review   atomic.Pointer[reviewer.Model] // nil: no model is asked about servers
	ground   *Ground                        // nil: not served
	jury     atomic.Pointer[classifiers.Set]
	shadow   *gateway.Shadow

	rules   atomic.Pointer[rules.Rules]
	handler atomic.Pointer[http.Handler]

	mu         sync.Mutex             // of what follows, and of reloading
	stderr     map[string]*child.Tail // of servers that are processes
	fronts     map[string]*wire.Front
	union      *wire.Front
	admissions []admit.Config // in force
	gone       sync.WaitGroup // of fronts that are ended
}

// GatewayOptions are what a gateway is run with beside its rules.
type GatewayOptions struct {
	Listen   string // address, instead of what the rules say; "": that
	Ground   bool   // serve the grounding adapter in any case
	GroundDB string // its store, as a flag or $PELLUCID_DB says; "": the default

	Getenv func(string) string // of references and $PELLUCID_DB
	Stderr io.Writer           // log lines, and what a person is told
}

// references say what stands behind a reference.
func (o *GatewayOptions) references() rules.Options {
	return rules.Options{Getenv: func(name string) (string, bool) {
		value := o.Getenv(name)
		return value, value != ""
	}}
}

// OpenGateway makes everything that must be there before the first request.
func OpenGateway(o GatewayOptions, src *Source) (_ *Gateway, err error) {
	r, err := src.load(o.references())
	if err != nil {
		return nil, exit.With(exit.Config, fmt.Errorf("up: %w", err))
	}
	b := &Gateway{opt: o, src: src, listen: r.Listen, fronts: map[string]*wire.Front{}, stderr: map[string]*child.Tail{}}
	b.log = NewLog(o.Stderr, r.Telemetry.LogJSON, r.Telemetry.LogLevel)
	b.listen = cmp.Or(o.Listen, b.listen)
	if !loopback.Listener(b.listen) && !r.Auth.Set() { // that of a file was checked with the file
		return nil, exit.With(exit.Usage, errors.New("up: --listen: an address that is not loopback needs auth in the configuration: anybody could reach it"))
	}
	defer func() {
		if err != nil {
			b.Close()
		}
	}()
	if err := b.openState(r); err != nil {
		return nil, err
	}
	v := build.Read().Version
	b.fleet = fleet.New(fleet.Options{Log: b.log, Version: v, Translate: b.translate, Children: r.Limits.Children,
		PerServer: r.Limits.ChildrenPerServer, PerPrincipal: r.Limits.ChildrenPerPrincipal})
	b.memory = intake.NewBudget(int64(r.Limits.Memory))
	b.openAdmissions()
	b.shadow = gateway.NewShadow(gateway.ShadowOptions{})
	b.union = b.front(r, b.serveAll)
	if err := b.openGround(r); err != nil {
		return nil, err
	}
	if err := b.Meter.Watch(meter.Gauges{Sessions: b.Sessions,
		Children: func() int64 { return int64(b.fleet.Children()) },
		Held:     b.waiting,
		Ledger:   b.ledgerGauges(),
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
	dir, err := install.Open()
	if err != nil {
		return err
	}
	if b.key, err = install.FenceKey(dir); err != nil {
		return err
	}
	if b.sealer, err = stateSealer(dir); err != nil {
		return err
	}
	if r.Evidence.Mode == rules.NoEvidence {
		if b.journal, err = dir.Journal("decisions.jsonl", state.JournalOptions{}); err != nil {
			return exit.With(exit.Config, err)
		}
	}
	where := cmp.Or(r.Store.Path, r.Store.URL.Reveal(), b.opt.Getenv("PELLUCID_DB"))
	if b.store, err = install.Database(where).Open(context.Background(), dir, true); err != nil {
		return err
	}
	if b.pins, b.queue, err = b.kept(dir, r); err != nil {
		return err
	}
	b.blocks = hold.NewBlocks(b.store, hold.BlockOptions{})
	b.watchStore()
	v := build.Read()
	if b.Meter, err = meter.New(meter.Options{Version: v.Version, Commit: v.Commit, OTLP: r.Telemetry.OTLP.Reveal(), Log: b.log}); err != nil {
		return exit.With(exit.Config, fmt.Errorf("up: telemetry: %w", err))
	}
	if b.records != nil {
		b.sink = gateway.NewRepeats(gateway.Tee(b.records, b.Meter))
	} else {
		b.sink = gateway.NewRepeats(gateway.Tee(&JournalSink{J: b.journal}, b.Meter, TrustSink{b.trust}))
	}
	return nil
}

func (b *Gateway) Close() {
	b.gone.Wait()
	if b.fleet != nil {
		ctx, stop := context.WithTimeout(context.Background(), install.CloseWait)
		defer stop()
		_ = b.fleet.Close(ctx)
	}
	if b.admit != nil {
		b.admit.Close()
	}
	if v := b.review.Load(); v != nil {
		v.Close()
	}
	if b.ground != nil {
		b.ground.Close()
	}
	b.closeJury()
	if b.sink != nil {
		b.sink.Close()
	}
	b.saveTrust()
	b.records.Close()
	if b.follows != nil {
		b.follows()
	}
	if b.store != nil {
		b.store.Close()
	}
	if b.Meter != nil {
		ctx, stop := context.WithTimeout(context.Background(), install.CloseWait)
		defer stop()
		if err := b.Meter.Shutdown(ctx); err != nil {
			b.log.Warn("traces lost", "error", err)
		}
	}
	if b.journal != nil {
		if err := b.journal.Close(); err != nil {
			b.log.Error("decisions may be lost", "error", err)
		}
	}
}

// apply puts rules in force, or changes nothing. What is under way keeps the rules
// that it began with, but for those of single tools.
func (b *Gateway) apply(r *rules.Rules) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	in, err := b.entrance(r)
	if err != nil {
		return err
	}
	plugged, err := b.plug(r, in)
	if err != nil {
		return err
	}
	servers, admissions := make([]fleet.Server, len(r.Servers)), make([]admit.Config, len(r.Servers))
	for i, s := range r.Servers {
		if servers[i], err = b.server(s); err != nil {
			return fmt.Errorf("up: server %s: %w", s.Name, err)
		}
		admissions[i] = b.admission(s)
	}
	if err := b.setReview(r); err != nil {
		return fmt.Errorf("up: %w", err)
	}
	unseat, err := b.setJury(r)
	if err != nil {
		return fmt.Errorf("up: %w", err)
	}
	old := b.rules.Load()
	b.rules.Store(r) // before any session of a new server can ask for them
	b.admit.Set(admissions)
	if err := b.fleet.Set(servers); err != nil {
		b.rules.Store(old)
		b.admit.Set(b.admissions)
		unseat()
		return err
	}
	b.admissions = admissions
	b.keepFronts(r)
	h := b.routes(r, in, plugged)
	b.handler.Store(&h)
	b.Meter.Rules(r.Version())
	if b.records != nil {
		b.records.Loaded(r.Version(), r.Effective(), b.scored)
	}
	b.admit.Tell()
	return nil
}

func (b *Gateway) sweep(ctx context.Context) {
	b.queue.KeepSwept(ctx, hold.SweepEvery, func(err error) { b.log.Warn("the queue of held results was not swept", "error", err) })
}

// server is what the fleet has to know of a configured server.
func (b *Gateway) server(s *rules.Server) (fleet.Server, error) {
	out := fleet.Server{Name: s.Name, Prefix: s.Prefix, Identity: identity(s), Config: b.config(s.Name), Verify: b.verify(s.Name),
		Child: s.Command != nil, Shared: s.Share == rules.Shared}
	log := b.log.With("server", s.Name)
	if out.Child {
		words := b.stderr[s.Name] // processes may outlive a change of their treatment
		if words == nil {
			words = &child.Tail{}
			b.stderr[s.Name] = words
		}
		out.Said = words.Lines
		cmd := child.Command{Args: s.Command, Dir: s.Cwd, Stderr: func(line string) {
			words.Add(line)
			log.Debug("server: " + line)
		}}
		for _, v := range s.Env {
			cmd.Env = append(cmd.Env, v.Name+"="+v.Value.Reveal())
		}
		out.Dial = fleet.Command(cmd)
		return out, nil
	}
	o := wire.HTTPOptions{Header: http.Header{}, Limits: fleet.ServerLimits, ProxyFromEnvironment: true,
		Notice: func(line string) { log.Warn("server: " + line) }}
	for _, h := range s.Headers {
		o.Header.Add(h.Name, h.Value.Reveal())
	}
	var err error
	out.Dial, err = fleet.URL(s.Transport, s.URL.Reveal(), o)
	return out, err
}

// identity is a digest of all that a connection to the server depends on. It holds
// what secrets stand for, and so never leaves the process.
func identity(s *rules.Server) string {
	type pair struct{ Name, Value string }
	var all []pair
	for _, list := range [][]rules.Variable{s.Env, s.Headers} {
		all = append(all, pair{})
		for _, v := range list {
			all = append(all, pair{v.Name, v.Value.Reveal()})
		}
	}
	b, err := json.Marshal([]any{s.Command, s.Cwd, s.URL.Reveal(), s.Transport, s.Share, all})
	if err != nil {
		panic("up: digest of a server: " + err.Error()) // strings and numbers always marshal
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
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
			return gateway.Config{Name: name, Key: b.key, Sink: b.sink, RequireEvidence: true, Tools: rule}
		}
		cfg := b.treatment(r, s)
		cfg.Admission, cfg.Policy = a, b.policyOf(principal)
		cfg.Observer, cfg.Hold, cfg.Blocks, cfg.Principal, cfg.Tools = b.observer(s), b.queue, b.blocks, principalID(principal), rule
		return cfg
	}
}

// observer counts and traces the sessions of clients, who come over HTTP, with a server.
func (b *Gateway) observer(s *rules.Server) gateway.Observer {
	if s.Command != nil {
		return b.Meter.Over(meter.TCP, meter.Pipe)
	}
	return b.Meter.Over(meter.TCP, meter.TCP)
}

// treatment is what the rules all, of which s is a server, say of the server's messages. They
// may be about to take effect.
func (b *Gateway) treatment(all *rules.Rules, s *rules.Server) gateway.Config {
	r := s.Rule("")
	return gateway.Config{Name: s.Name, Key: b.key, Sink: b.sink, RequireEvidence: b.requires, Log: b.log.With("server", s.Name), Memory: b.memory, Schemas: &b.schemas,
		Profile: r.Profile, Frame: r.Frame, LLM: r.LLM, Framing: r.Framing, MaxChars: r.MaxChars, Timeout: r.Timeout, Validation: r.Validation,
		Tokens: all.Tokens, Tools: s.Rule, Policy: b.policyOf(""), Classifiers: b.classifiers(s.Name), DangerouslyAllowSampling: s.DangerouslyAllowSampling}
}

// translate lets a client of either era speak to the server. A legacy session begins
// with initialize, which shows what the server is. A modern one may begin with
// anything, so that the server itself is asked, unless it is not there to answer.
func (b *Gateway) translate(server string, conn wire.Conn, client wire.Era) wire.Conn {
	s := b.rules.Load().Server(server)
	o := era.Options{DangerouslyAllowSampling: s != nil && s.DangerouslyAllowSampling}
	if client == wire.Legacy {
		return era.Adapt(conn, o)
	}
	c, is, err := era.Upstream(context.Background(), conn, o) // bounded by its patience, and ended with conn
	if err == nil && is == wire.Legacy {
		b.log.Debug("server speaks a revision of the protocol with initialize: it did not answer server/discover", "server", server)
	}
	if err != nil || is == wire.Legacy && b.down(server) {
		return era.Adapt(conn, o)
	}
	return c
}

func (b *Gateway) down(server string) bool {
	return slices.ContainsFunc(b.fleet.Health(), func(h fleet.Health) bool { return h.Name == server && h.State == fleet.Down })
}
