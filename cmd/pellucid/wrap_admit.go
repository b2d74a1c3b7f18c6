// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/boundary/admit"
	"github.com/pellucid-mcp/pellucid/boundary/fleet"
	"github.com/pellucid-mcp/pellucid/boundary/gateway"
	"github.com/pellucid-mcp/pellucid/boundary/reviewer"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/boundary/surface"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/platform/build"
	"github.com/pellucid-mcp/pellucid/platform/child"
)

// wrapModes are the values of --pins.
var wrapModes = map[string]admit.Mode{"enforce": admit.Enforce, "audit": admit.Audit, "off": admit.Off}

// maxPinName bounds --pin.
const maxPinName = 256

// An admission is the check of the one server that is wrapped.
type admission struct {
	c      *wrapCmd
	opt    admit.Options
	review *reviewer.Model
	cut    atomic.Pointer[admit.Conn]
	out    atomic.Bool // the server was rejected after all
}

// admissions opens what the check needs; nil where there is none. Pins and verdicts are
// files unless a database is named: it would be the larger part of this process.
func (c *wrapCmd) admissions(review *rules.Review, log *slog.Logger) (*admission, error) {
	if c.Pins == "off" {
		return nil, nil
	}
	a := &admission{c: c}
	a.opt = admit.Options{Log: log, Alone: true, Out: func(string) {
		a.out.Store(true)
		if conn := a.cut.Load(); conn != nil {
			conn.Cut()
		}
	}}
	var cache surface.Cache
	if c.DB != "" {
		a.opt.Pins, a.opt.Versions, cache = surface.NewPins(c.store, nil), c.store.PinVersions, c.store
		if c.kept != nil {
			a.opt.Pins = a.opt.Pins.WithEvidence(c.kept.Pin)
		}
	} else {
		files, err := install.PinFiles()
		if err != nil {
			return nil, err
		}
		a.opt.Pins, cache = surface.NewPins(files, nil), files
		a.opt.Version = files.PinVersion
	}
	if review == nil {
		return a, nil
	}
	verifying := func(server string, s surface.Step) {
		log.Info("verifying the server by a model", "part", s.Chunk, "of", s.Chunks, "tokens", s.Tokens)
	}
	var err error
	if a.review, err = reviewer.New(review, cache, verifying); err != nil {
		return nil, exit.With(exit.Usage, fmt.Errorf("wrap: the review: %w", err))
	}
	a.opt.Review = func() func(server, transport string) *surface.Review { return a.review.Review }
	return a, nil
}

func (a *admission) close() {
	if a != nil && a.review != nil {
		a.review.Close()
	}
}

// called is what people call the server: the name that it was given, or that of its
// program or host.
func (c *wrapCmd) called(address string) string {
	if c.Name != surface.DefaultName {
		return c.Name
	}
	return surface.NameOf(c.Command, address)
}

// run is gateway.Run of a server that is checked before a word of it passes.
func (a *admission) run(ctx context.Context, front wire.Conn, cfg gateway.Config, dial fleet.Dialer, name, identity string) error {
	c := a.c
	all := admit.New(a.opt)
	defer all.Close()
	all.Set([]admit.Config{{
		Name: c.Name, Called: name, Pin: cmp.Or(c.Pin, identity), Transport: identity, Policy: admit.Policy{Mode: wrapModes[c.Pins], Narrow: !c.Wide},
		Collect: func(ctx context.Context, bare bool) (*surface.Surface, error) {
			return surface.CollectWhole(ctx, surface.CollectOptions{Version: build.Read().Version, Bare: bare}, dial.Talk)
		},
	}})
	server := all.Server(c.Name)
	cfg.Admission = server
	var last atomic.Pointer[fleet.Child]
	up, err := server.Conn(ctx, func(ctx context.Context) (wire.Conn, error) {
		conn, err := dial(ctx)
		if child, is := conn.(*fleet.Child); is {
			last.Store(child)
		}
		return conn, err
	}, build.Read().Version)
	if err != nil {
		front.Close()
		return exit.With(exit.Unreachable, err)
	}
	a.cut.Store(up)
	if err = gateway.Run(ctx, front, up, cfg); err == nil && ctx.Err() == nil {
		err = up.Err() // the client has left before it heard of it
	}
	switch {
	case errors.Is(err, admit.ErrRejected):
		return exit.With(exit.Rejected, fmt.Errorf("wrap: %w", cmp.Or(up.Err(), err)))
	case a.out.Load():
		return exit.With(exit.Rejected, errors.New("wrap: the server was rejected after all: pellucid pins list says why"))
	case err == nil, ctx.Err() != nil:
		return nil
	case errors.Is(err, child.ErrStart):
		return exit.With(exit.Unreachable, err)
	case errors.Is(err, wire.ErrUnreachable):
		return exit.With(exit.Unreachable, fmt.Errorf("wrap: the server cannot be reached: %s", surface.WhyUnreachable(err)))
	}
	if child := last.Load(); child != nil && errors.Is(err, gateway.ErrUpstreamGone) {
		c.lastWords(cfg.Log)
		return fmt.Errorf("wrap: the server ended: %s", child.Exit())
	}
	return err
}
