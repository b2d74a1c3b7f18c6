// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"

	"github.com/pellucid-mcp/pellucid/boundary/policy"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// blocked asks whether what the server answers is withheld for what its text has done
// before. It returns why then, or ok. A person who has released the answer
// knows better.
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
