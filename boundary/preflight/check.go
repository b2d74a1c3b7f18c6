// SPDX-License-Identifier: Apache-2.0

// Package preflight checks what servers say of themselves before a client starts them, and reports it.
package preflight

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/boundary/pinview"
	"github.com/pellucid-mcp/pellucid/boundary/surface"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
)

// A Checker checks servers one after the other. It calls no tool of them.
type Checker struct {
	Rules surface.Rules // but for Reject: hidden text always rejects
	// Pins keeps what servers said before; nil: a server is compared with nothing.
	Pins     surface.PinStore
	NoPin    bool                                           // Pins is read and not changed
	Review   func(server, transport string) *surface.Review // nil: no model is asked
	Disabled bool                                           // check also what a file has disabled
	Timeout  time.Duration                                  // of one server
	Save     func(*surface.Surface) error                   // gets every surface that could be read; may be nil
	Begin    func(*Target)                                  // is called before each target; may be nil
}

// Run checks the targets and puts the report together.
func (c *Checker) Run(ctx context.Context, targets []*Target) (*Report, error) {
	r := &Report{Conclusion: string(surface.Clean), Servers: []*Server{}}
	surfaces := map[string]*surface.Surface{}
	for _, t := range targets {
		if c.Begin != nil {
			c.Begin(t)
		}
		one, s, err := c.one(ctx, t)
		if err != nil {
			return nil, err
		}
		if s != nil {
			surfaces[cmp.Or(t.Name, t.File)] = s
		}
		r.Servers = append(r.Servers, one)
	}
	r.conclude()
	for _, sh := range surface.Shadows(surfaces) {
		r.Shadows = append(r.Shadows, Shadow{string(sh.How), sh.Server, strings.TrimSpace(sh.Place.String()), sh.Other, sh.Tool, sh.Place.Key, sh.Place.Path})
	}
	return r, nil
}

var errInterrupted = errors.New("check: interrupted, so there is no report")

// one checks one server. The error is of what no server is to blame for.
func (c *Checker) one(ctx context.Context, t *Target) (*Server, *surface.Surface, error) {
	out := &Server{Name: t.Name, Client: t.client, File: t.File, NotInspected: []string{}}
	switch {
	case t.disabled && !c.Disabled:
		out.Conclusion, out.Why = skipped, "the file has disabled it; --server NAME checks it all the same"
		return out, nil, nil
	case t.Declined:
		out.Conclusion, out.Why = notChecked, "not started: you said no"
		return out, nil, nil
	}
	s, err := t.collect(ctx, c.Timeout, false)
	var refused *surface.RefusedError
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return nil, nil, errInterrupted
	case errors.As(err, &refused) && refused.Reason != surface.NoAnswer && refused.Reason != surface.NoServer:
		out.Conclusion, out.Why = string(surface.Rejected), err.Error()
		return out, nil, nil
	default:
		out.Conclusion, out.Why = Unreachable, surface.WhyUnreachable(err)
		if surface.WantsLogin(err) {
			out.Why += ": pellucid login " + terminal.ShellWord(cmp.Or(t.entry, t.Name))
		}
		if t.started != nil { // of a URL all is said already
			out.Stderr = t.stderr.Lines()
			out.Lacks, out.Withheld = t.started.Lacks(out.Stderr), t.started.Withheld()
		}
		return out, nil, nil
	}
	if c.Save != nil {
		if err := c.Save(s); err != nil {
			return nil, nil, err
		}
	}
	g, err := c.gate(ctx, t)
	if err != nil {
		return nil, nil, err
	}
	o, err := g.Check(ctx, t.pinnedAs(), t.identity, s)
	if err != nil && ctx.Err() != nil {
		return nil, nil, errInterrupted
	} else if err != nil {
		return nil, nil, fmt.Errorf("check: %w", err)
	}
	o.Pinned = o.Pinned && !c.NoPin
	out.Pin = t.pinnedAs()
	out.fill(s, o)
	if stray := t.stderr.Stray(); stray != "" {
		out.NotInspected = append(out.NotInspected, stray)
	}
	return out, s, nil
}

// gate is the check that a server passes.
func (c *Checker) gate(ctx context.Context, t *Target) (*surface.Gate, error) {
	g := &surface.Gate{Rules: c.Rules, Review: c.Review}
	g.Rules.Reject = true
	if t.dump == nil {
		g.Bare = func(ctx context.Context) (*surface.Surface, error) { return t.collect(ctx, c.Timeout, true) }
	}
	if c.Pins == nil {
		return g, nil
	}
	store := c.Pins
	if c.NoPin {
		store = unchanged{store}
	}
	pins := surface.NewPins(store, nil)
	if t.pinnedAs() == "" { // a saved surface is compared with the pin of the name that it is given
		if t.Name == "" {
			return g, nil
		}
		found, err := pins.Find(ctx, t.Name)
		switch {
		case err != nil:
			return nil, fmt.Errorf("check: %w", err)
		case len(found) > 1:
			return nil, invalid(ErrUsage, pinview.Several("check", t.Name, found))
		case len(found) == 1:
			t.pin = found[0]
		default:
			t.pin = t.Name
		}
	}
	g.Pins = pins.Named(t.Name)
	return g, nil
}

// unchanged is a store in which nothing is saved.
type unchanged struct{ surface.PinStore }

// SavePin saves nothing.
func (unchanged) SavePin(context.Context, string, []byte, int64, []byte) error { return nil }

// Unlearned is a cache to which nothing is added.
type Unlearned struct{ surface.Cache }

// PutVerdict does nothing.
func (Unlearned) PutVerdict(context.Context, surface.Digest, []byte) error { return nil }
