package main

import (
	"context"
	"errors"

	"github.com/pellucid-mcp/pellucid/internal/fleet"
	"github.com/pellucid-mcp/pellucid/internal/rules"
	"github.com/pellucid-mcp/pellucid/internal/wire"
	"github.com/pellucid-mcp/pellucid/surface"
)

// dialers are how a server at a URL is reached. The error is one of the URL.
var dialers = map[rules.Transport]func(string, wire.HTTPOptions) (fleet.Dialer, error){
	rules.AutoTransport:  fleet.Auto,
	rules.StreamableHTTP: fleet.HTTP,
	rules.SSE:            fleet.SSE,
}

// probe lists a surface over a connection that connect opens and closes, as a client that
// has all capabilities, or none (bare).
func probe(ctx context.Context, bare bool, connect func(context.Context, func(context.Context, wire.Conn) error) error) (s *surface.Surface, err error) {
	for _, legacy := range []bool{false, true} {
		err = connect(ctx, func(ctx context.Context, conn wire.Conn) (err error) {
			s, err = surface.Collect(ctx, conn, surface.CollectOptions{Version: buildVersions().Version, Legacy: legacy, Bare: bare})
			return err
		})
		var refused *surface.RefusedError
		if !errors.As(err, &refused) || refused.Reason != surface.NoAnswer || ctx.Err() != nil {
			break // else: some servers end when the first thing that they hear is not initialize
		}
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
