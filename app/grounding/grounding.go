// SPDX-License-Identifier: Apache-2.0

// Package grounding opens what the verbs of pellucid-ground need: the store of attestations, its records and an adapter over them.
package grounding

import (
	"bytes"
	"context"
	"io"
	"log/slog"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/app/local"
	"github.com/pellucid-mcp/pellucid/grounding/attest"
	"github.com/pellucid-mcp/pellucid/grounding/didweb"
	"github.com/pellucid-mcp/pellucid/grounding/ground"
	"github.com/pellucid-mcp/pellucid/grounding/ingest"
	"github.com/pellucid-mcp/pellucid/platform/build"
	"github.com/pellucid-mcp/pellucid/platform/keyring"
	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/text/frame"
)

// A Plan says what an adapter is made of.
type Plan struct {
	Setup  Setup
	DB     string        // URL or path of the store; "": ground.db of the state directory
	Absent Absent        // for an adapter that is served; an import makes the store, a query shows the demonstration
	Ring   *keyring.Ring // of the keys of the installation, for an adapter that is served: of the fences
	Log    *slog.Logger  // for an adapter that is served
	Notice io.Writer     // is told what a person should know, such as that a demonstration is shown
}

// An Adapter is a grounding adapter with its open store and what it records.
type Adapter struct {
	*ground.Adapter
	log      *slog.Logger
	store    *groundStore
	refusals *ingest.Refusals
	mcp      ground.MCPOptions
	records  *records
}

// Open makes an adapter that is to be served.
func Open(ctx context.Context, dir *state.Dir, p Plan) (_ *Adapter, err error) {
	g := &Adapter{log: p.Log, mcp: ground.MCPOptions{Key: func() frame.Key { return local.FenceOf(p.Ring) }, Version: build.Read().Version}}
	defer g.closeOn(&err)
	o, err := p.options() // before a store is made
	if err != nil {
		return nil, err
	}
	if err = g.keepRefusals(dir, func(err error) {
		p.Log.Error("the refusal of an attestation could not be written to refusals.jsonl", "error", err)
	}); err != nil {
		return nil, err
	}
	operator, err := operatorKey(dir)
	if err != nil {
		return nil, err
	}
	if g.store, err = openGroundStore(ctx, dir, p.DB, p.Absent); err != nil {
		return nil, err
	}
	o.Store, o.Refused, o.Issuers = g.store.attestations, g.refusals.Record, append(o.Issuers, operator.DID())
	if g.records, err = g.store.record(ctx, dir, &o, p.Setup.Deviations(), true, p.Log); err != nil {
		return nil, err
	}
	if err = g.make(o); err != nil {
		return nil, err
	}
	if err = g.store.loadDemo(ctx, g.Adapter, p.Notice); err != nil {
		return nil, err
	}
	if loose := p.Setup.Deviations(); loose != nil {
		p.Log.Warn("the grounding adapter is loosened: answers say sanitation_version none", "deviations", loose)
	}
	return g, nil
}

// options are those of an adapter as the setup says, without its store.
func (p *Plan) options() (ground.Options, error) {
	o, err := p.Setup.compile(p.Log)
	if p.Setup.DIDWeb {
		o.Keys = didweb.New(didweb.Options{})
	}
	return o, err
}

// operatorKey is the operator's own key for cascade events, made on first use. An
// adapter on the same state believes it.
func operatorKey(dir *state.Dir) (attest.Key, error) {
	seed, err := dir.Key("operator.key")
	if err != nil {
		return attest.Key{}, exit.With(exit.Config, err)
	}
	return attest.GenerateKey(bytes.NewReader(seed))
}

func (g *Adapter) make(o ground.Options) (err error) {
	if g.Adapter, err = ground.New(o); err != nil {
		return exit.With(exit.Config, err)
	}
	return nil
}

func (g *Adapter) keepRefusals(dir *state.Dir, unrecorded func(error)) (err error) {
	if g.refusals, err = ingest.OpenRefusals(dir, unrecorded); err != nil {
		return exit.With(exit.Config, err)
	}
	return nil
}

func (g *Adapter) closeOn(err *error) {
	if *err != nil {
		g.Close()
	}
}

// Close closes the records and the store.
func (g *Adapter) Close() {
	g.records.Close()
	if g.store != nil {
		g.store.Close()
	}
	g.refusals.Close()
}
