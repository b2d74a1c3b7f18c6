// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/boundary/preflight"
	"github.com/pellucid-mcp/pellucid/boundary/reviewer"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/boundary/surface"
)

// checker makes what checks the servers. Verdicts are remembered beside the pins.
func (c *checkCmd) checker(ctx context.Context, review *rules.Review, progress *preflight.Progress) (*preflight.Checker, func(), error) {
	k := &preflight.Checker{Rules: surface.Rules{Narrow: !c.Wide}, NoPin: c.NoPin, Disabled: c.Server != "", Timeout: c.Timeout, Begin: progress.Begin}
	if c.Dump != "" {
		k.Save = func(s *surface.Surface) error { return writeFile(c.Dump, s.AppendDump(nil)) }
	}
	pins, cache, done, err := install.PinsAndVerdicts(ctx, c.DB, c.configuration == nil, !c.NoPin)
	if err != nil {
		return nil, nil, err
	}
	k.Pins = pins
	if pins != nil && c.NoPin {
		cache = preflight.Unlearned{Cache: cache}
	}
	if review == nil {
		return k, done, nil
	}
	model, err := reviewer.New(review, cache, progress.Question)
	if err != nil {
		done()
		return nil, nil, exit.With(exit.Usage, fmt.Errorf("check: the review: %w", err))
	}
	k.Review = model.Review
	return k, func() { model.Close(); done() }, nil
}
