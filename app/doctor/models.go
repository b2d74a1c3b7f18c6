// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"maps"
	"slices"

	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

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
