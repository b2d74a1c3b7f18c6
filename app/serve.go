// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/platform/listen"
	"github.com/pellucid-mcp/pellucid/platform/loopback"
	"github.com/pellucid-mcp/pellucid/platform/resident"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// Serve listens until ctx ends, and then ends sessions and servers in good order. again is called
// as soon as ctx has ended, so that a second signal can end the process at once.
func (b *Gateway) Serve(ctx context.Context, again func()) error {
	l, inherited, err := b.socket()
	if err != nil {
		return err
	}
	var last atomic.Bool // each answer is the last one of its connection
	srv := listen.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if last.Load() {
			w.Header().Set("Connection", "close")
		}
		b.ServeHTTP(w, r)
	}), b.log)
	b.announce(l.Addr().String())
	if b.rules.Load().Console != nil {
		defer publishConsole(b.listen, b.log)()
	}
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
	// A request that was on its way is served, and ends its connection; an idle connection is closed a
	// little later, so that few requests meet its end. New connections are for the next process where they
	// can wait for it. Otherwise they are served here: /readyz has to say that the gateway ends.
	last.Store(true)
	if inherited {
		l.Close()
	}
	stopWatching()
	time.Sleep(idleLinger)
	srv.SetKeepAlivesEnabled(false)
	<-watched
	return b.drain(srv)
}

// idleLinger is how long idle connections stay open once the gateway is to end.
const idleLinger = 250 * time.Millisecond

// bind opens the socket of Serve, or takes the one that the process was started with.
func bind(addr string) (l net.Listener, inherited bool, err error) {
	l, err = listen.Inherited()
	inherited = l != nil
	if l == nil && err == nil {
		l, err = listen.At("--listen", addr)
	}
	if err != nil {
		return nil, false, fmt.Errorf("up: %w", err)
	}
	return l, inherited, nil
}

// socket is the one that Serve listens on.
func (b *Gateway) socket() (l net.Listener, inherited bool, err error) {
	if b.bound == nil {
		if b.bound, b.inherited, err = bind(b.listen); err != nil {
			return nil, false, err
		}
	}
	l, b.bound = b.bound, nil
	// A socket that was inherited may be another one than the configuration says.
	if !loopback.Listener(l.Addr().String()) && !b.rules.Load().Auth.Set() {
		l.Close()
		return nil, false, exit.With(exit.Usage, fmt.Errorf("up: the socket at %s is not loopback: that needs auth in the configuration", l.Addr()))
	}
	b.listen = l.Addr().String()
	return l, b.inherited, nil
}

// drain refuses what is new, and waits for what is under way.
func (b *Gateway) drain(srv *listen.Server) error {
	limit := b.rules.Load().HTTP.Drain
	b.log.Info("shutting down: open requests may finish", "within", limit.String())
	b.health.Drain()
	b.replicas.giveAway()
	ctx, stop := context.WithTimeout(context.Background(), limit)
	defer stop()
	err := b.shutdownFronts(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		b.log.Warn("requests that were open after http.drain were ended")
	}
	b.replicas.awaitOthers(ctx)
	rest, done := context.WithTimeout(context.Background(), install.CloseWait)
	defer done()
	if err := srv.Shutdown(rest); err != nil { // what comes until then is for other replicas
		srv.Close()
	}
	if err := b.fleet.Close(rest); err != nil {
		b.log.Error("a server process could not be stopped in time", "error", finding.Quote(err.Error()))
	}
	return nil
}
