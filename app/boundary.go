// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/pellucid-mcp/pellucid/app/audit"
	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/app/local"
	"github.com/pellucid-mcp/pellucid/boundary/classifiers"
	"github.com/pellucid-mcp/pellucid/boundary/gateway"
	"github.com/pellucid-mcp/pellucid/boundary/meter"
	"github.com/pellucid-mcp/pellucid/boundary/reviewer"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/boundary/surface"
	"github.com/pellucid-mcp/pellucid/boundary/validate"
	"github.com/pellucid-mcp/pellucid/platform/intake"
	"github.com/pellucid-mcp/pellucid/platform/keyring"
	"github.com/pellucid-mcp/pellucid/platform/login"
	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/record/captures"
	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/record/trust"
	"github.com/pellucid-mcp/pellucid/storage"
)

// A boundary is the part between clients and servers, for every kind of client and server and however they
// come: the rules in force, what is kept of what passes, and who judges it. A Gateway has one
// for all of its servers, a Wrap one for its only server.
type boundary struct {
	log   *slog.Logger
	rules atomic.Pointer[rules.Rules] // in force

	ring     *keyring.Ring    // the keys of the installation
	logins   *login.Store     // at servers with a URL
	flag     string           // " --db X", which printed commands need to find the store
	store    *storage.Store   // nil: nothing needs one
	journal  *state.Journal   // nil: evidence is not off
	flagged  *state.Journal   // what a classifier has flagged and can quote, where one can
	records  *install.Records // nil: evidence is off
	requires bool             // that a result is recorded before it is delivered
	queue    *hold.Queue      // nil: nothing is held
	blocks   *hold.Blocks     // as queue
	excepts  *hold.Exceptions // as queue
	captures *captures.Keeper // nil: there is no store
	decides  bool             // a policy may be in force, now or after a reload
	scored   trust.Options    // by which scores are made until the next start
	scoring  atomic.Pointer[scoring]
	meter    *meter.Meter // nil: nothing is counted
	sink     *gateway.Repeats

	pins    *surface.Pins                  // nil: nothing is pinned
	version pinVersion                     // of one pin, where pins are files; nil: they are in store
	cache   surface.Cache                  // of reviews
	review  atomic.Pointer[reviewer.Model] // nil: no model is asked about servers
	judges  atomic.Pointer[classifiers.Set]
	shadow  *gateway.Shadow // nil: nothing judges results

	memory  *intake.Budget
	schemas validate.Cache
}

// pinVersion returns the version of a server's pin, 0 if not found.
type pinVersion func(ctx context.Context, server string) (int64, error)

// pinsIn says where pins are.
type pinsIn uint8

const (
	pinsNowhere pinsIn = iota // nothing is pinned
	pinsInFiles               // of the state directory: a database would be the larger part of a small process
	pinsInStore
)

// needs say which parts of a boundary its owner uses. What it does not use is not opened.
type needs struct {
	database install.Database // where the store is
	store    bool             // a store, whatever else asks for one
	hold     bool             // keep results that are withheld
	decides  bool             // a policy may be in force, now or after a reload
	judges   *gateway.ShadowOptions
	pins     pinsIn
	poll     time.Duration // how often the store is asked for what others have recorded
	replica  bool          // it may share its database with others like it, and must be able to carry the log on
	meter    *meter.Meter
}

// open opens what rules ask for and the owner needs. On an error close is still to be called.
func (b *boundary) open(dir *state.Dir, r *rules.Rules, n needs) (err error) {
	b.meter = n.meter
	b.logins, b.flag = login.OpenStore(dir), n.database.Flag("")
	b.memory = intake.NewBudget(int64(r.Limits.Memory))
	if b.ring, err = local.Ring(dir); err != nil {
		return err
	}
	recorded := r.Evidence.Mode != rules.NoEvidence
	if n.store || n.hold || recorded {
		if b.store, err = n.database.Open(context.Background(), dir, true); err != nil {
			return err
		}
	}
	b.scored, b.decides = trust.Options{}.OrDefault(), n.decides
	if recorded {
		err = b.record(dir, r, n)
	} else {
		err = b.openJournal(dir)
	}
	if err == nil {
		err = b.keepScores(r)
	}
	if err != nil {
		return err
	}
	if n.hold {
		o := hold.Options{Seal: b.seal, SealQuestion: b.questions().Seal, TwoPersons: b.twoPersons}
		if b.records != nil {
			o.Evidence = b.records.Held
		}
		x := hold.ExceptionOptions{TwoPersons: b.twoPersons}
		if b.records != nil {
			x.Evidence = b.records.Exception
		}
		b.excepts = hold.NewExceptions(b.store.Exceptions(), x)
		b.queue, b.blocks = hold.New(b.store, o), hold.NewBlocks(b.store.Blocks(), hold.BlockOptions{})
	}
	if b.store != nil {
		b.captures = captures.New(captures.Options{Store: b.store, Sealer: b.questions(), Limits: b.captureLimits, Log: b.log})
	}
	if n.judges != nil {
		b.shadow = gateway.NewShadow(*n.judges)
	}
	if n.judges != nil && r.Quotes() {
		if b.flagged, err = dir.Journal(audit.FlaggedName, nil); err != nil {
			b.log.Warn("the sentences that classifiers flag are not kept", "error", err)
		}
	}
	b.sink = gateway.NewRepeats(b.sinks())
	return b.openPins(n.pins)
}

// sinks are told of every decision.
func (b *boundary) sinks() gateway.Sink {
	var all []gateway.Sink
	if b.records != nil {
		all = append(all, b.records)
	} else {
		all = append(all, &journalSink{j: b.journal})
	}
	if b.meter != nil {
		all = append(all, b.meter)
	}
	if b.records == nil && b.decides {
		all = append(all, trustSink{b})
	}
	return gateway.Tee(all...)
}

// openPins opens what remembers how servers were when they were approved, and the verdicts of
// reviews.
func (b *boundary) openPins(in pinsIn) error {
	switch in {
	case pinsInStore:
		b.pins, b.cache = surface.NewPins(b.store, nil), b.store
		if b.records != nil {
			b.pins = b.pins.WithEvidence(b.records.Pin)
		}
	case pinsInFiles:
		files, err := install.PinFiles()
		if err != nil {
			return err
		}
		b.pins, b.cache, b.version = surface.NewPins(files, nil), files, files.PinVersion
	}
	return nil
}

// close writes what waits and lets go of everything. Nothing uses the boundary any more.
func (b *boundary) close() {
	if v := b.review.Load(); v != nil {
		v.Close()
	}
	if b.sink != nil {
		b.sink.Close()
	}
	if b.captures != nil {
		b.captures.Close()
	}
	b.records.Close()
	if s := b.scoring.Load(); s != nil && s.follower != nil {
		s.stop()
	}
	if b.store != nil {
		b.store.Close()
	}
	for _, j := range []*state.Journal{b.journal, b.flagged} {
		if j == nil {
			continue
		}
		if err := j.Close(); err != nil {
			b.log.Error("a journal could not be closed: its last lines may be lost", "error", err)
		}
	}
}

// treatment is what the rules all, of which s is a server, say of the server's messages. They
// may be about to take effect.
func (b *boundary) treatment(all *rules.Rules, s *rules.Server, log *slog.Logger) gateway.Config {
	r := s.Rule("")
	cfg := gateway.Config{Name: s.Name, Key: local.FenceOf(b.ring), Sink: b.sink, Flag: b.flag, RequireEvidence: b.requires, Log: log, Memory: b.memory, Schemas: &b.schemas, Captures: b.captures,
		Profile: r.Profile, ControlTokens: r.ControlTokens, Frame: r.Frame, LLM: r.LLM, Framing: r.Framing, MaxChars: r.MaxChars, Timeout: r.Timeout, Validation: r.Validation,
		Tokens: all.Tokens, Tools: s.Rule, Rules: s.Rules, Policy: b.policyOf(""), Classifiers: b.classifiers(s.Name), DangerouslyAllowSampling: s.DangerouslyAllowSampling, Repeat: s.Command == nil}
	if b.queue != nil && s.Command == nil { // a process that is started for a session knows no task of another one
		cfg.Tasks = b.store
	}
	if b.records != nil {
		cfg.StorePatience = b.records.Patience
	}
	return cfg
}
