// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"io"
	"log/slog"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/grounding/didweb"
	"github.com/pellucid-mcp/pellucid/grounding/ground"
	"github.com/pellucid-mcp/pellucid/grounding/ingest"
	"github.com/pellucid-mcp/pellucid/platform/build"
	"github.com/pellucid-mcp/pellucid/platform/intake"
	"github.com/pellucid-mcp/pellucid/platform/keyring"
	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/text/frame"
)

// A GroundPlan says what a grounding adapter is made of.
type GroundPlan struct {
	Rules  *rules.Ground // compiled
	DB     string        // URL or path of the store; "": ground.db of the state directory
	Absent Absent        // for an adapter that is served; an import makes the store, a query shows the demonstration
	Ring   *keyring.Ring // of the keys of the installation, for an adapter that is served: of the fences
	Log    *slog.Logger  // for an adapter that is served
	Notice io.Writer     // is told what a person should know, such as that a demonstration is shown
}

// planGround is the plan of the adapter that a gateway serves: what the file says, and the
// store that the flag names, or else the file. fromEnv is the variable that the flag has its
// value from where it was not given: the file says more than that.
func planGround(r *rules.Rules, flag, fromEnv string) GroundPlan {
	p := GroundPlan{Rules: r.Ground, DB: flag, Absent: ShowDemo}
	if p.Rules == nil {
		p.Rules = &rules.Ground{}
	}
	named := p.Rules.Store != rules.Store{}
	if named && (flag == "" || flag == fromEnv) {
		p.DB = p.Rules.Store.Path + p.Rules.Store.URL.Reveal()
	}
	if named || r.Auth.Set() { // attestations of others have to be kept
		p.Absent = MakeStore
	}
	return p
}

// A Ground is a grounding adapter with its open store and what it records.
type Ground struct {
	*ground.Adapter
	log      *slog.Logger
	store    *groundStore
	refusals *ingest.Refusals
	mcp      ground.MCPOptions
	records  *install.Records
	memory   *intake.Budget // of requests; the adapter makes one if it is not set
}

// OpenGround makes an adapter that is to be served.
func OpenGround(ctx context.Context, dir *state.Dir, p GroundPlan) (_ *Ground, err error) {
	g := &Ground{log: p.Log, mcp: ground.MCPOptions{Key: func() frame.Key { return install.FenceOf(p.Ring) }, Version: build.Read().Version}}
	defer g.closeOn(&err)
	if err = g.keepRefusals(dir, func(err error) {
		p.Log.Error("the refusal of an attestation could not be written to refusals.jsonl", "error", err)
	}); err != nil {
		return nil, err
	}
	operator, err := install.OperatorKey(dir)
	if err != nil {
		return nil, err
	}
	if g.store, err = openGroundStore(ctx, dir, p.DB, p.Absent); err != nil {
		return nil, err
	}
	o := p.options(g.store)
	o.Refused, o.Issuers = g.refusals.Record, append(o.Issuers, operator.DID())
	if g.records, err = g.store.record(ctx, dir, &o, p.Rules.Deviations(), true, p.Log); err != nil {
		return nil, err
	}
	o.Scores = g.store.scores(p.Log)
	if err = g.make(o); err != nil {
		return nil, err
	}
	if err = g.store.loadDemo(ctx, g.Adapter, p.Notice); err != nil {
		return nil, err
	}
	if loose := p.Rules.Deviations(); loose != nil {
		p.Log.Warn("the grounding adapter is loosened: answers say sanitation_version none", "deviations", loose)
	}
	return g, nil
}

// options are those of an adapter over the store, as the rules say.
func (p *GroundPlan) options(s *groundStore) ground.Options {
	o := p.Rules.Options()
	o.Store = s
	if p.Rules.DIDWeb {
		o.Keys = didweb.New(didweb.Options{})
	}
	return o
}

func (g *Ground) make(o ground.Options) (err error) {
	if g.Adapter, err = ground.New(o); err != nil {
		return exit.With(exit.Config, err)
	}
	return nil
}

func (g *Ground) keepRefusals(dir *state.Dir, unrecorded func(error)) (err error) {
	if g.refusals, err = ingest.OpenRefusals(dir, unrecorded); err != nil {
		return exit.With(exit.Config, err)
	}
	return nil
}

func (g *Ground) closeOn(err *error) {
	if *err != nil {
		g.Close()
	}
}

// Close closes the records and the store.
func (g *Ground) Close() {
	g.records.Close()
	if g.store != nil {
		g.store.Close()
	}
	g.refusals.Close()
}
