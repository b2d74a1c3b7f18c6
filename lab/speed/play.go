// SPDX-License-Identifier: Apache-2.0

package speed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/boundary/gateway"
	"github.com/pellucid-mcp/pellucid/boundary/meter"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/platform/auth"
	"github.com/pellucid-mcp/pellucid/platform/child"
	"github.com/pellucid-mcp/pellucid/text/frame"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// The ways between a client and a server that are compared.
const (
	Direct      = "direct"       // none
	reverse     = "ReverseProxy" // net/http/httputil's; over pipes, a process that copies bytes
	passThrough = "pass-through" // our codec and sessions, and no look at what passes
	checks      = "all checks"   // the gateway as it is served: checks, fences, records, metrics
)

// Ways lists them in the order of tables.
var Ways = []string{Direct, reverse, passThrough, checks}

// A Role is what one process of the measurement plays.
type Role struct {
	Name     string   // "upstream" or a way
	Upstream string   // URL of the server; "" = over pipes
	Command  []string // of the server, over pipes
}

// announce begins the one line on standard error by which a role says where its usage is asked.
const announce = "speed: at "

var limits = strictjson.Limits{MendSurrogates: true}

// Play plays a role until in ends. It is what a child process of [MeasureGateway] runs.
func Play(role Role, in io.Reader, out, errs io.Writer) error {
	if role.Upstream == "" && role.Name != "upstream" || len(role.Command) > 0 {
		return playPipe(role, in, out, errs)
	}
	handler, shutdown, err := role.handler()
	if err != nil {
		return err
	}
	if role.Name != "upstream" {
		defer shutdown()
		return Host(handler, in, errs)
	}
	s, err := serve(handler, errs)
	if err != nil {
		return err
	}
	defer s.Close()
	return serveLines(in, out) // until in ends; over HTTP nothing comes here
}

// Host serves a handler in the place of one of the ways until in ends. It is what the
// child process of a [Layer] runs.
func Host(h http.Handler, in io.Reader, errs io.Writer) error {
	s, err := serve(h, errs)
	if err != nil {
		return err
	}
	defer s.Close()
	_, err = io.Copy(io.Discard, in)
	return err
}

// serve serves a handler, and this process's usage beside it, on a port of its own.
func serve(handler http.Handler, errs io.Writer) (*http.Server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("speed: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/usage", func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(readUsage()) })
	if handler != nil {
		mux.Handle("/", handler)
	}
	s := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go s.Serve(l)
	fmt.Fprintf(errs, "%s%s\n", announce, l.Addr())
	return s, nil
}

func (role Role) handler() (h http.Handler, shutdown func(), err error) {
	nothing := func() {}
	switch role.Name {
	case "upstream":
		return http.HandlerFunc(serveUpstream), nothing, nil
	case reverse:
		target, err := url.Parse(role.Upstream)
		if err != nil {
			return nil, nil, fmt.Errorf("speed: %w", err)
		}
		proxy := &httputil.ReverseProxy{
			Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(target) },
			Transport: sharedPool(),
		}
		return buffered(proxy), nothing, nil
	case passThrough, checks:
		serve, err := role.serve()
		if err != nil {
			return nil, nil, err
		}
		front := wire.NewFront(wire.FrontOptions{Accept: func(ctx context.Context, s *wire.FrontSession, ended func(error)) {
			go func() { ended(serve(ctx, s)) }()
		}})
		return auth.Local(auth.LocalOptions{}, front), func() {
			ctx, stop := context.WithTimeout(context.Background(), time.Second)
			defer stop()
			_ = front.Shutdown(ctx)
		}, nil
	}
	return nil, nil, errors.New("speed: no such role")
}

func (role Role) serve() (func(context.Context, wire.Conn) error, error) {
	opt := wire.HTTPOptions{Limits: limits, Pool: sharedPool()}
	cfg, err := config()
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, s wire.Conn) error {
		up, err := wire.NewHTTP(role.Upstream, opt)
		if err != nil {
			return err
		}
		if role.Name == passThrough {
			return relay(ctx, wire.Pull(s), wire.Pull(up))
		}
		return gateway.Run(ctx, s, up, cfg)
	}, nil
}

// config is that of a gateway with everything on.
func config() (gateway.Config, error) {
	m, err := meter.New(meter.Options{})
	if err != nil {
		return gateway.Config{}, fmt.Errorf("speed: %w", err)
	}
	m.Approve(map[string][]string{"upstream": {toolName}})
	return gateway.Config{Name: "upstream", Key: frame.Key{}, Observer: m,
		Sink: gateway.Tee(gateway.NewLines(io.Discard), m)}, nil
}

// sharedPool keeps as many connections as there are sessions at most: every
// proxy has the same.
func sharedPool() *wire.Pool {
	p := wire.NewPool(wire.HTTPOptions{})
	p.MaxIdleConns, p.MaxIdleConnsPerHost = 2*mostSessions, 2*mostSessions
	return p
}

// buffered reads a request whole before it goes to next: a ReverseProxy that still sends the body may cut the answer
// short.
func buffered(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		next.ServeHTTP(w, r)
	})
}

// playPipe starts the server as its own child and stands between it and the pipes.
func playPipe(role Role, in io.Reader, out, errs io.Writer) error {
	s, err := serve(nil, errs)
	if err != nil {
		return err
	}
	defer s.Close()
	p, err := child.Start(child.Command{Args: role.Command})
	if err != nil {
		return fmt.Errorf("speed: %w", err)
	}
	defer p.Stop(context.Background())
	if role.Name == reverse {
		go func() {
			io.Copy(p.Stdin, in)
			p.Stdin.Close()
		}()
		_, err := io.Copy(out, p.Stdout)
		return err
	}
	front := wire.NewLines(in, out, wire.LinesOptions{})
	up := wire.NewLines(p.Stdout, p.Stdin, wire.LinesOptions{Limits: limits})
	if role.Name == passThrough {
		return relay(context.Background(), wire.Pull(front), wire.Pull(up))
	}
	cfg, err := config()
	if err != nil {
		return err
	}
	return gateway.Run(context.Background(), front, up, cfg)
}

// IsRole reports whether Play knows the role.
func IsRole(name string) bool {
	switch name {
	case "upstream", reverse, passThrough, checks:
		return true
	}
	return false
}
