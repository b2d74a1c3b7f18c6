// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/platform/auth"
	"github.com/pellucid-mcp/pellucid/platform/loopback"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// hostFlags say under which names clients reach a server of ours.
type hostFlags struct {
	AllowHost []string `placeholder:"HOST" help:"Name or address under which clients reach this server, if not that of loopback; may be repeated."`
}

// check refuses names and origins that are none, what is no address, and an address that
// others reach where no name is given or open says why anybody may not.
func (f *hostFlags) check(flag, addr string, origins []string, open error) error {
	if err := auth.CheckLocal(f.AllowHost, origins); err != nil {
		return err
	}
	if err := checkAddress(flag, addr); err != nil {
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

// checkAddress refuses what nobody can listen at.
func checkAddress(flag, addr string) error {
	host := ""
	if strings.HasPrefix(addr, ":") { // everywhere
		host = "0.0.0.0"
	}
	if rules.IsListen(host + addr) {
		return nil
	}
	return fmt.Errorf("%s: want HOST:PORT with an IP address or localhost, such as %s, not %s", flag, rules.DefaultListen, finding.Quote(addr))
}

// listen is net.Listen at an address that was checked. The error says what to do.
func listen(flag, addr string) (net.Listener, error) {
	l, err := net.Listen("tcp", addr)
	switch {
	case err == nil:
		return l, nil
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("cannot listen at %s: something else does already: stop it, or say another address by %s", addr, flag)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return nil, fmt.Errorf("cannot listen at %s: it is no address of this machine: say another one by %s", addr, flag)
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("cannot listen at %s: permission denied: say a port from 1024 on by %s", addr, flag)
	}
	return nil, fmt.Errorf("cannot listen: %w", err)
}

// newServer returns a server whose clients cannot make it wait or remember: every
// listener of ours is one. There is no bound to the time of an answer, which may be
// a stream.
func newServer(h http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler: unhurried(h), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
}

// unhurried bounds the time for what a handler has not read of a body. The server reads that
// before it answers: whoever is refused, and sends nothing, would keep a connection for good.
func unhurried(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r)
		if r.ContentLength != 0 {
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(restWait)) // the next request has its own
		}
	})
}

// restWait is what the rest of a body gets that nobody wants.
const restWait = 2 * time.Second

// shutdownWait is what clients get to finish everything once a server is to end.
const shutdownWait = 5 * time.Second

// listenAndServe serves h at addr, which flag names, until ctx ends, and requests that
// are under way then for grace. announce is told where that is.
func listenAndServe(ctx context.Context, flag, addr string, h http.Handler, grace time.Duration, announce func(addr string), log *slog.Logger) error {
	l, err := listen(flag, addr)
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
