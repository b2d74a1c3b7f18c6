package main

import (
	"context"
	"log/slog"

	"github.com/pellucid-mcp/pellucid/frame"
	"github.com/pellucid-mcp/pellucid/ground"
)

// upGround is the grounding adapter as part of the gateway, with its defaults; for
// all that can be said of it there is `pellucid ground serve`.
type upGround struct {
	store    *groundStore
	adapter  *ground.Adapter
	refusals *refusals
	mcp      ground.MCPOptions
	records  *records
}

func openUpGround(e *env, c *upCmd, key frame.Key, log *slog.Logger) (g *upGround, err error) {
	dir, err := openState()
	if err != nil {
		return nil, err
	}
	g = &upGround{mcp: ground.MCPOptions{Key: key, Version: buildVersions().Version}}
	if g.refusals, err = openRefusals(dir, func(err error) { log.Error("a refusal is not recorded", "err", err) }); err != nil {
		return nil, err
	}
	defer func(made *upGround) { // on an error g is nil by then
		if err != nil {
			made.Close()
		}
	}(g)
	ctx := context.Background()
	if g.store, err = c.groundDB.open(ctx, dir, showDemo); err != nil {
		return nil, err
	}
	operator, err := operatorKey(dir)
	if err != nil {
		return nil, err
	}
	o := ground.Options{Store: g.store, Refused: g.refusals.record, Issuers: []string{operator.DID()}}
	if g.records, err = recordGround(ctx, g.store, dir, &o, true, log); err != nil {
		return nil, openError(err)
	}
	g.adapter, err = ground.New(o)
	if err != nil {
		return nil, withCode(exitConfig, err)
	}
	return g, g.store.loadDemo(ctx, g.adapter, e.Stderr)
}

func (g *upGround) Close() {
	g.records.close()
	if g.store != nil {
		g.store.Close()
	}
	g.refusals.j.Close()
}
