// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"log/slog"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/grounding/ground"
	"github.com/pellucid-mcp/pellucid/platform/build"
	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/text/frame"
)

// A groundPlan is what an adapter that is served is made of, by `ground serve` and `up` alike.
type groundPlan struct {
	setup   *rules.Ground // compiled
	db      groundDB
	missing missing // what is done where there is no store
	key     frame.Key
}

// A servedGround is a grounding adapter with all that it keeps.
type servedGround struct {
	store    *groundStore
	adapter  *ground.Adapter
	refusals *refusals
	mcp      ground.MCPOptions
	records  *install.Records
	unfollow func() // ends the following of peers; nil: it has not begun
}

// openGround opens the store and makes the adapter. It follows the peers until Close.
func openGround(ctx context.Context, e *env, dir *state.Dir, p groundPlan, log *slog.Logger) (g *servedGround, err error) {
	g = &servedGround{mcp: ground.MCPOptions{Key: p.key, Version: build.Read().Version}}
	if g.refusals, err = openRefusals(dir, func(err error) { log.Error("a refusal is not recorded", "err", err) }); err != nil {
		return nil, err
	}
	defer func(made *servedGround) { // on an error g is nil by then
		if err != nil {
			made.Close()
		}
	}(g)
	operator, err := install.OperatorKey(dir)
	if err != nil {
		return nil, err
	}
	if g.store, err = p.db.open(ctx, dir, p.missing); err != nil {
		return nil, err
	}
	o := groundOptions(p.setup)
	o.Store, o.Refused, o.Issuers = g.store, g.refusals.record, append(o.Issuers, operator.DID())
	if g.records, err = recordGround(ctx, g.store, dir, &o, p.setup, true, log); err != nil {
		return nil, install.OpenError(err)
	}
	o.Scores = scoresOf(g.store, log)
	if g.adapter, err = ground.New(o); err != nil {
		return nil, exit.With(exit.Config, err)
	}
	if err = g.store.loadDemo(ctx, g.adapter, e.Stderr); err != nil {
		return nil, err
	}
	if loose := p.setup.Deviations(); loose != nil {
		log.Warn("the grounding adapter is loosened: answers say sanitation_version none", "deviations", loose)
	}
	g.unfollow = followPeers(ctx, g.adapter, p.setup.Following(), log)
	return g, nil
}

func (g *servedGround) Close() {
	if g.unfollow != nil {
		g.unfollow()
	}
	g.records.Close()
	if g.store != nil {
		g.store.Close()
	}
	g.refusals.j.Close()
}

// openGround opens the adapter of a gateway that serves one.
func (b *boundary) openGround(c *upCmd, r *rules.Rules) error {
	if !c.Ground && r.Ground == nil && b.src.path != "" {
		return nil
	}
	dir, err := install.Open()
	if err != nil {
		return err
	}
	b.ground, err = openGround(context.Background(), b.env, dir, b.upGround(c, r), b.log)
	return err
}

// upGround is the plan of the gateway's adapter: what the file says, and the store that
// --db names, or else the file.
func (b *boundary) upGround(c *upCmd, r *rules.Rules) groundPlan {
	p := groundPlan{setup: r.Ground, db: c.groundDB, key: b.key, missing: showDemo}
	if p.setup == nil {
		p.setup = &rules.Ground{}
	}
	named := p.setup.Store != rules.Store{}
	if named && (p.db.DB == "" || p.db.DB == b.env.Getenv("PELLUCID_DB")) { // a file says more than the environment
		p.db.DB = p.setup.Store.Path + p.setup.Store.URL.Reveal()
	}
	if named || r.Auth.Set() || len(p.setup.Peers) > 0 { // what others hand in has to be kept
		p.missing = makeIt
	}
	return p
}
