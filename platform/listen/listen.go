// SPDX-License-Identifier: Apache-2.0

// Package listen opens listeners and runs HTTP servers, which limit the time for a request and the size of its headers.
package listen

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/auth"
	"github.com/pellucid-mcp/pellucid/platform/loopback"
	"github.com/pellucid-mcp/pellucid/platform/syserror"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// Default is the address of a gateway whose configuration names none.
const Default = "127.0.0.1:7420"

// IsAddress reports whether s is a port of an IP address or of localhost. No other name is
// allowed: whoever answers for that name would decide where this program listens.
func IsAddress(s string) bool {
	if port, ok := strings.CutPrefix(s, "localhost:"); ok {
		s = "127.0.0.1:" + port
	}
	_, err := netip.ParseAddrPort(s)
	return err == nil && !strings.Contains(s, "%")
}

// CheckHosts checks the address that flag names, and the hosts and origins under which
// clients reach it. An address that other machines reach needs a host; open, if not nil, is
// the error that refuses every such address.
func CheckHosts(flag, addr string, hosts, origins []string, open error) error {
	if err := auth.CheckLocal(hosts, origins); err != nil {
		return err
	}
	if err := CheckAddress(flag, addr); err != nil {
		return err
	}
	switch {
	case loopback.Listener(addr):
		return nil
	case open != nil:
		return open
	case len(hosts) == 0:
		return errors.New("an address that is not loopback needs --allow-host: under which name do clients reach it?")
	}
	return nil
}

// CheckAddress refuses what no listener can be opened at.
func CheckAddress(flag, addr string) error {
	host := ""
	if strings.HasPrefix(addr, ":") { // everywhere
		host = "0.0.0.0"
	}
	if IsAddress(host + addr) {
		return nil
	}
	return fmt.Errorf("%s: want HOST:PORT with an IP address or localhost, such as %s, not %s", flag, Default, finding.Quote(addr))
}

// At is net.Listen at an address that was checked. The error says what to do.
func At(flag, addr string) (net.Listener, error) {
	l, err := net.Listen("tcp", addr)
	switch {
	case err == nil:
		return l, nil
	case syserror.InUse(err):
		return nil, fmt.Errorf("cannot listen at %s: something else does already: stop it, or say another address by %s", addr, flag)
	case syserror.NotHere(err):
		return nil, fmt.Errorf("cannot listen at %s: it is no address of this machine: say another one by %s", addr, flag)
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("cannot listen at %s: permission denied: say a port from 1024 on by %s", addr, flag)
	}
	return nil, fmt.Errorf("cannot listen: %w", err)
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

// ShutdownWait is what clients get to finish everything once a server is to end.
const ShutdownWait = 5 * time.Second

// Serve serves h at addr, which flag names, until ctx ends, and requests that
// are under way then for grace. announce is told where that is.
func Serve(ctx context.Context, flag, addr string, h http.Handler, grace time.Duration, announce func(addr string), log *slog.Logger) error {
	l, err := At(flag, addr)
	if err != nil {
		return err
	}
	base, cancel := context.WithCancel(context.Background())
	defer cancel()
	srv := NewServer(h, log)
	srv.BaseContext = func(net.Listener) context.Context { return base }
	announce(l.Addr().String())
	if err := Until(ctx, srv, l); err != nil {
		return err
	}
	defer time.AfterFunc(grace, cancel).Stop() // streams do not end by themselves
	wait, done := context.WithTimeout(context.Background(), ShutdownWait)
	defer done()
	if srv.Shutdown(wait) != nil {
		srv.Close()
	}
	return nil
}

// Until has srv answer at l until ctx ends. What is under way then goes on: the caller shuts
// srv down.
func Until(ctx context.Context, srv *Server, l net.Listener) error {
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(l) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
		return nil
	}
}
