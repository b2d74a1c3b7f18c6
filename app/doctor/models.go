// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/pellucid-mcp/pellucid/app/audit"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// reportFlagged has a line for each day and server of which a classifier has flagged texts.
func (x *examiner) reportFlagged(dir *state.Dir) {
	if dir == nil {
		return
	}
	for _, f := range audit.FlaggedDays(dir, time.Now()) {
		says := fmt.Sprintf("server %s on %s: %d texts look like injections, the worst (%.2f) by the sentence %s", finding.Quote(f.Server), f.Day, f.N, f.Classified.Score, f.Sentence)
		if f.Of != "" {
			says += ": pellucid explain " + f.Of
		}
		x.report.add("flagged", Warning, "%s", says)
	}
}

// models says which models of the provider local judge texts.
func (x *examiner) models(cfg *rules.Rules) {
	if cfg == nil {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.Classifiers)) {
		c := cfg.Classifiers[name]
		if c.Provider != rules.Local {
			continue
		}
		file, deep, err := c.Deep()
		switch {
		case err != nil:
			x.report.add("model", Failed, "%s: %v", name, err)
		case deep != nil:
			x.report.add("model", OK, "%s: the fast model and the deep one: %s, %d bytes, sha256:%s", name, finding.Quote(file), deep.Size(), deep.Digest())
		case file != "":
			x.report.add("model", Warning, "%s: the fast model alone, since the file %s is missing", name, finding.Quote(file))
		default:
			x.report.add("model", OK, "%s: the fast model alone: no deep model is configured", name)
		}
	}
}
