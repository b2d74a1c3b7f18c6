// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"strings"

	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/boundary/fleet"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/boundary/surface"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// shownNames reports the pinned tools and prompts that have another name at /mcp than PREFIX_NAME.
func (x *examiner) shownNames(ctx context.Context, cfg *rules.Rules) {
	if cfg == nil {
		return
	}
	for _, where := range x.stores {
		x.shownNamesIn(ctx, cfg, where)
	}
}

// shownNamesIn looks at a store, if it is of this release.
func (x *examiner) shownNamesIn(ctx context.Context, cfg *rules.Rules, where string) {
	ctx, stop := context.WithTimeout(ctx, maxWait)
	defer stop()
	store := openCurrent(ctx, where)
	if store == nil {
		return
	}
	defer store.Close()
	pins := surface.NewPins(store, nil)
	for _, s := range cfg.Servers {
		pin, err := pins.Get(ctx, install.PinnedAs(s))
		if err != nil {
			continue
		}
		var list []string
		for _, it := range pin.Items {
			if it.Kind != surface.Tool && it.Kind != surface.Prompt {
				continue
			}
			if shown, plain := fleet.NameOf(s.Name, s.Prefix, it.Name); !plain {
				list = append(list, finding.Quote(it.Name)+" is "+shown)
			}
		}
		if n := len(list); n > 0 {
			more := map[bool]string{true: " and others"}[n > maxNamed]
			x.report.add("names", OK, "%s: in the names at /mcp, %s%s", finding.Quote(s.Name), strings.Join(list[:min(n, maxNamed)], ", "), more)
		}
	}
}
