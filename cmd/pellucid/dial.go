// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"

	"github.com/pellucid-mcp/pellucid/boundary/fleet"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/boundary/surface"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/platform/build"
)

// dialers are how a server at a URL is reached. The error is one of the URL.
var dialers = map[rules.Transport]func(string, wire.HTTPOptions) (fleet.Dialer, error){
	rules.AutoTransport:  fleet.Auto,
	rules.StreamableHTTP: fleet.HTTP,
	rules.SSE:            fleet.SSE,
}

// probe lists a surface over connections that connect opens and closes, as a client that
// has all capabilities, or none (bare). Of a server with apps it also lists what a client
// without that extension is offered.
func probe(ctx context.Context, bare bool, connect func(context.Context, func(context.Context, wire.Conn) error) error) (*surface.Surface, error) {
	opt := surface.CollectOptions{Version: build.Read().Version, Bare: bare}
	s, err := collectOver(ctx, &opt, connect)
	if err != nil || bare || !s.HasApps() {
		return s, err
	}
	opt.WithoutApps = true
	plain, err := collectOver(ctx, &opt, connect)
	if err != nil {
		return nil, err
	}
	return plain.OfferedMore(s), nil
}

// collectOver lists a surface over a connection of its own. opt.Legacy is how that went.
func collectOver(ctx context.Context, opt *surface.CollectOptions, connect func(context.Context, func(context.Context, wire.Conn) error) error) (s *surface.Surface, err error) {
	for {
		err = connect(ctx, func(ctx context.Context, conn wire.Conn) (err error) {
			s, err = surface.Collect(ctx, conn, *opt)
			return err
		})
		var refused *surface.RefusedError
		if opt.Legacy || !errors.As(err, &refused) || refused.Reason != surface.NoAnswer || ctx.Err() != nil {
			break // else: some servers end when the first thing that they hear is not initialize
		}
		opt.Legacy = true
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// over has probe use a connection of its own.
func over(dial fleet.Dialer) func(context.Context, func(context.Context, wire.Conn) error) error {
	return func(ctx context.Context, talk func(context.Context, wire.Conn) error) error {
		conn, err := dial(ctx)
		if err != nil {
			return err
		}
		defer conn.Close()
		return talk(ctx, conn)
	}
}
