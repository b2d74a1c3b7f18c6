// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
)

// openGround opens the adapter of a gateway that serves one.
func (b *Gateway) openGround(r *rules.Rules) error {
	if !b.opt.Ground && r.Ground == nil && b.src.path != "" {
		if b.opt.GroundDB != "" && b.opt.GroundDB != b.opt.Database {
			return exit.With(exit.Usage, errors.New("up: --db is the store of the grounding adapter, which is not served: say --ground, or set store in the configuration"))
		}
		return nil
	}
	dir, err := install.Open()
	if err != nil {
		return err
	}
	p := planGround(r, b.opt.GroundDB, b.opt.Database)
	p.Ring, p.Log, p.Notice = b.ring, b.log, b.opt.Stderr
	if b.ground, err = OpenGround(context.Background(), dir, p); err == nil {
		b.ground.memory = b.memory
	}
	return err
}
