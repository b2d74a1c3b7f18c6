// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/platform/listen"
	"github.com/pellucid-mcp/pellucid/platform/resident"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// upCmd is the gateway that a team runs.
type upCmd struct {
	Config string `short:"c" placeholder:"FILE" completion:"files" help:"Configuration (default: pellucid.yaml here, and without one a demonstration)."`
	Listen string `placeholder:"ADDR" help:"Listen there instead of where the configuration says."`
	Ground bool   `help:"Serve the grounding adapter too, at /ground/mcp, as the section ground of the configuration says; with that section it is served in any case."`
	groundDB
}

func (upCmd) Help() string {
	return `Serves every configured MCP server behind the boundary: each at /mcp/NAME, all of them
as one at /mcp, over streamable HTTP in every revision of the protocol. The file is
described in docs/spec/config.md. It is read again when it changes, and on SIGHUP; one with
a mistake changes nothing. SIGTERM lets what is under way finish, a second one does not.
Without a file a demonstration is served, on 127.0.0.1 only. Exit codes: 0 ended by a
signal, 1 failed, 2 wrong usage, 3 bad configuration, 4 the store cannot be reached.`
}

// Validate is called by kong; its error is one of usage.
func (c *upCmd) Validate() error {
	if c.Listen == "" {
		return nil
	}
	return listen.CheckAddress("--listen", c.Listen)
}

const defaultConfig = "pellucid.yaml"

func (c *upCmd) Run(e *env) error {
	src, err := c.source()
	if err != nil {
		return err
	}
	b, err := openBoundary(e, c, src)
	if err != nil {
		return err
	}
	defer b.close()
	ctx, stop := exit.UntilSignal()
	defer stop()
	return b.serve(ctx, stop)
}

// source is where the configuration comes from.
func (c *upCmd) source() (*source, error) {
	if c.Config != "" {
		return fileSource(c.Config)
	}
	if _, err := os.Stat(defaultConfig); err == nil {
		return fileSource(defaultConfig)
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("up: find this program: %w", err)
	}
	return demoSource(self), nil
}

// serve listens until ctx ends, and then lets go of everything in good order.
func (b *boundary) serve(ctx context.Context, again func()) error {
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
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(l) }()
	select {
	case err := <-failed:
		return fmt.Errorf("up: serve: %w", err)
	case <-ctx.Done():
		again() // a second signal ends the process at once
	}
	stopWatching()
	<-watched
	return b.drain(srv)
}

// drain refuses what is new, and waits for what is under way.
func (b *boundary) drain(srv *http.Server) error {
	limit := b.rules.Load().HTTP.Drain
	b.log.Info("ending: what is under way may finish", "within", limit.String())
	b.health.Drain()
	ctx, stop := context.WithTimeout(context.Background(), limit)
	defer stop()
	err := b.shutdownFronts(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		b.log.Warn("what was still under way has been cut")
	}
	rest, done := context.WithTimeout(context.Background(), install.CloseWait)
	defer done()
	if err := srv.Shutdown(rest); err != nil {
		srv.Close()
	}
	if err := b.fleet.Close(rest); err != nil {
		b.log.Error("a server could not be stopped in time", "error", finding.Quote(err.Error()))
	}
	return nil
}
