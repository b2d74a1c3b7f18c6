package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/pellucid-mcp/pellucid/internal/auth"
	"github.com/pellucid-mcp/pellucid/internal/loopback"
)

// hostFlags say under which names clients reach a server of ours.
type hostFlags struct {
	AllowHost []string `placeholder:"HOST" help:"Name or address under which clients reach this server, if not that of loopback; may be repeated."`
}

// check refuses names and origins that are none, and an address that others reach where
// no name is given or open says why anybody may not.
func (f *hostFlags) check(addr string, origins []string, open error) error {
	if err := auth.CheckLocal(f.AllowHost, origins); err != nil {
		return err
	}
	switch {
	case loopback.Listener(addr):
		return nil
	case open != nil:
		return open
	case len(f.AllowHost) == 0:
		return errors.New("an address that is not loopback needs --allow-host: under which name do clients reach it?")
	}
	return nil
}

// newServer returns a server whose clients cannot make it wait or remember: every
// listener of ours is one. There is no bound to the time of an answer, which may be
// a stream.
func newServer(h http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler: h, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
}

// shutdownWait is what clients get to finish everything once a server is to end.
const shutdownWait = 5 * time.Second

// listenAndServe serves h at addr until ctx ends, and requests that are under way then
// for grace. announce is told where that is.
func listenAndServe(ctx context.Context, addr string, h http.Handler, grace time.Duration, announce func(addr string), log *slog.Logger) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	base, cancel := context.WithCancel(context.Background())
	defer cancel()
	srv := newServer(h, log)
	srv.BaseContext = func(net.Listener) context.Context { return base }
	announce(l.Addr().String())
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(l) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	defer time.AfterFunc(grace, cancel).Stop() // streams do not end by themselves
	wait, done := context.WithTimeout(context.Background(), shutdownWait)
	defer done()
	if srv.Shutdown(wait) != nil {
		srv.Close()
	}
	return nil
}
