// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"

	"github.com/pellucid-mcp/pellucid/boundary/policy"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// blocked returns why the answer of the server is withheld for what its text has done
// before, or ok. The decision of a person who has released the answer goes before.
func (in *inspection) blocked() finding.Code {
	if in.cfg.Blocks == nil || in.p.released != "" || !in.ofTool() && (in.p.msg.Kind != wire.Response || !in.marked) {
		return ok
	}
	ctx, done := in.p.store.within(context.Background())
	b, found := in.cfg.Blocks.Covering(ctx, in.cfg.Name, in.p.tool, in.w.grown.texts)
	done()
	if !found {
		return ok
	}
	in.d.Policy.Match = policy.Match{Action: policy.Hold, Rule: ruleBlock + b.Scope()}
	in.cfg.tellPolicy(&in.d)
	return in.cfg.stopCode(policy.Hold)
}

// ruleBlock begins the rule by which a Block withholds.
const ruleBlock = "quarantine-"
