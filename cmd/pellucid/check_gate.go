// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/boundary/reviewer"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/boundary/surface"
)

// places opens what keeps pins and verdicts: the database, where one is named or the
// configuration of up is given, else files.
func (c *checkCmd) places(ctx context.Context) (surface.PinStore, surface.Cache, func(), error) {
	if c.DB == "" && c.configuration == nil {
		files, err := install.PinFiles()
		return files, files, func() {}, err
	}
	s, err := install.OpenPins(ctx, c.DB, !c.NoPin)
	if err != nil || s == nil {
		return nil, nil, func() {}, err
	}
	return s, s, func() { s.Close() }, nil
}

// gate is the check that every server passes. Verdicts are remembered beside the pins.
func (c *checkCmd) gate(ctx context.Context, review *rules.Review, progress *verifying) (*surface.Gate, func(), error) {
	g := &surface.Gate{Rules: surface.Rules{Narrow: !c.Wide}}
	pins, cache, done, err := c.places(ctx)
	if err != nil {
		return nil, nil, err
	}
	if pins != nil {
		g.Pins = surface.NewPins(pins, nil)
		if c.NoPin {
			g.Pins, cache = surface.NewPins(unchanged{pins}, nil), unlearned{cache}
		}
	}
	if review == nil {
		return g, done, nil
	}
	reviewing, err := reviewer.New(review, cache, progress.part)
	if err != nil {
		done()
		return nil, nil, exit.With(exit.Usage, fmt.Errorf("check: the review: %w", err))
	}
	g.Review = reviewing.Review
	return g, func() { reviewing.Close(); done() }, nil
}

// unchanged is a store in which nothing is saved.
type unchanged struct{ surface.PinStore }

func (unchanged) SavePin(context.Context, string, []byte, int64, []byte) error { return nil }

// unlearned is a cache to which nothing is added.
type unlearned struct{ surface.Cache }

func (unlearned) PutVerdict(context.Context, surface.Digest, []byte) error { return nil }
