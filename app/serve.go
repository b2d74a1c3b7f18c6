// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/platform/listen"
	"github.com/pellucid-mcp/pellucid/platform/resident"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// Serve listens until ctx ends, and then ends sessions and servers in good order. again is called
// as soon as ctx has ended, so that a second signal can end the process at once.
func (b *Gateway) Serve(ctx context.Context, again func()) error {
	l, err := listen.At("--listen", b.listen)
	if err != nil {
		return fmt.Errorf("up: %w", err)
	}
	srv := listen.NewServer(b, b.log)
	b.announce(l.Addr().String())
	resident.DropStartup()
	watch, stopWatching := context.WithCancel(ctx)
	defer stopWatching()
	watched := make(chan struct{})
	go func() { defer close(watched); b.follow(watch) }()
	endPeers := b.startPeers()
	defer endPeers()
	if err := listen.Until(ctx, srv, l); err != nil {
		return fmt.Errorf("up: %w", err)
	}
	again()
	stopWatching()
	<-watched
	return b.drain(srv)
}

// drain refuses what is new, and waits for what is under way.
func (b *Gateway) drain(srv *http.Server) error {
	limit := b.rules.Load().HTTP.Drain
	b.log.Info("shutting down: open requests may finish", "within", limit.String())
	b.health.Drain()
	ctx, stop := context.WithTimeout(context.Background(), limit)
	defer stop()
	err := b.shutdownFronts(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		b.log.Warn("requests that were open after http.drain were ended")
	}
	rest, done := context.WithTimeout(context.Background(), install.CloseWait)
	defer done()
	if err := srv.Shutdown(rest); err != nil {
		srv.Close()
	}
	if err := b.fleet.Close(rest); err != nil {
		b.log.Error("a server process could not be stopped in time", "error", finding.Quote(err.Error()))
	}
	return nil
}
